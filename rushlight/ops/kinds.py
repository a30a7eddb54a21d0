"""What kind of value a parameter takes, said once: PyTorch's TypeError for another one.

A parameter whose default is True or False takes a bool. What a default does not tell stands in ``KINDS``.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np

from .. import dtypes
from ..autograd.overriding import PLAIN
from ..engine.open_size import is_open
from ..errors import type_name
from ..tensor import Tensor

# "function.parameter" -> "int", "bool", "float", "Number", "Tensor", "Number or Tensor", "str", "tuple of ints",
# "int or ints" (one, or several), "int or Tensor" or "int, ints or Tensor", with a ? where None may stand too; ""
# checks nothing. After = it is checked only where the argument is given by name.
KINDS = {
    **{f"{f}.dim": "=int or ints?" for f in ("std", "var", "std_mean", "var_mean")},
    "prod.dim": "int", "scatter.reduce": "str", "xlogy.input": "Number or Tensor", "xlogy.other": "Number or Tensor",
    "one_hot.num_classes": "int", "pow.exponent": "Number or Tensor",
    "max.dim": "int or Tensor", "max.other": "Tensor", "min.dim": "int or Tensor", "min.other": "Tensor",
    "zeta.input": "Number or Tensor", "zeta.other": "Number or Tensor", "flip.dims": "tuple of ints",
    "avg_pool2d.divisor_override": "int?", "avg_pool3d.divisor_override": "int?",
    "cov.aweights": "Tensor?", "cov.correction": "int", "cov.fweights": "Tensor?",
    "diff.append": "Tensor?", "diff.n": "int", "diff.prepend": "Tensor?", "polygamma.n": "int",
    "trapezoid.dx": "Number", "trapezoid.x": "Tensor",
    "cumulative_trapezoid.dx": "Number", "cumulative_trapezoid.x": "Tensor",
    "native_batch_norm.training": "bool", "native_batch_norm.weight": "Tensor?", "native_batch_norm.bias": "Tensor?",
    "instance_norm.weight": "Tensor?", "instance_norm.bias": "Tensor?",
    "stft.return_complex": "bool?",
    "grid_sample.align_corners": "bool?", "affine_grid.align_corners": "bool?",
    "grid_sampler_2d.align_corners": "bool", "grid_sampler_3d.align_corners": "bool",
    "grid_sampler_2d.padding_mode": "int", "grid_sampler_2d.interpolation_mode": "int",
    "grid_sampler_3d.padding_mode": "int", "grid_sampler_3d.interpolation_mode": "int",
    "histc.bins": "int", "interpolate.align_corners": "bool?", "istft.onesided": "bool?", "kthvalue.k": "int",
    "mvlgamma.p": "int", "rot90.k": "int", "sort.stable": "bool?", "topk.k": "int", "native_group_norm.C": "int",
    "soft_margin_loss.target": "Tensor", "softplus.threshold": "Number", "softplus.beta": "Number",
    "threshold.threshold": "Number", "threshold.value": "Number", "batch_norm.weight": "Tensor?",
    "batch_norm.bias": "Tensor?", "batch_norm.running_mean": "Tensor?", "batch_norm.running_var": "Tensor?",
    "pairwise_distance.x2": "Tensor", "std.unbiased": "bool", "var.unbiased": "bool",
    "std_mean.unbiased": "bool", "var_mean.unbiased": "bool",
    "as_strided.size": "tuple of ints", "as_strided.stride": "tuple of ints", "chunk.chunks": "int",
    "as_strided_copy.size": "tuple of ints", "as_strided_copy.stride": "tuple of ints", "unsafe_chunk.chunks": "int",
    "constant_pad_nd.value": "Number", "clamp_min.min": "Number or Tensor", "clamp_max.max": "Number or Tensor",
    "istft.hop_length": "int?", "stft.onesided": "bool?", "gradient.edge_order": "int",
    "isin.elements": "Number or Tensor", "isin.test_elements": "Number or Tensor", "inner.other": "Tensor",
    "round.decimals": "int", "squeeze.dim": "int or ints", "median.dim": "int", "nanmedian.dim": "int",
    "unfold.size": "int", "unfold.step": "int",
    "unfold_copy.size": "int", "unfold_copy.step": "int", "roll.shifts": "int or ints",
    "scatter_reduce.src": "Tensor", "ormqr.other": "Tensor", "masked_fill.value": "Number or Tensor",
    "solve_triangular.upper": "bool", "fft2.dim": "int or ints", "ifft2.dim": "int or ints",
    "rfft2.dim": "int or ints", "irfft2.dim": "int or ints", "hfft2.dim": "int or ints", "ihfft2.dim": "int or ints",
    "triu_indices.row": "int", "triu_indices.col": "int", "triu_indices.offset": "int",
    "tril_indices.row": "int", "tril_indices.col": "int", "tril_indices.offset": "int",
    "native_batch_norm.running_mean": "Tensor?", "native_batch_norm.running_var": "Tensor?",
    "native_batch_norm.momentum": "float", "native_batch_norm.eps": "float", "native_group_norm.N": "int",
    "native_group_norm.HxW": "int", "native_group_norm.group": "int", "native_group_norm.eps": "float",
    "native_layer_norm.eps": "float", "group_norm.eps": "float", "instance_norm.eps": "float",
    "layer_norm.eps": "float",
    "binary_cross_entropy_with_logits.weight": "Tensor?", "binary_cross_entropy_with_logits.pos_weight": "Tensor?",
    "conv_transpose1d.groups": "int", "conv_transpose2d.groups": "int", "conv_transpose3d.groups": "int",
    "cosine_similarity.dim": "int", "cross_entropy.ignore_index": "int", "linear_cross_entropy.ignore_index": "int?",
    "hinge_embedding_loss.target": "Tensor", "pairwise_distance.keepdim": "bool",
    "hsplit.indices_or_sections": "int or ints", "vsplit.indices_or_sections": "int or ints",
    "dsplit.indices_or_sections": "int or ints", "searchsorted.side": "str?",
    **{f"{f}.n": "int?" for f in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"{f}{d}.s": "int or ints?" for f in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for d in ("2", "n")},
    "matrix_power.n": "int", "logsumexp.dim": "int or ints", "stft.n_fft": "int",
    "stft.hop_length": "int?", "istft.n_fft": "int", "repeat_interleave.repeats": "int, ints or Tensor",
    "repeat_interleave.output_size": "int?", "repeat_interleave.dim": "int?", "histogram.bins": "int, ints or Tensor",
    "roll.dims": "int or ints?", "scatter_add.src": "Tensor", "slice_scatter.step": "int",
    "nll_loss.ignore_index": "int", "ldl_solve.pivots": "Tensor", "poisson_nll_loss.target": "Tensor",
    "poisson_nll_loss.eps": "float",
    "embedding.sparse": "bool", "embedding.padding_idx": "int?", "embedding_bag.sparse": "bool",
    "local_response_norm.size": "int",
    "rms_norm.eps": "float?",
    "layer_norm.normalized_shape": "int or ints", "rms_norm.normalized_shape": "int or ints",
    "native_layer_norm.normalized_shape": "tuple of ints", "vecdot.dim": "int",
    "unflatten.sizes": "tuple of ints",
    # PyTorch's own Python takes anything for these.
    "gaussian_nll_loss.full": "",
    "lu.get_infos": "", "max_pool1d.return_indices": "", "max_pool2d.return_indices": "",
    "max_pool3d.return_indices": "", "stft.center": "", "interpolate.antialias": "",
}  # fmt: skip

# Functions whose ``out=`` must have the result's own dtype; others take one that the result can be cast to.
EXACT_OUT = {
    "abs", "addmm", "addmv", "alias_copy", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "baddbmm",
    "bitwise_not", "bmm", "ceil", "cholesky", "cholesky_ex", "complex", "conj_physical", "cross", "cummax", "cummin",
    "det", "diag", "diff", "dot", "eigh", "eigvalsh", "floor", "frac", "frexp", "gather", "index_add", "index_copy",
    "index_select", "inner", "inv", "inv_ex", "isin", "isneginf", "isposinf", "kthvalue", "ldl_factor",
    "ldl_factor_ex", "ldl_solve", "log_softmax", "logcumsumexp", "lu", "lu_factor", "lu_factor_ex", "lu_solve",
    "lu_unpack", "masked_select", "matmul", "matrix_norm", "mm", "mode", "msort", "multi_dot", "mv", "nan_to_num",
    "nanquantile", "neg", "nonzero", "ormqr", "polar", "qr", "quantile", "renorm", "round", "scatter", "scatter_add",
    "sgn", "sign", "signbit", "slogdet", "softmax", "solve", "solve_ex", "solve_triangular", "sort", "squeeze_copy",
    "svd", "svdvals", "t_copy", "take", "take_along_dim", "tensordot", "topk", "transpose_copy", "triangular_solve",
    "tril", "triu", "trunc", "unsqueeze_copy", "vdot", "vecdot", "vector_norm", "where",
}  # fmt: skip


def checked(f, free=frozenset(), explain=None):
    """``f``, looking at the kinds of its arguments first, if there is anything to look at; ``free`` are not flags.

    ``explain(name, f, args, kwargs)`` is asked when a method has failed: it may know better why.
    """
    plain = inspect.unwrap(getattr(f, "of_dims", f))
    code, skipped = plain.__code__, hasattr(f, "of_dims")
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    kinds = _kinds(plain, f.__name__.rstrip("_"), parameters, free)
    if not kinds:
        return f
    positional = enumerate(parameters[: code.co_argcount])
    places = [
        (place - skipped, name, _at_once(kinds[name]))
        for place, name in positional
        if name in kinds and kinds[name][0] != "="
    ]
    first = min((place for place, *_ in places), default=1000)

    @functools.wraps(f)
    def called(*args, **kwargs):
        try:
            if kwargs:
                for name in kwargs:
                    if name in kinds and not (kwargs[name].__class__ is bool and kinds[name] in _BOOLS):
                        _check(f, name, kinds[name], kwargs[name])
            if len(args) > first:
                for place, name, at_once in places:
                    if place >= len(args):
                        break
                    if args[place].__class__ not in at_once:
                        _check(f, name, kinds[name], args[place], place)
            return f(*args, **kwargs)
        except Exception:
            if explain is not None:
                explain(f.__name__, f, args[1:], kwargs)
            raise

    return called


_BOOLS = frozenset({"bool", "bool?"})

# Classes whose values all fit, so that the usual ones are looked at no further.
_AT_ONCE = {
    "bool": (bool,), "int": (int,), "float": (float, int), "Number": (float, int), "Tensor": PLAIN,
    "Number or Tensor": (float, int, Tensor), "str": (str,), "tuple of ints": (), "int or ints": (int,),
    "int or Tensor": (int, Tensor), "int, ints or Tensor": (int, Tensor),
}  # fmt: skip


def _at_once(kind: str):
    classes = _AT_ONCE[kind.removesuffix("?")]
    return (*classes, type(None)) if kind[-1] == "?" and classes is not PLAIN else classes


def _kinds(f, title, parameters, free) -> dict[str, str]:
    given = dict(zip(reversed(parameters[: f.__code__.co_argcount]), reversed(f.__defaults__ or ())))
    given |= f.__kwdefaults__ or {}
    found = {name: "bool" for name, default in given.items() if isinstance(default, bool) and name not in free}
    found |= {name: KINDS[f"{title}.{name}"] for name in parameters if f"{title}.{name}" in KINDS}
    return {name: kind for name, kind in found.items() if kind}


def of(f) -> dict[str, str]:
    """The kinds of a function's parameters, as far as they are known."""
    code = f.__code__
    return _kinds(f, f.__name__.rstrip("_"), code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], ())


def fits(kind: str, value) -> bool:
    """Is the value of that kind?"""
    return (value is None and kind[-1] == "?") or _test_of(kind)(value)


@functools.cache
def _test_of(kind: str):
    return _FITS[kind.removesuffix("?").removeprefix("=")]


def word(kind: str) -> str:
    """What PyTorch's messages call a kind."""
    kind = kind.removesuffix("?").removeprefix("=")
    return _WORDS.get(kind, kind)


def _check(f, name: str, kind: str, value, place: int | None = None) -> None:
    if not fits(kind, value):
        where = "" if place is None else f" (position {place + 1})"
        raise TypeError(f"{f.__name__}(): argument '{name}'{where} must be {word(kind)}, not {type_name(value)}")


def _is_whole(value) -> bool:
    if value.__class__ is int:
        return True
    if isinstance(value, Tensor):
        return value.ndim == 0 and value._array.dtype.kind in "iu"
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_))


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _is_number(value) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_)) or (
        isinstance(value, Tensor) and not value.ndim
    )


def _are_ints(value) -> bool:
    """PyTorch looks at the first of several; a truth value further on counts as a number."""
    return isinstance(value, (list, tuple)) and (not value or _is_whole(value[0]) or is_open(value[0]))


_FITS = {
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "float": lambda value: _is_number(value) and not isinstance(value, (complex, np.complexfloating)),
    "str": lambda value: isinstance(value, str),
    "torch.dtype": lambda value: isinstance(value, dtypes.dtype),
    "tuple of ints": _are_ints,
    "int or ints": lambda value: _are_ints(value) or _is_whole(value) or is_open(value),
    "int or Tensor": lambda value: _is_whole(value) or is_open(value) or _is_tensor(value),
    "int, ints or Tensor": lambda value: _is_whole(value) or is_open(value) or _are_ints(value) or _is_tensor(value),
    "Number or Tensor": lambda value: _is_number(value) or _is_tensor(value),
    "int": _is_whole,
    "Number": _is_number,
    "Tensor": _is_tensor,
}


_WORDS = {
    "int or ints": "tuple of ints",
    "Number or Tensor": "Tensor",
    "int or Tensor": "int",
    "int, ints or Tensor": "Tensor",
}  # how PyTorch's messages call them

_C_NAMES = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def c_name(dtype) -> str:
    """A dtype as some messages of PyTorch's write it: float, long int, c10::Half …"""
    return _C_NAMES.get(dtype.name, "bool")
