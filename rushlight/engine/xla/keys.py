"""The distributions of ``streams`` drawn from JAX's generator, for XLA arrays and while compiling.

Every function takes a ``Generator`` (its ``next_key`` makes the key), a shape and a dtype.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .kernels.random import random_words


def uniform(generator, shape, dtype, low, high):
    return _in_float32(dtype, lambda d: jax.random.uniform(generator.next_key(), shape, d, low, high))


def normal(generator, shape, dtype, mean, std):
    return _in_float32(dtype, lambda d: jax.random.normal(generator.next_key(), shape, d) * d.type(std) + d.type(mean))


def log_normal(generator, shape, dtype, mean, std):
    return jnp.exp(normal(generator, shape, dtype, mean, std))


def bernoulli(generator, shape, dtype, p):
    """Whether a word of 32 bits is below p of all there are; 1 is all of them."""
    words = random_words(generator.next_key(), shape)
    return (words < np.uint32(p * 2.0**32) if p < 1 else jnp.ones(shape, bool)).astype(dtype)


def exponential(generator, shape, dtype, rate):
    return _in_float32(dtype, lambda d: jax.random.exponential(generator.next_key(), shape, d) / d.type(rate))


def geometric(generator, shape, dtype, p):
    return jax.random.geometric(generator.next_key(), p, shape).astype(dtype)


def cauchy(generator, shape, dtype, median, sigma):
    return _in_float32(
        dtype, lambda d: jax.random.cauchy(generator.next_key(), shape, d) * d.type(sigma) + d.type(median)
    )


def integers(generator, shape, dtype, low, high):
    return jax.random.randint(generator.next_key(), shape, low, high, dtype=np.int64).astype(dtype)


def any_integers(generator, shape, dtype):
    high = 2 if dtype.kind == "b" else 2**24 if dtype.kind not in "iu" else min(np.iinfo(dtype).max, 2**63 - 1)
    return integers(generator, shape, dtype, 0, high)


def permutation(generator, shape, dtype):
    return jax.random.permutation(generator.next_key(), shape[0]).astype(dtype)


def poisson(generator, rates):
    return jax.random.poisson(_threefry(generator), rates).astype(rates.dtype)


def binomial(generator, counts, probabilities):
    return jax.random.binomial(generator.next_key(), counts, probabilities)


def gamma(generator, shapes):
    return jax.random.gamma(generator.next_key(), shapes, dtype=shapes.dtype)


def dirichlet(generator, shapes):
    limits = np.finfo(shapes.dtype)
    return jax.random.dirichlet(generator.next_key(), shapes, dtype=shapes.dtype).clip(limits.tiny, 1 - limits.epsneg)


def _threefry(generator):
    """JAX draws Poisson numbers with this kind of key only."""
    return jax.random.wrap_key_data(jax.random.bits(generator.next_key(), (2,), np.uint32), impl="threefry2x32")


def _in_float32(dtype, draw):
    """Half precision is drawn in float32 and rounded, as on the CPU."""
    return draw(np.dtype(np.float64 if dtype == np.float64 else np.float32)).astype(dtype)
