"""Measure rushlight beside PyTorch: run the files of ``bench/`` and print ours, PyTorch's, and the ratio."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def arguments(parser) -> None:
    parser.add_argument("names", nargs="*", help="only these files of bench/, or cases that contain these words")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--gpu", action="store_true", help="the cases for a GPU")
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch's column empty")
    parser.add_argument("--rounds", type=int, default=7, help="the best of so many alternating runs counts (7)")
    parser.add_argument("--threads", type=int, default=2, help="threads for each (2)")


def main(args) -> int:
    return _runner().run(args)


PLACES = (Path(__file__).parents[2] / "bench", Path(__file__).parent / "benchmarks")  # a checkout; installed


def installed(root) -> dict[str, str]:
    """The files of ``bench/`` -> where they are in an installed package; the build asks."""
    return {str(file): f"rushlight/cli/benchmarks/{file.name}" for file in sorted(Path(root, "bench").glob("*.py"))}


def _runner():
    """``run.py`` of the benchmarks."""
    from . import Mistake

    for folder in PLACES:
        if (folder / "run.py").is_file() and (folder / "harness.py").is_file():
            sys.path.insert(0, str(folder))
            spec = importlib.util.spec_from_file_location("rushlight_bench_run", folder / "run.py")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise Mistake("this installation has no benchmarks: install rushlight from a wheel, or run this in a checkout")
