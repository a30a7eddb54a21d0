"""PyTorch's operator database with dimensions of size 0: results, gradients, or the kind of error.

    python tests/parity/emptydb.py scatter nn.functional.embedding     some entries
    python tests/parity/emptydb.py --all                               everything, a row for each that differs

In each sample every dimension of one size, in all its tensors, is made empty: sizes that belong together stay together.
"""

from __future__ import annotations

import sys
import warnings

import convert
import numpy as np
import opdb
import torch

import rushlight

# Entries that stay different, by name or by its first part, and why.
KEPT = {
    "fft": "PyTorch's library refuses batches of nothing",
    "addmv": "PyTorch forgets to broadcast where the matrix is empty",
    "stft": "by unfolding, which refuses them",
    "lu_unpack": "PyTorch reads pivots beyond the matrix",
    "nn.functional.adaptive_avg_pool2d": "PyTorch computes it and refuses the gradient",
    "nn.functional.interpolate": "the same",
    "nn.functional.channel_shuffle": "the same",
    "nn.functional.conv1d": "a padded input without elements has a convolution",
    "nn.functional.conv2d": "the same",
    "nn.functional.group_norm": "the weight's gradient is nan in PyTorch, a sum of nothing here",
    "nn.functional.instance_norm": "PyTorch fails without channels",
    "nn.functional.batch_norm": "the same",
    "nn.functional.multi_margin_loss": "PyTorch returns memory that nobody has set",
    "nn.functional.multilabel_margin_loss": "the same",
    "resize_": "the same",
    "nn.functional.fractional_max_pool2d": "samples without elements",
    "nn.functional.bilinear": "PyTorch cannot reshape nothing",
    "nn.functional.scaled_dot_product_attention": "there is a gradient for the mask",
    "nn.functional.linear_cross_entropy": "no classes",
    "trapz": "PyTorch's zeros have no graph",
    "trapezoid": "the same",
    "ormqr": "PyTorch has no gradients there",
    "linalg.householder_product": "the same",
    "svd_lowrank": "signs of vectors",
    "index_copy": "a number and an index without elements: another error",
    "index_add": "the same",
    "index_reduce": "the same",
    "histogram": "no edges: another error",
    "histogramdd": "the same",
    "linalg.norm": "the least of nothing: another error",
    "linalg.matrix_norm": "the same",
    "renorm": "the norm of nothing is 0",
    "_chunk_cat": "private; answers",
    "_unsafe_masked_index": "private; no gradient",
    "_unsafe_masked_index_put_accumulate": "the same",
    "max_pool2d_with_indices_backward": "a name of torch.ops",
}
# A process that asks PyTorch for these ends.
CRASHES = {"native_batch_norm", "_native_batch_norm_legit", "nn.functional.embedding_bag"}
NAMES = [n for n, op in opdb.SCORED.items() if op.name not in opdb.UNINITIALIZED | CRASHES]


def kept(name: str) -> bool:
    return bool({name, name.partition(".")[0], name.partition("|")[0]} & KEPT.keys())


def rows(op, samples: int = 3):
    """(arguments for PyTorch, for us) of every sample with each of its sizes made 0."""
    for _, sample in opdb.samples_of(op, opdb.Options(samples=samples)):
        given = (sample.input, tuple(sample.args), dict(sample.kwargs))
        for size in sorted({n for t in convert.tensors(given) for n in t.shape}):
            made = emptied(given, size)
            yield made, convert.Converter()(made)


def emptied(given, size):
    memo: dict = {}

    def cut(t):
        if id(t) not in memo:
            part = t.detach()[tuple(slice(0, 0) if n == size else slice(None) for n in t.shape)]
            memo[id(t)] = (t, part.clone().requires_grad_(t.requires_grad))
        return memo[id(t)][1]

    return convert.like(given, cut)


def outcome(library, f, given):
    """The kind of error; or dtypes, shapes and values of results and gradients."""
    library.manual_seed(0)
    x, args, kwargs = given
    try:
        results = list(convert.tensors(f(x, *args, **kwargs)))
    except Exception as error:
        return type(error).__name__
    seen = [described(t) for t in results]
    inputs = [t for t in convert.tensors(given) if t.requires_grad]
    outputs = [t for t in results if t.requires_grad]
    if inputs and outputs:
        try:
            ones = [library.ones_like(t) for t in outputs]
            seen += map(described, library.autograd.grad(outputs, inputs, ones, allow_unused=True))
        except Exception as error:
            seen.append(type(error).__name__)
    return seen


def described(t):
    if t is None:
        return None
    return str(t.dtype), tuple(t.shape), np.asarray(t.detach().resolve_conj().tolist())


def alike(theirs, ours) -> bool:
    if not isinstance(theirs, list) or not isinstance(ours, list):
        return theirs == ours
    return len(theirs) == len(ours) and all(_same(a, b) for a, b in zip(theirs, ours))


def _same(a, b) -> bool:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return a == b
    if a[:2] != b[:2]:
        return False
    return a[2].dtype.kind not in "fc" or np.allclose(a[2], b[2], rtol=1e-4, atol=1e-4, equal_nan=True)


def differences(op, samples: int = 3) -> list:
    """(shapes, PyTorch's outcome, ours) where they differ."""
    f, found = opdb.counterpart(op), []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for theirs, ours in rows(op, samples):
            pair = outcome(torch, op.op, theirs), outcome(rushlight, f, ours)
            if not alike(*pair):
                found.append(([tuple(t.shape) for t in convert.tensors(theirs)], *pair))
    return found


def main(names):
    new = known = 0
    for name in NAMES if "--all" in names else names:
        found = differences(opdb.ENTRIES[name])
        if kept(name):
            known += len(found)
            continue
        new += len(found)
        for shapes, theirs, ours in found:
            print(name, shapes, f"\n    torch     {theirs}\n    rushlight {ours}", flush=True)
    print(f"{new} differ, {known} kept")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
