"""Builds the kernels in C when the package is installed; without a compiler the package is pure Python, and works.

The benchmarks go into the package too.
"""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = "rushlight/engine/native"


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        benchmarks = runpy.run_path(str(Path(self.root, "rushlight/cli/bench.py")))["installed"](self.root)
        build_data["force_include"].update(benchmarks)
        try:
            library = runpy.run_path(str(Path(self.root, NATIVE, "build.py")))["build"]()
        except (RuntimeError, OSError) as error:
            self.app.display_warning(f"rushlight is installed without its kernels in C: {error}")
            return
        build_data["artifacts"].append(f"{NATIVE}/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
