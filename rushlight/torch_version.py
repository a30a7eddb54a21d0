"""The version programs ask for: PyTorch's, whose behaviour is followed here; rushlight's own stands after the plus."""

from __future__ import annotations

import operator
import re

__all__ = ["TorchVersion"]

_PARTS = re.compile(r"v?(\d+(?:\.\d+)*)(?:[._-]?(dev|alpha|beta|a|b|c|rc|post)[._-]?(\d*))?(?:\+([a-z\d.]+))?", re.I)
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "": 0, "post": 1}


def __dir__():
    return __all__


class TorchVersion(str):
    """A version that compares with strings and tuples by its numbers.

    >>> TorchVersion = rushlight.torch_version.TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0+cpu") >= (2, 13), "2.13.0" > "2.9"
    (True, True, False)
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return _compared(self, other, operator.eq)

    def __ne__(self, other):
        return _compared(self, other, operator.ne)

    def __lt__(self, other):
        return _compared(self, other, operator.lt)

    def __le__(self, other):
        return _compared(self, other, operator.le)

    def __gt__(self, other):
        return _compared(self, other, operator.gt)

    def __ge__(self, other):
        return _compared(self, other, operator.ge)


def _compared(version, other, compare):
    text = ".".join(map(str, other)) if isinstance(other, (tuple, list)) else other
    if not isinstance(text, str) and not hasattr(text, "release"):  # packaging's Version has one
        return NotImplemented
    ours, theirs = _key(str(version)), _key(str(text))
    if ours is None or theirs is None:  # no version: as strings
        return compare(str(version), str(text))
    return compare(ours, theirs)


def _key(text: str) -> tuple | None:
    """What orders versions: the numbers without zeros at their end, the stage before a release, the local part."""
    found = _PARTS.fullmatch(text.strip())
    if found is None:
        return None
    numbers, stage, count, local = found.groups(default="")
    release = tuple(map(int, re.sub(r"(\.0+)+$", "", numbers).split(".")))
    parts = [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in local.lower().split(".") if p]
    return release, _STAGES[stage.lower()], int(count or 0), parts
