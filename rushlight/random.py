"""Random state: ``Generator`` and the functions on the default one. The same seed gives PyTorch's CPU streams.

The bits come from MT19937 (``engine/twister.py``); ``engine/numpy/streams.py`` makes distributions of them. Code on
accelerators, and compiled code, draws from JAX's generator instead, with keys made of words of the same stream.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref

import numpy as np

from .device import cpu
from .device import device as Device
from .engine.twister import LENGTH as _LENGTH
from .engine.twister import NumpyTwister, Twister
from .errors import warn_user
from .tensor import Tensor, wrap

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def __dir__():
    return __all__


_DEFAULT_SEED = 67280421310721

# PyTorch's layout of a CPU generator's state: 5056 bytes.
_LAYOUT = np.dtype(
    [("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", _LENGTH)]
    + [("normal_x", "<f8"), ("normal", "<f8"), ("normal_rho", "<f8"), ("has_normal", "<i4"), ("pad", "<i4")]
    + [("float_normal", "<f4"), ("has_float_normal", "<i4")]
)


_all: weakref.WeakSet[Generator] = weakref.WeakSet()


class Generator:
    """A stream of random numbers. Threads may share one: each draw is whole, and no number comes twice.

    >>> g = rushlight.Generator().manual_seed(0)
    >>> rushlight.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device=cpu) -> None:
        self.device = Device(device)
        self.lock = threading.RLock()  # held for the whole of a draw
        _all.add(self)
        self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream again from ``seed``; returns the generator."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        with self.lock:
            self._seed = seed % 2**64
            self._bits: NumpyTwister | None = None  # made at the first draw
            self.fresh = True  # nothing drawn since seeding
            self.spare: float | None = None  # the second of a pair of normal values, kept for the next call
        return self

    def seed(self) -> int:
        """Seed from the operating system's randomness; returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8)) >> 11)
        return self._seed

    def initial_seed(self) -> int:
        """The seed it began with."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state as a byte tensor, in PyTorch's layout: states may be exchanged with PyTorch."""
        record = np.zeros((), dtype=_LAYOUT)
        with self.lock:
            words, position = self._stream().state
            record["seed"], record["seeded"], record["words"] = self._seed, 1, words
            record["left"] = _LENGTH + 1 - position
            record["next"] = 0 if self.fresh else position
            if self.spare is not None:
                record["normal"], record["has_normal"] = self.spare, 1
        return wrap(np.frombuffer(record.tobytes(), dtype=np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        record = np.frombuffer(_state_bytes(new_state), dtype=_LAYOUT)[0]
        position = _LENGTH + 1 - int(record["left"])
        if not 0 <= position <= _LENGTH:
            raise RuntimeError(f"RNG state is damaged: {record['left']} of {_LENGTH} words are left in it")
        stream = Twister(0)
        stream.state = record["words"].astype(np.uint32), position
        with self.lock:
            self._seed, self._bits = int(record["seed"]), stream
            self.fresh = int(record["next"]) == 0
            self.spare = float(record["normal"]) if record["has_normal"] else None
        return self

    def clone_state(self) -> Generator:
        return Generator(self.device).set_state(self.get_state())

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> Generator:
        return self.set_state(state.get_state())

    def words(self, n: int) -> np.ndarray:
        """The next ``n`` words of 32 bits."""
        with self.lock:
            return self._drawing(n).words(n)

    def uniform(self, n: int, dtype) -> np.ndarray:
        """The next ``n`` numbers in [0, 1), as float32 or float64."""
        with self.lock:
            return self._drawing(n).uniform(n, dtype)

    def below(self, n: int, p: float) -> np.ndarray:
        """Whether the next ``n`` numbers in [0, 1), of float64, are less than ``p``."""
        with self.lock:
            return self._drawing(n).below(n, p)

    def key_words(self, n: int) -> np.ndarray:
        """Words for a key of JAX's generator."""
        return self.words(n)

    def next_key(self):
        """A JAX key for one random op: traced while compiling, else made of the next words of this stream."""
        from .engine.xla import devices

        return devices.next_key(lambda: self.key_words(devices.KEY_WORDS))

    def _drawing(self, n: int) -> NumpyTwister:
        if n:
            self.fresh = False
        return self._stream()

    def _stream(self) -> NumpyTwister:
        if self._bits is None:
            self._bits = Twister(self._seed & 0xFFFFFFFF)
        return self._bits

    def __reduce__(self):
        return _restore, (str(self.device), self.get_state())


def _restore(device, state):
    return Generator(device).set_state(state)


def _state_bytes(state) -> bytes:
    if not isinstance(state, Tensor) or state._array.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    data = np.asarray(state._array).tobytes()
    if len(data) != _LAYOUT.itemsize:
        raise RuntimeError(
            f"Expected a CPUGeneratorImplState of size {_LAYOUT.itemsize} but found the input RNG state size to be "
            f"{len(data)}"
        )
    return data


default_generator = Generator()
default_generator.seed()


def _after_fork() -> None:
    """A lock that another thread held when this process was forked off would stay locked forever."""
    for generator in _all:
        generator.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator; the numbers that follow are PyTorch's for the same seed.

    >>> _ = rushlight.manual_seed(0)
    >>> rushlight.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Run a block with the random state put back afterwards. All devices draw from the one generator.

    >>> with rushlight.random.fork_rng():
    ...     _ = rushlight.manual_seed(1)
    """
    if device_type not in ("cpu", "cuda", "xla", "tpu", "meta"):
        warn_user(
            f"torch has no module of `{device_type}`, you should register a module by `torch._register_device_module`."
        )
    if not enabled:
        yield
        return
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)
