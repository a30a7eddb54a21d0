"""Random words: XLA's generator, which is Philox, vectorized in C in programs for the CPU. The words are the same."""

from __future__ import annotations

import math

import jax
import numpy as np

from . import native

_WORTH = 1 << 10  # words from which on the kernel is called


def random_words(key, shape):
    """Words of 32 bits that ``key`` gives."""
    count = math.prod(shape)
    if count < _WORTH or not native.may_call():
        return jax.random.bits(key, shape, np.uint32)
    (words,) = native.call("philox", jax.random.key_data(key), native.Place((-(-count // 4) * 4,), np.uint32))
    return words[:count].reshape(shape)
