"""Where a tensor lives: ``cpu`` (NumPy), an XLA device (``xla``, ``cuda``, ``tpu``), or nowhere (``meta``)."""

from __future__ import annotations

__all__ = ["device"]

_ENGINES = {"cpu": "numpy", "meta": "meta", "xla": "xla", "cuda": "xla", "tpu": "xla"}
# Devices of PyTorch's that programs name and compare with; no tensor can be put there.
_ELSEWHERE = ("mps", "xpu", "hpu", "mtia", "npu", "ipu", "hip", "vulkan", "lazy", "privateuseone")


class device:
    """``device("cuda:1")``, ``device("cuda", 1)``; equal by type and index, usable as a context manager."""

    __slots__ = ("_outer", "index", "type")

    def __new__(cls, type, index=None):
        if isinstance(type, device):
            return type
        return object.__new__(cls)

    def __init__(self, type, index: int | None = None):
        if isinstance(type, device):
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        self.type, self.index = _parse(type, index)
        self._outer = []

    @property
    def engine(self) -> str:
        if self.type in _ELSEWHERE:
            raise NotImplementedError(f"device '{self}' is only a name here: use cpu, cuda, tpu or xla")
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

        self._outer.append(config.default_device)
        config.default_device = self
        return self

    def __exit__(self, *_):
        from . import config

        config.default_device = self._outer.pop()


def _parse(text, index) -> tuple[str, int | None]:
    if not isinstance(text, str):
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type(text).__name__}")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    if not text:
        raise RuntimeError("Device string must not be empty")
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    kind, colon, number = text.partition(":")
    if colon:
        if not number.isdigit() or number != str(int(number)):
            raise RuntimeError(f"Invalid device string: '{text}'")
        if index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
        index = int(number)
    if kind not in _ENGINES and kind not in _ELSEWHERE:
        raise RuntimeError(f"Expected one of {', '.join(_ENGINES)} device type at start of device string: {kind}")
    return kind, index


cpu = device("cpu")
