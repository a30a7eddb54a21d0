"""Every program of ``examples/`` runs under ``rushlight run``, and what it prints at its end shows that it learned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
HELPERS = {"digits.py", "text.py"}
ARGUMENTS = {
    "diffusion.py": [["--iterations", "500"]],
    "word_language_model.py": [["--model", "LSTM"], ["--model", "Transformer"]],
}
WRITES = {"vae.py": ["vae.png"], "diffusion.py": ["diffusion.png"], "compiled_step.py": ["watch.html", "trace.json"]}


def last(pattern: str, printed: str) -> list[float]:
    """The numbers in the last place that fits."""
    return [float(number) for number in re.findall(pattern, printed)[-1]]


def share(printed: str) -> float:
    right, count = last(r"accuracy (\d+)/(\d+)", printed)
    return right / count


def dcgan_came_near(printed: str) -> bool:
    before, after = last(r"([\d.]+) before, ([\d.]+) after", printed)
    return after < 0.4 * before


def vae_learned(printed: str) -> bool:
    losses = [float(loss) for loss in re.findall(r"average loss ([\d.]+)", printed)]
    samples, digits = last(r"mean ink ([\d.]+) \(digits: ([\d.]+)\)", printed)
    return losses[-1] < 0.6 * losses[0] and abs(samples - digits) < 0.1


def at_least(limit: float, pattern: str):
    return lambda printed: float(re.findall(pattern, printed)[-1]) >= limit


def at_most(limit: float, pattern: str):
    return lambda printed: min(float(number) for number in re.findall(pattern, printed)) <= limit


LEARNED = {
    "compiled_step.py": at_least(0.9, r"held out: ([\d.]+)"),
    "dcgan.py": dcgan_came_near,
    "ddp.py": lambda printed: share(printed) >= 0.85 and "the same weights in all: True" in printed,
    "diffusion.py": at_least(0.5, r"asked for: ([\d.]+)"),  # by chance 0.1
    "finetune.py": at_least(0.8, r"fine-tuned: ([\d.]+)"),
    "gcn.py": at_least(0.85, r"test accuracy ([\d.]+)"),
    "hogwild.py": at_least(0.85, r"accuracy ([\d.]+)"),
    "minigpt.py": at_most(1.1, r"iter 199: loss ([\d.]+)"),
    "mnist.py": lambda printed: share(printed) >= 0.9,
    "reinforce.py": at_least(0.8, r"average reward (-?[\d.]+)"),
    "siamese.py": lambda printed: share(printed) >= 0.85,
    "time_sequence_prediction.py": lambda printed: float(re.findall(r"test loss: ([\d.]+)", printed)[-1]) <= 0.02,
    "vae.py": vae_learned,
    "word_language_model.py": at_most(4.0, r"ppl ([\d.]+)"),
}

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
    if name in ("compiled_step.py", "ddp.py"):
        pytest.importorskip("jax")
    command = [sys.executable, "-m", "rushlight", "run", str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert name not in LEARNED or LEARNED[name](done.stdout), done.stdout
    assert [file for file in WRITES.get(name, ()) if not (tmp_path / file).stat().st_size] == []


def test_the_gallery_shows_every_example():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name, _ in PROGRAMS if f"({name})" not in page] == []
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
        assert 0 < (EXAMPLES / picture).stat().st_size < 150_000
