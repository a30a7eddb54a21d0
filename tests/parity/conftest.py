"""Tests that need PyTorch, the oracle: ``pip install rushlight[parity]``. Without it they are not collected."""

from __future__ import annotations

import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # the tests share opdb.py and convert.py
if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["*"]
else:
    import torch
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    # Its databases look through the whole stack for the unittest that asks for samples: there is none.
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None
    if not torch.cuda.is_available():
        # torch.manual_seed notes for three kinds of devices, with a traceback each, what to do when there is one; every
        # sample of the databases is seeded.
        for module in (torch.cuda.random, torch.xpu.random, torch.mtia):
            module._lazy_call = lambda *_, **__: None


@pytest.fixture
def parity_score(record_property):
    """``parity_score(database, mode, entry)``: the test is about this; counted at the end of the run."""
    return lambda *about: record_property("parity", about)


def pytest_terminal_summary(terminalreporter):
    # From the reports, which xdist's workers send to the one process that prints.
    scores: dict = {}
    for outcome in ("passed", "failed", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for database, mode, entry in (v for k, v in getattr(report, "user_properties", ()) if k == "parity"):
                scores.setdefault((database, mode), {})[entry] = outcome in ("passed", "xpassed")
    for (database, mode), entries in sorted(scores.items()):
        terminalreporter.write_line(f"{database}, {mode}: {_text(database, entries)}")


def _text(database, entries):
    if database != "operator database":
        return f"{sum(entries.values())}/{len(entries)}"
    import opdb

    score = opdb.Score()
    for name, passed in entries.items():
        score.add(name, passed)
    return score.text()
