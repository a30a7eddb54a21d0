"""PyTorch's operator database on the meta device: shapes and dtypes as on the CPU, strides as PyTorch's there.

python tests/parity/metadb.py add nn.functional.pad    some entries
python tests/parity/metadb.py --all                    everything, a line for each that differs
"""

from __future__ import annotations

import sys
import warnings

import convert
import numpy as np
import opdb

import rushlight


class Unlike(Exception):
    """A result on the meta device that is not that of the CPU; ``stage`` says what of it."""


def check(op, samples: int = 2) -> str:
    """Compare one entry: "agrees", or "values" where a shape or a decision needs values that meta tensors lack."""
    answers = set()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, sample in opdb.samples_of(op, opdb.Options(samples=samples)):
            given = (sample.input, tuple(sample.args), dict(sample.kwargs))
            f = opdb.counterpart(op)
            try:
                expected = call(f, convert.Converter()(given))
            except Exception:
                continue  # not a sample for us
            answers.add(_compare(f, convert.Converter()(given), expected))
    return "values" if "values" in answers else "agrees"


def call(f, given):
    x, args, kwargs = given
    return f(x, *args, **kwargs)


def _compare(f, given, expected):
    on_meta = convert.like(given, lambda t: t.detach().to("meta").requires_grad_(t.requires_grad))
    try:
        result = call(f, on_meta)
    except (NotImplementedError, RuntimeError) as error:
        if _needs_values(error):
            return "values"
        raise
    want, have = described(expected), described(result)
    if want != have:
        raise Unlike(f"{have} instead of {want}")
    _compare_gradients(on_meta, result)
    return "agrees"


def _needs_values(error) -> bool:
    text = str(error)
    return any(part in text for part in ("depends on values", "cannot be called on meta", "Cannot copy out of meta"))


def _compare_gradients(given, result):
    inputs = [t for t in convert.tensors(given) if t.requires_grad]
    outputs = [t for t in convert.tensors(result) if t.requires_grad and t.device.type == "meta"]
    if not inputs or not outputs:
        return
    for t, g in zip(inputs, rushlight.autograd.grad(outputs, inputs, [o.detach() for o in outputs], allow_unused=True)):
        if g is not None and (g.shape, g.dtype) != (t.shape, t.dtype):
            raise Unlike(f"a gradient {tuple(g.shape)} {g.dtype} of {tuple(t.shape)} {t.dtype}")


# Strides that stay different, by entry or by its first part, and why.
OTHER_STRIDES = {
    "fft.hfft2": "on the meta device PyTorch's lie otherwise than on its CPU",
    "fft.hfftn": "the same",
    "quantile": "PyTorch joins the quantiles in a last dimension and moves it",
    "nanquantile": "the same",
    "unsafe_chunk": "PyTorch's are views of one piece of memory",
    "nn.functional.max_pool2d": "the places of the maxima are in plain order here, when nobody asked for them",
    "nn.functional.max_unpool2d": "on the meta device PyTorch forgets the layout that it keeps on the CPU",
    "triangular_solve": "the copy of the matrix is in plain order",
    "svd": "on the meta device PyTorch's lie otherwise than on its CPU",
    "svd_lowrank": "the same",
    "pca_lowrank": "the same",
    "linalg.svd": "the same",
    "linalg.eig": "the same",
}


def other_strides(op, samples: int = 4) -> list:
    """(given shapes, PyTorch's strides, ours) of the samples whose results lie otherwise on the meta device."""
    f, found = opdb.counterpart(op), []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _, sample in opdb.samples_of(op, opdb.Options(samples=samples)):
            given = (sample.input, tuple(sample.args), dict(sample.kwargs))
            try:
                theirs = call(op.op, convert.like(given, lambda t: t.detach().to("meta")))
                on_meta = convert.like(convert.Converter()(given), lambda t: t.detach().to("meta"))
                pair = [steps(theirs), steps(call(f, on_meta))]
            except Exception:
                continue  # one of them refuses, see ``check``
            if pair[0] != pair[1]:
                found.append(([tuple(t.shape) for t in convert.tensors(given)], *pair))
    return found


def steps(result) -> list:
    """Strides of results; those of dimensions of size 1, and of what is empty, are anybody's."""
    return [
        tuple(s if n > 1 else None for n, s in zip(t.shape, t.stride())) if t.numel() else None
        for t in convert.tensors(result)
    ]


def keeps_other_strides(name: str) -> bool:
    return bool({name, name.partition(".")[0], name.partition("|")[0]} & OTHER_STRIDES.keys())


def described(result):
    return [(tuple(t.shape), t.dtype) for t in convert.tensors(result)]


def main(names):
    chosen = opdb.SCORED if "--all" in names else names
    counts = dict.fromkeys(("agrees", "values", "differs", "strides", "kept strides"), 0)
    for name in chosen:
        try:
            answer = check(opdb.ENTRIES[name])
            for row in other_strides(opdb.ENTRIES[name]):
                counts["kept strides" if keeps_other_strides(name) else "strides"] += 1
                if not keeps_other_strides(name):
                    print(name, *row, flush=True)
        except Exception as error:
            answer = "differs"
            print(f"{name}: {type(error).__name__} {str(error)[:150]!r}", flush=True)
        counts[answer] += 1
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
