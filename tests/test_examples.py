"""Every program of ``examples/`` runs under ``rushlight run`` and passes its own check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
HELPERS = {"digits.py", "text.py"}
ARGUMENTS = {"word_language_model.py": [["--model", "LSTM"], ["--model", "Transformer"]]}

PROGRAMS = [
    (path.name, arguments)
    for path in sorted(EXAMPLES.glob("*.py"))
    if path.name not in HELPERS
    for arguments in ARGUMENTS.get(path.name, [[]])
]


@pytest.mark.parametrize(
    ("name", "arguments"), PROGRAMS, ids=lambda value: " ".join([value] if isinstance(value, str) else value)
)
def test_example(name, arguments, tmp_path):
    command = [sys.executable, "-m", "rushlight", "run", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
