"""Result dtypes, values and refusals of operators of two operands: dtype × dtype × kind of operand, beside PyTorch.

    python tests/parity/promotion.py               rows that differ from PyTorch, then how many were compared
    python tests/parity/promotion.py kron "a // b"     only expressions that contain one of these

``a`` is a tensor; ``b`` is a tensor, a 0-dimensional one or a Python number; ``c`` is a mask, ``i`` indices, ``a3`` and
``b3`` have three elements. A row is (expression, kind of b): all pairs of dtypes that differ are one line.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np
import torch

import rushlight

sys.path.insert(0, os.path.dirname(__file__))
import convert

SOME = ["bool", "uint8", "int64", "float16", "float32", "complex64"]  # one of each kind, for every day
DTYPES = [*SOME, "int8", "int16", "int32", "bfloat16", "float64", "complex128"]
NUMBERS = {"bool": True, "int": 2, "float": 2.5}
EXPRESSIONS = """
a + b | b + a | a - b | b - a | a * b | b * a | a / b | b / a | a // b | b // a | a % b | b % a | a ** b | b ** a
a & b | a | b | a ^ b | a << b | a >> b | a < b | a <= b | a > b | a >= b | a == b | a != b
torch.add(a, b, alpha=2) | torch.add(a, b, alpha=0.5) | torch.sub(a, b, alpha=2) | torch.rsub(a, b)
torch.mul(a, b) | torch.div(a, b) | torch.true_divide(a, b) | torch.div(a, b, rounding_mode='floor')
torch.div(a, b, rounding_mode='trunc') | torch.floor_divide(a, b) | torch.remainder(a, b) | torch.fmod(a, b)
torch.pow(a, b) | torch.float_power(a, b) | torch.atan2(a, b) | torch.hypot(a, b) | torch.copysign(a, b)
torch.nextafter(a, b) | torch.logaddexp(a, b) | torch.logaddexp2(a, b) | torch.xlogy(a, b)
torch.special.xlog1py(a, b) | torch.ldexp(a, b) | torch.maximum(a, b) | torch.minimum(a, b) | torch.fmax(a, b)
torch.fmin(a, b) | torch.heaviside(a, b) | torch.gcd(a, b) | torch.lcm(a, b) | torch.logical_and(a, b)
torch.logical_or(a, b) | torch.logical_xor(a, b) | torch.bitwise_and(a, b) | torch.bitwise_left_shift(a, b)
torch.eq(a, b) | torch.lt(a, b) | torch.isclose(a, b) | torch.allclose(a, b) | torch.equal(a, b) | torch.isin(a, b)
torch.igamma(a, b) | torch.where(c, a, b) | torch.where(c, b, a) | torch.clamp(a, min=b) | torch.clamp(a, max=b)
a.clamp(b) | torch.clamp_min(a, b) | torch.lerp(a, b, 0.5) | torch.lerp(a, b, a) | torch.addcmul(a, b, b)
torch.addcmul(a, b, b, value=0.5) | torch.addcdiv(a, b, b) | torch.outer(a, b) | torch.dot(a, b) | torch.vdot(a, b)
torch.inner(a, b) | torch.kron(a, b) | torch.cross(a3, b3, dim=0) | torch.tensordot(a, b, 1)
torch.einsum('i,j->ij', a, b) | torch.matmul(a, b) | torch.mv(torch.outer(a, a), b)
torch.addr(torch.outer(a, a), a, b) | torch.dist(a, b) | torch.cdist(a[:, None], b[:, None]) | torch.complex(a, b)
torch.polar(a, b) | torch.cat([a, b]) | torch.stack([a, b]) | torch.hstack([a, b]) | torch.block_diag(a, b)
torch.cartesian_prod(a, b) | torch.meshgrid(a, b, indexing='ij')[0] | torch.searchsorted(a, b)
torch.bucketize(a, b) | torch.trapezoid(a, b) | torch.gradient(a, spacing=2)[0] | torch.bincount(i, a)
torch.result_type(a, b) and a | a.masked_fill(c, b) | torch.masked_fill(a, c, b) | a.index_fill(0, i, b)
torch.index_add(a, 0, i, b) | a.scatter(0, i, b) | a.masked_scatter(c, b) | a.index_put((i,), b)
torch.full_like(a, b) | F.pad(a, (1, 1), value=b) | torch.threshold(a, 1, b) | torch.nan_to_num(a, b)
torch.tensor([b, b]) | torch.asarray(b) | a.clone().add_(b) | a.clone().add_(b, alpha=2) | a.clone().sub_(b)
a.clone().mul_(b) | a.clone().div_(b) | a.clone().floor_divide_(b) | a.clone().remainder_(b) | a.clone().pow_(b)
a.clone().clamp_(min=b) | a.clone().fill_(b) | a.clone().copy_(b) | a.clone().eq_(b) | a.clone().logical_and_(b)
a.clone().masked_fill_(c, b) | F.mse_loss(a, b) | F.l1_loss(a, b) | F.huber_loss(a, b) | F.smooth_l1_loss(a, b)
F.cosine_similarity(a, b, 0) | F.prelu(a, b) | torch.logical_not(a) | a.sum() | a.mean() | a.prod() | a.cumsum(0)
a.std() | a.abs() | a.sqrt() | a.sigmoid() | a.sign() | -a | a.round() | a.floor()
"""


# What stays different, and why: (part of the expression, reason).
KEPT = [
    (
        "F.huber_loss",
        "PyTorch's result has the first argument's dtype, or fails inside the kernel; ours is the common dtype",
    ),
    ("F.cosine_similarity", "PyTorch rounds each length to its tensor's half precision first"),
    ("torch.tensordot(a, b, 1) [py]", "PyTorch's own Python fails with an AttributeError"),
    ("torch.tensordot(a, b, 1) [0d]", "a truth value without dimensions: another exception"),
    ("F.l1_loss(a, b) [py]", "PyTorch's own Python fails with an AttributeError"),
    ("F.mse_loss(a, b) [py]", "the same"),
    ("F.smooth_l1_loss(a, b) [py]", "the same"),
    ("torch.tensor([b, b])", "a list of tensors that are no numbers: ValueError for all dtypes"),
    ("torch.ldexp", "PyTorch has no power of two with a truth value"),
    ("torch.trapezoid", "places without a dimension give 0 in PyTorch"),
    ("torch.gradient", "PyTorch refuses bytes"),
    ("torch.index_add", "a source without dimensions: another exception"),
    ("torch.matmul", "a truth value without dimensions: another exception"),
    ("alpha=2", "two truth values and an alpha of 2"),
    ("a - b", "float32 and float64 minus True: the shortest path does not look"),
    (
        "a.clone().logical_and_(b) [0d]",
        "float16 and a complex number, refused: RuntimeError, not its NotImplementedError",
    ),
]


def is_kept(row):
    """Does ``KEPT`` explain this row?"""
    return any(part in f"{row[1]} [{row[2]}]" for part, _ in KEPT)


def expressions():
    text = EXPRESSIONS.replace("a | b |", "a \\ b |")
    return [part.strip().replace("\\", "|") for line in text.strip().splitlines() for part in line.split(" | ")]


def outcome(expression, library, a, b, kind):
    """(what came out, as text; its values): dtype and shape, or the exception's type."""
    torch_ = library
    make = lambda values, dtype: torch_.tensor(values, dtype=torch_.float64).to(getattr(torch_, dtype))
    names = {"torch": library, "F": library.nn.functional, "a": make([3, 1], a), "a3": make([3, 1, 2], a)}
    second = {"tensor": lambda: make([1, 2], b), "0d": lambda: make(2, b), "py": lambda: NUMBERS[b]}[kind]()
    third = {"tensor": lambda: make([1, 2, 2], b), "0d": lambda: make([1, 2, 2], b), "py": lambda: NUMBERS[b]}[kind]()
    names |= {"b": second, "b3": third, "c": torch_.tensor([True, False]), "i": torch_.tensor([0, 1])}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(expression, names)
    except Exception as error:
        return type(error).__name__, None
    if isinstance(value, (bool, int, float)):
        return type(value).__name__, np.asarray(value)
    array = convert.to_numpy(value) if library is torch else convert.array_of(value)
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}", array


def differences(parts=(), dtypes=DTYPES):
    """(the number of pairs compared, {(what, expression, kind): [(a, b, PyTorch's, ours)]}) without what is kept."""
    compared, rows = 0, {}
    for expression in expressions():
        if parts and not any(part in expression for part in parts):
            continue
        for kind in ("tensor", "0d", "py"):
            if kind != "tensor" and "b" not in expression.replace("clamp", "").replace("abs", "").replace("cumsum", ""):
                continue
            for a in dtypes:
                for b in NUMBERS if kind == "py" else dtypes:
                    compared += 1
                    theirs, ours = (outcome(expression, library, a, b, kind) for library in (torch, rushlight))
                    what = _difference(theirs, ours)
                    if what:
                        rows.setdefault((what, expression, kind), []).append((a, b, theirs[0], ours[0]))
    return compared, {row: pairs for row, pairs in rows.items() if not is_kept(row)}


def _difference(theirs, ours):
    refused, ours_refused = theirs[1] is None, ours[1] is None
    if refused or ours_refused:
        if refused and ours_refused:
            return None if theirs[0] == ours[0] else "error type"
        return "we accept" if refused else "we refuse"
    if theirs[0] != ours[0]:
        return "dtype"
    with np.errstate(all="ignore"):
        a, b = (np.asarray(v).astype(np.complex128) for v in (theirs[1], ours[1]))
        tolerance = 1e-2 if "16" in theirs[0] else 1e-5
        same = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return None if same else "value"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="only expressions that contain one of these")
    options = parser.parse_args(argv)
    compared, rows = differences(options.parts)
    for (what, expression, kind), pairs in sorted(rows.items()):
        print(f"{what}: {expression} [{kind}] {len(pairs)}: {pairs[:3]}")
    print(f"{sum(map(len, rows.values()))} of {compared} differ, in {len(rows)} rows")


if __name__ == "__main__":
    main()
