"""Programs in the style of public tutorials, unchanged on PyTorch and under ``rushlight run``: the same lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))


def printed(folder, *command) -> list[str]:
    folder.mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_prints_the_same_lines(program, tmp_path):
    theirs = printed(tmp_path / "pytorch", program)
    ours = printed(tmp_path / "rushlight", "-m", "rushlight", "run", program)
    assert len(theirs) > 3 and ours == theirs
