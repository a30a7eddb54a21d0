"""The base of all optimizers, and ``PureOptimizer``: an optimizer that is one pure update per parameter."""

from __future__ import annotations

import copy
import functools
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import mode
from ..autograd.mode import enable_grad, without_grad
from ..autograd.views import put, put_all
from ..config import epoch
from ..engine import namespace_of, settle
from ..engine.numpy import namespace as numpy_engine
from ..errors import warn_user
from ..tensor import Tensor, wrap
from ..utils.hooks import RemovableHandle
from .fused import SMALL, by_formula, by_kernel, run

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_ndarray = np.ndarray
_global_pre_hooks: OrderedDict = OrderedDict()
_global_post_hooks: OrderedDict = OrderedDict()


# Other people's optimizers annotate with these.
ParamsT = Iterable[Any]
StateDict = dict[str, Any]


class _Required:
    """Stands in ``defaults`` for an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook) -> RemovableHandle:
    """``hook(optimizer, args, kwargs) -> None | (args, kwargs)`` before every optimizer's step."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> RemovableHandle:
    """``hook(optimizer, args, kwargs)`` after every optimizer's step."""
    return _register(_global_post_hooks, hook)


class Optimizer:
    """Parameters in groups with options, and state kept per parameter. Subclasses define ``step``."""

    #: Options that only enter the arithmetic: compile passes them as inputs, so changing one never recompiles.
    dynamic: tuple[str, ...] = ("lr", "weight_decay")
    #: Those of them that leave a part of the formula out when they are zero: that is compiled as another program.
    switches: tuple[str, ...] = ()

    _traced_hyper: list | None = None  # while compile traces: what to read instead of the dynamic options
    _lockstep = False  # while compile traces: all parameters have made the same number of steps

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __new__(cls, *args, **kwargs):
        """Wrappers of other optimizers are subclasses that never call ``__init__``: their hooks begin here."""
        self = super().__new__(cls)
        self._init_hooks()
        return self

    def __init__(self, params, defaults: dict):
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.state = defaultdict(dict)
        self.param_groups: list[dict] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def _init_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict = OrderedDict()

    # -- stepping ----------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient; ``closure`` computes the loss again where given."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        if mode.active and mode.state.profile is not None:
            name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
            if not mode.state.profile.is_in(name):
                mode.state.profile.range(name, self.zero_grad, (set_to_none,))
                return
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p._grad = None
                elif p._grad is not None:
                    grad = p._grad
                    if grad._node is not None:
                        grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                    if grad.is_sparse:
                        grad.zero_()
                    else:
                        xp, array = namespace_of(grad._array), grad._array
                        put(grad, xp.zeros((), array.dtype) if xp is numpy_engine else xp.zeros_like(array))

    def _evaluate(self, closure):
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # -- options -----------------------------------------------------------------------------------------------------

    def _hyper(self, group: dict) -> dict:
        """The options of a group as the updates read them: numbers, or traced values while compiling."""
        traced = self._traced_hyper
        if traced is None:
            for name in self.dynamic:
                value = group.get(name)
                if value.__class__ is float or value.__class__ is int:
                    continue
                if isinstance(value, Tensor) or (value.__class__ is tuple and isinstance(value[0], Tensor)):
                    return _numbers(group)
            return group
        start = 0
        for other in self.param_groups:
            if other is group:
                break
            start += sum(1 for _ in _scalars(other, self.dynamic))
        values = iter(traced[start:])
        numbers = {name: _replaced(group[name], values) for name in self.dynamic if name in group}
        return {**group, **numbers, **{name: 0.0 for name in self.switches if not group[name]}}

    def _switched_on(self) -> list[bool]:
        return [bool(group[name]) for group in self.param_groups for name in self.switches]

    def _hyper_values(self) -> list[float]:
        """All dynamic options of all groups, in the order of ``_traced_hyper``."""
        return [float(v) for group in self.param_groups for v in _scalars(group, self.dynamic)]

    def _in_lockstep(self) -> bool:
        """Have all parameters made the same number of steps? Then a compiled step counts, and corrects bias, once."""
        counts, group = set(), None
        for state in self.state.values():
            step = state.get("step")
            if isinstance(step, Tensor):
                # Those that a compiled step left behind together were counted together: one speaks for all.
                together = getattr(step._view, "group", None)
                if together is None or together is not group:
                    counts.add((step._array.dtype, step.item()))
                group = together or group
        return len(counts) == 1

    # -- parameter groups --------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters, with options of their own where given."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        named, param_group["params"] = _split_names(list(params))
        if named is not None:
            # Where PyTorch puts it: right after the parameters, before the options.
            param_group["param_names"] = named
        for p in param_group["params"]:
            _check_parameter(p, self.defaults)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_group(param_group)
        self.param_groups.append(param_group)
        epoch.value += 1

    def _check_group(self, group: dict) -> None:
        params = group["params"]
        if len(params) != len(set(params)):
            warn_user(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
                "error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information"
            )
        if any(("param_names" in other) != ("param_names" in group) for other in self.param_groups):
            have = "with" if "param_names" in group else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{have} names to the optimizer"
            )
        known = {p for other in self.param_groups for p in other["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")

    # -- saving and loading ------------------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """State and options, with parameters replaced by their number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(p, len(numbers))
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[p] for p in group["params"]]
            groups.append(packed)
        packed_state = {numbers.get(p, p) if isinstance(p, Tensor) else p: value for p, value in self.state.items()}
        result = {"state": packed_state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over what ``state_dict()`` gave, here or in PyTorch."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups, saved_groups = self.param_groups, copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameters = {
            number: (p, saved)
            for group, saved in zip(groups, saved_groups)
            for number, p in zip(saved["params"], group["params"])
        }
        loaded = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                p, saved = parameters[key]
                loaded[p] = _fitted(p, value, saved)
            else:
                loaded[key] = copy.copy(value)
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
        self.__setstate__({"state": loaded, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        epoch.value += 1  # compiled steps must look for the new state
        if not hasattr(self, "_optimizer_step_pre_hooks"):
            self._init_hooks()
        for group in self.param_groups:  # options that a newer version has and an older file lacks
            for name, default in getattr(self, "defaults", {}).items():
                group.setdefault(name, default)
        for values in self.state.values():
            step = values.get("step") if isinstance(values, dict) else None
            if step is not None and not isinstance(step, Tensor):
                values["step"] = wrap(np.asarray(step, np.float32))

    def __repr__(self) -> str:
        lines = [f"{self.__class__.__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {i}"] if i else [f"Parameter Group {i}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join(lines) + "\n)"

    # -- hooks -------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook) -> RemovableHandle:
        """``hook(optimizer, args, kwargs) -> None | (args, kwargs)`` before each step."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` before ``state_dict``."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict) -> None | state_dict`` after ``state_dict``."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict) -> None | state_dict`` before loading."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _with_hooks(step):
    if hasattr(step, "hooked"):
        return step

    @functools.wraps(step)
    def hooked(self, *args, **kwargs):
        self._opt_called = True  # what lr_scheduler warns about when it is missing
        if mode.active:
            name = f"Optimizer.step#{type(self).__name__}.step"
            if mode.state.profile is not None and not mode.state.profile.is_in(name):
                return mode.state.profile.range(name, hooked, (self, *args), kwargs)
            mode.notify("optimizers", self)
        if not (
            _global_pre_hooks or _global_post_hooks or self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        ):
            result = step(self, *args, **kwargs)
            settle()
            return result
        args = (self, *args)  # as hooks see them, and give them back
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            replaced = hook(self, args, kwargs)
            if replaced is not None:
                if not isinstance(replaced, tuple) or len(replaced) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
        result = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, args, kwargs)
        settle()
        return result

    hooked.hooked = True
    return hooked


class PureOptimizer(Optimizer):
    """An optimizer whose update of one parameter is a pure function, the same for every engine.

    Subclasses define

        initial(group, p)                  the state before the first step, as Tensors (``step`` is added here)
        update(xp, p, g, state, option)    (new p, new state) from arrays of namespace ``xp``

    and may define, for the same formula in place,

        kernel(option)    (the kernel in C, the parts of the state that it takes, its numbers(step)), or None
        fused(option)     on NumPy: None, or a function ``job(p, g, state, later)`` that does it, or puts
                          (update, arrays) into ``later`` for ``fused.run``; False if it cannot
    """

    counts_steps = True
    complex_error: str | None = None

    def initial(self, group: dict, p: Tensor) -> dict:
        return {}

    @staticmethod
    def update(xp, p, g, state, option):
        raise NotImplementedError

    @staticmethod
    def kernel(option):
        return None

    @classmethod
    def fused(cls, option):
        known = cls.kernel(option)
        return by_formula(cls.update, option) if known is None else by_kernel(*known)

    def sparse_update(self, p: Tensor, g, state: dict, option: dict) -> None:
        """The update of the rows that a sparse gradient has, in place; most optimizers have none."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient."""
        loss = self._evaluate(closure)
        self._common_step = None
        for group in self.param_groups:
            self._step_group(group, self._hyper(group))
        return loss

    def _step_group(self, group: dict, option: dict) -> None:
        states, counts, later = self.state, self.counts_steps, []
        differentiable, traced = group.get("differentiable"), self._traced_hyper is not None
        job = None if traced or differentiable else self.fused(option)
        known = self.kernel(option) if traced and not differentiable else None
        in_place: list = []  # what a program does in one call of a kernel
        together: list = []  # what an engine that records does in one call
        first = None  # there, the count that all parameters that start now have in common
        for p in group["params"]:
            g = p._grad
            if g is None:
                continue
            state = states.get(p)
            if not state:
                state = {} if state is None else state  # whoever has looked for it has made an empty one
                if counts:
                    first = self._start(group, p, state, first)
            if (
                job is not None
                and (_plain(p, g, state) or _came_home(p, g, state))
                and job(p._array, g._array, state, later)
            ):
                (p._storage or p._counted()).version += 1
            elif g.is_sparse:
                without_grad(self.sparse_update, p, g, state, option)
            elif differentiable:
                self._update_differentiable(p, g, state, option)
            elif known is not None and self._served(p, g, state, known[1]):
                in_place.append((p, g, state))
            elif namespace_of(p._array).DEFERS and p._array.dtype.kind != "c":
                together.append((p, g, state))
            else:
                self._update_checked(p, g, state, option)
            if state and p not in states:
                states[p] = state
        if later:
            run(later)
        if known is not None and in_place:
            self._update_in_place(in_place, *known)
        by_mesh: dict = {}  # what lies on different meshes cannot be in one program
        for values in together:
            by_mesh.setdefault(getattr(values[0]._array, "grid", None), []).append(values)
        for values in by_mesh.values():
            self._update_together(values, option)

    def _served(self, p: Tensor, g: Tensor, state: dict, parts: tuple) -> bool:
        """Does the program that is traced have a kernel for these arrays?"""
        if (self.counts_steps and not self._lockstep) or not all(isinstance(state.get(name), Tensor) for name in parts):
            return False
        serves = getattr(namespace_of(p._array), "serves_update", None)
        tensors = [p, g, *(state[name] for name in parts)]
        for t in tensors:
            t._sync()
        return serves is not None and serves(*[t._array for t in tensors])

    def _update_in_place(self, parameters: list, kernel: str, parts: tuple, numbers) -> None:
        """``_update`` of many parameters by one call of a kernel; all have made the same number of steps."""
        xp, step = namespace_of(parameters[0][0]._array), None
        if self.counts_steps:
            common = parameters[0][2]["step"]._array if self._common_step is None else self._common_step
            self._common_step, step = common, common + 1
        written = [[state[name] for *_, state in parameters] for name in parts]
        written.insert(0, [p for p, *_ in parameters])
        lists = [[t._array for t in part] for part in (*written, [g for _, g, _ in parameters])]
        made = xp.update_all(kernel, *lists, numbers=numbers(None if step is None else double(xp, step)))
        put_all([*zip(itertools.chain(*written), itertools.chain(*made))])
        if step is not None:
            put_all([(state["step"], step) for *_, state in parameters])

    def _update_together(self, parameters: list, option: dict) -> None:
        """``_update`` of many parameters as one recorded call."""
        for values in parameters:
            for value in (*values[:2], *values[2].values()):
                if isinstance(value, Tensor):
                    value._sync()
        xp = namespace_of(parameters[0][0]._array)
        given = [
            (p._array, g._array, {name: xp.asarray(v._array) for name, v in state.items() if isinstance(v, Tensor)})
            for p, g, state in parameters
        ]
        steps = {id(state.get("step")) for *_, state in given}
        common = given[0][2].pop("step", None) if len(steps) == 1 else None  # counted once for all
        if common is not None:
            for *_, state in given[1:]:
                del state["step"]
        options = {name: value for name, value in option.items() if name not in ("params", "param_names")}
        made = xp.once(type(self).__name__, _updated, (type(self),), options, given, common)
        written = []
        for (p, _, state), (new_p, new) in zip(parameters, made):
            if common is not None:
                new["step"] = made[0][1]["step"]
            for name, array in new.items():
                if name not in state:
                    state[name] = wrap(xp.zeros_like(array))
                written.append((state[name], array))
            written.append((p, new_p))
            if state and p not in self.state:
                self.state[p] = state
        put_all(written)

    def _start(self, group: dict, p: Tensor, state: dict, first=None):
        """The state before the first step; returns the count, for others to share that cannot write to it."""
        xp = namespace_of(p._array)
        dtype = _step_dtype(p)
        shared = first is not None and xp.DEFERS and first.dtype == dtype
        if not shared or first.__class__ is _ndarray or first.place is not getattr(p._array, "place", None):
            first = xp.zeros((), dtype=dtype)
        state["step"] = wrap(first)
        state.update(self.initial(group, p))
        return first

    def _update_checked(self, p: Tensor, g: Tensor, state: dict, option: dict) -> None:
        try:
            self._update(p, g, state, option)
        except ValueError as error:  # NumPy's, of shapes that do not go together
            shapes = {name: list(v.shape) for name, v in state.items() if isinstance(v, Tensor)}
            raise RuntimeError(
                f"{type(self).__name__}: a parameter of shape {list(p.shape)} has a gradient of shape {list(g.shape)} "
                f"and state {shapes} ({error}); was the state made for another model?"
            ) from None

    def _update(self, p: Tensor, g: Tensor, state: dict, option: dict) -> None:
        """The pure formula on raw arrays, and its results written back."""
        for value in (p, g, *state.values()):
            if isinstance(value, Tensor):
                value._sync()  # a compiled step may have it
        xp = namespace_of(p._array)
        arrays = {name: value._array for name, value in state.items() if isinstance(value, Tensor)}
        if xp is not numpy_engine:
            arrays = {name: xp.asarray(a) for name, a in arrays.items()}  # a state loaded from a file
        if self._lockstep and "step" in arrays:
            self._common_step = arrays["step"] if self._common_step is None else self._common_step
            arrays["step"] = self._common_step
        is_complex = p._array.dtype.kind == "c"
        if is_complex:
            self._check_complex()
            new_p, new = self.update(xp, _as_real(xp, p._array), _as_real(xp, g._array), _as_real(xp, arrays), option)
            new_p, new = _as_complex(xp, new_p), {k: _as_complex_like(xp, v, arrays.get(k)) for k, v in new.items()}
        else:
            new_p, new = self.update(xp, p._array, g._array, arrays, option)
        for name, array in new.items():
            old = state.get(name)
            if isinstance(old, Tensor):
                put(old, np.asarray(array) if xp is numpy_engine else array)
            else:
                state[name] = wrap(array)
        put(p, np.asarray(new_p) if xp is numpy_engine else new_p)

    def _check_complex(self) -> None:
        if self.complex_error:
            raise RuntimeError(self.complex_error)

    def _update_differentiable(self, p: Tensor, g: Tensor, state: dict, option: dict) -> None:
        """The same formula on Tensors, recorded: gradients flow through the step."""
        from ..autograd.op import differentiable
        from ..autograd.views import assign, check_writable

        with enable_grad():
            check_writable(p)
            new_p, new = self.update(differentiable, p.clone(), g, dict(state), option)
            state.update(new)
            assign(p, new_p)


def _updated(xp, optimizer, option, parameters, step):
    """The new (p, state) of each (p, g, state); with ``step``, all have made so many steps."""
    common = {} if step is None else {"step": step}
    return [optimizer.update(xp, p, g, {**state, **common}, option) for p, g, state in parameters]


_updated.trains = True  # type: ignore[attr-defined] # see engine/deferred/kinds.py


def scalar(xp, value, like):
    """A number computed from options and step counts, in the dtype of the arrays it will meet."""
    if isinstance(value, (int, float)):
        return value.item() if isinstance(value, np.float64) else value  # NumPy's would make these arrays float64
    return xp.astype(value, dtype=like.dtype)


def is_on(value) -> bool:
    """Is a number that may switch a part of the formula off not zero? A traced one is not: see ``switches``."""
    return not isinstance(value, (int, float)) or value != 0


def double(xp, step):
    """A step count in double precision: ``1 - beta ** step`` needs it."""
    return xp.astype(step, dtype=np.float64)


def add_rows(p: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add to some rows of ``p``, each named once, in place."""
    p[rows] = p[rows] + values


def rows_of(g) -> tuple[Tensor, Tensor]:
    """(which rows a sparse gradient has, each once; their values)."""
    g = g.coalesce()
    if g.sparse_dim() != 1:
        raise RuntimeError(f"a sparse gradient has rows: sparse_dim must be 1, but is {g.sparse_dim()}")
    return g.indices()[0], g.values()


def zeros_like(p: Tensor) -> Tensor:
    return wrap(namespace_of(p._array).zeros_like(p._array))


def _register(table: dict, hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        others = [(k, v) for k, v in table.items() if k != handle.id]
        table.clear()
        table.update([(handle.id, hook), *others])
    return handle


def _plain(p: Tensor, g: Tensor, state: dict) -> bool:
    """May a fused NumPy body write straight into this parameter and its state?"""
    if p._view is not None or g._view is not None:
        return False
    a, b = p._array, g._array
    dtype = a.dtype
    if dtype is not b.dtype or (dtype is not _F32 and dtype is not _F64):
        return False
    if a.__class__ is not _ndarray or b.__class__ is not _ndarray:
        return False
    shape = a.shape
    if b.shape != shape:
        return False
    large = a.size >= SMALL
    if large and not (a.flags.c_contiguous and b.flags.c_contiguous):
        return False
    return not state or _fits(state, dtype, shape, large)


def _came_home(p: Tensor, g: Tensor, state: dict) -> bool:
    """``_plain``, once what a compiled program holds was fetched: as after a compiled forward in an eager loop."""
    held = [t for t in (p, g, *state.values()) if isinstance(t, Tensor) and t._view is not None]
    if not held or any(t._view.base is not None for t in held):
        return False
    for t in held:
        t._come_home()
    return _plain(p, g, state)


def _fits(state: dict, dtype, shape: tuple, large: bool) -> bool:
    """Are all parts of the state, step counts apart, arrays like the parameter, and, if that is large, in C order?"""
    for value in state.values():
        if value is None:
            continue
        if value.__class__ is not Tensor:
            return False
        if value._view is not None:
            value._come_home()  # a compiled step has it
        b = value._array
        if b.__class__ is not _ndarray:
            return False
        if b.ndim and (b.dtype is not dtype or b.shape != shape or (large and not b.flags.c_contiguous)):
            return False
    return True


def _step_dtype(p: Tensor):
    return np.float64 if dtypes.get_default_dtype() is dtypes.float64 else np.float32


def _scalars(group: dict, names):
    for name in names:
        if name in group:
            value = group[name]
            if isinstance(value, (tuple, list)):
                yield from value
            else:
                yield value


def _numbers(group: dict) -> dict:
    def number(value):
        if isinstance(value, (tuple, list)):
            return tuple(number(v) for v in value)
        return float(value) if isinstance(value, Tensor) else value

    return {name: value if name == "params" else number(value) for name, value in group.items()}


def _replaced(value, values):
    return tuple(next(values) for _ in value) if isinstance(value, (tuple, list)) else next(values)


def _split_names(params):
    """(names or None, the tensors) of a list of parameters or of (name, parameter) pairs."""
    with_names = [isinstance(p, tuple) for p in params]
    if not any(with_names):
        return None, params
    if not all(with_names):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [name for name, _ in params], [p for _, p in params]


def _check_parameter(p, defaults) -> None:
    if not isinstance(p, Tensor):
        raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
    if not defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


def _fitted(p: Tensor, value, group: dict, name=None):
    """Loaded state, copied and brought to the parameter's dtype and device; step counts stay float32."""
    if isinstance(value, Tensor):
        xp = namespace_of(p._array)
        value._sync()
        array = xp.asarray(value._array)
        if name != "step" and p.dtype.is_floating_point:
            array = xp.astype(array, dtype=p._array.dtype)
        return wrap(np.array(array) if xp is numpy_engine else array)
    if isinstance(value, dict):
        return {k: _fitted(p, v, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(p, v, group) for v in value)
    return value


def _as_real(xp, value):
    """Complex arrays as real ones with a last axis of two, as PyTorch's updates see them."""
    if isinstance(value, dict):
        return {k: _as_real(xp, v) for k, v in value.items()}
    return xp.stack([xp.real(value), xp.imag(value)], axis=-1) if value.dtype.kind == "c" else value


def _as_complex(xp, value):
    return value[..., 0] + 1j * value[..., 1]


def _as_complex_like(xp, value, old):
    made_complex = old.dtype.kind == "c" if old is not None else value.ndim > 0
    return _as_complex(xp, value) if made_complex else value
