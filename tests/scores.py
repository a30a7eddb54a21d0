"""Functions of JAX's, played: for tests of played programs."""

from __future__ import annotations

import jax
import numpy as np

from rushlight.compiler.score import Score
from rushlight.compiler.steps import RULES
from rushlight.compiler.values import Value


def played(function, *arrays):
    """What the steps of ``function`` give for ``arrays``."""
    closed = jax.make_jaxpr(function)(*arrays)
    inputs = [Value(v.aval.shape, v.aval.dtype, memory=i) for i, v in enumerate(closed.jaxpr.invars, 1)]
    places = [Value(v.shape, v.dtype, memory=len(inputs) + i) for i, v in enumerate(closed.out_avals, 1)]
    made = [np.empty(v.shape, v.dtype) for v in closed.out_avals]
    play = Score(closed, inputs, RULES).played(places, flag=False, fresh=len(inputs) + 1)
    assert play(*(np.ones_like(a) for a in arrays), *made) is True
    assert play(*arrays, *made) is True  # it keeps nothing of the call before
    return made


def check(function, *arrays):
    """Steps and JAX agree: reals to some units in the last place, the rest exactly."""
    for found, expected in zip(played(function, *arrays), jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
        expected = np.asarray(expected)
        if found.dtype.kind == "f":
            tolerance = 16 * np.finfo(found.dtype).eps
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            np.testing.assert_array_equal(np.signbit(found)[found == 0], np.signbit(expected)[found == 0])
        else:
            np.testing.assert_array_equal(found, expected)


def some(*shape, dtype=np.float32):
    values = np.random.default_rng(len(shape)).standard_normal(shape) * 3
    return values > 0 if dtype is bool else values.astype(dtype)
