"""``rushlight.quasirandom``: Sobol' points, which fill a cube more evenly than random ones, with PyTorch's numbers."""

from __future__ import annotations

import functools
import importlib.resources

import numpy as np

from .dtypes import get_default_dtype, int64
from .ops import PUBLIC
from .ops.public import write_out
from .random import Generator
from .tensor import Tensor, wrap

__all__ = ["SobolEngine"]

_MISSING = (
    "SobolEngine takes the direction numbers of Joe and Kuo from SciPy, which is not installed: pip install scipy"
)


class SobolEngine:
    """Points of a Sobol' sequence in [0, 1) ** ``dimension``, scrambled by a random matrix and a shift if asked.

    ``SobolEngine(2).draw(3)`` is (0, 0), (1/2, 1/2), (3/4, 1/4).
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = wrap(_directions(dimension, self.MAXBIT))
        self.shift = PUBLIC["zeros"](dimension, dtype=int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype=None) -> Tensor:
        """The next ``n`` points, one in each row."""
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]")
        dtype = dtype or get_default_dtype()
        points = wrap(self._next(n) * 2.0**-self.MAXBIT).to(dtype)
        return points if out is None else write_out(out, points, "draw")

    def draw_base2(self, m: int, out: Tensor | None = None, dtype=None) -> Tensor:
        """The next ``2 ** m`` points, so that all points drawn so far are a power of 2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Start again at the first point."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Go on by ``n`` points without drawing them."""
        self._next(n)
        return self

    def _next(self, n: int) -> np.ndarray:
        """The whole numbers of the next points; ``quasi`` is the last that was given, or the first of all."""
        first, last = max(self.num_generated, 1), self.num_generated + n
        steps = [self.sobolstate._array[:, _trailing_zeros(i)] for i in range(first, last)]
        current = self.quasi._array
        begin = [current] if n > 0 and not self.num_generated else []
        points = np.bitwise_xor.accumulate([current, *steps], axis=0)
        self.quasi = wrap(points[-1].copy())
        self.num_generated = max(last, self.num_generated)
        return np.stack([*begin, *points[1:]]) if begin or steps else points[:0]

    def _scramble(self) -> None:
        """Multiply each direction number, as bits, with a random triangular matrix; a random number is added to all."""
        generator = Generator()
        if self.seed is not None:
            generator.manual_seed(self.seed)
        else:
            generator.seed()
        bits, randint = self.MAXBIT, PUBLIC["randint"]
        weights = 1 << np.arange(bits)
        shift = randint(2, (self.dimension, bits), generator=generator)._array
        matrices = np.tril(randint(2, (self.dimension, bits, bits), generator=generator)._array, -1)
        matrices += np.eye(bits, dtype=matrices.dtype)
        high_first = weights[::-1]
        digits = (self.sobolstate._array[..., None] // high_first) % 2
        scrambled = np.matmul(digits, matrices.swapaxes(1, 2)) % 2
        self.sobolstate, self.shift = wrap(scrambled @ high_first), wrap(shift @ weights)

    def __repr__(self) -> str:
        options = [f"dimension={self.dimension}"]
        options += ["scramble=True"] if self.scramble else []
        options += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(options)})"


def _trailing_zeros(i: int) -> int:
    return (i & -i).bit_length() - 1


def _directions(dimension: int, bits: int) -> np.ndarray:
    """(dimension, bits): the numbers that make up the points, from a primitive polynomial for each dimension."""
    polynomials, given = (a[:dimension] for a in _joe_kuo())
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    numbers = np.ones((dimension, bits), np.int64)
    for degree in range(1, int(degrees.max(initial=0)) + 1):
        rows = degrees == degree
        numbers[rows] = _recurrence(polynomials[rows], given[rows], degree, bits)
    return numbers << np.arange(bits)[::-1]


def _recurrence(polynomials, given, degree: int, bits: int) -> np.ndarray:
    """The first ``degree`` numbers as given, each further one from those before it."""
    numbers = np.zeros((len(polynomials), bits), np.int64)
    known = min(degree, bits)
    numbers[:, :known] = given[:, :known]
    for i in range(degree, bits):
        value = numbers[:, i - degree] ^ (numbers[:, i - degree] << degree)
        for k in range(1, degree):
            value ^= ((polynomials >> (degree - k)) & 1) * numbers[:, i - k] << k
        numbers[:, i] = value
    return numbers


@functools.lru_cache(1)
def _joe_kuo() -> tuple:
    """(polynomials, first numbers) of 21201 dimensions: S. Joe and F. Y. Kuo, new-joe-kuo-6.21201."""
    try:
        place = importlib.resources.files("scipy.stats") / "_sobol_direction_numbers.npz"
        with place.open("rb") as file:
            table = np.load(file)
            return table["poly"], table["vinit"]
    except (ImportError, FileNotFoundError):
        raise ImportError(_MISSING) from None
