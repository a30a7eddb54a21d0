"""Tests that need PyTorch, the oracle: ``pip install rushlight[parity]``. Without it they are not collected."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # the tests share opdb.py and convert.py
if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["*"]

_scores: dict = {}


@pytest.fixture
def parity_score():
    """``parity_score(mode)``: where test_opdb counts; printed at the end of the run."""
    import opdb

    return lambda mode: _scores.setdefault(mode, opdb.Score())


def pytest_terminal_summary(terminalreporter):
    for mode, score in _scores.items():
        terminalreporter.write_line(f"operator database, {mode}: {score.text()}")
