"""Activations and dropout by kernels: forward of the input, slopes of what the rule keeps."""

from __future__ import annotations

import math

import numpy as np

_KEPT = {"relu": "y", "sigmoid": "y", "tanh": "y", "silu": "x", "hardsigmoid": "x", "hardswish": "x"}
_KEPT |= {"log_sigmoid": "x", "mish": "x"}
_NUMBERS = {"leaky_relu": ("negative_slope",), "hardtanh": ("low", "high")}  # of x
_NUMBERS |= {"elu": ("alpha", "scale", "input_scale"), "softplus": ("beta", "threshold")}
_NUMBERS |= {"hardshrink": ("lambd",), "softshrink": ("lambd",)}


def install(library, bodies, backward) -> None:
    plain_tanh = bodies["tanh"]
    for name, kept in _KEPT.items():
        bodies[name] = _forward(getattr(library, name), bodies[name])
        backward[name] = _backward(getattr(library, name + "_slope"), kept)
    for name, numbers in _NUMBERS.items():
        bodies[name] = _forward_with(getattr(library, name), bodies[name], numbers)
        backward[name] = _backward(getattr(library, name + "_slope"), "x", numbers)
    # Only float32: in double precision NumPy's tanh is better by a last place, and the rule rounds as PyTorch does.
    by_kernel, slope = bodies["tanh"], backward["tanh"]
    bodies["tanh"] = lambda xp, x: (by_kernel if x.dtype == np.float32 else plain_tanh)(xp, x)
    backward["tanh"] = lambda g, edges, saved: slope(g, edges, saved) if g.dtype == np.float32 else None
    kernels = {"none": library.gelu, "tanh": library.gelu_tanh}
    slopes = {"none": _backward(library.gelu_slope, "x"), "tanh": _backward(library.gelu_tanh_slope, "x")}
    plain = bodies["gelu"]

    def gelu(xp, x, *, approximate):
        try:
            out = np.empty(x.shape, x.dtype)
            kernels[approximate](x if x.flags.c_contiguous else np.ascontiguousarray(x), out)
            return out
        except TypeError:
            return plain(xp, x, approximate=approximate)

    bodies["gelu"] = gelu
    backward["gelu"] = lambda g, edges, saved: slopes[saved["approximate"]](g, edges, saved)
    bodies["glu"] = _glu(library.glu, bodies["glu"])
    backward["glu"] = _glu_backward(library.glu_slope, backward["glu"])
    bodies["native_dropped"], backward["native_dropped"] = _dropped(
        library.drop, bodies["native_dropped"], backward["native_dropped"]
    )


def _forward(kernel, plain):
    def forward(xp, x):
        try:
            out = np.empty(x.shape, x.dtype)
            kernel(x if x.flags.c_contiguous else np.ascontiguousarray(x), out)
            return out
        except TypeError:
            return plain(xp, x)

    return forward


def _forward_with(kernel, plain, numbers):
    def forward(xp, x, **static):
        try:
            out = np.empty(x.shape, x.dtype)
            given = [static.get(name, 1.0) for name in numbers]  # a scale is 1 if it is not given
            kernel(x if x.flags.c_contiguous else np.ascontiguousarray(x), out, *given)
            return out
        except TypeError:
            return plain(xp, x, **static)

    return forward


def _backward(kernel, kept, numbers=()):
    """None where the kernel does not take the arrays: the rule does the work then."""

    def backward(g, edges, saved):
        x = saved[kept]
        if g.size != x.size:
            return None
        try:
            out = np.empty(x.shape, x.dtype)
            x = x if x.flags.c_contiguous else np.ascontiguousarray(x)
            g = g if g.flags.c_contiguous else np.ascontiguousarray(g)
            if numbers:
                kernel(x, g, out, *[saved[name] for name in numbers])
            else:
                kernel(x, g, out)
            return (out,)
        except TypeError:
            return None

    return backward


# -- gates -------------------------------------------------------------------------------------------------------------


def _glu(kernel, plain):
    def glu(xp, x, *, axis):
        try:
            out = np.empty((*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]), x.dtype)
            kernel(x, out, math.prod(out.shape[axis:]))
            return out
        except TypeError:
            return plain(xp, x, axis=axis)

    return glu


def _glu_backward(kernel, plain):
    def backward(g, edges, saved):
        x, axis = saved["x"], saved["axis"]
        try:
            out = np.empty(x.shape, x.dtype)
            kernel(x, g if g.flags.c_contiguous else np.ascontiguousarray(g), out, math.prod(g.shape[axis:]))
            return (out,)
        except TypeError:
            return plain(g, edges, saved)

    return backward


# -- dropout -----------------------------------------------------------------------------------------------------------


def _stretches(shape, mask) -> bool:
    """Has a mask of this shape an element for each, or for each that the first axes count?"""
    alike = next((i for i, (n, m) in enumerate(zip(shape, mask)) if n != m), len(shape))
    return len(shape) == len(mask) and all(n == 1 for n in mask[alike:])


def _dropped(kernel, plain, plain_backward):
    def drop(x, mask, scale):
        """None where the kernel does not take the arrays."""
        if x.shape != mask.shape and not (x.size and _stretches(x.shape, mask.shape)):
            return None
        try:
            out = np.empty(x.shape, x.dtype)
            kernel(*[a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in (x, mask)], out, scale)
            return out
        except TypeError:
            return None

    def forward(xp, x, mask, *, scale):
        out = drop(x, mask, scale)
        return plain(xp, x, mask, scale=scale) if out is None else out

    def backward(g, edges, saved):
        out = drop(g, saved["mask"], saved["scale"])
        return plain_backward(g, edges, saved) if out is None else (out, None)

    return forward, backward
