"""Train a small network on the digits that come with rushlight; leaves script, pictures and checkpoint behind."""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import time
from pathlib import Path

FOLDER = "rushlight-quickstart"


def arguments(parser) -> None:
    parser.add_argument("--folder", default=FOLDER, help=f"where to put what it makes (./{FOLDER})")


def main(args) -> int:
    from . import Mistake

    folder = Path(args.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        script = shutil.copyfile(Path(__file__).with_name("train_digits.py"), folder / "train_digits.py")
    except OSError as error:
        raise Mistake(f"cannot write to '{folder}': {error.strerror}") from None
    print(f"training on 1,437 handwritten digits, 360 more are held out ({script})")
    start = time.perf_counter()
    try:
        made = _run(script.name, folder)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    _pictures(folder, made)
    print(f"done in {time.perf_counter() - start:.0f} s; in ./{folder}:")
    for name, what in MADE.items():
        print(f"  {name:18} {what}")
    return 0


MADE = {
    "train_digits.py": "the script that ran: change it, run it again with python",
    "training.svg": "loss and held-out accuracy while it trained",
    "predictions.svg": "some held-out digits and what the network says they are",
    "summary.txt": "the network's layers",
    "digits.pt": "its weights; PyTorch's torch.load opens them too",
}


def _run(name: str, folder: Path) -> dict:
    """Run the script inside its folder, as ``python train_digits.py`` there would."""
    outside = Path.cwd()
    os.chdir(folder)
    try:
        return runpy.run_path(name, run_name="__main__")
    finally:
        os.chdir(outside)


def _pictures(folder: Path, made: dict) -> None:
    from .. import inspect, no_grad, stack
    from . import pictures

    model, test_set = made["model"], made["test_set"]
    (folder / "training.svg").write_text(pictures.training(made["losses"], made["accuracies"]))
    model.eval()
    with no_grad():
        images = stack([test_set[i][0] for i in range(len(test_set))])
        chances = model(images).softmax(dim=1)
    said, digits = chances.argmax(dim=1).tolist(), test_set.targets.tolist()
    wrong_first = sorted(range(len(digits)), key=lambda i: said[i] == digits[i])[:40]
    shown = [(test_set.data[i].tolist(), digits[i], said[i], chances[i, said[i]].item()) for i in wrong_first]
    (folder / "predictions.svg").write_text(pictures.digits(shown))
    (folder / "summary.txt").write_text(f"{inspect.summary(model, input_size=(1, 1, 8, 8))}\n")
