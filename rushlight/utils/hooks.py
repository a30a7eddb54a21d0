"""Handles that remove a hook, and the two graph nodes that make full backward hooks possible."""

from __future__ import annotations

import weakref
from typing import Any

from ..autograd.mode import state
from ..autograd.tape import Node, Output
from ..config import epoch
from ..engine import namespace_of
from ..errors import warn_user
from ..tensor import Tensor, wrap

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def __dir__():
    return __all__


class RemovableHandle:
    """Takes a hook out of its table: ``handle.remove()``, or at the end of ``with handle:``.

    It refers to the table weakly, so a forgotten handle keeps no module alive. ``extra_dict`` names further tables
    (one, or a list) that hold something under the same id.
    """

    id: int
    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        tables = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(table) for table in tables)
        epoch.value += 1

    def remove(self) -> None:
        """Remove the hook; a second call, or one after the module is gone, does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None:
                table.pop(self.id, None)
        epoch.value += 1

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_) -> None:
        self.remove()

    def __getstate__(self):
        extra = tuple(reference() for reference in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extra) if extra else (self.hooks_dict_ref(), self.id)

    def __setstate__(self, state) -> None:
        table, self.id, *extra = state
        self.hooks_dict_ref = _reference(table)
        self.extra_dict_ref = tuple(_reference(t) for t in extra[0]) if extra else ()
        # Ids given out from here on must not meet the ones that came in with a pickle.
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)


def _reference(table):
    """A weak reference; to nothing, if the table was already gone when the handle was pickled."""
    return (lambda: None) if table is None else weakref.ref(table)


def unserializable_hook(function):
    """Mark a hook of a tensor so that saving the tensor warns that the hook stays behind."""
    function.__torch_unserializable__ = True
    return function


def warn_if_has_hooks(tensor) -> None:
    """Warn about each hook of ``tensor`` that is not marked with ``unserializable_hook``."""
    node = tensor._node
    for hook in list(node.hooks.tensor.values()) if node is not None and node.hooks is not None else ():
        if not hasattr(hook, "__torch_unserializable__"):
            warn_user(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


# -- full backward hooks ---------------------------------------------------------------------------------------------


class BackwardHookFunctionBackward(Node):
    """Hands the gradients of tensors through unchanged: a place in the graph where all of them meet."""

    __slots__ = ("_like", "outputs")
    aliases_inputs = True

    def __init__(self, tensors) -> None:
        xp = namespace_of(tensors[0]._array)
        super().__init__([t._node for t in tensors], None, None, xp)
        self._like = [(t._array.shape, t._array.dtype) for t in tensors]
        self.outputs = ()

    def apply(self, xp, g, graph, keep):
        # What is beyond an unused output still gets a gradient: zeros, as from any custom function.
        return [self._zeros(like, graph) if one is None else one for one, like in zip(g, self._like)]

    def _zeros(self, like, graph):
        zeros = self.xp.zeros(like[0], dtype=like[1])
        return wrap(zeros) if graph else zeros


def through_one_node(tensors):
    """Aliases of ``tensors`` whose history passes through one BackwardHookFunctionBackward; returns (aliases, node)."""
    for t in tensors:
        t._sync()
    node = BackwardHookFunctionBackward(tensors)
    aliases, made = [], []
    for i, t in enumerate(tensors):
        if t._node is None:  # nothing to see: stays itself
            aliases.append(t)
            made.append(None)
            continue
        alias = wrap(t._array)
        alias._storage = t._counted()  # a write to the original is noticed by who saved the alias
        alias._node = Output(node, i, t._array.shape, t._array.dtype)
        aliases.append(alias)
        made.append(weakref.ref(alias._node))
    node.outputs = tuple(made)
    return aliases, node


class BackwardHook:
    """Calls a module's full backward hooks: one node over its inputs, one over its outputs, for one forward call.

    The outputs' node runs first in backward: it notes ``grad_output`` (after the pre-hooks). When the inputs' node
    has run, all of ``grad_input`` is known and the hooks are called. If no input needs gradients, the outputs' node
    calls them.
    """

    def __init__(self, module, user_hooks, user_pre_hooks) -> None:
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_places = self.output_places = None

    def setup_input_hook(self, args: tuple) -> tuple:
        self.n_inputs = len(args)
        args, self.input_places, node = _join(args)
        if node is not None:
            node.register_hook(self._inputs_done)
        return args

    def setup_output_hook(self, result):
        outputs = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(outputs)
        outputs, self.output_places, node = _join(outputs)
        if node is not None:
            node.register_prehook(self._outputs_begin)
        return outputs if isinstance(result, tuple) else outputs[0]

    def _outputs_begin(self, grads):
        grad_outputs = _spread(self.output_places, grads, self.n_outputs)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, grad_outputs)
            if replaced is not None:
                grad_outputs = _checked(replaced, len(grad_outputs), "Backward pre hook", "grad_output")
        if self.input_places is None:
            self._without_inputs(grad_outputs)
        else:
            self.grad_outputs = grad_outputs
        return tuple(grad_outputs[place] for place in self.output_places)

    def _inputs_done(self, grads, _):
        if self.grad_outputs is None:  # reached without passing the outputs, as in a double backward
            return None
        grad_inputs = _spread(self.input_places, grads, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, grad_inputs, self.grad_outputs)
            if replaced is not None:
                grad_inputs = _checked(replaced, len(grad_inputs), "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(grad_inputs[place] for place in self.input_places)

    def _without_inputs(self, grad_outputs):
        if self.user_hooks:
            warn_user(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details."
            )
        for hook in self.user_hooks:
            replaced = hook(self.module, (None,) * self.n_inputs, grad_outputs)
            if replaced is not None and not (isinstance(replaced, tuple) and all(g is None for g in replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )


def _join(values):
    """Lead the tensors of ``values`` through one node: (values, places of the tensors, node); no gradients: no node."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not (state.grad and any(values[i].requires_grad for i in places)):
        return values, None, None
    aliases, node = through_one_node([values[i] for i in places])
    joined = list(values)
    for place, alias in zip(places, aliases):
        joined[place] = alias
    made = type(values)(*joined) if hasattr(values, "_fields") else tuple(joined)
    return made, places, node


def _spread(places, grads, count) -> tuple:
    spread = [None] * count
    for place, grad in zip(places, grads):
        spread[place] = grad
    return tuple(spread)


def _checked(replaced, expected: int, who: str, what: str):
    if len(replaced) != expected:
        raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(replaced)}, but expected {expected}")
    for g in replaced:
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"expected Variable, but hook returned '{type(g).__name__}'")
    return replaced
