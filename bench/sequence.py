"""Recurrent layers and attention, forward and backward, beside PyTorch in one run.

python bench/sequence.py                    eager on the CPU (NumPy) beside PyTorch with the same threads
python bench/sequence.py --compiled         through compile
python bench/sequence.py --device cuda --compiled --dtype bfloat16
"""

from __future__ import annotations

import argparse
import time

import torch

import rushlight

CPU = {
    "LSTM 128, 32x50, batch 32": ("LSTM", (64, 128), (50, 32, 64)),
    "GRU 128, batch 32": ("GRU", (64, 128), (50, 32, 64)),
    "RNN 128, batch 32": ("RNN", (64, 128), (50, 32, 64)),
    "LSTM 16, batch 1": ("LSTM", (8, 16), (50, 1, 8)),
    "attention 8x8x128x64": ("sdpa", {}, (8, 8, 128, 64)),
    "causal attention 2x8x512x64": ("sdpa", {"is_causal": True}, (2, 8, 512, 64)),
    "encoder layer 256, 8x64": ("TransformerEncoderLayer", (256, 8, 1024, 0.0), (8, 64, 256)),
}
GPU = {
    "LSTM 512, 128x64": ("LSTM", (512, 512), (128, 64, 512)),
    "causal attention 8x12x1024x64": ("sdpa", {"is_causal": True}, (8, 12, 1024, 64)),
    "attention 8x12x1024x64": ("sdpa", {}, (8, 12, 1024, 64)),
    "encoder layer 768, 8x1024": ("TransformerEncoderLayer", (768, 12, 3072, 0.0), (8, 1024, 768)),
}


def step_of(package, kind, options, shape, device, dtype):
    """A function of no arguments that runs forward and backward once."""
    x = package.randn(*shape).to(device).to(getattr(package, dtype)).requires_grad_()
    if kind == "sdpa":
        attend = package.nn.functional.scaled_dot_product_attention

        def run(x):
            return attend(x, x, x, **options)
    else:
        extra = {"batch_first": True} if kind.startswith("Transformer") else {}
        module = getattr(package.nn, kind)(*options, **extra).to(device).to(getattr(package, dtype))

        def run(x):
            y = module(x)
            return y[0] if isinstance(y, tuple) else y

    def step(x):
        x.grad = None
        y = run(x)
        y.backward(y.detach())
        return y

    return step, x


def seconds(step, x, wait, repeats):
    for _ in range(3):
        step(x)
    wait()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        step(x)
        wait()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch_wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    for name, (kind, options, shape) in (GPU if args.device == "cuda" else CPU).items():
        theirs, x = step_of(torch, kind, options, shape, args.device, args.dtype)
        b = seconds(theirs, x, torch_wait, args.repeats)
        ours, x = step_of(rushlight, kind, options, shape, args.device, args.dtype)
        ours = rushlight.compile(ours) if args.compiled else ours

        def wait(x=x):
            x.grad._sync()
            if hasattr(x.grad._array, "block_until_ready"):
                x.grad._array.block_until_ready()

        a = seconds(ours, x, wait, args.repeats)
        print(f"{name:32} {a * 1e3:9.3f} ms   PyTorch {b * 1e3:9.3f} ms   {b / a:5.2f}x")


if __name__ == "__main__":
    main()
