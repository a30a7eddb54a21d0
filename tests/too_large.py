"""Calls whose results no machine holds, in a process of little memory and time: `python tests/too_large.py`.

PyTorch's allocator refuses them with a RuntimeError. Where a check is missing, a call loops or fills the memory: so
each may take neither, and the last name that is printed is of the one that did.
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import rushlight as torch

MEMORY = 6 << 30  # bytes of addresses
RESIDENT = 1 << 20  # kilobytes that are really used
SECONDS = 120  # of the processor
SAID = r"allocate memory|overflow|Given output_size"

LARGE = 1 << 45

REFUSED = {
    "zeros": lambda x: torch.zeros(LARGE),
    "rand": lambda x: torch.rand(LARGE),
    "randperm": lambda x: torch.randperm(LARGE),
    "randint": lambda x: torch.randint(3, (LARGE,)),
    "arange": lambda x: torch.arange(0, 1, 1e-15),
    "linspace": lambda x: torch.linspace(0, 1, LARGE),
    "logspace": lambda x: torch.logspace(0, 1, LARGE),
    "eye": lambda x: torch.eye(1 << 40),
    "hann_window": lambda x: torch.hann_window(LARGE),
    "tril_indices": lambda x: torch.tril_indices(1 << 31, 1 << 31),
    "triu_indices": lambda x: torch.triu_indices(1 << 62, 1 << 62),
    "new_zeros": lambda x: x.new_zeros(LARGE),
    "resize_": lambda x: x.resize_(LARGE),
    "repeat": lambda x: x.repeat(LARGE),
    "tile": lambda x: torch.tile(x, (LARGE,)),
    "repeat_interleave": lambda x: x.repeat_interleave(LARGE),
    "expanded and copied": lambda x: x[:1].expand(LARGE).contiguous(),
    "broadcast": lambda x: torch.zeros(1 << 24, 1) + torch.zeros(1 << 24),
    "outer": lambda x: torch.outer(torch.zeros(1 << 24), torch.zeros(1 << 24)),
    "matmul": lambda x: torch.zeros(1 << 24, 1) @ torch.zeros(1, 1 << 24),
    "combinations": lambda x: torch.combinations(torch.arange(100), 50),
    "cartesian_prod": lambda x: torch.cartesian_prod(*[torch.arange(1000)] * 5),
    "vander": lambda x: torch.vander(x, LARGE),
    "diag_embed": lambda x: torch.diag_embed(x, 1 << 40),
    "bincount": lambda x: torch.bincount(torch.tensor([LARGE])),
    "histc": lambda x: torch.histc(x, LARGE),
    "tensor_split": lambda x: x.tensor_split(1 << 40),
    "chunk": lambda x: x[:0].chunk(1 << 62),
    "mvlgamma": lambda x: torch.mvlgamma(x, 1 << 62),
    "fft": lambda x: torch.fft.fft(x, LARGE),
    "one_hot": lambda x: torch.nn.functional.one_hot(torch.tensor([1]), LARGE),
    "pad": lambda x: torch.nn.functional.pad(x, (0, LARGE)),
    "unfold": lambda x: torch.nn.functional.unfold(torch.ones(1, 1, 4, 4), 2, padding=1 << 30),
    "fold": lambda x: torch.nn.functional.fold(torch.ones(1, 4, 4), (1 << 30, 1 << 30), 2),
    "adaptive_max_pool2d": lambda x: torch.nn.functional.adaptive_max_pool2d(torch.ones(1, 4, 4), 1 << 31),
    "conv1d": lambda x: torch.nn.functional.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 3), padding=LARGE),
    "Embedding": lambda x: torch.nn.Embedding(LARGE, 4),
    "Conv2d": lambda x: torch.nn.Conv2d(1 << 22, 1 << 22, 3),
    "MultiheadAttention": lambda x: torch.nn.MultiheadAttention(1 << 24, 1),
}

HUGE = 1 << 31

ANSWERED = {
    "polygamma": lambda x: torch.polygamma(171, x + 0.5).tolist() == [float("inf")] * 3,
    "polygamma of any order": lambda x: torch.polygamma(1 << 62, x + 0.5).shape == (3,),
    "round": lambda x: torch.round(x, decimals=1 << 62).isnan().all(),
    "a corner": lambda x: (
        torch.triu_indices(HUGE, HUGE, HUGE - 2).tolist() == [[0, 0, 1], [HUGE - 2, HUGE - 1, HUGE - 1]]
    ),
    "repeat of nothing": lambda x: x[:0].repeat(-1).shape == (0,),
}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    for name, call in {**REFUSED, **ANSWERED}.items():
        print(name, flush=True)
        if name in ANSWERED:
            assert call(torch.ones(3)), "another answer"
        else:
            _refused(call)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert used < RESIDENT, f"{used >> 10} MB"


def _refused(call) -> None:
    try:
        call(torch.ones(3))
    except RuntimeError as error:
        assert re.search(SAID, str(error)), error
    else:
        raise AssertionError("not refused")


if __name__ == "__main__":
    main()
