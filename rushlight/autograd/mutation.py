"""``allow_mutation_on_saved_tensors``: what backward needs is copied just before somebody writes to it."""

from __future__ import annotations

import contextlib

import numpy as np

from ..tensor import Tensor
from . import mode
from .mode import state


class _Kept:
    """A tensor saved for backward, and its values once they were about to be overwritten."""

    __slots__ = ("tensor", "copied")

    def __init__(self, tensor: Tensor):
        self.tensor, self.copied = tensor, False


class MutationContext:
    """What one ``with`` block saved; ``clear()`` lets go of it."""

    def __init__(self):
        self._kept: list[_Kept] = []
        self._open = True

    def clear(self) -> None:
        self._kept.clear()

    def pack(self, tensor: Tensor) -> _Kept:
        kept = _Kept(tensor.detach())
        self._kept.append(kept)
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        if not self._open:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return kept.tensor

    def about_to_write(self, t: Tensor) -> None:
        for kept in self._kept:
            if not kept.copied and _share(kept.tensor._array, t._array):
                kept.tensor, kept.copied = kept.tensor.clone(), True


def _share(a, b) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, tensors that backward needs may be written in place: it sees them as they were.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> with rushlight.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = y.square()
    ...     y.zero_()
    ...     z.sum().backward()
    tensor([0., 0.], grad_fn=<ZeroBackward0>)
    >>> x.grad
    tensor([2., 2.])
    """
    if any(isinstance(getattr(writer, "__self__", None), MutationContext) for writer in state.writers):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = MutationContext()
    try:
        with (
            mode.pushed("saved_hooks", (context.pack, context.unpack)),
            mode.pushed("writers", context.about_to_write),
        ):
            yield context
    finally:
        context._open = False
        context.clear()
