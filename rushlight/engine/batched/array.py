"""``Batched``: an array of another engine whose first axis is hidden, one entry for each example of a ``vmap``."""

from __future__ import annotations

from ..operators import Operators

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)


class Unbatchable(RuntimeError):
    """Somebody asked for the values of an array that has as many as there are examples."""


class Batched(Operators):
    """An array as one example of ``level`` sees it; if not ``mapped``, all examples see the same."""

    __slots__ = ("inner", "level", "mapped", "shape", "dtype", "shown")
    shown: int  # where the examples were in the tensor that was mapped over, if not first: to print it

    def __init__(self, inner, level, mapped=True):
        self.inner, self.level, self.mapped = inner, level, mapped
        self.shape, self.dtype = tuple(inner.shape[1:] if mapped else inner.shape), inner.dtype

    def copy(self) -> Batched:
        return Batched(self.inner.copy(), self.level, self.mapped)

    def __repr__(self) -> str:
        return f"<Batched {self.dtype}{list(self.shape)} of level {self.level.depth}: {self.inner!r}>"

    def __array__(self, dtype=None, copy=None):
        raise Unbatchable(CONTROL_FLOW)

    def item(self):
        raise Unbatchable(ITEM)

    def __bool__(self) -> bool:
        raise Unbatchable(CONTROL_FLOW)

    __int__ = __float__ = __index__ = tolist = __bool__


class Mapped:
    """What a batching rule gets for an array that differs between examples: the whole, hidden axis first."""

    __slots__ = ("whole",)

    def __init__(self, whole):
        self.whole = whole

    @property
    def shape(self):
        return self.whole.shape[1:]

    @property
    def ndim(self) -> int:
        return len(self.whole.shape) - 1

    @property
    def dtype(self):
        return self.whole.dtype
