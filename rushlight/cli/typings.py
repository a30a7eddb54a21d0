"""Write a folder in which ``torch`` is another name of rushlight, for editors and type checkers.

Pyright and Pylance read ``typings/`` beside a program by themselves; mypy does with ``mypy_path = "typings"``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..compat import NAMES


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default="typings", help="where to write (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    from . import Mistake

    here = Path(__file__).parents[1]
    folder = Path(args.folder)
    for package, ours in NAMES.items():
        home = here.joinpath(*ours.split(".")[1:])
        for source in _public(home, set() if package != "torch" else _INSIDE):
            module = ".".join((ours, *source.relative_to(home).parent.parts, *_own_name(source)))
            try:
                _write(folder / package / source.relative_to(home).with_suffix(".pyi"), module)
            except OSError as error:
                raise Mistake(f"cannot write there: {error}") from None
    print(f"{folder}/torch and {folder}/torchvision are names of rushlight now, for editors and type checkers")
    return 0


def _public(home: Path, inside: set[str]):
    """The files of a package but for internals, whose names are not PyTorch's."""
    for source in sorted(home.rglob("*.py")):
        parts = source.relative_to(home).with_suffix("").parts
        if parts[0] not in inside and not any(p.startswith("_") and p != "__init__" for p in parts):
            yield source


_INSIDE = {"absent", "cli", "engine", "inspect", "io", "ops", "vision"}


def _own_name(source: Path) -> list[str]:
    return [] if source.stem == "__init__" else [source.stem]


def _write(path: Path, module: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    version = "from rushlight import __version__ as __version__\n" if module == "rushlight" else ""
    path.write_text(f"from {module} import *\n{version}", encoding="utf-8")
