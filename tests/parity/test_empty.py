"""Operators of inputs without elements, beside PyTorch: ``emptydb.py`` has the table; here every fifth entry."""

from __future__ import annotations

import os

import emptydb
import opdb
import pytest

_CHOSEN = emptydb.NAMES if os.environ.get("RUSHLIGHT_PARITY") == "all" else emptydb.NAMES[::5]
# What had failed once.
_ALWAYS = ["unbind", "scatter", "index_fill", "nn.functional.embedding", "nn.functional.grid_sample", "logical_and",
           "nn.functional.conv_transpose2d", "take_along_dim", "bincount", "nn.functional.max_unpool2d"]  # fmt: skip


@pytest.mark.parametrize("name", list(dict.fromkeys([*_ALWAYS, *_CHOSEN])))
def test_empty_inputs(name):
    if not emptydb.kept(name):
        assert emptydb.differences(opdb.ENTRIES[name]) == []
