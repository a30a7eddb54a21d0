"""Kernels in C for what NumPy does in many passes on one thread; built at install where there is a compiler.

``library`` is the extension module, a function for each kernel (``src/*.c``), or None: then ``reason`` says why, and
everything works in plain NumPy. ``RUSHLIGHT_KERNELS=0`` in the environment turns it off.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ... import config

_HERE = Path(__file__).parent
_REBUILD = "run python -m rushlight.engine.native.build"


def _load() -> tuple[Any, str]:
    if os.environ.get("RUSHLIGHT_KERNELS") == "0":
        return None, "turned off by RUSHLIGHT_KERNELS=0"
    library = _HERE / "_kernels.abi3.so"
    if not library.exists():
        return None, f"not built, for want of a C compiler perhaps; {_REBUILD}"
    if _changed_since(library.stat().st_mtime):
        return None, f"built before its sources were last changed; {_REBUILD}"
    try:
        from . import _kernels  # type: ignore[attr-defined]
    except ImportError as error:
        return None, f"could not be loaded: {error}"
    return _kernels, ""


def _changed_since(built: float) -> bool:
    """Has a source changed? Beside an installed library there are none."""
    return any(source.stat().st_mtime > built for source in _HERE.glob("src/*"))


library, reason = _load()
if library is not None:
    library.set_threads(config.get_num_threads())
