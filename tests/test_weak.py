"""``utils.weak``: tables keyed by tensors themselves."""

from __future__ import annotations

import gc

import pytest

import rushlight
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary


def test_keys_are_told_apart_by_identity_and_leave():
    a, b = rushlight.ones(2), rushlight.ones(2)
    table = WeakIdKeyDictionary({a: 1})
    table[b] = 2
    assert [table[a], table[b], len(table), a in table, rushlight.ones(2) in table] == [1, 2, 2, True, False]
    assert 3 not in table and WeakTensorKeyDictionary is WeakIdKeyDictionary
    reference, other = TensorWeakRef(a), table.copy()
    assert reference() is a and list((table | {b: 3}).values()) == [1, 3]
    del a
    gc.collect()
    assert reference() is None and list(table.values()) == [2] and len(other) == 1 and next(iter(table)) is b
    assert table.pop(b) == 2 and not table
    with pytest.raises(AssertionError, match="expected torch"):
        TensorWeakRef([1])
