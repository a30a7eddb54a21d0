"""Random tensors, and the noise that random ops take as an argument.

Drawing happens here, outside the graph: on NumPy from PyTorch's streams (``engine/streams``), on XLA arrays and while
compiling from JAX's generator (``engine/keys``). What is recorded is an op with the noise as one of its arguments, so
gradient rules stay pure.
"""

from __future__ import annotations

import functools
import math
import sys

import numpy as np

from .. import dtypes
from ..autograd import mode, views
from ..autograd.batching import drawn, drawn_from
from ..autograd.mode import state
from ..autograd.op import check_broadcast, op, variant
from ..autograd.op import differentiable as xp_
from ..device import cpu
from ..engine import SPREAD, accelerated, expect, meta, namespace_of, settle
from ..engine.numpy import streams
from ..layout import preserve_format
from ..random import Generator, default_generator
from ..tensor import Tensor, wrap
from .common import refuse
from .creation import empty_like, factory, sizes
from .public import PUBLIC, public

# -- new tensors -----------------------------------------------------------------------------------------------------


@factory
def rand(*size, dtype, device, generator=None, **keywords):
    """Uniform numbers from [0, 1).

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.rand(2)
    tensor([0.4963, 0.7682])
    """
    shape, dtype = _shape("rand", size, keywords), dtype or dtypes.get_default_dtype()
    _check_uniform_dtype(dtype)
    return _draw("uniform", shape, dtype, device, generator, low=0.0, high=1.0)


@factory
def randn(*size, dtype, device, generator=None, **keywords):
    """Numbers from the standard normal distribution."""
    shape, dtype = _shape("randn", size, keywords), dtype or dtypes.get_default_dtype()
    _check_normal_dtype(dtype)
    return _draw("normal", shape, dtype, device, generator, mean=0.0, std=1.0)


@factory
def randint(*args, dtype, device, generator=None, low=0, high=None, size=None):
    """Integers from [low, high): ``randint(high, size)`` or ``randint(low, high, size)``."""
    args = list(args)
    if size is None and args and not isinstance(args[-1], (int, float, Tensor, np.number)):
        size = args.pop()
    if len(args) == 2:
        low, high = args
    elif len(args) == 1 and high is None:
        high = args[0]
    elif args:
        low = args[0]
    if size is None or high is None:
        raise TypeError("randint() takes (high, size) or (low, high, size): an int, or two, and a tuple of ints")
    dtype = dtype or dtypes.int64
    low, high = _bounds("randint", low, high, dtype)
    return _draw("integers", _shape("randint", (size,)), dtype, device, generator, low=low, high=high)


@factory
def randperm(n, *, dtype, device, generator=None):
    """A random order of the integers below ``n``."""
    shape, dtype = _shape("randperm", (n,)), dtype or dtypes.int64
    if not dtype.is_floating_point and n > _limits(dtype)[1] + 1:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    return _draw("permutation", shape, dtype, device, generator)


@public(method=False)
def rand_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format, generator=None
):
    """Uniform numbers from [0, 1) in ``input``'s shape."""
    made = empty_like(input, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
    return uniform_(made, generator=generator).requires_grad_(requires_grad)


@public(method=False)
def randn_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format, generator=None
):
    """Standard normal numbers in ``input``'s shape."""
    made = empty_like(input, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
    return normal_(made, generator=generator).requires_grad_(requires_grad)


@public(method=False)
def randint_like(
    input,
    low=0,
    high=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=preserve_format,
    generator=None,
):
    """Integers from [low, high) in ``input``'s shape; ``randint_like(input, high)`` starts at 0."""
    low, high = (0, low) if high is None else (low, high)
    made = empty_like(input, dtype=dtype, layout=layout, device=device, memory_format=memory_format)
    return random_(made, low, high, generator=generator).requires_grad_(requires_grad)


# -- in place --------------------------------------------------------------------------------------------------------


@op(x=lambda xp, g: xp.zeros_like(g))
def overwritten(xp, x, value):
    return value


def _filler(node):
    """Make a ``Tensor.name_`` from a function that draws its new values; PyTorch's graph has a node for it."""
    record = variant(xp_.overwritten, node) if isinstance(node, str) else None

    def attach(draw):
        def method(self, *args, generator=None, **kwargs):
            views.check_writable(self)
            values = draw(self, *args, generator=generator, **kwargs)
            return _write(self, record, values)

        method.__name__ = method.__qualname__ = draw.__name__
        method.__doc__ = draw.__doc__
        setattr(Tensor, draw.__name__, method)
        return method

    return attach


def _write(t, record, values):
    if record is not None and state.grad and t._node is not None:
        views.assign(t, record(t, wrap(values)))
    else:
        views.put(t, values)
        if mode.active and mode.levels():
            views.write_tangents(t, None)
    return t


@_filler("UniformBackward0")
def uniform_(self, from_=0.0, to=1.0, *, generator=None, **named):
    """Fill with uniform numbers from [from, to)."""
    low, high = float(named.pop("from", from_)), float(to)
    _no_more("uniform_", named)
    _check_uniform_dtype(self.dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > dtypes.finfo(self.dtype).max:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{self.dtype.word}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )
    return _draw_for(self, "uniform", generator, low=low, high=high)


@_filler("NormalBackward0")
def normal_(self, mean=0.0, std=1.0, *, generator=None):
    """Fill with numbers from the normal distribution."""
    _check_std(std)
    _check_normal_dtype(self.dtype)
    return _draw_for(self, "normal", generator, mean=float(mean), std=float(std))


@_filler("LogNormalBackward0")
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Fill with exp of numbers from the normal distribution."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _check_float(self.dtype, '"log_normal_cpu" not implemented for ', NotImplementedError)
    return _draw_for(self, "log_normal", generator, mean=float(mean), std=float(std))


@_filler("ExponentialBackward0")
def exponential_(self, lambd=1.0, *, generator=None):
    """Fill with numbers from the exponential distribution."""
    continuous = "Exponential distribution is a continuous probability distribution. dtype must be a floating point but"
    if not self.dtype.is_floating_point:
        raise RuntimeError(f"{continuous} you specified {self.dtype.word}")
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return _draw_for(self, "exponential", generator, rate=float(lambd))


@_filler("GeometricBackward0")
def geometric_(self, p, *, generator=None):
    """Fill with the number of trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _draw_for(self, "geometric", generator, p=float(p))


@_filler("CauchyBackward0")
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Fill with numbers from the Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    continuous = "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but"
    _check_float(self.dtype, f"{continuous} you specified ", RuntimeError)
    return _draw_for(self, "cauchy", generator, median=float(median), sigma=float(sigma))


@public(function=False, out=False)
def bernoulli_(self, p=0.5, *, generator=None):
    """Fill with ones, each with probability ``p`` (a number, or a tensor of them), and zeros."""
    views.check_writable(self)
    if isinstance(p, Tensor):
        _check_probabilities(p)
        noise = _draw_for(self, "uniform", generator, _noise_dtype(p), low=0.0, high=1.0)
        return _write(self, _bernoulli_tensor, _astype(_below(noise, p), self))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _write(self, _bernoulli_number, _draw_for(self, "bernoulli", generator, p=float(p)))


_bernoulli_tensor = variant(xp_.overwritten, "BernoulliBackward1")
_bernoulli_number = variant(xp_.overwritten, "BernoulliBackward2")
_RANDOM_NODES = [variant(xp_.overwritten, f"RandomBackward{i}") for i in range(3)]
Tensor.bernoulli_ = bernoulli_


def random_(self, *bounds, generator=None, **named):
    """Fill with integers: ``random_()``, ``random_(to)`` or ``random_(from, to)``."""
    views.check_writable(self)
    bounds = [*bounds, *(named[k] for k in ("from", "to") if k in named)]
    record = _RANDOM_NODES[2 - len(bounds)]
    if not bounds:
        return _write(self, record, _draw_for(self, "any_integers", generator))
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    if high is None:
        high = _limits(self.dtype)[1] + 1
    low, high = _bounds("random_", low, high, self.dtype)
    return _write(self, record, _draw_for(self, "integers", generator, low=low, high=high))


Tensor.random_ = random_


# -- of tensors ------------------------------------------------------------------------------------------------------


def _no_gradient(xp, g):
    return xp.zeros_like(g)


@op(mean=_no_gradient, std=_no_gradient)
def normal_of(xp, mean, std, noise):
    return mean + std * noise


_NORMAL = {
    (True, False): variant(xp_.normal_of, "NormalBackward1"),
    (False, True): variant(xp_.normal_of, "NormalBackward2"),
    (True, True): variant(xp_.normal_of, "NormalBackward3"),
}


@public(method=False)
def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Normal numbers with the given means and standard deviations: numbers with ``size``, or tensors.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.normal(rushlight.tensor([1.0, 10.0]), 0.5)
    tensor([1.7705, 9.8533])
    """
    tensors = isinstance(mean, Tensor), isinstance(std, Tensor)
    if not any(tensors):
        if size is None:
            raise TypeError("normal() of two numbers needs a size: normal(mean, std, size)")
        made = PUBLIC["empty"](size, dtype=dtype, layout=layout, device=device)
        return normal_(made, mean, std, generator=generator).requires_grad_(requires_grad)
    if tensors[1]:
        expect(std._array, lambda s: s >= 0)
        if not _tracing() and not namespace_of(std._array).is_traced(std._array) and bool(xp_.any(std < 0)):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    else:
        _check_std(std)
    first = mean if tensors[0] else std
    shape = _broadcast([t._array.shape for t in (mean, std) if isinstance(t, Tensor)])
    noise = _draw("normal", shape, first.dtype, first.device, generator, mean=0.0, std=1.0)
    return _NORMAL[tensors](mean, std, wrap(noise))


@op(x=_no_gradient)
def bernoulli_of(xp, x, noise):
    return xp.astype(noise < x, dtype=x.dtype)


_bernoulli = variant(xp_.bernoulli_of, "BernoulliBackward0")


@public
def bernoulli(input, p=None, *, generator=None):
    """Ones, each with the probability that ``input`` gives, and zeros."""
    if p is not None:
        return empty_like(input).bernoulli_(p, generator=generator)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{input.dtype.word}'")
    _check_probabilities(input)
    return _bernoulli(input, wrap(_noise_for(input, generator)))


@op(node="PoissonBackward0", x=_no_gradient)
def poisson_of(xp, x, drawn):
    return drawn


@public(method=False)
def poisson(input, generator=None):
    """Poisson numbers with the rates in ``input``."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{input.dtype.word}'")
    expect(input._array, lambda rate: rate >= 0)
    if not _tracing() and bool(np.any(np.asarray(_values(input)) < 0)):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return xp_.poisson_of(input, wrap(_drawn_from("poisson", generator, input)))


@op(node="StandardGammaBackward0", a=lambda xp, g, y, a: g * xp.gamma_slope(a, y))
def gamma_of(xp, a, drawn):
    return drawn


def standard_gamma(shape: Tensor, generator=None) -> Tensor:
    """Gamma variates of rate 1 with the shapes given; a gradient says how they move with their shapes."""
    refuse("gamma_cpu", lambda d: d.itemsize == 2, shape)
    drawn = wrap(_drawn_from("gamma", generator, shape))
    return xp_.gamma_of(shape, drawn.clamp(min=dtypes.finfo(shape.dtype).tiny))


def _dirichlet_rule(xp, g, y, a):
    """A share that moves takes from the others, in their proportions."""
    slope = xp.dirichlet_slope(y, a, xp.sum(a, axis=-1, keepdims=True))
    return slope * (g - xp.sum(y * g, axis=-1, keepdims=True))


@op(node="_DirichletBackward", a=_dirichlet_rule)
def dirichlet_of(xp, a, drawn):
    return drawn


def sample_dirichlet(concentration: Tensor, generator=None) -> Tensor:
    """Shares that sum to 1 along the last dimension; a gradient says how they move with their concentrations."""
    refuse("dirichlet", lambda d: d.itemsize == 2 or not d.is_floating_point, concentration)
    return xp_.dirichlet_of(concentration, wrap(_drawn_from("dirichlet", generator, concentration)))


PUBLIC["_standard_gamma"], PUBLIC["_sample_dirichlet"] = standard_gamma, sample_dirichlet
PUBLIC["_standard_gamma_grad"] = lambda input, output: xp_.gamma_slope(input, output)
PUBLIC["_dirichlet_grad"] = lambda x, alpha, total: xp_.dirichlet_slope(x, alpha, total)


@op(count=_no_gradient, prob=_no_gradient)
def binomial_of(xp, count, prob, drawn):
    return drawn


@public(method=False)
def binomial(count, prob, generator=None):
    """How many of ``count`` trials succeed, each with probability ``prob``."""
    for name, t in (("count", count), ("prob", prob)):
        if not t.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {t.dtype.word}")
    check_broadcast((count, prob))
    refuse("binomial_cpu", lambda d: d.itemsize == 2, count)
    return xp_.binomial_of(count, prob, wrap(_drawn_from("binomial", generator, count, prob)))


@public
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the probabilities (unnormalized) in each row of ``input``.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.multinomial(rushlight.tensor([0.0, 10.0, 3.0, 0.0]), 2)
    tensor([1, 2])
    """
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.word}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    weights = input.detach()
    expect(weights._array, lambda w: (w >= 0) & (w < np.inf) & (w.sum(axis=-1, keepdims=True) > 0))
    if not _tracing() and not weights.is_meta:
        if namespace_of(weights._array).is_known(weights._array):
            _check_weights(np.asarray(_values(weights)))
        else:
            settle()  # here a loop that writes text begins again, and nobody waits for values only to check them
    if replacement and num_samples > 1 and type(weights._array) is np.ndarray:
        return wrap(_with_replacement(weights._array, num_samples, generator or default_generator))
    if replacement:
        return _by_race(weights, num_samples, generator)
    race = weights / empty_like(weights).exponential_(1.0, generator=generator)
    return race.argmax(-1, keepdim=True) if num_samples == 1 else race.topk(num_samples).indices


def _with_replacement(weights, n, generator):
    rows = weights.reshape(-1, weights.shape[-1])
    rows = rows if rows.dtype.itemsize >= 4 else rows.astype(np.float32)
    cumulative = np.cumsum(rows, axis=1, dtype=rows.dtype)
    cumulative /= cumulative[:, -1:]
    u = streams.uniform01(generator, len(rows) * n).reshape(len(rows), n)
    found = np.stack([np.searchsorted(c, x) for c, x in zip(cumulative, u)]).astype(np.int64)
    return np.minimum(found, rows.shape[1] - 1).reshape(*weights.shape[:-1], n)


def _by_race(weights, n, generator):
    """With replacement on XLA: every sample is the winner of its own exponential race."""
    shape = (*weights.shape[:-1], n, weights.shape[-1])
    noise = _draw("exponential", shape, weights.dtype, weights.device, generator, rate=1.0)
    return (weights.unsqueeze(-2) / wrap(noise)).argmax(-1)


def _check_weights(weights) -> None:
    within = not weights.size or 0 <= np.minimum.reduce(weights, None) <= np.maximum.reduce(weights, None) < np.inf
    if not within:  # or there is a NaN, which both find
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if np.any(weights.sum(axis=-1) == 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


# -- dropout ---------------------------------------------------------------------------------------------------------


def dropout_noise(input: Tensor, p: float, shape=None, dtype=None) -> Tensor:
    """What dropout keeps: 0 with probability ``p``, else 1, in ``shape``."""
    keep, dtype = 1.0 - p, dtype or input.dtype
    if shape is None and input._array.__class__ is np.ndarray and not _tracing():
        noise = _draw_for(input, "bernoulli", None, dtype, p=keep)
    else:
        noise = _draw("bernoulli", tuple(shape or input.shape), dtype, input.device, None, p=keep)
    return wrap(noise)


def _dropout(input, p, train, features, alpha):
    """The four dropouts: whole ``features`` or elements, to zero or (``alpha``) to SELU's negative saturation."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or input._array.size == 0:
        return input
    if p == 1:
        return input * PUBLIC["zeros"]((), dtype=input.dtype, device=input.device)
    shape = (*input.shape[:2], *[1] * (input.ndim - 2)) if features else None
    if not alpha:
        # PyTorch's node is a product with the noise; a mask of bytes takes a quarter of its memory.
        one = np.float32(1) if input.dtype.itemsize == 2 else input.dtype.numpy.type(1)
        scale = float(input.dtype.numpy.type(one / one.dtype.type(1.0 - p)).real)
        return _dropped(input, dropout_noise(input, p, shape, dtype=dtypes.bool_), scale=scale)
    noise = dropout_noise(input, p, shape)
    saturation = 1.7580993408473766
    a = 1 / math.sqrt((saturation**2 * p + 1) * (1 - p))
    shift = (noise - 1) * (saturation * a) + saturation * a * p
    return input * (noise * a) + shift


def _publish_dropout(name, features, alpha):
    def drop(input, p, train):
        return _dropout(input, p, train, features, alpha)

    def drop_in_place(input, p, train):
        return views.inplace(input, drop, p, train) if train and p else input

    what = "whole channels" if features else "elements"
    drop.__doc__ = f"Where ``train``, {what} dropped with probability ``p``" + (", as SELU wants it." if alpha else ".")
    drop_in_place.__doc__ = f"``{name}``, in place."
    drop.__name__ = drop.__qualname__ = name
    drop_in_place.__name__ = drop_in_place.__qualname__ = name + "_"
    PUBLIC[name], PUBLIC[name + "_"] = drop, drop_in_place


for _name, _features, _alpha in (
    ("dropout", False, False), ("feature_dropout", True, False), ("alpha_dropout", False, True),
    ("feature_alpha_dropout", True, True),
):  # fmt: skip
    _publish_dropout(_name, _features, _alpha)


@op(node="NativeDropoutBackward0", x=lambda xp, g, mask, scale: g * mask * scale)
def native_dropped(xp, x, mask, *, scale):
    return x * mask * scale


_dropped = variant(native_dropped, "MulBackward0")


@public(method=False, out=False)
def native_dropout(input, p, train):
    """``input`` with elements dropped, and the mask of those kept."""
    if train is not None and not train:
        return input.clone(), PUBLIC["ones_like"](input, dtype=dtypes.bool_)
    mask = _draw("bernoulli", tuple(input.shape), dtypes.bool_, input.device, None, p=1.0 - p)
    scale = 0.0 if p == 1 else 1.0 / (1.0 - p)
    return xp_.native_dropped(input, wrap(mask), scale=scale), wrap(mask)


def rrelu_noise(input: Tensor, lower: float, upper: float) -> Tensor:
    """The slopes of ``rrelu``: drawn where ``input`` is not positive, 1 elsewhere."""
    refuse("rrelu_with_noise_out_cpu", lambda d: d is dtypes.float16, input)
    array = _values(input)
    if array.__class__ is np.ndarray and not _tracing():
        noise, drawn = np.ones_like(array), array <= 0
        number = np.float32 if array.itemsize == 2 else array.dtype.type
        low, high = float(number(lower)), float(number(upper))
        noise[drawn] = streams.uniform01(default_generator, int(np.count_nonzero(drawn))) * (high - low) + low
        return wrap(noise)
    noise = _draw("uniform", tuple(input.shape), input.dtype, input.device, None, low=lower, high=upper)
    return wrap(namespace_of(array).where(array <= 0, noise, namespace_of(array).ones_like(noise)))


# -- drawing ---------------------------------------------------------------------------------------------------------


def _draw(kind, shape, dtype, device, generator, **parameters):
    """An array of ``kind`` on ``device``."""
    if mode.active and mode.maps():
        return drawn(lambda shape: _draw_alone(kind, shape, dtype, device, generator, parameters), shape)
    return _draw_alone(kind, shape, dtype, device, generator, parameters)


def _draw_alone(kind, shape, dtype, device, generator, parameters):
    generator = _checked(generator)
    if device.type != "cpu" or _tracing():
        return _draw_keyed(kind, shape, dtype, device, generator, parameters)
    values = _flat(kind, math.prod(shape), dtype, generator, parameters)
    return values.reshape(shape)


def _draw_for(t: Tensor, kind, generator, dtype=None, **parameters):
    """An array like ``t``: its shape and (if none is given) dtype, drawn in the order of t's memory."""
    if mode.active and mode.maps():
        return _draw(kind, tuple(t.shape), dtype or t.dtype, t.device, generator, **parameters)
    generator = _checked(generator)
    array, dtype = t._array, dtype or t.dtype
    if array.__class__ is SPREAD.array:  # numbers that do not depend on the mesh
        return namespace_of(array).like(_draw(kind, array.shape, dtype, cpu, generator, **parameters), array)
    if array.__class__ is not np.ndarray or _tracing():
        return _draw_keyed(kind, array.shape, dtype, t.device, generator, parameters)
    if array.flags.c_contiguous:
        return _flat(kind, array.size, dtype, generator, parameters).reshape(array.shape)
    if kind == "normal":
        parameters["contiguous"] = False
    values = _flat(kind, array.size, dtype, generator, parameters)
    order = sorted(range(array.ndim), key=lambda d: -abs(array.strides[d]))
    return values.reshape([array.shape[d] for d in order]).transpose(np.argsort(order))


def _flat(kind, n, dtype, generator, parameters):
    if dtype.is_complex:
        return _flat(kind, 2 * n, dtype.to_real(), generator, _halved(parameters)).view(dtype.numpy)
    return getattr(streams, kind)(generator, n, dtype.numpy, **parameters)


def _draw_keyed(kind, shape, dtype, device, generator, parameters):
    if device.type == "meta":
        return meta().draw(kind, generator, device, (shape, dtype.numpy), parameters)
    if dtype.is_complex:
        pair = _draw_keyed(kind, (*shape, 2), dtype.to_real(), device, generator, _halved(parameters))
        return pair[..., 0] + 1j * pair[..., 1]
    return accelerated().draw(kind, generator, None if device == cpu else device, (shape, dtype.numpy), parameters)


def _halved(parameters):
    """A complex normal number's variance is shared by its two parts."""
    return {k: v / math.sqrt(2) if k == "std" else v for k, v in parameters.items()}


def _noise_for(p: Tensor, generator):
    """Uniform noise to compare probabilities with; half precision is compared in float32."""
    return _draw("uniform", tuple(p.shape), _noise_dtype(p), p.device, generator, low=0.0, high=1.0)


def _noise_dtype(p: Tensor):
    return p.dtype if p.dtype is dtypes.float64 else dtypes.float32


def _drawn_from(kind, generator, *parameters):
    arrays = [_values(t) for t in parameters]
    if mode.active and mode.maps():
        return drawn_from(lambda *whole: _drawn_from_arrays(kind, generator, parameters, list(whole)), arrays)
    return _drawn_from_arrays(kind, generator, parameters, arrays)


def _drawn_from_arrays(kind, generator, parameters, arrays):
    generator, dtype = _checked(generator), arrays[0].dtype
    if parameters[0].device.type == "meta":
        return meta().draw(kind, generator, None, tuple(arrays), {})
    if all(a.__class__ is np.ndarray for a in arrays) and not _tracing():
        arrays = np.broadcast_arrays(*[a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays])
        drawn = getattr(streams, kind)(generator, *arrays)
        return drawn.reshape(arrays[0].shape).astype(dtype)
    return accelerated().draw(kind, generator, None, tuple(arrays), {})


def _below(noise, p):
    array = _values(p)
    return noise < namespace_of(array).astype(array, dtype=noise.dtype)


def _astype(array, like):
    return namespace_of(array).astype(array, dtype=like._array.dtype)


def _values(t: Tensor):
    t._sync()
    return t._array


def _tracing() -> bool:
    devices = sys.modules.get("rushlight.engine.xla.devices")  # imports JAX: not loaded, not tracing
    return devices is not None and devices.is_tracing()


# -- arguments -------------------------------------------------------------------------------------------------------


def _checked(generator) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator


def _shape(function, size, keywords=None):
    shape = sizes(function, size, keywords)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _bounds(function, low, high, dtype):
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, float) and function == "randint":
            raise TypeError(f"randint(): argument '{name}' must be int, not float")
    low, high = int(low), int(high)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if not dtype.is_floating_point:
        smallest, largest = _limits(dtype)
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not smallest <= value <= largest:
                raise RuntimeError(f"{name} is out of bounds for {_C_NAMES.get(dtype.name, dtype.name)}")
    return low, high


_C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int"}


@functools.cache
def _limits(dtype) -> tuple[int, int]:
    """The integers that are drawn at most: those that a dtype holds."""
    if dtype.is_floating_point:
        largest = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}[dtype.name]
        return -largest, largest
    if dtype is dtypes.bool_:
        return 0, 1
    whole = dtypes.iinfo(dtype)
    return whole.min, whole.max


def _check_uniform_dtype(dtype) -> None:
    if dtype.itemsize == 1 or not (dtype.is_floating_point or dtype.is_complex):
        raise NotImplementedError(f"\"check_uniform_bounds\" not implemented for '{dtype.word}'")


def _check_normal_dtype(dtype) -> None:
    if dtype.itemsize == 1 or not (dtype.is_floating_point or dtype.is_complex):
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{dtype.word}'")


def _check_float(dtype, text, error) -> None:
    if not dtype.is_floating_point:
        raise error(f"{text}{_C_NAMES.get(dtype.name, dtype.name) if error is RuntimeError else repr(dtype.word)}")


def _check_std(std) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _check_probabilities(p: Tensor) -> None:
    expect(p._array, lambda p: (p >= 0) & (p <= 1))
    if _tracing() or namespace_of(p._array).is_traced(p._array):
        return
    if not bool(np.all((np.asarray(_values(p)) >= 0) & (np.asarray(p._array) <= 1))):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def _broadcast(shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        a, b = shapes
        d = next(i for i in range(1, 1 + min(len(a), len(b))) if a[-i] != b[-i] and 1 not in (a[-i], b[-i]))
        raise RuntimeError(
            f"The size of tensor a ({a[-d]}) must match the size of tensor b ({b[-d]}) at non-singleton dimension "
            f"{max(len(a), len(b)) - d}"
        ) from None


def _no_more(function, named) -> None:
    if named:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(named))}'")
