"""Programs of a line or two, run by both libraries: what they print, or how they fail, must be the same.

The programs lie in ``small_programs/``, a file for each family, one program a line (``;`` and ``|`` part its lines; a
line that begins with ``#`` is a heading). A program leaves what is compared in ``r``.

    python tests/parity/test_small_programs.py              every program, printing those that differ
    python tests/parity/test_small_programs.py "r = …"      one program, as each library sees it
"""

from __future__ import annotations

import pathlib
import re
import sys
import warnings

import numpy as np
import pytest
import torch

import rushlight

HERE = pathlib.Path(__file__).with_name("small_programs")
FAMILIES = sorted(path.stem for path in HERE.glob("*.txt"))


def programs(family: str) -> list[str]:
    lines = (HERE / f"{family}.txt").read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def outcome(library, program: str) -> str:
    """What the program leaves in ``r``, as text; or its exception's type and the first words of its message."""
    names = dict(torch=library, nn=library.nn, F=library.nn.functional, np=np, Tensor=library.Tensor)
    library.manual_seed(0)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            exec(program.replace(" | ", "\n"), names)
            text = _text(names["r"])
        except Exception as error:
            return f"{type(error).__name__}: {_words(str(error))}"
    told = sorted({warning.category.__name__ for warning in heard if names.get("listen")})
    return " ".join([text, *told])


def _text(value) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value)).replace("-0.", "0.")
    return re.sub(r"\s+", " ", text.replace("rushlight.", "torch."))


def _words(message: str) -> str:
    """The beginning of a message, without what names a place in PyTorch's source."""
    return " ".join(message.split("\n")[0].split()[:6]).rstrip(".,:")


def differs(program: str) -> tuple[str, str] | None:
    theirs, ours = outcome(torch, program), outcome(rushlight, program)
    return None if theirs == ours else (theirs, ours)


@pytest.fixture(autouse=True)
def _every_warning():
    for library in (torch, rushlight):
        library.set_warn_always(True)
    torch.storage._reset_warn_typed_storage_removal()  # it is told once in a process, whatever one asks for
    rushlight.storage._warned = False
    yield
    for library in (torch, rushlight):
        library.set_warn_always(False)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    wrong = [(program, *found) for program in programs(family) if (found := differs(program))]
    assert not wrong, "\n\n".join(f"{p}\n    torch     {a}\n    rushlight {b}" for p, a, b in wrong)


def main(argv) -> int:
    torch.set_warn_always(True)
    rushlight.set_warn_always(True)
    chosen = [("given", argv)] if argv else [(family, programs(family)) for family in FAMILIES]
    count = wrong = 0
    for family, lines in chosen:
        for program in lines:
            count += 1
            theirs, ours = outcome(torch, program), outcome(rushlight, program)
            wrong += theirs != ours
            if argv or theirs != ours:
                print(f"{family}: {program}\n    torch     {theirs}\n    rushlight {ours}")
    print(f"{count} programs, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
