"""The state of a model and its optimizers by the model's own names, however it is wrapped and cut."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ...nn.module import Module
from ...nn.parallel import DataParallel, DistributedDataParallel
from ...tensor import Tensor
from .. import collectives, objects, world
from ..fsdp._flat_param import FLAT, FlatParameter
from ..fsdp.api import StateDictType
from ..fsdp.fully_sharded_data_parallel import FullyShardedDataParallel
from ..tensor.dtensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def __dir__():
    return __all__


@dataclass
class StateDictOptions:
    """How states are given and taken.

    ``full_state_dict``: whole tensors, with ``cpu_offload`` in the first process only. ``ignore_frozen_params``:
    without parameters that are not trained. ``broadcast_from_rank0``: the first process has the whole state to set.
    ``flatten_optimizer_state_dict``: names with dots in place of dicts, which goes into any number of optimizers.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self):
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


def get_state_dict(model: Module, optimizers, *, submodules=None, options: StateDictOptions | None = None) -> tuple:
    """(the model's state, the optimizers' state)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module, optimizers, *, model_state_dict: dict, optim_state_dict: dict,
    options: StateDictOptions | None = None,
):  # fmt: skip
    """Give a model and its optimizers the states that ``get_state_dict`` gave, here or on another mesh."""
    missed = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return missed


def get_model_state_dict(model: Module, *, submodules=None, options: StateDictOptions | None = None) -> dict:
    """The model's state, under the names that it has without wrappers."""
    options = options or StateDictOptions()
    with _in_parts(model):
        found = {_plain(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        frozen = {name for p, names in _names(model).items() if not p.requires_grad for name in names}
        found = {name: value for name, value in found.items() if name not in frozen}
    if submodules:
        found = _of_submodules(model, found, submodules, options.keep_submodule_prefixes)
    return _given(found, options)


def set_model_state_dict(model: Module, model_state_dict: dict, *, options: StateDictOptions | None = None):
    """Load a state that ``get_model_state_dict`` gave; whole tensors are cut as the model's are."""
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        model_state_dict = _from_first(model_state_dict)
    with _in_parts(model):
        mine = model.state_dict()
        given = {}
        names = {_plain(model, name): name for name in mine}
        for name, value in model_state_dict.items():
            own = names.get(name, name)
            given[own] = _laid_as(value, mine.get(own))
        return model.load_state_dict(given, strict=options.strict)


def get_optimizer_state_dict(
    model: Module, optimizers, *, submodules=None, options: StateDictOptions | None = None
) -> dict:
    """The optimizers' state, by the names of parameters; what an optimizer only makes in its first step is made."""
    options = options or StateDictOptions()
    names = _names(model)
    found: dict = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        for group in optimizer.param_groups:
            kept = [p for p in group["params"] if p.requires_grad or not options.ignore_frozen_params]
            inside = [name for p in kept for name in names[p]]
            for p in kept:
                if p in optimizer.state:
                    found["state"].update(zip(names[p], _entries(p, optimizer.state[p])))
            found["param_groups"].append(
                {**{key: value for key, value in group.items() if key != "params"}, "params": inside}
            )
    if submodules:
        every = dict.fromkeys(name for own in names.values() for name in own)
        kept_names = set(_of_submodules(model, every, submodules, True))
        found["state"] = {name: value for name, value in found["state"].items() if name in kept_names}
        for group in found["param_groups"]:
            group["params"] = [name for name in group["params"] if name in kept_names]
    found["state"] = {name: _given(entry, options) for name, entry in found["state"].items()}
    if options.full_state_dict and options.cpu_offload and not _is_first():
        return {}
    return _flat(found) if options.flatten_optimizer_state_dict else found


def set_optimizer_state_dict(
    model: Module, optimizers, optim_state_dict: dict, *, options: StateDictOptions | None = None
) -> None:
    """Load a state that ``get_optimizer_state_dict`` gave."""
    options = options or StateDictOptions()
    names = _names(model)
    if options.broadcast_from_rank0:
        optim_state_dict = _from_first(optim_state_dict)
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        given = _unflat(optimizer, names, optim_state_dict) if "state" not in optim_state_dict else optim_state_dict
        optimizer.load_state_dict(_own_state_dict(optimizer, names, given, options.strict))


def _own_state_dict(optimizer, names: dict, given: dict, strict: bool) -> dict:
    """An optimizer's own kind of state dict, of the entries that are for its parameters."""
    mine = optimizer.state_dict()
    by_first = {tuple(sorted(g["params"])): g for g in given["param_groups"]}
    groups, states = [], {}
    for group, own in zip(optimizer.param_groups, mine["param_groups"]):
        inside = [name for p in group["params"] for name in names[p]]
        found = by_first.get(tuple(sorted(inside)))
        if found is None:
            found = next((g for g in given["param_groups"] if set(g["params"]) & set(inside)), None)
        if found is None:
            if strict:
                raise ValueError("loaded state dict has a different number of parameter groups")
            found = own
        groups.append({**own, **{k: v for k, v in found.items() if k != "params"}, "params": own["params"]})
        for p, number in zip(group["params"], own["params"]):
            lacking = [name for name in names[p] if name not in given["state"]]
            if not lacking:
                entry, like = _entry(p, [given["state"][name] for name in names[p]]), optimizer.state.get(p, {})
                states[number] = {k: _laid_as(v, like.get(k, p)) for k, v in entry.items()}
            elif number in mine["state"]:
                if strict and p.requires_grad:
                    raise RuntimeError(f"Missing optimizer state of parameter {lacking[0]}")
                states[number] = mine["state"][number]
    return {"state": states, "param_groups": groups}


def _init_optim_state(optimizer) -> None:
    """Let an optimizer make its state: a step by nothing, with a rate of nothing."""
    if optimizer.state:
        return
    from ... import no_grad, zeros_like

    params = [p for group in optimizer.param_groups for p in group["params"]]
    grads, rates = [p.grad for p in params], [group.get("lr") for group in optimizer.param_groups]
    try:
        with no_grad():
            for p in params:
                p.grad = zeros_like(p) if p.requires_grad else None
            for group in optimizer.param_groups:
                if "lr" in group:
                    group["lr"] = zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
            optimizer.step(closure=None)
    finally:
        for p, grad in zip(params, grads):
            p.grad = grad
        for group, rate in zip(optimizer.param_groups, rates):
            if rate is not None:
                group["lr"] = rate


# -- names -------------------------------------------------------------------------------------------------------------


def _plain(model: Module, name: str) -> str:
    """A name without what wrappers add to it."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    path, kept, here = name.split("."), [], model
    for i, part in enumerate(path):
        if isinstance(here, (DistributedDataParallel, DataParallel)) and part == "module":
            here = here.module
            continue
        kept.append(part)
        here = _child(here, part)
        if here is None:
            return ".".join([*kept, *path[i + 1 :]])
    return ".".join(kept)


def _child(module, name: str):
    while True:  # through wrappers whose names are already gone
        modules = getattr(module, "_modules", {})
        inner = next((modules[w[:-1]] for w in _WRAPPERS if w[:-1] in modules), None)
        if inner is None:
            return modules.get(name)
        module = inner


def _names(model: Module) -> dict:
    """The plain name of each parameter; of a flat one, those of all that are in it."""
    found = {}
    for name, p in model.named_parameters():
        plain = _plain(model, name)
        prefix = plain.removesuffix(FLAT)
        found[p] = [_plain(model, prefix + inner) for inner in p._fqns] if isinstance(p, FlatParameter) else [plain]
    return found


def _entries(p, entry: dict) -> list[dict]:
    """What an optimizer keeps for a parameter, for each of its names."""
    return p._unit.entries(entry) if isinstance(p, FlatParameter) else [dict(entry)]


def _entry(p, entries: list[dict]) -> dict:
    """What ``_entries`` made, back."""
    return p._unit.entry(entries) if isinstance(p, FlatParameter) else entries[0]


def _of_submodules(model: Module, found: dict, submodules, prefixed: bool) -> dict:
    made = {}
    for name, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = _plain(model, name) + "."
        for key, value in found.items():
            if key.startswith(prefix):
                made[key if prefixed else key[len(prefix) :]] = value
    return made


# -- values ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _in_parts(model: Module):
    """Inside, the older FSDP gives its state in parts as well."""
    with contextlib.ExitStack() as stack:
        if FullyShardedDataParallel.fsdp_modules(model):
            stack.enter_context(FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT))
        yield


def _given(found: dict, options: StateDictOptions) -> dict:
    """Values as the options want them: whole, on the CPU, only in the first process."""
    made = {}
    for name, value in found.items():
        if isinstance(value, Tensor):
            value = value.detach()
            if options.full_state_dict and isinstance(value, DTensor):
                value = value.full_tensor()
            if options.cpu_offload and not isinstance(value, DTensor):
                value = value.cpu()
        made[name] = value
    return {} if options.full_state_dict and options.cpu_offload and not _is_first() else made


def _is_first() -> bool:
    return not world.is_initialized() or world.get_rank() == 0


def _laid_as(value, like):
    """A whole tensor cut as ``like`` is."""
    whole = isinstance(value, Tensor) and not isinstance(value, DTensor)
    if whole and isinstance(like, DTensor) and value.shape == like.shape:
        return distribute_tensor(value.detach(), like.device_mesh, like.placements, src_data_rank=None)
    return value


def _from_first(state):
    """The first process's state, in all: tensors one by one, so that none needs room for two copies."""
    if not world.is_initialized() or world.get_world_size() == 1:
        return state
    from ... import ops

    first = world.get_rank() == 0
    outline = [_outline(state) if first else None]
    objects.broadcast_object_list(outline, src=0)

    def fill(shape, mine):
        if isinstance(shape, dict):
            return {key: fill(entry, mine[key] if first else None) for key, entry in shape.items()}
        if isinstance(shape, list):
            return [fill(entry, mine[i] if first else None) for i, entry in enumerate(shape)]
        if not isinstance(shape, _Outline):
            return shape
        value = mine.detach().cpu().clone() if first else ops.empty(shape.shape, dtype=shape.dtype)
        collectives.broadcast(value, src=0)
        return value

    return fill(outline[0], state)


@dataclass
class _Outline:
    shape: tuple
    dtype: object


def _outline(state):
    if isinstance(state, dict):
        return {key: _outline(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_outline(value) for value in state]
    return _Outline(tuple(state.shape), state.dtype) if isinstance(state, Tensor) else state


def _listed(optimizers) -> list:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _flat(found: dict) -> dict:
    made = {f"state.{name}.{key}": v for name, entry in found["state"].items() for key, v in entry.items()}
    for group in found["param_groups"]:
        for name in group["params"]:
            made.update({f"param_groups.{name}.{key}": v for key, v in group.items() if key != "params"})
    return made


def _unflat(optimizer, names: dict, flat: dict) -> dict:
    state, groups = {}, []
    for group in optimizer.param_groups:
        inside = [name for p in group["params"] for name in names[p]]
        for p in group["params"]:
            keys = list(optimizer.state.get(p, {}))
            for name in names[p]:
                entry = {key: flat[f"state.{name}.{key}"] for key in keys if f"state.{name}.{key}" in flat}
                if entry:
                    state[name] = entry
        options = {
            key: flat[f"param_groups.{name}.{key}"]
            for name in inside
            for key in group
            if f"param_groups.{name}.{key}" in flat
        }
        groups.append({**options, "params": inside})
    return {"state": state, "param_groups": groups}
