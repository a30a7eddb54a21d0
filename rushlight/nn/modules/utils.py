"""Sizes that may be given as one number: ``_pair(3)`` is ``(3, 3)``. Other people's layers import these."""

from __future__ import annotations

import collections.abc
import itertools


def _ntuple(n: int, name: str = "parse"):
    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")
