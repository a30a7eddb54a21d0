"""MT19937, the source of all random bits on the CPU: by NumPy, or by the kernels in C where they are there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .native import library

LENGTH = 624  # words of the state


class NumpyTwister:
    """The generator in NumPy's ``RandomState``."""

    def __init__(self, seed: int):
        self._bits = np.random.RandomState(seed)

    @property
    def state(self) -> tuple[np.ndarray, int]:
        """The words, and the position of the next one to use."""
        _, words, position, *_ = self._bits.get_state()  # type: ignore[misc]
        return words, position  # type: ignore[return-value]

    @state.setter
    def state(self, value: tuple[np.ndarray, int]) -> None:
        new: Any = ("MT19937", *value)
        self._bits.set_state(new)

    def words(self, n: int) -> np.ndarray:
        """The next ``n`` words of 32 bits."""
        # The bit generator itself: RandomState.bytes draws the same words in 3 to 10 times the time.
        return self._bits._bit_generator.random_raw(n).astype(np.uint32)  # type: ignore[attr-defined]

    def uniform(self, n: int, dtype) -> np.ndarray:
        """[0, 1): 24 of a word's bits for float32, 53 of two words' for float64."""
        if dtype == np.float64:
            return (self._long(n) & np.uint64(2**53 - 1)) * 2.0**-53
        return (self.words(n) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)

    def below(self, n: int, p: float) -> np.ndarray:
        """Whether the next ``n`` uniform numbers of float64 are less than ``p``."""
        return self.uniform(n, np.float64) < p

    def _long(self, n: int) -> np.ndarray:
        """64-bit words, the first draw on top."""
        words = self.words(2 * n).astype(np.uint64)
        return words[0::2] << np.uint64(32) | words[1::2]


class NativeTwister(NumpyTwister):
    """The same in an array of our own; NumPy's random module is not even imported."""

    def __init__(self, seed: int):
        self._state = np.empty(LENGTH + 1, np.uint32)  # the words and the position
        library.seed_words(self._state, seed)

    @property
    def state(self) -> tuple[np.ndarray, int]:
        return self._state[:LENGTH].copy(), int(self._state[LENGTH])

    @state.setter
    def state(self, value: tuple[np.ndarray, int]) -> None:
        words, position = value
        if not 0 <= position <= LENGTH:
            raise ValueError(f"the position in MT19937's state must be from 0 to {LENGTH}, but got {position}")
        self._state[:LENGTH], self._state[LENGTH] = words, position

    def words(self, n: int) -> np.ndarray:
        out = np.empty(n, np.uint32)
        library.random_words(self._state, out)
        return out

    def uniform(self, n: int, dtype) -> np.ndarray:
        out = np.empty(n, dtype)
        library.random_uniform(self._state, out)
        return out

    def below(self, n: int, p: float) -> np.ndarray:
        if not 0 <= p <= 1:  # NaN too
            return super().below(n, p)
        out = np.empty(n, np.bool_)
        library.random_below(self._state, out, p)
        return out


Twister = NumpyTwister if library is None else NativeTwister
