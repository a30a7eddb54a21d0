"""Every operator at special points: values, gradients and their gradients at 0, ±inf, nan and the like, beside PyTorch.

    python tests/parity/special_points.py                  rows that differ from PyTorch, then how many were compared
    python tests/parity/special_points.py atan2 norm       only expressions that contain one of these
    python tests/parity/special_points.py --xla            the same on XLA arrays

A stage that PyTorch refuses (no second derivative of ``cdist``) is not compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings

import numpy as np
import torch

import rushlight
from rushlight.tensor import Tensor, wrap

sys.path.insert(0, os.path.dirname(__file__))
import convert

INF, NAN = float("inf"), float("nan")
POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, INF, -INF, NAN, 1e-30, 100.0, -100.0, 3.0, -2.0]
VECTORS = {
    "mixed": [0.0, -1.0, 2.0, 0.5],
    "zeros": [0.0, 0.0, 0.0, 0.0],
    "neg0": [-0.0, 0.0, -0.0, 0.0],
    "one zero": [2.0, 0.0, 5.0, 3.0],
    "two zeros": [2.0, 0.0, 0.0, 3.0],
    "ties": [1.0, 2.0, 2.0, 1.0],
    "constant": [3.0, 3.0, 3.0, 3.0],
    "inf": [1.0, INF, 0.0, -1.0],
    "-inf": [1.0, -INF, 0.0, -1.0],
    "two inf": [INF, INF, 1.0, 0.0],
    "all -inf": [-INF] * 4,
    "nan": [1.0, NAN, 0.0, 2.0],
    "big": [1e30, -1e30, 1e38, 0.0],
}

UNARY = [
    *(
        "torch." + name + "(x)"
        for name in [
            "abs",
            "acos",
            "acosh",
            "angle",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "ceil",
            "cos",
            "cosh",
            "deg2rad",
            "digamma",
            "erf",
            "erfc",
            "erfinv",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "frac",
            "i0",
            "lgamma",
            "log",
            "log10",
            "log1p",
            "log2",
            "logit",
            "nan_to_num",
            "neg",
            "rad2deg",
            "reciprocal",
            "relu",
            "round",
            "rsqrt",
            "sgn",
            "sigmoid",
            "sign",
            "sin",
            "sinc",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
            "isfinite",
            "isinf",
            "isnan",
            "isneginf",
            "isposinf",
            "signbit",
            "isreal",
            "positive",
        ]
    ),
    *(
        "torch.special." + name + "(x)"
        for name in [
            "airy_ai",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
            "entr",
            "erfcx",
            "i0e",
            "i1",
            "i1e",
            "log_ndtr",
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "ndtr",
            "ndtri",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "spherical_bessel_j0",
        ]
    ),
    *(
        "F." + name + "(x)"
        for name in [
            "celu",
            "elu",
            "gelu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "logsigmoid",
            "mish",
            "relu6",
            "selu",
            "silu",
            "softplus",
            "softshrink",
            "softsign",
            "tanhshrink",
        ]
    ),
    "F.gelu(x, approximate='tanh')",
    "F.elu(x, 0.5)",
    "F.celu(x, 0.5)",
    "F.softplus(x, 2, 3)",
    "F.threshold(x, 0.5, 7.)",
    "F.prelu(x, x[:1] * 0 + 0.25)",
    "torch.logit(x, 0.1)",
    "torch.clamp(x, -1, 1)",
    "torch.clamp_min(x, 0)",
    "torch.nan_to_num(x, 1., 2., 3.)",
    "torch.polygamma(1, x)",
    "torch.polygamma(2, x)",
    "torch.mvlgamma(x + 2, 2)",
    "torch.frexp(x)[0]",
    "torch.round(x, decimals=1)",
    "torch.ldexp(x, torch.full_like(x, 2))",
    *(f"x ** {w}" for w in (0, 0.5, 1, 1.5, 2, 3, -1, -2, -0.5)),
    *(f"{w} ** x" for w in (0, 1, 2, -1.0, 0.5)),
    *(
        f"{f}(x, {w})"
        for f in (
            "torch.fmod",
            "torch.remainder",
            "torch.copysign",
            "torch.xlogy",
            "torch.special.xlog1py",
            "torch.special.zeta",
            "torch.float_power",
        )
        for w in (0.0, 2.0, -1.5, INF)
    ),
    "torch.complex(x, x).abs()",
    "torch.complex(x, x).angle()",
    "torch.complex(x, x * 0).sgn().real",
    "torch.polar(x, x).real",
    "torch.complex(x, x * 0).sqrt().real",
    "torch.complex(x, x).exp().imag",
    "torch.complex(x, x).log().real",
]
BINARY = [
    *(
        "torch." + name + "(x, y)"
        for name in [
            "add",
            "sub",
            "mul",
            "div",
            "atan2",
            "copysign",
            "fmod",
            "remainder",
            "floor_divide",
            "float_power",
            "fmax",
            "fmin",
            "maximum",
            "minimum",
            "hypot",
            "logaddexp",
            "logaddexp2",
            "nextafter",
            "pow",
            "xlogy",
            "heaviside",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "isclose",
            "complex",
            "polar",
            "igamma",
            "igammac",
            "ldexp",
        ]
    ),
    "torch.special.xlog1py(x, y)",
    "torch.special.zeta(x, y)",
    "torch.div(x, y, rounding_mode='floor')",
    "torch.div(x, y, rounding_mode='trunc')",
    "torch.lerp(x, y, 0.3)",
    "torch.lerp(x, y, x)",
    "torch.addcmul(x, y, x)",
    "torch.addcdiv(x, y, x)",
    "torch.where(x > y, x, y)",
    "torch.clamp(x, min=y)",
    "torch.clamp(x, max=y)",
    "F.smooth_l1_loss(x, y, reduction='none')",
    "F.huber_loss(x, y, reduction='none')",
    "F.l1_loss(x, y, reduction='none')",
    "F.mse_loss(x, y, reduction='none')",
    "F.binary_cross_entropy_with_logits(x, y, reduction='none')",
    "F.kl_div(x, y, reduction='none')",
    "F.kl_div(x, y, reduction='none', log_target=True)",
    "F.poisson_nll_loss(x, y, reduction='none')",
    "F.soft_margin_loss(x, y, reduction='none')",
    "F.hinge_embedding_loss(x, y, reduction='none')",
    "F.gaussian_nll_loss(x, y, (y.abs().nan_to_num(1.) + 1).detach(), reduction='none')",
]
VECTOR = [
    "x.sum()",
    "x.sum(0, keepdim=True)",
    "x.mean()",
    "x.nansum()",
    "x.nanmean()",
    "x.prod()",
    "x.prod(0)",
    "x.max()",
    "x.min()",
    "x.amax(0)",
    "x.amin(0)",
    "x.max(0).values",
    "x.min(0).values",
    "torch.aminmax(x)[0]",
    "x.var()",
    "x.var(correction=0)",
    "x.std()",
    "x.std(correction=0)",
    "x.std(0, keepdim=True)",
    "torch.std_mean(x)[0]",
    "torch.var_mean(x)[1]",
    "x.median()",
    "x.median(0).values",
    "x.nanmedian()",
    "x.quantile(0.5)",
    "x.quantile(0.3)",
    "x.nanquantile(0.3)",
    "x.quantile(0.25, interpolation='lower')",
    "x.logsumexp(0)",
    "x.cumsum(0)",
    "x.cumprod(0)",
    "x.cumsum(0).cumprod(0)",
    "x.cummax(0).values",
    "x.cummin(0).values",
    "x.logcumsumexp(0)",
    "x.softmax(0)",
    "x.log_softmax(0)",
    "F.softmin(x, 0)",
    "x.sort().values",
    "x.sort(descending=True).values",
    "x.topk(2).values",
    "x.topk(2, largest=False).values",
    "x.kthvalue(2).values",
    "x.mode().values",
    "x.argmax()",
    "x.argmin()",
    "x.argsort(stable=True)",
    "x.diff()",
    "x.unique()",
    "x.count_nonzero()",
    "x.any()",
    "x.all()",
    "x[None].renorm(2, 0, 1.0)",
    *(f"x.norm({p})" for p in ("", "0", "0.5", "1", "2", "3", "float('inf')", "float('-inf')")),
    *(f"torch.linalg.vector_norm(x, {p})" for p in ("0", "0.5", "1", "2", "3", "-1", "float('inf')", "float('-inf')")),
    "torch.dist(x, x * 0.5)",
    "torch.dist(x, x)",
    "torch.dist(x, x, 1)",
    "torch.dist(x, x * 0, 0)",
    "torch.dist(x, x * 0, float('inf'))",
    "torch.cdist(x[:, None], x[:, None])",
    "torch.cdist(x[:, None], x[:, None], 1.)",
    "F.pdist(x[:, None])",
    "F.pairwise_distance(x[None], x[None] * 0)",
    "F.normalize(x, dim=0)",
    "F.normalize(x, p=1, dim=0)",
    "F.cosine_similarity(x, x, 0)",
    "F.cosine_similarity(x, x * 0, 0)",
    "F.cosine_similarity(x, x.flip(0), 0)",
    "F.layer_norm(x, (4,))",
    "F.rms_norm(x, (4,))",
    "F.group_norm(x[None, :, None], 2)",
    "F.batch_norm(x[:, None], None, None, training=True)",
    "F.instance_norm(x[None, None])",
    "F.local_response_norm(x[None, None], 2)",
    "F.glu(x)",
    "F.l1_loss(x, x * 0)",
    "F.mse_loss(x, x * 0)",
    "F.smooth_l1_loss(x, x * 0)",
    "F.huber_loss(x, x * 0)",
    "F.huber_loss(x, x * 0, delta=2.)",
    "F.binary_cross_entropy(x.clamp(0, 1), torch.ones_like(x) * .5)",
    "F.binary_cross_entropy_with_logits(x, torch.ones_like(x) * .5)",
    "F.cross_entropy(x[None], torch.tensor([1]))",
    "F.cross_entropy(x[None], torch.tensor([1]), label_smoothing=0.1)",
    "F.nll_loss(x[None].log_softmax(1), torch.tensor([2]))",
    "F.multi_margin_loss(x[None], torch.tensor([1]))",
    "F.multilabel_soft_margin_loss(x[None], torch.ones_like(x)[None])",
    "F.max_pool1d(x[None], 2)",
    "F.avg_pool1d(x[None], 2)",
    "F.lp_pool1d(x[None], 2, 2)",
    "F.adaptive_max_pool1d(x[None], 2)",
    "x.dot(x)",
    "torch.outer(x, x)",
    "x.reshape(2, 2) @ x.reshape(2, 2)",
    "torch.linalg.det(x.reshape(2, 2))",
    "x.maximum(x)",
    "x.minimum(x.flip(0))",
    "torch.atan2(x, x)",
    "torch.hypot(x, x)",
    "x / x",
    "x * x",
    "x ** x",
    "torch.fmod(x, x)",
    "torch.xlogy(x, x)",
    "torch.logaddexp(x, x)",
    "torch.sinc(x)",
    "torch.where(x > 0, x, 0 * x)",
    "x.clamp(0, 1)",
    "x.clamp(x, x)",
    "torch.special.entr(x)",
    "torch.logit(x)",
    "x.scatter_reduce(0, torch.zeros(4, dtype=torch.int64), x, 'prod')",
    "x.scatter_reduce(0, torch.zeros(4, dtype=torch.int64), x, 'amax')",
    "x.scatter_reduce(0, torch.zeros(4, dtype=torch.int64), x, 'mean')",
    "x.index_reduce(0, torch.zeros(4, dtype=torch.int64), x, 'amin')",
    "torch.trapezoid(x)",
    "torch.cov(x.reshape(2, 2))",
    "torch.corrcoef(x.reshape(2, 2))",
    "torch.histc(x.nan_to_num(0, 1, -1), 4)",
    "F.interpolate(x[None, None], scale_factor=2, mode='linear')",
    "F.grid_sample(torch.ones(1, 1, 2, 2).to(x), x.detach().view(1, 1, 2, 2), align_corners=False)",
    "F.grid_sample(x.reshape(1, 1, 2, 2), torch.zeros_like(x).reshape(1, 1, 2, 2), align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 2, 2).to(x), x.detach().view(1, 1, 2, 2), mode='nearest', align_corners=False)",
    "F.grid_sample(torch.ones(1, 1, 2, 2).to(x), x.detach().view(1, 1, 2, 2), 'bilinear', 'border', True)",
    # No gradients where the grid is nan: there PyTorch's reads outside of its memory.
    *(f"torch.linalg.norm(x.reshape(2, 2), {p!r})" for p in ("fro", 1, -1, INF)),
    "torch.matrix_exp(torch.stack([x.reshape(2, 2), torch.eye(2, dtype=x.dtype)]))[1]",
    "torch.renorm(x.reshape(2, 2), 1, 0, 1.)",
    "F.gumbel_softmax(x * 0, dim=0, hard=False).sum()",
    "F.embedding_bag(torch.tensor([[0, 1]]), x[:, None], mode='max')",
]
FINITE = [
    "torch.linalg.norm(x.reshape(2, 2), 'nuc')",
    "torch.linalg.norm(x.reshape(2, 2), 2)",
    "torch.linalg.norm(x.reshape(2, 2), -2)",
]
TOLERANCE = {"float32": 1e-4, "float64": 1e-8}

# What stays different, and why: (part of the expression, start of the stage, reason).
KEPT = [
    ("torch.digamma(x)", "d/d", "at a pole the slope is inf; PyTorch's is the square of 1 / sin(pi rounded)"),
    ("torch.lgamma(x)", "d²", "the same"),
    ("torch.polygamma(1, x)", "value", "the same"),
    ("torch.mvlgamma(x + 2, 2)", "d²", "the same"),
    ("torch.special.erfcx(x)", "d²", "2 x y - 2 / sqrt(pi) cancels: the last bit of y"),
    ("torch.special.log_ndtr(x)", "d/d", "PyTorch's formula loses digits far left, and all of them at -inf"),
    (
        "F.gelu(x)",
        "value",
        "gelu(inf) is inf; so is PyTorch's of few elements and of float64, but its vector code gives nan",
    ),
    ("F.mish(x)", "d²", "exp(100) overflows in PyTorch's formula"),
    ("F.hardsigmoid(x)", "d/d", "PyTorch's 1/6 is a float32 even for float64"),
    ("torch.complex(x, x).abs()", "d²", "rounding: differences of numbers near 1e30"),
    ("torch.hypot(x, y)", "d²", "the same"),
    ("torch.sinc(x)", "d²", "rounding: a difference divided by 1e-60"),
    ("torch.complex(x, x).angle()", "d", "PyTorch divides by the square of the size, which underflows"),
    ("torch.complex(x, x * 0).sgn().real", "d²", "0 at 0, as the first gradient; PyTorch's is nan"),
    ("torch.igamma", "value", "nan of nan; PyTorch looks at the other argument first"),
    ("torch.polar(x, y)", "d²/dxdx", "0 but for rounding, of numbers that are divided by the size"),
    ("F.smooth_l1_loss(x, y", "d²", "where the difference is nan, so is the first gradient"),
    ("F.huber_loss(x, y", "d²", "the same"),
    ("F.smooth_l1_loss(x, x * 0)", "d²", "the same"),
    ("F.huber_loss(x, x * 0", "d²", "the same"),
    ("x.prod(", "d", "the product of the other elements; PyTorch divides by the element, infinite or not"),
    ("x.cumprod(", "d", "the same"),
    ("x.cumsum(0).cumprod(0)", "d", "the same"),
    ("torch.var_mean(x)[1]", "value", "the mean of what has an infinity is infinite, as x.mean() is"),
    ("x.logcumsumexp(0)", "d²", "infinity minus infinity"),
    ("x.topk(2", "d/d", "which of equal elements is picked"),
    ("x.kthvalue(2)", "d/d", "the same"),
    ("torch.cdist(x[:, None], x[:, None], 1.)", "d/d", "a distance of infinity minus infinity"),
    ("F.rms_norm(x, (4,))", "d²", "squares that overflow"),
    ("F.batch_norm(", "value", "rounding, times 1 / sqrt(eps): PyTorch's constant is not quite 0"),
    ("F.instance_norm(", "value", "the same"),
    ("F.glu(x)", "d²", "infinity times 0"),
    ("F.binary_cross_entropy(", "d²", "at 0 and 1 the denominator is held at 1e-12: its slope there is 0"),
    ("x.reshape(2, 2) @ x.reshape(2, 2)", "value", "infinity minus infinity, or not: the order of BLAS"),
    ("torch.linalg.det(", "d", "of singular matrices: PyTorch's are rounding, ours nan in the second order"),
    ("torch.histc(", "value", "the width of the bins overflows in PyTorch"),
    ("F.embedding_bag(", "value", "nan is the largest, as in x.max()"),
    ("torch.linalg.norm(x.reshape(2, 2), ", "d²", "0 at the kink, as the first gradient; PyTorch's is nan"),
    ("torch.linalg.norm(x.reshape(2, 2), 'nuc') [constant]", "d/d", "of rank 1: which vectors complete the basis"),
    ("torch.linalg.norm(x.reshape(2, 2), -2) [constant]", "d/d", "the same"),
    ("torch.var_mean(x)[1]", "d/d", "the slope of the variance, which is nan, times 0"),
    ("x.logcumsumexp(0) [big]", "d/d", "PyTorch adds log(g) to 1e30, where it is lost"),
    ("F.group_norm(", "value", "squares that overflow"),
]


def cases():
    """(label, expression, {name: values}) of all that is compared."""
    x, y = (grid.ravel() for grid in np.meshgrid(POINTS, POINTS, indexing="ij"))
    for expression in UNARY:
        yield expression, expression, {"x": POINTS}
    for expression in BINARY:
        yield expression, expression, {"x": x, "y": y}
    for expression in VECTOR + FINITE:
        for name, values in VECTORS.items():
            if expression not in FINITE or np.isfinite(values).all():
                yield f"{expression} [{name}]", expression, {"x": values}


def compare(label, expression, inputs, dtype, xla=False):
    """(the first stage in which Rushlight is not PyTorch, what it has), or None."""
    arrays = {name: np.array(values, dtype) for name, values in inputs.items()}
    names = {"torch": torch, "F": torch.nn.functional}
    theirs = _stages(
        expression, {k: torch.from_numpy(v.copy()).requires_grad_() for k, v in arrays.items()}, names, torch
    )
    names = {"torch": rushlight, "F": rushlight.nn.functional}
    ours = _stages(expression, {k: _tensor(v, xla) for k, v in arrays.items()}, names, rushlight)
    for stage, want in theirs.items():
        have = ours.get(stage)
        if isinstance(want, Exception):
            continue
        problem = _difference(have, want, TOLERANCE[dtype], arrays)
        if problem:  # what comes after follows from this
            return stage, problem
    return None


def is_kept(label, stage):
    """Does ``KEPT`` explain this difference?"""
    return any(part in label and stage.startswith(start) for part, start, _ in KEPT)


def differences(dtypes=("float32", "float64"), parts=(), xla=False):
    """(the number of comparisons, lines of those that nothing explains)."""
    compared, lines = 0, []
    for dtype in dtypes:
        for label, expression, inputs in cases():
            if parts and not any(part in label for part in parts):
                continue
            compared += 1
            found = compare(label, expression, inputs, dtype, xla)
            if found and not is_kept(label, found[0]):
                lines.append(f"{dtype} {label} {found[0]}: {found[1]}")
    return compared, lines


def _tensor(array, xla):
    if xla:
        from rushlight.engine import xla as engine

        return wrap(engine.asarray(array)).requires_grad_()
    return wrap(array.copy()).requires_grad_()


def _stages(expression, tensors, names, library):
    """{stage: array or exception}: the value, the gradients by fixed weights, and those of the gradients."""
    found: dict = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.manual_seed(0)
            value = eval(expression, {**names, **tensors})
            found["value"] = _array(value)
            if not value.requires_grad:
                return found
            first = library.autograd.grad(
                value, list(tensors.values()), _weights(value, library), create_graph=True, allow_unused=True
            )
            for name, g in zip(tensors, first):
                found[f"d/d{name}"] = None if g is None else _array(g)
            for name, g in zip(tensors, first):
                if g is None or not g.requires_grad:
                    continue
                found[f"d²/d{name}"] = RuntimeError("not reached")
                second = library.autograd.grad(
                    g, list(tensors.values()), _weights(g, library), retain_graph=True, allow_unused=True
                )
                for other, h in zip(tensors, second):
                    # None is zero: which paths a second derivative leaves out is not compared.
                    found[f"d²/d{name}d{other}"] = np.zeros(g.shape, _array(g).dtype) if h is None else _array(h)
                del found[f"d²/d{name}"]
    except Exception as error:
        found.setdefault("error", error)
    return found


def _weights(value, library):
    flat = 1 + np.arange(value.numel()) % 7 / 4
    weights = library.tensor(flat.reshape(tuple(value.shape)).tolist(), dtype=value.dtype)
    return weights.to(value.device) if library is rushlight else weights


def _array(t):
    return convert.array_of(t.detach()) if isinstance(t, Tensor) else convert.to_numpy(t)


def _difference(have, want, tolerance, arrays):
    if want is None:  # no path: PyTorch gives None, a zero is as good
        return None if have is None or not np.any(have) else f"{have} for None"
    if have is None and not np.any(want):
        return None
    if have is None:
        return f"missing, PyTorch has {np.ravel(want)[:4]}"
    if isinstance(have, Exception):
        return f"{type(have).__name__}: {have}"
    if have.dtype != want.dtype or have.shape != want.shape:
        return f"{have.dtype}{have.shape} for {want.dtype}{want.shape}"
    with np.errstate(all="ignore"):
        same = (have == want) | ((have != have) & (want != want))
        if want.dtype.kind in "fc":
            same |= np.isfinite(want) & np.isfinite(have) & (abs(have - want) <= tolerance * (abs(want) + 1e-2))
    if same.all():
        return None
    wrong = np.argwhere(~np.atleast_1d(same))
    shown = []
    for place in map(tuple, wrong[:4]):
        at = [v[place[0]].item() if want.ndim == 1 and v.shape == want.shape else "" for v in arrays.values()]
        shown.append(f"{at} {np.atleast_1d(have)[place]} for {np.atleast_1d(want)[place]}")
    return f"{len(wrong)} of {same.size}: " + ", ".join(shown)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="only expressions that contain one of these")
    parser.add_argument("--xla", action="store_true")
    options = parser.parse_args(argv)
    compared, lines = differences(parts=options.parts, xla=options.xla)
    print(*lines, sep="\n")
    print(f"{len(lines)} of {compared} differ")


if __name__ == "__main__":
    main()
