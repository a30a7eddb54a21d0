"""What people run of transformers and timm, on rushlight and on PyTorch: training steps and generated text, on the CPU.

    python bench/packages.py                                        # in the environments of tests/packages/run.py
    python bench/packages.py --rushlight PYTHON --torch PYTHON      # interpreters that have the packages

Each measurement is a process of its own, the sides take turns, the best counts. A ratio above 1: rushlight is faster.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROUNDS, SECONDS = 3, 4.0


def gpt2_step(torch):
    """A training step of transformers' GPT-2: 4 layers, 256 wide, 4 x 64 tokens, AdamW."""
    model = _gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 1000, (4, 64))

    def step():
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    return step


def gpt2_generate(torch):
    """32 tokens generated greedily by the same model, with its cache."""
    model = _gpt2().eval()
    tokens = torch.randint(0, 1000, (1, 8))
    return lambda: model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=32, do_sample=False, pad_token_id=0
    )


def _gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_layer": 4, "n_embd": 256, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=None))


def resnet18_step(torch):
    """A training step of timm's resnet18 on 8 images of 3 x 64 x 64, SGD."""
    return _pictures(torch, "resnet18", 64)


def vit_step(torch):
    """A training step of timm's ViT-tiny on 8 images of 3 x 64 x 64, SGD."""
    return _pictures(torch, "vit_tiny_patch16_224", 64, img_size=64)


def _pictures(torch, name, size, **options):
    import timm

    model = timm.create_model(name, num_classes=10, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(8, 3, size, size), torch.randint(0, 10, (8,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


WORKS = {work.__name__: work for work in (gpt2_step, gpt2_generate, resnet18_step, vit_step)}


def measure(name: str) -> float:
    """The best time of one call, in this process; ``torch`` is whichever it has."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(2)
    work = WORKS[name](torch)
    work(), work()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", nargs="*", default=list(WORKS))
    parser.add_argument("--rushlight", help="an interpreter that has rushlight and the packages")
    parser.add_argument("--torch", help="an interpreter that has PyTorch and the packages")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.work[0])))
        return
    commands = {
        "rushlight": [options.rushlight or _environment(False), "-m", "rushlight", "run"],
        "PyTorch": [options.torch or _environment(True), str(ROOT / "tests" / "packages" / "beside_torch.py")],
    }
    print("| work | rushlight | PyTorch | ratio |\n|---|---|---|---|")
    for work in options.work:
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(ROUNDS):
            for side, command in commands.items():
                done = subprocess.run([*command, __file__, "--measure", work], capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                best[side] = min(best[side], json.loads(done.stdout.strip().splitlines()[-1]))
        ours, theirs = best["rushlight"], best["PyTorch"]
        said = WORKS[work].__doc__.strip().rstrip(".")
        print(f"| {said} | {1e3 * ours:.1f} ms | {1e3 * theirs:.1f} ms | {theirs / ours:.2f}× |", flush=True)


def _environment(recording: bool) -> str:
    sys.path.insert(0, str(ROOT / "tests" / "packages"))
    from run import environment

    return environment(pathlib.Path("/tmp/rushlight-packages"), recording, quick=True)


if __name__ == "__main__":
    main()
