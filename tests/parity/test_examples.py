"""The same program, unchanged, on PyTorch and under ``rushlight run``: the same lines, the same numbers in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# For PyTorch: the little of torchvision that they use, and an end of processes that its threads cannot abort.
STAND_INS = Path(__file__).with_name("stand_ins")
# Batch norm and large learning rates make float32's last bit grow into other losses: those are compared in float64.
# (the program, what makes it shorter): as long as they are by themselves with RUSHLIGHT_PARITY=all.
PROGRAMS = [
    ("dcgan.py --double", "--niter 3"),
    ("ddp.py", ""),
    ("first_steps.py", ""),
    ("gcn.py", ""),
    ("hogwild.py --num-processes 1", ""),  # with more, the order of the updates is anybody's
    ("minigpt.py", "--max_iters 100"),
    ("mnist.py --double", "--epochs 2"),
    ("reinforce.py", "--episodes 250"),
    ("siamese.py --double", "--epochs 3"),
    ("time_sequence_prediction.py", "--steps 2"),
    ("vae.py", "--epochs 4"),
    ("word_language_model.py --model GRU --epochs 4 --double", ""),
    ("word_language_model.py --model LSTM --double", ""),
    ("word_language_model.py --model Transformer --double", ""),
]
NUMBER = re.compile(r"-?\d+\.\d+|\d+")


def lines(runner, program, folder) -> list[str]:
    name, *arguments = program.split()
    folder.mkdir()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*runner[1], os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, *runner[0], str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("program", "shorter"), PROGRAMS, ids=[program for program, _ in PROGRAMS])
def test_same_lines(program, shorter, tmp_path, thorough):
    program += "" if thorough else f" {shorter}"
    theirs = lines(([], [str(STAND_INS)]), program, tmp_path / "torch")
    ours = lines((["-m", "rushlight", "run"], []), program, tmp_path / "rushlight")
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert NUMBER.sub("#", a) == NUMBER.sub("#", b)
        np.testing.assert_allclose(_numbers(a), _numbers(b), rtol=2e-3, atol=2e-4, err_msg=f"{a}\n{b}")


ENDINGS = """
import ctypes
import sys

import torch.multiprocessing as mp


def run(rank, way):
    print("printed")  # not yet written when the process ends
    if way == "abort":
        c = ctypes.CDLL(None)
        c.__cxa_atexit(ctypes.cast(c.abort, ctypes.c_void_p), None, None)
    if way == "raise" and rank == 1:
        raise ValueError("a failure of its own")
    if way == "exit" and rank == 1:
        sys.exit(3)


if __name__ == "__main__":
    mp.spawn(run, (sys.argv[1],), nprocs=2)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ends processes by the C library's names")
@pytest.mark.parametrize(("way", "says"), [("abort", None), ("raise", "a failure of its own"), ("exit", "exit code 3")])
def test_spawned_processes_end_as_they_should(way, says, tmp_path):
    """Of PyTorch's: one that aborts while it is taken down has done its work; one that fails has failed."""
    (tmp_path / "endings.py").write_text(ENDINGS)
    program = f"{tmp_path / 'endings.py'} {way}"
    if says is None:
        assert lines(([], [str(STAND_INS)]), program, tmp_path / "torch") == ["printed"] * 2
    else:
        with pytest.raises(AssertionError, match=says):
            lines(([], [str(STAND_INS)]), program, tmp_path / "torch")


def _numbers(line: str) -> list[float]:
    return [float(found) for found in NUMBER.findall(line)]
