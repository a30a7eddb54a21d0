"""``Function``: an operation whose forward and backward the user writes."""

from __future__ import annotations

import functools
import inspect
import weakref
from typing import Any, NamedTuple

from ..engine import namespace_of
from ..errors import warn_user
from ..tensor import Tensor, wrap
from . import mode
from .mode import state
from .node import _with_node, modified_in_place
from .tape import _TWICE, AccumulateGrad, Node, Output

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


def __dir__():
    return __all__


class FunctionCtx:
    """What forward leaves for backward. Other values may be kept as plain attributes.

    It is apart from the graph's node so that ``ctx.shape = …`` cannot clash with what the tape keeps there.
    """

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.to_save = self.dirty_tensors = self.non_differentiable = ()
        self.materialize_grads = True
        self._saved, self._node = (), None
        self._saved_for_forward, self._forward = (), False

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept; in ``jvp``, what ``save_for_forward`` did."""
        if self._forward:
            return self._saved_for_forward
        if self._saved is None:
            raise RuntimeError(_TWICE)
        return tuple(None if s is None else s.tensor(self._node()) for s in self._saved)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) until backward; a later in-place change of one is then noticed."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) until ``jvp``, which follows at once."""
        self._saved_for_forward = tensors

    def _tangents(self, cls, args, given):
        """What ``jvp`` says; inputs without a tangent have zeros, unless that was switched off."""
        if self.materialize_grads:
            given = [
                wrap(namespace_of(a._array).zeros_like(a._array)) if t is None and isinstance(a, Tensor) else t
                for a, t in zip(args, given)
            ]
        self._forward = True
        try:
            return cls.jvp(self, *given)
        finally:
            self._forward = False

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs forward changed in place; forward must return them."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs never need a gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (the default) or None for outputs that no gradient reached."""
        self.materialize_grads = value


class Function:
    """Subclass it with static ``forward`` and ``backward`` methods, and call ``apply``.

    >>> class Cube(rushlight.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> Cube.apply(rushlight.tensor(2.0, requires_grad=True))
    tensor(8., grad_fn=<CubeBackward>)
    """

    generate_vmap_rule = False
    _serves_transforms = False  # without being asked for ``setup_context`` or ``vmap``
    _context_cls: type
    _backward_cls: type

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__name__ + "Backward"
        cls._context_cls = type(name, (FunctionCtx,), {"_forward_cls": cls})
        cls._backward_cls = type(name, (FunctionNode,), {"_forward_cls": cls})

    def __init__(self, *_, **__) -> None:
        warn_user(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version "
            "of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *_, **__):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """``forward(ctx, *args)``, or ``forward(*args)`` beside a ``setup_context``."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        """``setup_context(ctx, inputs, output)``: keep for backward what a ``forward`` without ctx could not."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        """``backward(ctx, *grad_outputs)``: one gradient (or None) per argument of forward."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """``vmap(info, in_dims, *args)``: outputs and their dimensions, for whole arguments; ``info.batch_size``."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward and record it."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            args = _bound(cls.forward, (None, *args), kwargs, defaults=False)[1:]
        if mode.state.transforms and not cls._serves_transforms:
            _check_transforms(cls, separate)
        for a in args:
            if isinstance(a, Tensor):
                if mode.active:
                    mode.notify("writers", a)  # forward may take its array, which no operator sees
                a._sync()
        if mode.active and mode.levels():
            return cls._with_tangents(args, separate)
        return cls._recorded(args, separate)[0]

    @classmethod
    def _recorded(cls, args, separate):
        node = cls._backward_cls(args, cls._context_cls)
        ctx = node.context
        if separate:
            forward = _mapped_forward(cls, args) if mode.active and mode.maps() else cls.forward
            result = mode.without_grad(forward, *args)
            mode.without_grad(cls.setup_context, ctx, args, result)
        else:
            result = mode.without_grad(cls.forward, ctx, *args)
        return node._record(args, result), ctx

    @classmethod
    def _with_tangents(cls, args, separate):
        """The results without forward mode, then their tangents by ``jvp``, level by level."""
        from . import tangents

        with tangents.suspended():
            result, ctx = cls._recorded(args, separate)
        results = result if isinstance(result, tuple) else (result,)
        for level in mode.levels():
            given = [level.of(a) for a in args]
            if any(t is not None for t in given):
                with tangents.outside(level):
                    found = ctx._tangents(cls, args, given)
                    for y, tangent in zip(results, found if isinstance(found, tuple) else (found,)):
                        if isinstance(y, Tensor) and tangent is not None:
                            level.give(y, _tangent_of(y, tangent))
        ctx._saved_for_forward = ()
        return result


_DETAILS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def _check_transforms(cls, separate) -> None:
    """In a transform of ``func``: has the class what that needs?"""
    if not separate:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod. {_DETAILS}"
        )
    if not any(isinstance(one, mode.Mapping) for one in mode.state.transforms):
        return
    own = cls.vmap is not Function.vmap
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            f"ambiguity. {_DETAILS}"
        )
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True. {_DETAILS}"
        )


class VmapInfo(NamedTuple):
    """What ``Function.vmap`` is told."""

    batch_size: int
    randomness: str


def _mapped_forward(cls, args):
    """How ``forward`` runs in a ``vmap``: as it is, its operators being mapped, or by the ``vmap`` of its class."""
    if cls.vmap is Function.vmap:
        return cls.forward
    arrays = [a._array for a in args if isinstance(a, Tensor)]
    level = next((one for one in reversed(mode.maps()) if any(one.holds(a) for a in arrays)), None)
    return cls.forward if level is None else functools.partial(_by_own_vmap, cls, level)


def _by_own_vmap(cls, level, *args):
    """``cls.vmap`` on what lies under the level; its results are of the level again."""
    whole, in_dims = [], []
    for a in args:
        mapped, array = level._below(a._array) if isinstance(a, Tensor) else (False, None)
        whole.append(a if array is None else wrap(array))
        in_dims.append(0 if mapped else None)
    made = level.outside(cls.vmap, VmapInfo(level.size, level.randomness), tuple(in_dims), *whole)
    if not isinstance(made, tuple) or len(made) != 2:
        raise RuntimeError(
            f"expected the vmap staticmethod of {cls.__name__} to have two returns, an output and out_dims with pytree "
            "structure compatible with the output."
        )
    output, out_dims = made
    if not isinstance(output, tuple):
        return level.inside(output, out_dims)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(output)
    return tuple(level.inside(one, dim) for one, dim in zip(output, dims, strict=True))


class FunctionNode(Node):
    """The graph node of one ``apply``. Attributes it lacks are looked up in the ``ctx`` of forward and backward."""

    __slots__ = ("_inputs", "_outputs", "context")
    _forward_cls: type[Function]

    def __init__(self, args, context_type):
        edges = tuple(a._node if isinstance(a, Tensor) else None for a in args)
        super().__init__(edges, None, None, None)
        self.context = context_type(tuple(e is not None for e in edges))
        self.context._node = weakref.ref(self)
        self._inputs = tuple((a._array.shape, a._array.dtype) if isinstance(a, Tensor) else None for a in args)
        self._outputs = None

    def __getattr__(self, name):
        if name in Node.__slots__ or name == "context":
            raise AttributeError(name)
        return getattr(self.context, name)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {hex(id(self))}>"

    # -- forward -----------------------------------------------------------------------------------------------------

    def _record(self, args, result):
        several = isinstance(result, tuple)
        results = result if several else (result,)
        self._check_dirty(results)
        recorded = state.grad and any(self.context.needs_input_grad)
        outputs = tuple(self._alias(args, r) for r in results)
        self._outputs = tuple(_OutputMeta(t) if isinstance(t, Tensor) else None for t in outputs)
        if recorded:
            self._save(outputs)
            for i, t in enumerate(outputs):
                if isinstance(t, Tensor):
                    self._attach(i, t, len(outputs) == 1)
        # Let go of the tensors themselves: outputs among them would be cycles.
        self.context.to_save = self.context.non_differentiable = self.context.dirty_tensors = ()
        return outputs if several else outputs[0]

    def _check_dirty(self, results) -> None:
        for t in self.context.dirty_tensors:
            if not any(t is r for r in results):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                    "that are modified inplace must all be outputs of the Function."
                )
            if type(t._node) is AccumulateGrad and state.grad:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")

    def _alias(self, args, result):
        """An input handed through becomes a view of itself, so that it can have a node of its own."""
        if not isinstance(result, Tensor) or any(result is t for t in self.context.dirty_tensors):
            return result
        if any(result is a for a in args):
            from .op import differentiable

            return mode.without_grad(differentiable.alias, result)
        return result

    def _attach(self, index, t, alone) -> None:
        if any(t is n for n in self.context.non_differentiable) or t._array.dtype.kind in "biu":
            return
        if alone:
            self.shape, self.dtype, self.xp = t._array.shape, t._array.dtype, namespace_of(t._array)
            node: Node = self
        else:
            node = Output(self, index, t._array.shape, t._array.dtype)
            self._outputs[index].node = weakref.ref(node)
        if any(t is d for d in self.context.dirty_tensors):
            from .views import rebase

            rebase(t, node)
        else:
            t._node = node

    def _save(self, outputs) -> None:
        for i, t in enumerate(self.context.to_save):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
                )
        self.context._saved = tuple(None if t is None else self._saved_tensor(t, outputs) for t in self.context.to_save)

    def _saved_tensor(self, t, outputs):
        index = next((i for i, r in enumerate(outputs) if r is t), None)
        if state.saved_hooks:
            from .graph import Packed

            return _Saved(Packed(t), None, None, t._node, index)
        storage = t._counted()
        # An output is kept as its bare array: the tensor holds this node.
        return _Saved(t._array if index is not None else t, storage, storage.version, None, index)

    # -- backward ----------------------------------------------------------------------------------------------------

    @property
    def outputs(self):
        return self._outputs

    def output(self, index):
        if self.shape is not None:
            return self
        meta = self._outputs[index]
        return (meta.node and meta.node()) or Output(self, index, meta.shape, meta.dtype)

    def apply(self, xp, g, graph, keep):
        incoming = g if type(g) is list else [g]
        grads = [self._incoming(x, meta, graph) for x, meta in zip(incoming, self._outputs)]
        cls = self._forward_cls
        function = cls.vjp if cls.backward is Function.backward else cls.backward
        result = function(self.context, *grads)
        if not keep:
            self.context._saved = None
        return self._outgoing(result if isinstance(result, tuple) else (result,), graph)

    def _incoming(self, g, meta, graph):
        if g is not None:
            return g if graph else wrap(g)
        if meta is None or not self.context.materialize_grads:
            return None
        return wrap(meta.xp.zeros(meta.shape, dtype=meta.dtype))

    def _outgoing(self, grads, graph):
        expected = len(self.edges)
        if len(grads) > expected and all(g is None for g in grads[expected:]):
            grads = grads[:expected]
        if len(grads) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(grads)})"
            )
        return [self._fitting(i, g, graph) for i, g in enumerate(grads)]

    def _fitting(self, index, g, graph):
        if g is None:
            return None
        meta = self._inputs[index]
        if meta is None:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different than None at position {index + 1}, but the "
                "corresponding forward input was not a Variable"
            )
        if not isinstance(g, Tensor):
            raise TypeError(f"expected Variable or None (got {type(g).__name__})")
        g._sync()
        if not _expandable(meta[0], g._array.shape):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {index} - got {list(g.shape)} but "
                f"expected shape compatible with {list(meta[0])}"
            )
        return g if graph else g._array


class _OutputMeta:
    """What is left of an output when its tensor is gone."""

    __slots__ = ("dtype", "node", "shape", "xp")

    def __init__(self, t: Tensor):
        self.shape, self.dtype, self.xp, self.node = t._array.shape, t._array.dtype, namespace_of(t._array), None


class _Saved:
    """One tensor that ``save_for_backward`` keeps: an input or intermediate, an output's array, or a packed form."""

    __slots__ = ("index", "node", "storage", "value", "version")

    def __init__(self, value, storage, version, node, index):
        self.value, self.storage, self.version, self.node, self.index = value, storage, version, node, index

    def tensor(self, owner: FunctionNode) -> Tensor:
        node = self.node if self.index is None else owner.output(self.index)
        if self.storage is None:
            return self.value.unpack(node)
        t = self.value if isinstance(self.value, Tensor) else _with_node(self.value, node)
        if self.storage.version != self.version:
            raise RuntimeError(modified_in_place(t, node or t._node, self.storage.version, self.version))
        return t


class InplaceFunction(Function):
    """A Function with a conventional ``inplace`` flag."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


def once_differentiable(function):
    """Decorates a ``backward`` whose own gradient is not to be taken: a second differentiation raises."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        outputs = mode.without_grad(function, ctx, *args)
        if not state.grad or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        several = isinstance(outputs, tuple)
        made = [_refuse(t) if isinstance(t, Tensor) else t for t in (outputs if several else (outputs,))]
        return tuple(made) if several else made[0]

    return wrapped


class _Error(Node):
    """Stands where the graph of a once-differentiable backward would go on."""

    __slots__ = ()

    def name(self) -> str:
        return "Error"

    def apply(self, xp, g, graph, keep):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _refuse(t: Tensor) -> Tensor:
    return _with_node(t._array, _Error((), t._array.shape, t._array.dtype, namespace_of(t._array)))


def _tangent_of(y: Tensor, tangent) -> Tensor:
    if not isinstance(tangent, Tensor):
        raise TypeError(f"jvp must return Tensors or None, got {type(tangent).__name__}")
    if tangent.shape != y.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(y.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    return tangent


def _bound(function, args, kwargs, defaults=True):
    bound = inspect.signature(function).bind(*args, **kwargs)
    if defaults:
        bound.apply_defaults()
    return bound.args


def _expandable(shape, larger) -> bool:
    """Could ``shape`` be broadcast to ``larger``? Then a gradient of that shape can be summed to it."""
    if len(shape) > len(larger):
        return False
    return all(a in (b, 1) for a, b in zip(reversed(shape), reversed(larger)))
