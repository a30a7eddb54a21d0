"""Train a small network on the digits that come with rushlight; leaves script, pages and checkpoint behind."""

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
    from .. import compat, vision
    from . import Mistake

    folder = _untouched(Path(args.folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        script = shutil.copyfile(Path(__file__).with_name("train_digits.py"), folder / "train_digits.py")
        shutil.copyfile(vision.datasets.digits.FILE, folder / "digits.npz")
    except OSError as error:
        raise Mistake(f"cannot write to '{folder}': {error.strerror}") from None
    print(f"look inside while it trains: open {folder / 'watch.html'} in a browser")
    print(f"training on 1,437 handwritten digits, 360 more are held out ({script})", flush=True)
    compat.install()
    _give_the_bar_a_size()
    start = time.perf_counter()
    try:
        made = _run(script.name, folder)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    _pictures(folder, made)
    print(f"done in {time.perf_counter() - start:.0f} s; in {folder}{os.sep}:")
    for name, what in MADE.items():
        print(f"  {name:16} {what}")
    return 0


def _untouched(folder: Path) -> Path:
    """``folder``, or the next of its name: a script that somebody has edited stays as it is, with what it made."""
    original, number, place = Path(__file__).with_name("train_digits.py").read_bytes(), 1, folder
    while (place / "train_digits.py").is_file() and (place / "train_digits.py").read_bytes() != original:
        number += 1
        place = folder.with_name(f"{folder.name}-{number}")
    if place is not folder:
        print(f"{folder / 'train_digits.py'} has been edited and is kept; this run goes to {place}{os.sep}")
    return place


MADE = {
    "watch.html": "what went on inside the network while it trained: open it in a browser, also during training",
    "train_digits.py": "the script that ran, plain PyTorch code to start from: rushlight run train_digits.py",
    "digits.npz": "the digits it reads",
    "training.svg": "loss and held-out accuracy while it trained",
    "predictions.svg": "some held-out digits and what the network says they are",
    "summary.txt": "the network's layers",
    "digits.pt": "its weights; PyTorch's torch.load opens them too",
}


def _run(name: str, folder: Path) -> dict:
    """Run the script inside its folder, as ``rushlight run train_digits.py`` there would."""
    outside = Path.cwd()
    os.chdir(folder)
    try:
        return runpy.run_path(name, run_name="__main__")
    finally:
        os.chdir(outside)


def _give_the_bar_a_size() -> None:
    """tqdm draws nothing on a terminal that says it has no rows (some containers, ``script``): tell it 80 x 24."""
    if sys.stderr.isatty() and 0 in os.get_terminal_size(sys.stderr.fileno()):
        os.environ.setdefault("TQDM_NCOLS", "80")
        os.environ.setdefault("TQDM_NROWS", "24")


def _pictures(folder: Path, made: dict) -> None:
    from .. import inspect, no_grad
    from . import pictures

    model, (images, digits) = made["model"], made["test_set"].tensors
    _write(folder / "training.svg", pictures.training(made["losses"], made["accuracies"]))
    model.eval()
    with no_grad():
        chances, said = model(images).softmax(dim=1).max(dim=1)
    wrong_first = (said == digits).int().argsort(stable=True)[:40]
    greys = (images[wrong_first, 0] * 255).int().tolist()
    rows = zip(greys, digits[wrong_first].tolist(), said[wrong_first].tolist(), chances[wrong_first].tolist())
    _write(folder / "predictions.svg", pictures.digits(list(rows)))
    _write(folder / "summary.txt", f"{inspect.summary(model, input_size=(1, 1, 8, 8))}\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
