"""Sizes that may be given as one number: ``_pair(3)`` is ``(3, 3)``. Other people's layers import these."""

from __future__ import annotations

import collections.abc
import itertools


def _ntuple(n: int, name: str = "parse"):
    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


def _reverse_repeat_tuple(t, n: int) -> tuple:
    """Each element ``n`` times, the last first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Take ``prefix`` off the names of a state dict, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata: dict = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if key]:
        own = key.replace(".", "") == prefix.replace(".", "")
        if own or key.startswith(prefix):
            metadata["" if own else key.removeprefix(prefix)] = metadata.pop(key)


_single, _pair = _ntuple(1, "_single"), _ntuple(2, "_pair")
_triple, _quadruple = _ntuple(3, "_triple"), _ntuple(4, "_quadruple")
