"""In a trace: an array that is seen from other devices of its mesh, as equations that a program is made of later.

A program is the same in all processes, so what one of them has for itself, ``to_local()`` or an ordinary tensor, is an
array of a smaller grid, of whose like each process has one. Between the grids nothing moves: each device keeps what it
has. ``compiler/apart.py`` makes programs of such traces.
"""

from __future__ import annotations

import jax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ...errors import ValuesNeeded
from .array import cuts, padded, sizes_of

seen_p = Primitive("seen")  # without a lowering: only all processes together have such a program
agreed_p = Primitive("agreed")  # is something true in all processes? Of one that looks for itself: is it true here?


def seen(physical, how: tuple, before, after):
    """What JAX holds of an array on the grid ``before``, as the devices of ``after``, a part of it or more, have it."""
    if before == after:
        return physical
    return seen_p.bind(physical, how=how, before=sizes_of(before), after=sizes_of(after))


def agreed(truth):
    return agreed_p.bind(truth)


@seen_p.def_abstract_eval
def _(x, *, how, before, after):
    shape = list(x.shape)
    for axis, dim in cut_dimensions(how).items():
        shape[dim] = shape[dim] * after[axis] // before[axis]
    return jax.core.ShapedArray(tuple(shape), x.dtype)


@agreed_p.def_abstract_eval
def _(x):
    return x


agreed_p.def_impl(lambda x: x)
mlir.register_lowering(agreed_p, lambda context, x: [x])


def cut_dimensions(how: tuple) -> dict[int, int]:
    """{axis of the grid: the dimension of what JAX holds that it cuts}; the first dimensions are of parts."""
    words = [axis for axis, h in enumerate(how) if h.__class__ is str]
    numbers = {axis: len(words) + h for axis, h in enumerate(how) if h.__class__ is int}
    return {**{axis: dim for dim, axis in enumerate(words)}, **numbers}


def check_alike(how: tuple, whole, part, shape: tuple) -> None:
    """Raise unless all processes have one piece of equal shape each: a program is the same for all of them."""
    sizes, mine = sizes_of(whole), sizes_of(part)
    for dim, n in enumerate(shape):
        axes = [axis for axis, h in enumerate(how) if h == dim and h.__class__ is int]
        if padded(n, cuts(how, whole, dim)) != n and any(sizes[axis] != mine[axis] for axis in axes):
            raise ValuesNeeded("processes have parts of different sizes of a DTensor, and a program is one for all.")
        inside = [mine[axis] > 1 for axis in axes]
        if any(yes and sizes[b] != mine[b] for yes, a in zip(inside, axes) for b in axes if b > a):
            raise ValuesNeeded("a process's part of a DTensor is not in one piece.")
