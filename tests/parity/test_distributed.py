"""Worlds of several processes: the same script on PyTorch (gloo) and under ``rushlight run`` prints the same lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parents[1]))

from worlds import run_world

SCRIPTS = Path(__file__).with_name("worlds")


def compare(tmp_path, script, size, at_least, **env):
    theirs = run_world(tmp_path / "pytorch", size, SCRIPTS / script, **env)
    ours = run_world(tmp_path / "rushlight", size, "-m", "rushlight", "run", SCRIPTS / script, **env)
    for rank in range(size):
        assert ours[rank].splitlines() == theirs[rank].splitlines()
        assert len(theirs[rank].splitlines()) >= at_least


@pytest.mark.parametrize("size", [2, 4])
def test_collectives(tmp_path, size):
    compare(tmp_path, "collectives.py", size, at_least=350)


def test_gradients_through_collectives(tmp_path):
    compare(tmp_path, "gradients.py", 2, at_least=10)
