"""Where a tensor lives: ``cpu`` (NumPy), or an XLA device (``xla``, ``cuda``, ``tpu``)."""

from __future__ import annotations

__all__ = ["device"]

_ENGINES = {"cpu": "numpy", "meta": "numpy", "xla": "xla", "cuda": "xla", "tpu": "xla"}


class device:
    """``device("cuda:1")``, ``device("cuda", 1)``; equal by type and index, usable as a context manager."""

    __slots__ = ("type", "index", "_outer")

    def __new__(cls, type, index=None):
        if isinstance(type, device):
            return type
        return object.__new__(cls)

    def __init__(self, type, index: int | None = None):
        if isinstance(type, device):
            return
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        if ":" in type:
            type, _, number = type.partition(":")
            if not number.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}:{number}'")
            index = int(number)
        if type not in _ENGINES:
            raise RuntimeError(
                f"Expected one of {', '.join(_ENGINES)} device type at start of device string: {type}"
            )
        self.type, self.index = type, index

    @property
    def engine(self) -> str:
        return _ENGINES[self.type]

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (str(self),)

    def __enter__(self):
        from . import config

        self._outer = config.default_device
        config.default_device = self
        return self

    def __exit__(self, *_):
        from . import config

        config.default_device = self._outer


cpu = device("cpu")
