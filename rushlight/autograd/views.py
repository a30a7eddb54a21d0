"""Views and in-place writes.

In place means: compute the functional result, put it where the tensor's values live, count the write. On NumPy the
values live in memory that views share. On XLA they live in the base tensor's array: a write to a view rewrites the
base, and every view reads again when it notices that the storage's version has moved.

The history of a written view is rebased onto its base, as in PyTorch: the base's new node is a ``CopySlices``, and the
view's node is made again from it.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..engine import namespace_of
from ..tensor import Storage, Tensor, wrap
from . import mode
from .mode import state
from .tape import AccumulateGrad, Node, Output

_ndarray = np.ndarray


class CopySlices(Node):
    """The gradient of writing ``value`` into the part of a base that ``path`` leads to."""

    __slots__ = ("path", "base_shape")

    def __init__(self, base: Tensor, value_node, path):
        super().__init__((base._node, value_node), base._array.shape, base._array.dtype, namespace_of(base._array))
        self.path = path

    def apply(self, xp, g, graph, keep):
        part = read(xp, g, self.path, recorded=graph)
        rest = None
        if self.edges[0] is not None:
            rest = write(xp, g, self.path, xp.zeros_like(part), recorded=graph)
        return rest, part


def read(xp, x, path, recorded=False):
    """Follow a view's path from its base ``x``: on Tensors through the recorded ops, on arrays through the bare ones."""
    for op, static, index in path:
        x = op.call(x, **static) if recorded else op.forward(xp, x, **static)
        if index is not None:
            x = x[index]
    return x


def write(xp, x, path, value, recorded=False):
    """``x`` with the part that ``path`` leads to replaced by ``value``; ``x`` itself stays as it was."""
    if not path:
        return value
    (op, static, index), rest = path[0], path[1:]
    if rest:
        value = write(xp, read(xp, x, path[:1], recorded), rest, value, recorded)
    if op.write is not None:
        return op.write(xp, x, value, **(static if index is None else {**static, "output": index}))
    return _write_by_position(xp, x, path[:1], value, recorded)


def _write_by_position(xp, x, path, value, recorded):
    """For a view op without a ``write`` of its own: find which element of ``x`` each element of the view is."""
    from ..engine import numpy

    size = int(np.prod(x.shape))
    positions = read(numpy, np.arange(size).reshape(x.shape), path).reshape(-1)
    flat, value = xp.reshape(x, shape=(size,)), xp.reshape(value, shape=(positions.size,))
    return xp.reshape(xp.put_at(flat, value, wrap(positions) if recorded else positions), shape=x.shape)


def layout(t: Tensor) -> np.ndarray:
    """A NumPy array with the tensor's strides (not its values): on XLA, those its path of views would give."""
    if t._array.__class__ is _ndarray:
        return t._array
    view = t._view
    if view is None:
        return np.empty(t._array.shape, np.int8)
    from ..engine import numpy

    return read(numpy, np.empty(view.base._array.shape, np.int8), view.path)


def refresh(t: Tensor) -> None:
    """Bring a view up to date with its storage's version."""
    view, base = t._view, t._view.base
    if base is None:  # not a view: its values are with a compiled program
        view.refresh(t)
        return
    base._sync()
    view.seen = t._storage.version
    if t._array.__class__ is not _ndarray:
        t._array = read(namespace_of(base._array), base._array, view.path)
    if view.recorded and base._node is not view.node:
        _regenerate(t)


def _regenerate(t: Tensor) -> None:
    view = t._view
    outer, state.grad = state.grad, True
    try:
        t._node = read(None, view.base, view.path, recorded=True)._node
    finally:
        state.grad = outer
    view.node = view.base._node


def check_writable(
    t: Tensor, name: str = "a leaf Variable that requires grad is being used in an in-place operation."
) -> None:
    """Raise PyTorch's error if ``t`` may not be written in place now."""
    t._sync()
    storage = t._storage
    if storage is not None and storage.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )
    if t._array.__class__ is _ndarray and not t._array.flags.writeable:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if not state.grad:
        return
    if type(t._node) is AccumulateGrad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    view = t._view
    source = t._node if view is None else view.base._node
    if type(source) is Output and source.parent.aliases_inputs:
        raise RuntimeError(_alias_written(source))
    if view is not None and view.path:
        if type(view.base._node) is AccumulateGrad and view.recorded:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if type(t._node) is Output and any(index is not None for _, _, index in view.path):
            raise RuntimeError(f"Output {t._node.index} of {t._node.parent.name()} {_ONE_OF_SEVERAL}")


_ONE_OF_SEVERAL = (
    "is a view and is being modified inplace. This view is the output of a function that returns multiple views. Such "
    "functions do not allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)


def _alias_written(output: Output) -> str:
    name = output.parent.name().removesuffix("Backward")
    if len(output.parent.edges) > 1:
        return f"Output {output.index} of {name} {_ONE_OF_SEVERAL}"
    return (
        f"Output {output.index} of {name} is a view and is being modified inplace. This view was created inside a custom "
        "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would override "
        "the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    )


def inplace(t: Tensor, function, *args, **kwargs) -> Tensor:
    """``t = function(t, …)`` in t's own memory: the body of every ``name_`` method."""
    check_writable(t)
    result = function(snapshot(t) if _recording(t, args) else t, *args, **kwargs)
    assign(t, result)
    return t


def _recording(t, args) -> bool:
    return state.grad and (t._node is not None or any(isinstance(a, Tensor) and a._node is not None for a in args))


def snapshot(t: Tensor) -> Tensor:
    """The tensor as it is now, for rules that will want its old value after it has been overwritten."""
    s = wrap(t._array.copy() if t._array.__class__ is _ndarray else t._array)
    s._node = t._node
    return s


def assign(t: Tensor, result: Tensor) -> None:
    """Put ``result``'s values and history into ``t``. Shapes must agree, dtypes must be castable."""
    if result._array.shape != t._array.shape:
        raise RuntimeError(f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if result._array.dtype != t._array.dtype:
        _check_cast(result.dtype, t.dtype)
    node = result._node if state.grad else None
    if node is not None and result._array.dtype != t._array.dtype:
        from .op import differentiable

        result = differentiable.astype(result, dtype=t._array.dtype)
        node = result._node
    put(t, result._array)
    if state.grad and (node is not None or t._node is not None):
        rebase(t, node)


def put(t: Tensor, array) -> None:
    """Write raw values into ``t`` and count the write."""
    if mode.active:
        mode.notify("writers", t)
    if t._storage is None:
        t._storage = Storage()
    view = t._view
    if t._array.__class__ is _ndarray and array.__class__ is _ndarray:
        np.copyto(t._array, array, casting="unsafe")
    else:
        xp = namespace_of(array) if t._array.__class__ is _ndarray else namespace_of(t._array)
        array = xp.astype(array, dtype=t._array.dtype)
        t._array = array
        if view is not None and view.base is not None:
            base = view.base
            base._array = write(xp, base._array, view.path, array)
    t._storage.version += 1
    if view is not None:
        view.seen = t._storage.version


def rebase(t: Tensor, node) -> None:
    """Give a written tensor its new history; for a view, through its base."""
    view, old = t._view, t._node
    if view is None or not view.path or not view.recorded:
        t._node = node
    else:
        base, base_old = view.base, view.base._node
        base._node = CopySlices(base, node, view.path)
        _keep_retaining(base, base_old)
        _regenerate(t)
    _keep_retaining(t, old)


def _keep_retaining(t: Tensor, old) -> None:
    """``retain_grad`` follows the tensor to its new node; other hooks stay with the value they were registered for."""
    hooks = old.hooks if old is not None else None
    if hooks is not None and hooks.retain is not None and hooks.retain() is t:
        t._node._hooks().retain, hooks.retain = hooks.retain, None


def _check_cast(have, want) -> None:
    kinds = [2 if d.is_complex else 1 if d.is_floating_point else 0 for d in (have, want)]
    if kinds[0] > kinds[1] or (want is dtypes.bool_ and have is not dtypes.bool_):
        raise RuntimeError(f"result type {_word(have)} can't be cast to the desired output type {_word(want)}")


def _word(d) -> str:
    return {"BoolTensor": "Bool"}.get(d.char, d.char.removesuffix("Tensor"))
