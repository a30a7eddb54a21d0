"""PyTorch's operator database on the meta device: shapes and dtypes are those of the same call on the CPU.

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


def described(result):
    return [(tuple(t.shape), t.dtype) for t in convert.tensors(result)]


def main(names):
    chosen = opdb.SCORED if "--all" in names else names
    counts = dict.fromkeys(("agrees", "values", "differs"), 0)
    for name in chosen:
        try:
            answer = check(opdb.ENTRIES[name])
        except Exception as error:
            answer = "differs"
            print(f"{name}: {type(error).__name__} {str(error)[:150]!r}", flush=True)
        counts[answer] += 1
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
