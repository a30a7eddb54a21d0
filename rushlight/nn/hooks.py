"""The hooks of a module, and the one function that calls a module between them.

A module that never had a hook has no ``Hooks``; calling it costs one test. Hooks for all modules live in one more
``Hooks``, ``everyone``. Every call with hooks, whether they are a module's own or everyone's, and whether forward
returns or raises, goes through ``run``.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..autograd import mode
from ..errors import warn_user
from ..tensor import Tensor
from ..utils.hooks import BackwardHook, RemovableHandle, epoch

Table = OrderedDict[int, Any]


class Hooks:
    """All hooks of one module: a table of id to function for each kind, and tables that hold only the ids of some."""

    forward_pre_hooks: Table
    forward_pre_hooks_with_kwargs: Table
    forward_hooks: Table
    forward_hooks_with_kwargs: Table
    forward_hooks_always_called: Table
    backward_pre_hooks: Table
    backward_hooks: Table
    state_dict_pre_hooks: Table
    state_dict_hooks: Table
    load_state_dict_pre_hooks: Table
    load_state_dict_post_hooks: Table

    # None until the first backward hook decides which of the two kinds the module has.
    is_full_backward_hook: bool | None = None
    # What Module.compile made; it is called in the module's place.
    compiled: Callable | None = None

    def __init__(self) -> None:
        for name in TABLES:
            setattr(self, name, OrderedDict())

    def add(self, kind: str, hook, *, prepend: bool = False, flags=()) -> RemovableHandle:
        """Put ``hook`` into the table ``kind``, and its id into those of ``flags``."""
        table, flagged = getattr(self, kind), [getattr(self, name) for name in flags]
        handle = RemovableHandle(table, extra_dict=flagged)
        table[handle.id] = hook
        for flag in flagged:
            flag[handle.id] = True
        if prepend:
            table.move_to_end(handle.id, last=False)
        return handle

    def add_forward_pre(self, hook, prepend: bool, with_kwargs: bool) -> RemovableHandle:
        flags = ["forward_pre_hooks_with_kwargs"] if with_kwargs else []
        return self.add("forward_pre_hooks", hook, prepend=prepend, flags=flags)

    def add_forward(self, hook, prepend: bool, with_kwargs: bool, always_call: bool) -> RemovableHandle:
        flags = ["forward_hooks_with_kwargs"] if with_kwargs else []
        flags += ["forward_hooks_always_called"] if always_call else []
        return self.add("forward_hooks", hook, prepend=prepend, flags=flags)

    def add_backward(self, hook, full: bool, where: str, prepend: bool = False) -> RemovableHandle:
        if self.is_full_backward_hook is (not full):
            raise RuntimeError(
                f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them."
            )
        self.is_full_backward_hook = full
        return self.add("backward_hooks", hook, prepend=prepend)

    def backward(self, full: bool) -> list:
        """The backward hooks of one kind."""
        return list(self.backward_hooks.values()) if self.is_full_backward_hook is full else []

    def calls_nothing(self) -> bool:
        return not (self.forward_hooks or self.forward_pre_hooks or self.backward_hooks or self.backward_pre_hooks)

    def to_state(self) -> dict:
        """Under PyTorch's names and without empty tables: what a pickled module carries."""
        state = {"_" + name: getattr(self, name) for name in TABLES if getattr(self, name)}
        if self.is_full_backward_hook is not None:
            state["_is_full_backward_hook"] = self.is_full_backward_hook
        return state

    @classmethod
    def from_state(cls, state: dict) -> Hooks:
        hooks = cls()
        for name, value in state.items():
            setattr(hooks, name[1:], value)
        return hooks


TABLES = tuple(name for name, kind in Hooks.__annotations__.items() if kind == "Table")
STATE_NAMES = frozenset(["_" + name for name in (*TABLES, "is_full_backward_hook")])


class Everyone(Hooks):
    """The hooks of all modules. ``present`` may be true when none is left: the next call finds out."""

    __slots__ = ("buffer_registration", "module_registration", "observers", "parameter_registration", "present")

    def __init__(self) -> None:
        super().__init__()
        self.parameter_registration, self.buffer_registration = OrderedDict(), OrderedDict()
        self.module_registration, self.present = OrderedDict(), False
        self.observers: tuple = ()  # told of every module called; compile looks on here, and changes nothing

    def observed_by(self, observers: tuple) -> None:
        self.observers, self.present = observers, True

    def calls_nothing(self) -> bool:
        return not self.observers and super().calls_nothing()

    def add(self, kind: str, hook, *, prepend: bool = False, flags=()) -> RemovableHandle:
        self.present = True
        return super().add(kind, hook, prepend=prepend, flags=flags)


everyone = Everyone()
_nothing = Hooks()


def registered(kind: str, module, name: str, value):
    """What the global hooks for registrations make of ``value``."""
    epoch.value += 1
    for hook in list(getattr(everyone, kind).values()):
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def table_property(name: str) -> property:
    """PyTorch's name for one of the tables of ``Hooks``; who reads it may write to it, so it exists from then on."""

    def read(self):
        epoch.value += 1
        return getattr(self._own_hooks(), name)

    def write(self, value):
        epoch.value += 1
        setattr(self._own_hooks(), name, value)

    return property(read, write)


# -- a call ----------------------------------------------------------------------------------------------------------


def run(module, args: tuple, kwargs: dict):
    """``module.forward(*args, **kwargs)`` between the hooks: everyone's first, then the module's own."""
    own = module._hooks or _nothing
    if everyone.present:
        if mode.active and mode.state.stand_ins:
            other = mode.state.stand_ins[-1]
            compiled = None if other is None else other(module)
            if compiled is not None:
                with mode.pushed("stand_ins", None):
                    return compiled(*args, **kwargs)
        everyone.present = not everyone.calls_nothing()
        for observer in everyone.observers:
            observer(module)
    elif own.calls_nothing():
        return module.forward(*args, **kwargs)
    owners = (everyone, own) if everyone.present else (own,)
    called, result = set(), None
    try:
        args, kwargs = _before(owners, module, args, kwargs)
        with_backward = [owner for owner in owners if owner.backward_hooks or owner.backward_pre_hooks]
        backward = _backward_hook(with_backward, module) if with_backward else None
        if backward is not None:
            args = backward.setup_input_hook(args)
        result = module.forward(*args, **kwargs)
        for owner in owners:
            for id, hook in list(owner.forward_hooks.items()):
                called.add(id)
                result = _after(owner, id, hook, module, args, kwargs, result)
        if with_backward:
            result = _watch_result(with_backward, backward, module, args, result)
        return result
    except Exception:
        _always(owners, called, module, args, kwargs, result)
        raise


def _before(owners, module, args, kwargs):
    for owner in owners:
        for id, hook in list(owner.forward_pre_hooks.items()):
            if id in owner.forward_pre_hooks_with_kwargs:
                replaced = hook(module, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                            f"but got {replaced}."
                        )
                    args, kwargs = replaced
            else:
                replaced = hook(module, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
    return args, kwargs


def _after(owner, id, hook, module, args, kwargs, result):
    if id in owner.forward_hooks_with_kwargs:
        replaced = hook(module, args, kwargs, result)
    else:
        replaced = hook(module, args, result)
    return result if replaced is None else replaced


def _always(owners, called, module, args, kwargs, result) -> None:
    """After an error: the hooks that asked for ``always_call`` and have not been called."""
    for owner in owners:
        for id, hook in list(owner.forward_hooks.items()):
            if id not in owner.forward_hooks_always_called or id in called:
                continue
            try:
                result = _after(owner, id, hook, module, args, kwargs, result)
            except Exception as error:
                who = "global module" if owner is everyone else "module"
                warn_user(
                    f"{who} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}"
                )


# -- backward hooks --------------------------------------------------------------------------------------------------


def _backward_hook(owners, module) -> BackwardHook | None:
    full = [hook for owner in owners for hook in owner.backward(full=True)]
    before = [hook for owner in owners for hook in owner.backward_pre_hooks.values()]
    return BackwardHook(module, full, before) if full or before else None


def _watch_result(owners, backward: BackwardHook | None, module, args, result):
    if backward is not None:
        if not isinstance(result, (Tensor, tuple)):
            warn_user(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}"
            )
        result = backward.setup_output_hook(result)
    legacy = [hook for owner in owners for hook in owner.backward(full=False)]
    if legacy:
        _hook_last_node(legacy, module, args, result)
    return result


def _hook_last_node(hooks, module, args, result) -> None:
    """The deprecated backward hooks see only the last node of forward, whatever its inputs are."""
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(WithModule(hook, module))
    module._maybe_warn_non_full_backward_hook(args, result, node)


def warn_about_legacy(args, result, node) -> None:
    """Say what a deprecated backward hook will miss in this call, if anything."""
    results = (result,) if isinstance(result, Tensor) else result
    inputs = (args,) if isinstance(args, Tensor) else args
    if not _all_tensors(results):
        how = "on a Module that does not return a single Tensor or a tuple of Tensors"
        start, missing = "Using non-full backward hooks", "of the grad_output"
    elif not _all_tensors(inputs):
        how = "on a Module that does not take as input a single Tensor or a tuple of Tensors"
        start, missing = "Using non-full backward hooks", "of the grad_input"
    else:
        start = "Using a non-full backward hook"
        nodes = {t.grad_fn for t in results if t.grad_fn is not None}
        if len(nodes) > 1 or node not in nodes:
            how, missing = "when outputs are generated by different autograd Nodes", "grad_output"
        elif {t.grad_fn for t in inputs} != {function for function, _ in node.next_functions}:
            how, missing = "when the forward contains multiple autograd Nodes", "grad_input"
        else:
            return
    warn_user(
        f"{start} {how} is deprecated and will be removed in future versions. This hook will be missing some "
        f"{missing}. Please use register_full_backward_hook to get the documented behavior.",
        FutureWarning,
    )


def _all_tensors(values) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)


class WithModule:
    """A hook that also gets the module, held weakly: the module owns the hook. Copies follow the module's copy."""

    def __init__(self, hook, module=None) -> None:
        self.hook = hook
        self.reference = None if module is None else weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if self.reference is None:
            return self.hook(*args, **kwargs)
        module = self.reference()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        return {"hook": self.hook, "module": None if self.reference is None else self.reference()}

    def __setstate__(self, state: dict) -> None:
        module = state["module"]
        self.hook, self.reference = state["hook"], None if module is None else weakref.ref(module)


# -- hooks for all modules -------------------------------------------------------------------------------------------


def register_module_parameter_registration_hook(hook) -> RemovableHandle:
    """``hook(module, name, parameter) -> None | parameter`` whenever a module gets a parameter."""
    return everyone.add("parameter_registration", hook)


def register_module_buffer_registration_hook(hook) -> RemovableHandle:
    """``hook(module, name, buffer) -> None | buffer`` whenever a module gets a buffer."""
    return everyone.add("buffer_registration", hook)


def register_module_module_registration_hook(hook) -> RemovableHandle:
    """``hook(module, name, submodule) -> None | submodule`` whenever a module gets a child."""
    return everyone.add("module_registration", hook)


def register_module_forward_pre_hook(hook) -> RemovableHandle:
    """``hook(module, args) -> None | args`` before the forward of every module."""
    return everyone.add_forward_pre(hook, prepend=False, with_kwargs=False)


def register_module_forward_hook(hook, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """``hook(module, args, output) -> None | output`` after the forward of every module."""
    return everyone.add_forward(hook, prepend=False, with_kwargs=with_kwargs, always_call=always_call)


def register_module_full_backward_pre_hook(hook) -> RemovableHandle:
    """``hook(module, grad_output) -> None | grad_output`` before the gradients of every module's inputs."""
    return everyone.add("backward_pre_hooks", hook)


def register_module_full_backward_hook(hook) -> RemovableHandle:
    """``hook(module, grad_input, grad_output) -> None | grad_input`` for every module."""
    return everyone.add_backward(hook, True, "as a global Module hook")


def register_module_backward_hook(hook) -> RemovableHandle:
    """Deprecated: sees only the last node of each module; use ``register_module_full_backward_hook``."""
    return everyone.add_backward(hook, False, "as a global Module hook")
