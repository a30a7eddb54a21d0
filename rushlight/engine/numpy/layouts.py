"""How results lie in memory: PyTorch's rules, for operands that are not all in plain order.

NumPy's own choice is PyTorch's for most element-wise results. What is left is decided here, in one place for all
operators, and only once ``watched``: until somebody turns a tensor's dimensions around or asks for another memory
format every tensor lies in plain order, and nothing needs to be looked at.
"""

from __future__ import annotations

import functools

import numpy as np

from ... import config
from ...layout import channels_last_order, dense_strides, is_dense, looks_channels_last

watched = False  # has a tensor been made whose dimensions lie in memory in another order?
_ndarray = np.ndarray


def watch() -> None:
    global watched
    watched = True


def strides_of(array) -> tuple[int, ...]:
    """Strides in elements."""
    size = array.itemsize
    return tuple([s // size for s in array.strides])


@functools.lru_cache(4096)  # every result is asked about; most are of a few shapes
def _plain_strides(shape, itemsize) -> tuple[int, ...]:
    """The strides, in bytes, of an array in plain order."""
    return tuple([s * itemsize for s in dense_strides(shape, range(len(shape)))])


def is_plain(array) -> bool:
    """Is it an array in plain order?"""
    return array.__class__ is _ndarray and array.strides == _plain_strides(array.shape, array.itemsize)


def _all_plain(arrays) -> bool:
    """Do all that are arrays lie in plain order, as PyTorch lays out new ones?"""
    for a in arrays:
        if a.__class__ is _ndarray:
            if a.strides != _plain_strides(a.shape, a.itemsize):
                return False
        elif getattr(a, "steps", None) is not None:  # an array without values, that only says how it lies
            return False
    return True


def _all_alike(out, arrays) -> bool:
    """Do the result and its operands lie in plain order? Most are of one shape, and looked up once."""
    if out.__class__ is not _ndarray:
        return False
    shape, strides = out.shape, out.strides
    if strides != _plain_strides(shape, out.itemsize):
        return False
    for a in arrays:
        if a.__class__ is not _ndarray or a.strides != strides or a.shape != shape:
            return _all_plain(arrays)
    return True


# -- rules: f(result, operands) -> the result, copied where it lies otherwise ------------------------------------------


def each(out, operands):
    """Element by element: as operands of one layout lie, else by their strides, the first operand first."""
    if _all_alike(out, operands):
        return out
    if out.__class__ is _ndarray and _all_plain(operands):
        return plain(out)
    return _each(out, operands, all(getattr(a, "shape", ()) == out.shape for a in operands if a is not None))


def each_alone(out, operands):
    """The same for what takes its numbers beside its operands: ``power(x, 2)`` has one operand, ``add(x, 2)`` two."""
    if _all_alike(out, operands):
        return out
    if out.__class__ is _ndarray and _all_plain(operands):
        return plain(out)
    return _each(out, operands, all(a.shape == out.shape for a in operands if hasattr(a, "shape")))


def _each(out, operands, alike):
    operands = [a for a in operands if hasattr(a, "strides") and a.ndim]
    if alike and all(_in_order(a) for a in operands):
        return plain(out)
    known = [strides_of(a) for a in operands]
    if alike:
        order = channels_last_order(out.ndim)
        if order and all(is_dense(out.shape, strides, order) for strides in known):
            return laid(out, dense_strides(out.shape, order))
        if len(set(known)) == 1 and is_dense(out.shape, known[0], order_of(out.shape, known[0])):
            return laid(out, known[0])
    known = [_broadcast(a.shape, strides, out.shape) for a, strides in zip(operands, known)]
    return laid(out, dense_strides(out.shape, _sorted(out.shape, known)))


def plain(out, operands=None):
    """In plain order, whatever the operands."""
    if out.__class__ is not _ndarray and hasattr(out, "steps"):
        lies_so = out.steps is None
    else:
        lies_so = out.strides == _plain_strides(out.shape, out.itemsize)
    return out if lies_so else laid(out, dense_strides(out.shape, range(out.ndim)))


def like(out, operands):
    """As the first operand, where that has no gaps; else by its strides."""
    if is_plain(operands[0]) and is_plain(out):
        return out
    return laid(out, preserved(operands[0].shape, strides_of(operands[0])))


def channels(out, operands):
    """Channels last if the first operand's are, else in plain order."""
    x = operands[0]
    if out.ndim != x.ndim or is_plain(x) or not looks_channels_last(x.shape, strides_of(x)):
        return plain(out)
    return laid(out, dense_strides(out.shape, channels_last_order(out.ndim)))


def any_channels(out, operands):
    """Channels last if the image's or the weight's are; volumes by one thread not under a kernel of one pixel."""
    small = out.shape[0] < 16 and operands[1].shape[3:] == (1, 1) and config.get_num_threads() == 1
    may = out.ndim == 4 or (out.ndim == 5 and not small)
    last = may and any(a is not None and looks_channels_last(a.shape, strides_of(a)) for a in operands[:2])
    return laid(out, dense_strides(out.shape, channels_last_order(out.ndim))) if last else plain(out)


def by_target(out, operands):
    """Element by element, beginning with 1 - target."""
    return each(out, (1, operands[1]))


def joined(out, operands):
    """Channels last if those of all operands are, else in plain order."""
    if out.__class__ is _ndarray and _all_plain(operands):
        return plain(out)
    last = all(looks_channels_last(a.shape, strides_of(a)) for a in operands)
    return channels(out, operands) if last else plain(out)


def stacked(out, operands):
    """Channels last in each part, if those of all operands are; else in plain order."""
    x = operands[0]
    if out.shape[1:] != x.shape or not all(looks_channels_last(a.shape, strides_of(a)) for a in operands):
        return plain(out)
    return laid(out, (x.size, *dense_strides(x.shape, channels_last_order(x.ndim))))


def padded(out, operands):
    """Channels last if the operand's are; as the operand where nothing was added."""
    return (like if out.shape == operands[0].shape else channels)(out, operands)


def preserved(shape, strides) -> tuple[int, ...]:
    """The strides of a new tensor that is to lie as one with these does (``preserve_format``)."""
    if is_dense(shape, strides, order_of(shape, strides)):
        return strides
    return dense_strides(shape, _sorted(shape, [strides]))


def laid(out, strides):
    """``out`` with these strides (in elements): itself, or a copy."""
    if hasattr(out, "laid"):
        return out.laid(strides)
    size = out.itemsize
    wanted = tuple([s * size for s in strides])
    if out.strides == wanted or not out.size:
        return out
    if out.flags.c_contiguous and all(n == 1 or a == b for n, a, b in zip(out.shape, out.strides, wanted)):
        return np.ndarray(out.shape, out.dtype, out, 0, wanted)  # the same memory: only sizes of 1 are stepped over
    made = np.ndarray(out.shape, out.dtype, np.empty(out.size, out.dtype), 0, wanted)
    made[...] = out
    return made


def of_its_own(out, name, static, operands):
    """The result of an operator that is named in ``OWN``."""
    if name in COLUMNS:
        return _by_columns(out, name, static)
    half = name == "fft_c2r" or static.get("onesided", False)
    return laid(out, transformed(out.shape, operands[0], static["axes"], half))


def transformed(shape, x, axes, half) -> tuple[int, ...]:
    """The strides of a Fourier transform of ``x``: ``axes`` are innermost, the one that is halved before all.

    Otherwise dimensions keep the order in which they lie in ``x``.
    """
    order = _transformed_order(strides_of(x), tuple(axes), half)
    if order is None:
        return dense_strides(shape, range(len(shape)))
    watch()
    return dense_strides(shape, order)


@functools.lru_cache(1024)
def _transformed_order(strides, axes, half):
    axes = [a % len(strides) for a in axes]
    last = axes[-1] if half else None
    order = sorted(range(len(strides)), key=lambda d: (d == last, d in axes, -strides[d]))
    return None if order == list(range(len(strides))) else order


def _by_columns(out, name, static):
    """Matrices as LAPACK leaves them; those that come transposed out of it lie by rows."""
    watch()
    argument, value = _TURNED.get(name, (None, None))
    lay = plain if argument in static and static[argument] == value else _columns
    if out.__class__ is not tuple:
        return lay(out)
    return tuple([lay(a) if i in COLUMNS[name] else a for i, a in enumerate(out)])


def _columns(out):
    if out.ndim < 2:
        return out
    *batch, rows, columns = range(out.ndim)
    return laid(out, dense_strides(out.shape, (*batch, columns, rows)))


def _in_order(array) -> bool:
    return array.steps is None if hasattr(array, "steps") else array.flags.c_contiguous


def order_of(shape, strides):
    return sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d]))


def _broadcast(shape, strides, wanted):
    """The strides of an operand seen in the result's shape."""
    extra = len(wanted) - len(shape)
    own = [0 if n == 1 and wanted[i + extra] != 1 else s for i, (n, s) in enumerate(zip(shape, strides))]
    return (*([0] * extra), *own)


def _sorted(shape, known) -> list[int]:
    """The dimensions from outermost to innermost: each moves inward past those that an operand strides over faster.

    The first operand that can tell two dimensions apart decides; broadcast dimensions tell nothing.
    """
    inner = list(range(len(shape)))[::-1]
    for i in range(1, len(inner)):
        place = i
        for j in range(i - 1, -1, -1):
            answer = _slower(shape, known, inner[j], inner[place])
            if answer > 0:
                inner[j], inner[place] = inner[place], inner[j]
                place = j
            elif answer < 0:
                break
    return inner[::-1]


def _slower(shape, known, a: int, b: int) -> int:
    """1 if dimension ``a`` belongs outside of ``b``, -1 if inside, 0 if no operand can tell."""
    for strides in known:
        if strides[a] and strides[b]:
            if strides[a] != strides[b]:
                return 1 if strides[a] > strides[b] else -1
            if shape[a] > shape[b]:
                return 1
    return 0


# -- which operator follows which rule ---------------------------------------------------------------------------------

_FAMILIES = {
    each: """
        negative abs sign real_sign floor ceil trunc frac round signbit isnan isinf isfinite isposinf isneginf isreal
        logical_and logical_or logical_xor logical_not isclose invert make_complex polar relu leaky_relu hardsigmoid
        hardswish hardshrink softshrink threshold elu softplus silu mish gelu native_dropped
        rms_normalized gamma_slope frexp rrelu_with_noise""",
    each_alone: "power clip lerp where_ addcmul addcdiv",
    like: "binary_cross_entropy astype clone nan_to_num hardtanh prelu_kernel flip sort_and_index zeros_like ones_like",
    plain: """
        log_sigmoid softmax log_softmax cumsum cumprod logcumsumexp cummax_and_index cummin_and_index tril triu
        masked_fill topk repeat take_slices take_along_axis gather bernoulli_of glu sum mean nansum prod max min argmax
        argmin all any cross aminmax max_and_index min_and_index var std var_mean std_mean vector_norm logsumexp
        index_at normalized is_class one_hot grid_sampler pixel_shuffle scatter scatter_add put_at
        spread_masked kthvalue median_and_index nanmedian_and_index mode CopySlices
        FractionalMaxPool2DBackward0 FractionalMaxPool3DBackward0 AvgPool3DBackward0
        AdaptiveAvgPool3DBackward0 AdaptiveMaxPool3DBackward0""",
    channels: """
        max_pool avg_pool resample pixel_unshuffle channel_shuffle roll unpool sum_windows NativeGroupNormBackward0
        NativeBatchNormBackward0 normalized_by conv_input largest_of at_positions""",
    by_target: "binary_cross_entropy_with_logits",
    padded: "pad_constant",
    joined: "cat",
    stacked: "stack",
    any_channels: "conv",
}
RULES = {name: rule for rule, names in _FAMILIES.items() for name in names.split()}

# Operators whose results are LAPACK's, which fills matrices by columns, and which of their results are matrices.
_ONE_MATRIX = """
    inv_ex solve_ex cholesky_ex lu_factor_ex lu_solve ldl_factor_ex ldl_solve solve_triangular geqrf householder_product
    ormqr cholesky_inverse cholesky_solve lstsq"""
COLUMNS = {
    **dict.fromkeys(_ONE_MATRIX.split(), (0,)),
    "qr": (0, 1),
    "svd": (0, 2),
    "eigh": (1,),
    "eig": (1,),
}
OWN = {*COLUMNS, "fft_c2c", "fft_r2c", "fft_c2r"}  # whose results lie in an order of their own
_TURNED = {"solve_ex": ("left", False), "lu_solve": ("left", False)}


def rule_of(op, node: str):
    """The rule of an operator, or of its variant with another node; those that promote are mostly element-wise."""
    if op.view:
        return None
    return RULES.get(node) or RULES.get(op.name) or (each if op.promote else None)
