"""Views and in-place writes.

In place means: compute the functional result, put it where the tensor's values live, count the write. On NumPy the
values live in memory that views share. On XLA they live in the base tensor's array: a write to a view rewrites the
base, and every view reads again when it notices that the storage's version has moved.

The history of a written view is rebased onto its base, as in PyTorch: the base's new node is a ``CopySlices``, and the
view's node is made again from it.
"""

from __future__ import annotations

import collections
import functools
import sys
import weakref
from numbers import Number

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import dtypes
from ..engine import SPREAD, namespace_of, replaced
from ..engine.numpy import namespace as numpy_engine
from ..engine.numpy import places
from ..engine.numpy.kernels import chains, copies
from ..engine.open_size import example, has_open
from ..tensor import Mirror, Storage, Tensor, wrap
from . import mode
from .mode import state
from .record import mirrored, no_gradient_of, physical
from .tape import AccumulateGrad, Node, Nowhere, Output

_ndarray = np.ndarray


class CopySlices(Node):
    """The gradient of writing ``value`` into the part of a base that ``path`` leads to."""

    __slots__ = ("path", "shared")

    def __init__(self, base: Tensor, value_node, path, shared: bool):
        """``shared``: elements of the part share places of the base."""
        super().__init__((base._node, value_node), base._array.shape, base._array.dtype, namespace_of(base._array))
        self.path, self.shared = path, shared

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, xp, g, graph, keep):
        if self.shared:
            raise RuntimeError(_WRITTEN_TWICE)
        part = read(xp, g, self.path, recorded=graph)
        rest = None
        if self.edges[0] is not None:
            rest = write(xp, g, self.path, xp.zeros_like(part), recorded=graph)
        return rest, part


def read(xp, x, path, recorded=False):
    """Follow a view's path from its base ``x``: on Tensors through recorded ops, on arrays through the bare ones."""
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
    if op.write is None:
        # Positions tell where values go; beyond a step that changes them, those of the step itself.
        end = next((i for i, step in enumerate(path) if step[0].view is not True), len(path))
        if end < len(path):
            value = write(xp, read(xp, x, path[:end], recorded), path[end:], value, recorded)
        return _write_by_position(xp, x, path[:end], value, recorded)
    if rest:
        value = write(xp, read(xp, x, path[:1], recorded), rest, value, recorded)
    return op.write(xp, x, value, **(static if index is None else {**static, "output": index}))


def _write_by_position(xp, x, path, value, recorded):
    """For a view through an op without a ``write`` of its own: find which element of ``x`` each of its elements is."""
    from ..engine.numpy import namespace as numpy

    size = int(np.prod(x.shape))
    positions = read(numpy, np.arange(size).reshape(x.shape), path).reshape(-1)
    flat, value = xp.reshape(x, shape=(size,)), xp.reshape(value, shape=(positions.size,))
    if recorded:
        positions = wrap(namespace_of(x._array).asarray(positions))
    return xp.reshape(xp.put_at(flat, value, positions), shape=x.shape)


def memory(view: Mirror) -> np.ndarray:
    """What lies in memory where a view shows conjugates or negatives."""
    base = view.base._array
    return read(namespace_of(base), base, physical(view.path))


def turn(xp, x, bits: int):
    """Conjugated and negated as ``mirrored`` says: what is shown of memory, or what is to lie there to be shown."""
    x = xp.conj(x) if bits & 1 else x
    return xp.negative(x) if bits & 2 else x


def layout(t: Tensor) -> np.ndarray:
    """A NumPy array with the tensor's strides (not its values): on XLA, those its path of views would give."""
    if t._array.__class__ is _ndarray:
        return t._array
    base, path = (t._array, ()) if t._view is None else (t._view.base._array, t._view.path)
    if hasattr(base, "laid_out"):
        return read(numpy_engine, base.laid_out(), path)
    shape = base.shape
    if has_open(shape) or has_open(t._array.shape):
        shape, path = example(shape), [(op, example(static), index) for op, static, index in path]
    return read(numpy_engine, np.empty(shape, np.int8), path)


def place(t: Tensor) -> places.Place:
    """Where a tensor lies in its storage, by its path of views: NumPy forgets it of one without elements."""
    view = t._view
    if t._array.size:
        return places.Place(t._array.shape, t.stride(), t.storage_offset())
    if view is None or view.base is None:
        return places.plain(t._array.shape)
    try:
        return read(places, place(view.base), physical(view.path))
    except AttributeError:  # a part of complex numbers, or another dtype: these are not followed
        return places.plain(t._array.shape)


def strides(t: Tensor) -> np.ndarray:
    """``layout`` as far as shape and strides go, over no memory: on XLA, remembered for each path."""
    view = t._view
    if t._array.__class__ is _ndarray or view is None or hasattr(view.base._array, "laid_out"):
        return layout(t)
    try:
        return _strides(view.base._array.shape, tuple([(op, tuple(static.items()), i) for op, static, i in view.path]))
    except TypeError:  # something unhashable, or a size that is open
        return layout(t)


@functools.lru_cache(4096)
def _strides(shape: tuple, path: tuple) -> np.ndarray:
    found = read(numpy_engine, np.empty(shape, np.int8), [(op, dict(static), index) for op, static, index in path])
    return as_strided(np.empty(1, np.int8), found.shape, found.strides)


def refresh(t: Tensor, for_graph: bool | str = True) -> None:
    """Bring a view up to date with its storage's version.

    One of several views from one call, or one made without gradients, cannot have its history made anew: ``for_graph``
    that raises while gradients are on, or "always"; else only its values are read and it stays stale.
    """
    view = t._view
    if view is None:  # another thread was quicker
        return
    base = view.base
    if base is None:  # not a view: its values are with a compiled program
        view.refresh(t)
        return
    base._sync()
    if base._view is not None and base._view.recorded is not None:  # it became a view itself, see ``become``
        view.base = base = base._view.base
    if base._storage is None:  # ``base.data`` was set to other memory: the view keeps what it showed
        t._view = None
        return
    t._storage = base._storage  # another one since it was with a compiled program
    if t._array.__class__ is not _ndarray or view.__class__ is Mirror:
        array = read(namespace_of(base._array), base._array, view.path)
        t._array = np.asarray(array) if base._array.__class__ is _ndarray else array
        if view.__class__ is Mirror and view.looked == t._storage.version:
            return
    if view.recorded is not None and (base._node is not None or (view.node is not None and view.recorded is True)):
        if view.recorded is not True or _one_of_several(t):
            if for_graph == "always" or (for_graph and state.grad):
                raise RuntimeError(_refused(t, "its base or another view of its base has been modified inplace"))
            return
        _regenerate(t)
    view.seen = t._storage.version


class AsStridedBackward0(Node):
    """The gradient of a view that was made before its base was written: straight to the base as it is now."""

    __slots__ = ("base_shape", "path")

    def __init__(self, base: Tensor, t: Tensor):
        super().__init__((base._node,), t._array.shape, t._array.dtype, namespace_of(t._array))
        self.path, self.base_shape = t._view.path, base._array.shape

    def apply(self, xp, g, graph, keep):
        if self.edges[0] is None:  # it was detached in place
            return (None,)
        zeros = self.xp.zeros(self.base_shape, dtype=self.edges[0].dtype)
        return (write(xp, wrap(zeros) if graph else zeros, self.path, g, recorded=graph),)


def _regenerate(t: Tensor) -> None:
    """Make a view's node again, from its base as it is now."""
    view = t._view
    turned = view.__class__ is Mirror  # which no strides can express
    if not turned and (view.base._node is None or all(op.write is not None for op, _, _ in view.path)):
        t._node, view.node = AsStridedBackward0(view.base, t), view.base._node
        return
    outer, state.grad = state.grad, True
    try:
        t._node = read(None, view.base, view.path, recorded=True)._node
    finally:
        state.grad = outer
    if t._node is not None and not turned:
        t._node.rename("AsStridedBackward0")
    view.node = view.base._node


def check_writable(t: Tensor, values: bool = True) -> None:
    """Raise PyTorch's error if ``t`` may not be written in place now; not ``values``: only its shape is to change."""
    storage = t._storage
    if t._view is None and t._node is None and (storage is None or not storage.inference):
        if values and not (t._array.__class__ is _ndarray and t._array.flags.c_contiguous):
            check_places(t)
        return  # the rest is about the graph, views, and inference tensors
    if state.grad and t._node is not None and (_one_of_several(t) or type(t._node) is Nowhere):
        raise RuntimeError(_refused(t, "is being modified inplace"))
    t._sync()
    storage = t._storage
    if storage is not None and storage.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if state.grad:
        _check_graph(t)
    if values:
        check_places(t)


def _check_graph(t: Tensor) -> None:
    """Raise PyTorch's error if the graph does not allow ``t`` to be written."""
    view = t._view
    if type(t._node) is AccumulateGrad and (view is None or not view.path or t._base is None):
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    source = t._node if view is None or view.base is None else view.base._node
    if type(source) is Output and source.parent.aliases_inputs:
        raise RuntimeError(_alias_written(source))
    if view is not None and view.path:
        leaf = view.base._node is None or view.base._node.is_leaf
        if leaf and (t._node is not None or view.base._node is not None) and view.recorded is True:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
        if view.base._node is not None:
            _check_history(t)


_WRITTEN_TWICE = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)
UNRECORDED: set = set()  # functions that PyTorch's graph does not know of: they may write a leaf, too
READS_FIRST: set = set()  # functions that may be given the memory that they write
ONE_STEP: set = set()  # functions whose result is one step, element by element: it may be made where it is to lie
ONE_VALUE: set = set()  # functions that may write twice into one place, for what they write there is one value


def check_apart(t: Tensor, others, how: str = "in part") -> None:
    """Raise PyTorch's error if ``t``, about to be written, shares memory with one of ``others`` (``how``)."""
    for other in others:
        if isinstance(other, Tensor) and other._view.__class__ is not Mirror:  # conjugates are copied first
            shared = other._storage is t._storage is not None and _share_memory(_shown(t), _shown(other), how)
            if how == "at all" if other is t else shared:
                raise RuntimeError(
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
                    "single memory location. Please clone() the tensor before performing the operation."
                )


def _shown(t: Tensor):
    """The array that lies where the tensor's elements do."""
    return t._view.memory() if t._view.__class__ is Mirror else t._array


def _share_memory(a, b, how) -> bool:
    """As PyTorch judges: by first and last byte, and only of arrays without gaps."""
    if not (a.__class__ is b.__class__ is _ndarray) or not (a.size and b.size):
        return False
    spans = [_span(a), _span(b)]
    if None in spans or spans[0][1] <= spans[1][0] or spans[1][1] <= spans[0][0]:
        return False
    return how == "at all" or spans[0] != spans[1] or a.strides != b.strides


def _span(a):
    """Where an array begins and ends in memory; None if it has gaps or elements that share a place."""
    low, high = np.lib.array_utils.byte_bounds(a)
    return (low, high) if high - low == a.nbytes and 0 not in a.strides else None


def check_places(t: Tensor) -> None:
    """Raise PyTorch's error if several elements of ``t``, about to be written, share one place in memory."""
    if has_shared_places(t):
        raise RuntimeError(_WRITTEN_TWICE)


def has_shared_places(t: Tensor) -> bool:
    """Do several elements share one place in memory? Only expanded tensors and windows do."""
    if t._array.__class__ is _ndarray:
        array = _shown(t)
        if array.flags.c_contiguous:
            return False
        return any(step == 0 and n > 1 for n, step in zip(array.shape, array.strides))
    if t._view is None or all(op.write is not None for op, _, _ in t._view.path):
        return False
    where = layout(t)
    return any(step == 0 and n > 1 for n, step in zip(where.shape, where.strides))


def _check_history(t: Tensor) -> None:
    """Raise if a write that counts for the graph may not go through this view."""
    if t._view.recorded.__class__ is str:
        raise RuntimeError(_refused(t, "is being modified inplace"))


def _refused(t: Tensor, what: str) -> str:
    """PyTorch's words for a view of which, or of whose base, a write cannot be recorded."""
    how = t._view.recorded
    if how is True:
        return f"{_output_name(t)} is a view and {what}. {_ONE_OF_SEVERAL}"
    mode = "inference mode" if how == "inference" else "no_grad mode"
    where = "in normal mode" if how == "inference" else "with grad mode enabled"
    block = "inference_mode" if how == "inference" else "no_grad"
    reason = _ONE_OF_SEVERAL if how == "no_grad" and _one_of_several(t) else _AMBIGUOUS.format(block=block)
    return f"A view was created in {mode} and {what} {where}. {reason}"


_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or "
    "both outside (if you want the inplace to be tracked)."
)
_ONE_OF_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)


def _one_of_several(t: Tensor) -> bool:
    """Is it (a view of) one of the views that a call such as ``unbind`` gave together?"""
    return t._view is not None and any(index is not None for _, _, index in t._view.path)


def _output_name(t: Tensor) -> str:
    node = t._node.parent if type(t._node) is Output else t._node
    return f"Output {t.output_nr} of {node.name().split('Backward')[0]}"


def _alias_written(output: Output) -> str:
    name = output.parent.name().removesuffix("Backward")
    if len(output.parent.edges) > 1:
        return f"Output {output.index} of {name} is a view and is being modified inplace. {_ONE_OF_SEVERAL}"
    return (
        f"Output {output.index} of {name} is a view and is being modified inplace. This view was created inside a "
        "custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
        "override the custom backward associated with the custom Function, leading to incorrect gradients. This "
        "behavior is forbidden. You can fix this by cloning the output of the custom Function."
    )


def inplace(t: Tensor, function, *args, **kwargs) -> Tensor:
    """``t = function(t, …)`` in t's own memory: the body of every ``name_`` method."""
    if function in UNRECORDED and state.grad:
        return mode.without_grad(inplace, t, function, *args, **kwargs)
    try:
        check_writable(t, function not in ONE_VALUE)
    except RuntimeError as error:
        if str(error) == _WRITTEN_TWICE or not all(isinstance(a, (Tensor, Number, tuple)) for a in args):
            _check_operands(t, function, args, kwargs)
        raise
    if t._storage is not None and function not in READS_FIRST:
        check_apart(t, args if function not in ONE_VALUE else [a for a in args if getattr(a, "ndim", 0)])
    if not state.grad or _leaves_no_trace(t, args, kwargs):
        if function in ONE_STEP and not kwargs and _is_large(t):
            result = chains.into(t._array, _computed, function, t, t, args, kwargs)
        else:
            result = _computed(function, t, t, args, kwargs)
        assign(t, result)
        return t
    old = wrap(t._array)
    old._node, old._storage = t._node, Storage()
    old._storage.views = []
    if mode.active:
        mode.carry(t, old)
    result = _computed(function, t, old, args, kwargs)
    _check_assign(t, result)
    _keep_old_values(old)
    assign(t, result)
    return t


def _is_large(t: Tensor) -> bool:
    """Is it an array whose result should not be computed elsewhere first, and copied?"""
    a = t._array
    if a.__class__ is not _ndarray or a.size < chains.ONE_STEP or t._view is not None or mode.active:
        return False
    return a.dtype.char in "fd" and a.flags.c_contiguous and a.flags.writeable


def _leaves_no_trace(t: Tensor, args, kwargs) -> bool:
    """Is a write to ``t`` plainly nothing to record? A counter's is not."""
    if mode.active or t._node is not None or t._view is not None:
        return False
    for a in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(a, Tensor) and (a._node is not None or (a._view is not None and _has_past(a, t))):
            return False
    return True


def _has_past(a: Tensor, t: Tensor) -> bool:
    """May a view be in the graph by what was written to its base, or share memory with ``t``?"""
    base = a._view.base
    return base is None or base._node is not None or base._view is not None or a._storage is t._storage


_BY_KIND = ("Negation", "Subtraction", "expected dtype")  # how errors about kinds of numbers begin


def _check_operands(t, function, args, kwargs) -> None:
    """Raise what ``function`` says of the kinds of its operands: PyTorch looks at them before what is written."""
    try:
        copy = wrap(t._array.copy()) if t._array.__class__ is _ndarray else t
        mode.without_grad(function, copy, *args, **kwargs)
    except RuntimeError as error:  # or NotImplementedError, which is one
        of_kernel = "not implemented for" in str(error)
        if not of_kernel and (type(error) is not RuntimeError or str(error).startswith(_BY_KIND)):
            raise


def _computed(function, t, old, args, kwargs):
    try:
        return function(old, *args, **kwargs)
    except NotImplementedError:
        # Before a kernel is looked for, PyTorch asks whether its result could be written.
        shapes = [a._array.shape for a in (t, *args) if isinstance(a, Tensor)]
        if (shape := np.broadcast_shapes(*shapes)) != t._array.shape:
            raise RuntimeError(
                f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(shape)}"
            ) from None
        for other in (*args, *kwargs.values()):
            if isinstance(other, Tensor) and other.dtype.is_complex:
                _check_cast(other.dtype, t.dtype)
        raise


def _keep_old_values(old: Tensor) -> None:
    """Copy the values of a tensor about to be overwritten if a rule saved it (3: the caller's, here, getrefcount's)."""
    made = old._storage.views
    old._storage.views = None
    if old._array.__class__ is _ndarray and (made or sys.getrefcount(old) > 3):
        if old._node is not None and old._array.dtype.kind in "biu":  # PyTorch's copy would be recorded
            raise no_gradient_of(old._array.dtype)
        old._array = old._array.copy()
        for t in made:
            t._array = read(namespace_of(old._array), old._array, t._view.path)


def become(t: Tensor, function, node: str, *args, **kwargs) -> Tensor:
    """``t`` itself turns into the view ``function(t, …)`` of its memory."""
    check_writable(t, values=False)
    t._come_home()
    source = t
    if t._view is None or t._view.recorded is None:
        # Views of t may exist whose paths start from t as it was: that stays behind as the base of all.
        source = wrap(t._array)
        source._node, source._storage, source._view = t._node, t._storage, t._view
        source.__dict__["_heir"] = weakref.ref(t)
        if mode.active:
            mode.carry(t, source)
    new = function(source, *args, **kwargs)
    if not state.grad and new._view is not None:  # unseen by the graph, in which it stays what it was
        new._view.recorded = t._view.recorded if t._view is not None else None
    if mode.active:
        mode.carry(new, t)
    if t._storage is None:
        t._storage = source._counted()
    t._array, t._view = new._array, new._view
    if state.grad:
        t._node = new._node
        if t._node is not None:
            t._node.rename(node)
    t._storage.version += 1
    if t._view is not None:
        t._view.seen = t._storage.version
    return t


def assign(t: Tensor, result: Tensor) -> None:
    """Put ``result``'s values and history into ``t``. Shapes must agree, dtypes must be castable."""
    own, array = t._array, result._array
    if t._view is t._node is result._node is None and not mode.active and _are_alike(own, array):
        if array is not own:
            copies.write(own, array)
        t._counted().version += 1
        return  # there is nothing to refuse, to convert, or to record
    _check_assign(t, result)
    node = result._node if state.grad else None
    if node is not None and result._array.dtype != t._array.dtype:
        from .op import differentiable

        result = differentiable.astype(result, dtype=t._array.dtype)
        node = result._node
    put(t, result._array)
    if mode.active and mode.levels():
        write_tangents(t, result)
    if state.grad and (node is not None or t._node is not None):
        _guard_output(t, result)
        rebase(t, node)


def _are_alike(a, b) -> bool:
    return a.__class__ is b.__class__ is _ndarray and a.dtype is b.dtype and a.shape == b.shape


def write_tangents(t: Tensor, result: Tensor | None) -> None:
    from . import tangents

    tangents.written(t, result)


def _check_assign(t: Tensor, result: Tensor) -> None:
    if result._array.shape != t._array.shape:
        raise RuntimeError(f"output with shape {list(t.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if result._array.dtype != t._array.dtype:
        _check_cast(result.dtype, t.dtype)
    if result._node is not None and state.grad and t._view is not None and t._view.path:
        _check_history(t)


def _guard_output(t: Tensor, result: Tensor) -> None:
    """A rule that saved the result as its output is to notice when ``t``, which now holds it, is written again."""
    if result._node is not None:
        result._node.watch(t._storage)


def put(t: Tensor, array) -> None:
    """Write raw values into ``t`` and count the write."""
    if mode.active:
        mode.notify("writers", t)
    view = t._view
    if view is not None:
        if view.base is None:  # its values are with a compiled program: no longer
            view.leave(t)
            view = None
        elif view.base._view is not None:
            view.base._come_home()
    storage = t._counted()
    if t._array.__class__ is _ndarray and array.__class__ is _ndarray:
        if view.__class__ is Mirror:
            shown = array.astype(t._array.dtype, copy=False)
            np.copyto(view.memory(), turn(numpy_engine, shown, mirrored(view.path)))
            t._array = shown.copy()
        elif view is not None and has_shared_places(t):  # see ONE_VALUE
            _put_shared(view, t._array, array)
        elif array is not t._array:  # or they are there already
            copies.write(t._array, array)
    else:
        if mode.active:
            check_levels(t._array, array)
        xp = namespace_of(array) if t._array.__class__ is _ndarray else namespace_of(t._array)
        if array.dtype != t._array.dtype or array.__class__ is not t._array.__class__:
            array = xp.astype(array, dtype=t._array.dtype)
        if t._array.__class__ is SPREAD.array:
            array = xp.kept(array, t._array)
        replaced([(t, array)])
        t._array = array
        while view is not None and view.base is not None:
            base = view.base
            array = write(xp, base._array, view.path, array)
            replaced([(base, array)])
            base._array = array
            view = base._view  # a detached tensor's views write to it, and it to what it was detached from
        view = t._view
    storage.version += 1
    # A write that is not recorded leaves a view in the graph stale: its node is made again when somebody asks for it.
    if view is not None and (
        view.recorded is None or view.base._node is None or (view.recorded is True and state.grad)
    ):
        view.seen = storage.version


def _put_shared(view, old, new) -> None:
    """Write ``new`` over ``old`` where elements share places: of those in one place the one that changes stays."""
    base = view.base._array
    positions = read(numpy_engine, np.arange(base.size).reshape(base.shape), view.path)
    new = np.broadcast_to(new, old.shape)
    changed = old != new
    base[np.unravel_index(positions[changed], base.shape)] = new[changed]


def check_levels(array, value) -> None:
    """Raise PyTorch's error if examples of a ``vmap`` would write different values into the same memory."""
    for level in mode.maps():
        if level.holds(value) and not level.holds(array):
            raise RuntimeError(
                "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                "`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                "arithmetic. If said operator is being called inside the PyTorch framework, please file a bug report "
                "instead."
            )


def put_all(written: list) -> None:
    """``put(t, array)`` for each of many; on an accelerator an interrupt finds all of them written, or none."""
    if SPREAD.array is not None:
        written = _settled(written)
    plain = [(t, array) for t, array in written if t._view is None and t._array.dtype == array.dtype]
    if len(plain) < len(written) or mode.active:
        for t, array in written:
            put(t, array)
        return
    storages = [t._counted() for t, _ in plain]
    replaced(plain)
    # One call of C, which no signal divides. Readers that come before the count see the new values, which is harmless.
    collections.deque(map(setattr, *zip(*[(t, "_array", array) for t, array in plain])), maxlen=0)
    for storage in storages:
        storage.version += 1


def _settled(written: list) -> list:
    """A tensor over a mesh lies as before when it is written; what is on the CPU, a count of steps, stays there."""
    fetched: dict = {}
    settled = []
    for t, array in written:
        if array.__class__ is SPREAD.array:
            if t._array.__class__ is SPREAD.array:
                array = array.namespace.kept(array, t._array)
            elif t._array.__class__ is _ndarray and not array.namespace.is_traced(array):
                if id(array) not in fetched:
                    fetched[id(array)] = np.asarray(array)
                array = fetched[id(array)].copy()  # each its own, to be written
            else:  # in a trace, that may not know t yet
                array = array.namespace.to_numpy(array)
        settled.append((t, array))
    return settled


def rebase(t: Tensor, node) -> None:
    """Give a written tensor its new history; for a view, through its base."""
    view, old = t._view, t._node
    if view is None or not view.path or view.recorded is not True:
        t._node = node
    else:
        base, base_old = view.base, view.base._node
        base._node = CopySlices(base, node, view.path, has_shared_places(t))
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
