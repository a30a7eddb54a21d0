"""Batching rules: what a function does to all examples at once.

``rule(function, xp, many, *args, **options)`` is given the function of the engine below, ``xp``, and how many examples
there are. Arrays that differ between examples come as ``Mapped``, hidden axis first, others as they are; it returns
arrays with the hidden axis first.
"""

from __future__ import annotations

import math

import numpy as np

from .array import Mapped

RULES: dict = {}  # function name -> rule
OPERATORS: dict = {}  # op name -> rule, for operators that are handed on whole


def _words(text: str) -> list[str]:
    return text.split()


def _is_array(a) -> bool:
    return a.__class__ is Mapped or (hasattr(a, "shape") and hasattr(a, "dtype"))


def _ndim(a) -> int:
    return a.ndim if _is_array(a) else 0


def _aligned(xp, a, ndim: int):
    """``a`` with ones between the hidden axis and its own, so that it has ``ndim`` of those."""
    if a.__class__ is not Mapped:
        return a
    whole = a.whole
    if a.ndim == ndim:
        return whole
    return xp.reshape(whole, (whole.shape[0], *(1,) * (ndim - a.ndim), *whole.shape[1:]))


def _whole(xp, a, many: int):
    """``a`` with a hidden axis, repeated along it if it had none."""
    if a.__class__ is Mapped:
        return a.whole
    a = a if hasattr(a, "shape") else np.asarray(a)
    return xp.broadcast_to(xp.reshape(a, (1, *a.shape)), (many, *a.shape))


def _shift(axis):
    """An axis, or several, past the hidden one."""
    if axis is None:
        return None
    if isinstance(axis, (tuple, list)):
        return tuple([_shift(a) for a in axis])
    return axis + 1 if axis >= 0 else axis


def _all_axes(x) -> tuple:
    return tuple(range(1, x.ndim + 1))


# -- element by element ------------------------------------------------------------------------------------------------


def _pointwise(function, xp, many, /, *args, **options):
    ndim = max([_ndim(a) for a in args])
    return function(*[_aligned(xp, a, ndim) for a in args], **options)


_POINTWISE = _words(
    "abs absolute add airy_ai angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh astype alias bessel_j0 "
    "bessel_j1 bessel_y0 bessel_y1 bitwise_and bitwise_or bitwise_xor ceil clip clone conj copy copysign cos cosh "
    "deg2rad digamma divide elu entr equal erf erfc erfcx erfinv exp exp2 expm1 floor floor_divide fmax fmin fmod "
    "frexp gcd gelu greater greater_equal hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 i0e i1 i1e "
    "igamma igammac imag invert isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp leaky_relu left_shift "
    "lerp less less_equal lgamma log log10 log1p log2 log_ndtr log_sigmoid logaddexp logaddexp2 logical_and "
    "logical_not logical_or logical_xor logit make_complex maximum minimum mish modified_bessel_k0 modified_bessel_k1 "
    "multiply mvlgamma nan_to_num ndtri negative nextafter not_equal ones_like polygamma power rad2deg real "
    "reciprocal relu remainder right_shift rint round rsqrt scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "real_sign sigmoid sign signbit silu sin sinc sinh softplus softshrink spherical_bessel_j0 sqrt square subtract "
    "tan tanh threshold trunc where xlog1py xlogy zeros_like full_like zeta gamma_slope dirichlet_slope divide_rounded "
    "polar"
)
RULES.update(dict.fromkeys(_POINTWISE, _pointwise))
# Operators too, with the engine's own body; those of the list that are none are never asked for.
OPERATORS.update(dict.fromkeys(_POINTWISE, _pointwise))
OPERATORS.update(
    dict.fromkeys(
        _words(
            "add_scaled addcdiv addcmul bernoulli_of binomial_of compared filled frac masked_fill mse_each "
            "native_dropped normal_of overwritten poisson_of prelu_kernel rrelu_with_noise rsub subtract_scaled "
            "gamma_of chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
            "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
            "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
            "shifted_chebyshev_polynomial_w"
        ),
        _pointwise,
    )
)


def _asarray(function, xp, many, /, x, *args, **options):
    return function(x.whole, *args, **options)


RULES["asarray"] = _asarray


def _full(function, xp, many, /, shape, fill_value, dtype=None, **options):
    value = fill_value.whole
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    value = xp.broadcast_to(xp.reshape(value, (many, *(1,) * len(shape))), (many, *shape))
    return xp.copy(value) if dtype is None else xp.astype(value, dtype)


RULES["full"] = _full


# -- along axes --------------------------------------------------------------------------------------------------------


def _reduction(function, xp, many, /, x, axis=None, *args, **options):
    return function(x.whole, _all_axes(x) if axis is None else _shift(axis), *args, **options)


RULES.update(dict.fromkeys(_words("sum prod max min mean any all var std nansum"), _reduction))


def _root_mean_square(function, xp, many, /, x, count, axis=None, keepdims=False):
    return function(x.whole, count, _all_axes(x) if axis is None else _shift(axis), keepdims)


RULES["root_mean_square"] = _root_mean_square


def _place_of_extreme(function, xp, many, /, x, axis=None, keepdims=False):
    if axis is not None:
        return function(x.whole, _shift(axis), keepdims=keepdims)
    found = function(xp.reshape(x.whole, (many, math.prod(x.shape))), 1)
    return xp.reshape(found, (many, *(1,) * x.ndim)) if keepdims else found


RULES["argmax"] = RULES["argmin"] = _place_of_extreme


def _along(function, xp, many, /, *args, axis=-1, **options):
    """Arrays of the same number of axes, then ``axis``."""
    arrays = [a for a in args if _is_array(a)]
    if len(arrays) < len(args):
        axis, arrays = args[len(arrays)], arrays
    ndim = max([a.ndim for a in arrays])
    if ndim == 0:
        flat = [xp.reshape(_whole(xp, a, many), (many, 1)) for a in arrays]
        return xp.reshape(function(*flat, axis=1, **options), (many,))
    axis = tuple(range(1, ndim + 1)) if axis is None else _shift(axis)
    return function(*[_whole(xp, _aligned_to(xp, a, ndim), many) for a in arrays], axis=axis, **options)


RULES.update(
    dict.fromkeys(
        _words(
            "cumsum cumprod cummax cummin cumlogsumexp argsort softmax log_softmax softmax_backward_data "
            "log_softmax_backward_data linear_scan cross"
        ),
        _along,
    )
)
OPERATORS.update(dict.fromkeys(_words("softmax log_softmax softmax_backward_data log_softmax_backward_data"), _along))


def _pad(function, xp, many, /, x, pad_width, *args, **options):
    return function(x.whole, ((0, 0), *pad_width), *args, **options)


RULES["pad"] = _pad


def _rot90(function, xp, many, /, x, k=1, axes=(0, 1)):
    return function(x.whole, k, _shift(axes))


RULES["rot90"] = _rot90


def _top_order(function, xp, many, /, x, k, axis):
    return function(x.whole, k=k, axis=_shift(axis))


RULES["top_order"] = _top_order


def _flip(function, xp, many, /, x, axis=None):
    return function(x.whole, axis=_all_axes(x) if axis is None else _shift(axis))


RULES["flip"] = _flip


def _roll(function, xp, many, /, x, shift, axis=None):
    if axis is None:
        flat = xp.reshape(x.whole, (many, math.prod(x.shape)))
        return xp.reshape(function(flat, shift, 1), x.whole.shape)
    return function(x.whole, shift, _shift(axis))


RULES["roll"] = _roll


def _fft(function, xp, many, /, x, *args, **options):
    if args:
        options["axes"] = args[-1]
        args = args[:-1]
    return function(x.whole, *args, **{**options, "axes": _shift(options["axes"])})


RULES.update(dict.fromkeys(_words("fftn ifftn rfftn irfftn"), _fft))


# -- shapes ------------------------------------------------------------------------------------------------------------


def _reshape(function, xp, many, /, x, shape):
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape = tuple([math.prod(x.shape) // rest if n == -1 else n for n in shape])
    return function(x.whole, (many, *shape))


RULES["reshape"] = _reshape


def _broadcast_to(function, xp, many, /, x, shape):
    return function(_aligned(xp, x, len(shape)), (many, *shape))


RULES["broadcast_to"] = RULES["expanded"] = _broadcast_to


def _expand_dims(function, xp, many, /, x, axis):
    return function(x.whole, _shift(axis))


RULES["expand_dims"] = _expand_dims


def _squeeze(function, xp, many, /, x, axis=None):
    if axis is None:
        axis = tuple(i for i, n in enumerate(x.shape) if n == 1)
    return function(x.whole, axis=_shift(axis))


RULES["squeeze"] = _squeeze


def _swapaxes(function, xp, many, /, x, axis1, axis2):
    return function(x.whole, _shift(axis1), _shift(axis2))


RULES["swapaxes"] = RULES["moveaxis"] = _swapaxes


def _transpose(function, xp, many, /, x, axes=None):
    axes = range(x.ndim - 1, -1, -1) if axes is None else axes
    return function(x.whole, (0, *[a % x.ndim + 1 for a in axes]))


RULES["transpose"] = _transpose


def _lay_out(function, xp, many, /, x, order):
    return function(x.whole, (0, *[a + 1 for a in order]))


RULES["lay_out"] = _lay_out


def _diagonal(function, xp, many, /, x, offset=0, axis1=0, axis2=1):
    return function(x.whole, offset, _shift(axis1), _shift(axis2))


RULES["diagonal"] = _diagonal


def _windows(function, xp, many, /, x, axis, **options):
    return function(x.whole, axis=_shift(axis), **options)


RULES["windows"] = _windows


def _join(function, xp, many, /, xs, axis=0):
    return function([_whole(xp, x, many) for x in xs], axis=_shift(axis))


RULES["concatenate"] = RULES["stack"] = _join


def _tile(function, xp, many, /, x, repeats):
    repeats = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    extra = len(repeats) - x.ndim
    if extra < 0:
        repeats = (1,) * -extra + repeats
    return function(_aligned(xp, x, len(repeats)), (1, *repeats))


RULES["tile"] = _tile


# -- products ----------------------------------------------------------------------------------------------------------


def _matmul(function, xp, many, /, x, w):
    if x.__class__ is Mapped and w.__class__ is not Mapped and w.ndim <= 2:
        whole = x.whole
        if w.ndim == 2 and x.ndim > 1:  # one product of many rows, not many of few
            rows = xp.reshape(whole, (math.prod(whole.shape[:-1]), whole.shape[-1]))
            return xp.reshape(function(rows, w), (*whole.shape[:-1], w.shape[-1]))
        return function(whole, w)
    if w.__class__ is Mapped and w.ndim == 1 and x.__class__ is not Mapped and x.ndim <= 2:
        return function(w.whole, xp.matrix_transpose(x) if x.ndim == 2 else x)
    if x.ndim == 1:
        x, w = _widened(xp, x, -2), w
        return xp.squeeze(_matmul(function, xp, many, x, w), axis=-1 if w.ndim == 1 else -2)
    if w.ndim == 1:
        return xp.squeeze(_matmul(function, xp, many, x, _widened(xp, w, -1)), axis=-1)
    ndim = max(x.ndim, w.ndim)
    return function(_aligned(xp, x, ndim), _aligned(xp, w, ndim))


def _widened(xp, a, axis):
    return Mapped(xp.expand_dims(a.whole, axis)) if a.__class__ is Mapped else xp.expand_dims(a, axis)


RULES["matmul"] = _matmul


def _dot(function, xp, many, /, x, w):
    return _matmul(xp.matmul, xp, many, x, w)


RULES["dot"] = _dot


def _linear(function, xp, many, /, x, w, b=None):
    """The engine's own product where all examples share the weight; else one product of a batch of matrices."""
    if w.__class__ is Mapped and x.__class__ is not Mapped:
        return _with_all_weights(function, xp, many, x, w, b)
    if w.__class__ is Mapped or b.__class__ is Mapped:
        return NotImplemented
    whole = x.whole
    if x.ndim == 1:
        return function(whole, w, b)
    rows = xp.reshape(whole, (math.prod(whole.shape[:-1]), whole.shape[-1]))
    return xp.reshape(function(rows, w, b), (*whole.shape[:-1], w.shape[0]))


def _with_all_weights(function, xp, many, x, w, b):
    """One input for all examples, which have weights of their own: for a vector these are rows of one matrix."""
    if x.ndim == 1:
        made = function(xp.reshape(x, (1, x.shape[0])), xp.reshape(w.whole, (many * w.shape[0], w.shape[1])), None)
    else:
        rows = xp.reshape(x, (1, math.prod(x.shape[:-1]), x.shape[-1]))
        made = xp.matmul(rows, xp.swapaxes(w.whole, -1, -2))
    made = xp.reshape(made, (many, *x.shape[:-1], w.shape[0]))
    if b is None:
        return made
    return made + (_aligned(xp, b, x.ndim) if b.__class__ is Mapped else b)


OPERATORS["linear"] = _linear


# -- matrices, and what else works on last axes ------------------------------------------------------------------------


def _last_axes(function, xp, many, /, *args, **options):
    """Arrays with any number of leading axes: the hidden one is one more."""
    arrays = [a for a in args if _is_array(a)]
    ndim = max([a.ndim for a in arrays])
    given = [_whole(xp, _aligned_to(xp, a, ndim), many) if _is_array(a) else a for a in args]
    return function(*given, **options)


def _aligned_to(xp, a, ndim):
    if a.__class__ is Mapped:
        return Mapped(_aligned(xp, a, ndim))
    return xp.reshape(a, (*(1,) * (ndim - a.ndim), *a.shape)) if a.ndim < ndim else a


RULES.update(
    dict.fromkeys(
        _words(
            "matrix_transpose svd eigh eig qr cholesky_ex solve_ex inv_ex det slogdet solve_triangular lu_factor_ex "
            "matrix_exp geqrf ldl_factor_ex cofactor view_as_real view_as_complex bitcast pick spread "
            "sum_windows spread_windows max_windows lu_permutation"
        ),
        _last_axes,
    )
)


def _triangle(function, xp, many, /, x, k=0):
    if x.ndim < 2:
        return xp.stack([function(xp.getitem(x.whole, i), k) for i in range(many)])
    return function(x.whole, k)


RULES["tril"] = RULES["triu"] = _triangle


def _columns(function, xp, many, /, x, **options):
    """The hidden axis and the first as one: they are only carried along."""
    whole = x.whole
    made = function(xp.reshape(whole, (whole.shape[0] * whole.shape[1], *whole.shape[2:])), **options)
    return xp.reshape(made, (many, whole.shape[1], *made.shape[1:]))


RULES["columns"] = RULES["add_columns"] = _columns


# -- convolutions ------------------------------------------------------------------------------------------------------


def _split_first(xp, y, many):
    return xp.reshape(y, (many, y.shape[0] // many, *y.shape[1:]))


def _merged(xp, a):
    """Hidden and first axis as one."""
    whole = a.whole
    return xp.reshape(whole, (whole.shape[0] * whole.shape[1], *whole.shape[2:]))


def _to_channels(xp, a, many):
    """``(hidden, n, channels, …)`` as ``(n, hidden * channels, …)``."""
    whole = xp.swapaxes(_whole(xp, a, many), 0, 1)
    return xp.reshape(whole, (whole.shape[0], whole.shape[1] * whole.shape[2], *whole.shape[3:]))


def _from_channels(xp, y, many):
    y = xp.reshape(y, (y.shape[0], many, y.shape[1] // many, *y.shape[2:]))
    return xp.swapaxes(y, 0, 1)


def _conv(function, xp, many, /, x, w, b=None, *, groups, **options):
    if w.__class__ is not Mapped and b.__class__ is not Mapped:
        made = function(_merged(xp, x), w, groups=groups, **options)
        return _split_first(xp, made if b is None else made + xp.reshape(b, (1, -1, *(1,) * (made.ndim - 2))), many)
    weights = xp.reshape(_whole(xp, w, many), (-1, *w.shape[1:]))
    made = _from_channels(xp, function(_to_channels(xp, x, many), weights, groups=groups * many, **options), many)
    if b is None:
        return made
    b = _whole(xp, b, many)
    return made + xp.reshape(b, (many, 1, b.shape[1], *(1,) * (made.ndim - 3)))


RULES["conv"] = RULES["conv_input"] = _conv


def _conv_weight(function, xp, many, /, x, g, *, groups, **options):
    made = function(_to_channels(xp, x, many), _to_channels(xp, g, many), groups=groups * many, **options)
    return xp.reshape(made, (many, made.shape[0] // many, *made.shape[1:]))


RULES["conv_weight"] = _conv_weight


# -- indices -----------------------------------------------------------------------------------------------------------


class _Index:
    """An index of one example, made one of all: the hidden axis is indexed by the examples' numbers."""

    def __init__(self, xp, many, shape, index):
        parts = list(index) if isinstance(index, tuple) else [index]
        self.xp, self.many, self.shape = xp, many, shape
        self.advanced = any(_is_array(p) or isinstance(p, list) for p in parts)
        if not self.advanced:
            self.parts = (slice(None), *parts)
            return
        self.parts, self.places = self._all(self._full(parts))

    def _full(self, parts):
        """Without an ellipsis, booleans or masks; integers are arrays."""
        if any(_is_array(p) and p.dtype.kind == "b" for p in parts):
            raise _masked()
        used = sum([p is not None and p is not Ellipsis for p in parts])
        rest = [slice(None)] * (len(self.shape) - used)
        at = next((i for i, p in enumerate(parts) if p is Ellipsis), None)
        parts = [*parts, *rest] if at is None else [*parts[:at], *rest, *parts[at + 1 :]]
        return [np.asarray(p) if isinstance(p, (int, np.integer, list)) else p for p in parts]

    def _all(self, parts):
        """The index of all, and where in one example's result the axes of index arrays belong: (first, how many)."""
        arrays = [i for i, p in enumerate(parts) if _is_array(p)]
        ndim = max([parts[i].ndim for i in arrays])
        together = arrays[-1] - arrays[0] == len(arrays) - 1
        first = sum([p is None or isinstance(p, slice) for p in parts[: arrays[0]]]) if together else 0
        numbers = np.arange(self.many).reshape(self.many, *(1,) * ndim)
        full = [_aligned(self.xp, p, ndim) if p.__class__ is Mapped else p for p in parts]
        return (numbers, *full), (first, ndim)

    def result(self, y):
        """What was read, with its axes in their places."""
        if not self.advanced or not self.places[0] or not self.places[1]:
            return y
        first, count = self.places
        return self.xp.transpose(y, (0, *[count + 1 + i for i in range(first)], *range(1, count + 1),
                                     *range(count + 1 + first, y.ndim)))  # fmt: skip

    def value(self, whole, value, xp):
        """A value for what the index names, broadcast, with its axes in the order of what is read."""
        target = xp.getitem(whole, self.parts)
        shown = self.result(target)
        ndim = shown.ndim - 1
        if value.__class__ is Mapped:
            if value.ndim > ndim:  # ones in front, which NumPy overlooks
                value = Mapped(xp.reshape(value.whole, (self.many, *value.shape[value.ndim - ndim :])))
            value = _aligned(xp, value, ndim)
        elif not hasattr(value, "shape"):
            return value
        value = xp.broadcast_to(value, shown.shape)
        if not self.advanced or not self.places[0] or not self.places[1]:
            return value
        first, count = self.places
        return xp.transpose(
            value,
            (0, *range(first + 1, first + count + 1), *range(1, first + 1), *range(first + count + 1, value.ndim)),
        )


def _masked():
    from .array import CONTROL_FLOW, Unbatchable

    return Unbatchable(CONTROL_FLOW)


def _getitem(function, xp, many, /, x, index):
    whole = _whole(xp, x, many)
    made = _Index(xp, many, whole.shape[1:], index)
    return made.result(function(whole, made.parts))


RULES["getitem"] = _getitem


def _index_write(function, xp, many, /, x, value, index, **options):
    whole = _whole(xp, x, many)
    made = _Index(xp, many, whole.shape[1:], index)
    return function(whole, made.value(whole, value, xp), made.parts, **options)


RULES["index_put"] = RULES["index_add"] = RULES["index_reduce"] = _index_write


def _take(function, xp, many, /, x, index, axis=None):
    if axis is None:
        shape = (many, -1) if x.__class__ is Mapped else (-1,)
        flat = xp.reshape(x.whole if x.__class__ is Mapped else x, shape)
        return _take(function, xp, many, Mapped(flat) if x.__class__ is Mapped else flat, index, 0)
    if x.__class__ is not Mapped:
        axis %= x.ndim
        found = function(x, index.whole, axis=axis)
        return found if not axis else xp.moveaxis(found, axis, 0)
    axis %= x.ndim
    if index.__class__ is not Mapped:
        return function(x.whole, index, axis=axis + 1)
    return _getitem(xp.getitem, xp, many, x, (*(slice(None),) * axis, index))


RULES["take"] = _take


def _take_along_axis(function, xp, many, /, x, index, axis):
    return function(_whole(xp, x, many), _whole(xp, index, many), axis=_shift(axis))


RULES["take_along_axis"] = _take_along_axis


def _add_along_axis(function, xp, many, /, value, index, axis, size, unique=False):
    return function(_whole(xp, value, many), _whole(xp, index, many), axis=_shift(axis), size=size, unique=unique)


RULES["add_along_axis"] = _add_along_axis


def _add_rows(function, xp, many, /, value, index, size):
    """Every example has rows of its own in one long array."""
    value, index = _whole(xp, value, many), _whole(xp, index, many)
    index = index + np.arange(many).reshape(many, 1) * size
    rows = function(xp.reshape(value, (-1, *value.shape[2:])), xp.reshape(index, (-1,)), many * size)
    return xp.reshape(rows, (many, size, *rows.shape[1:]))


RULES["add_rows"] = _add_rows


def _bincount(function, xp, many, /, x, weights=None, length=0):
    if weights is not None or not length:
        raise _masked()
    index = xp.reshape(x.whole + np.arange(many).reshape(many, 1) * length, (-1,))
    return xp.reshape(function(index, None, many * length), (many, length))


RULES["bincount"] = _bincount


def _searchsorted(function, xp, many, /, sequence, values, **options):
    if sequence.__class__ is not Mapped and sequence.ndim == 1:
        return function(sequence, values.whole, **options)
    rows = _whole(xp, sequence, many)
    found = _whole(xp, values, many)
    if rows.ndim == 2:
        flat = xp.reshape(found, (many, math.prod(found.shape[1:])))
        return xp.reshape(function(rows, flat, **options), found.shape)
    return function(rows, found, **options)


RULES["searchsorted"] = _searchsorted
