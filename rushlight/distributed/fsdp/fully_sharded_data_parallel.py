"""``FullyShardedDataParallel``: the older face of ``fully_shard``, a module that wraps another."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING

from ...compat import missing as _missing
from ...dtypes import float32
from ...errors import warn_user
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...nn.saving import positional
from ...tensor import Tensor
from .. import world
from ..device_mesh import DeviceMesh, current_mesh
from ..tensor.dtensor import DTensor, distribute_tensor
from ..utils import same_values
from ._flat_param import FLAT, FlatParameter, FlatUnit
from ._fully_shard import MixedPrecisionPolicy, Unit, _cast, _is_local, _map, cut_rows, parameters_of, units_of
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
    settings,
)
from .wrap import chosen

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FlatParameter", "FullOptimStateDictConfig", "FullStateDictConfig",
    "FullyShardedDataParallel", "MixedPrecision", "OptimStateKeyType", "ShardedStateDictConfig", "ShardingStrategy",
    "StateDictType",
]  # fmt: skip

__getattr__ = _missing(__name__)
_INNER = "_fsdp_wrapped_module"
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(Module):
    """Wraps ``module``; its parameters, gradients and optimizer state are cut over the processes.

    A wrapper is a unit: its parameters, but those of wrappers inside, are gathered and reduced together.
    They are one flat parameter, of which every process has an equal part; with ``use_orig_params`` each is itself, and
    a DTensor.
    Differs from PyTorch: in a mesh of one process's devices it is as with ``use_orig_params``.
    """

    _fsdp_unit: Unit

    def __init__(
        self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None,
        backward_prefetch=None, mixed_precision=None, ignored_modules=None, param_init_fn=None, device_id=None,
        sync_module_states=False, forward_prefetch=False, limit_all_gathers=True, use_orig_params=False,
        ignored_states=None, device_mesh=None,
    ):  # fmt: skip
        super().__init__()
        mesh = device_mesh
        if mesh is None:
            mesh = current_mesh() if process_group is None else DeviceMesh.from_group(process_group, "cpu")
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if self.sharding_strategy is ShardingStrategy.NO_SHARD:
            mesh = _replicas(mesh)
        self.mixed_precision = mixed_precision or MixedPrecision()
        self.__dict__["_mesh"] = mesh
        self._settings = settings(StateDictType.FULL_STATE_DICT)
        self._is_root, self._is_summoned = True, False
        if auto_wrap_policy is not None:
            options = {
                "sharding_strategy": sharding_strategy, "mixed_precision": mixed_precision, "device_mesh": mesh,
                "ignored_modules": ignored_modules, "ignored_states": ignored_states,
                "use_orig_params": use_orig_params, "param_init_fn": param_init_fn,
                "sync_module_states": sync_module_states,
            }  # fmt: skip
            _wrap_inside(module, auto_wrap_policy, options)
        self.add_module(_INNER, module)
        self.register_load_state_dict_post_hook(_loaded)
        for inner in self.fsdp_modules(module):
            inner._follow()
        _fill(module, param_init_fn, ignored_modules)
        ignored = {p for m in ignored_modules or () for p in m.parameters()} | set(ignored_states or ())
        if sync_module_states:
            _broadcast(module, mesh, ignored)
        frees = "SHARD_GRAD_OP" not in self.sharding_strategy.name and "ZERO2" not in self.sharding_strategy.name
        given = self.mixed_precision
        policy = MixedPrecisionPolicy(
            given.param_dtype, given.reduce_dtype, cast_forward_inputs=given.cast_root_forward_inputs
        )
        keeps = use_orig_params or (_is_local(mesh) and mesh.size() > 1)
        unit = (Unit if keeps else FlatUnit)([module], mesh, frees, None, policy, ignored)
        unit.unused_too = True  # its parameters are in one row, in PyTorch also with use_orig_params
        self.__dict__["_fsdp_unit"] = unit

    def _follow(self) -> None:
        """There is a wrapper around this one now."""
        self._is_root, unit = False, self._fsdp_unit
        cast = self.mixed_precision.cast_forward_inputs
        unit.policy = dataclasses.replace(unit.policy, cast_forward_inputs=cast)

    @property
    def module(self):
        return self._modules[_INNER]

    if not TYPE_CHECKING:  # as in Module: what the annotations say is what checkers are to see

        def __getattr__(self, name: str):
            try:
                return super().__getattr__(name)
            except AttributeError:
                if _INNER not in self.__dict__.get("_modules", ()):
                    raise
            return getattr(self._modules[_INNER], name)

    def __getitem__(self, key: int):
        """Of a wrapped ``Sequential``: the module at that place."""
        return self.module[key]

    def forward(self, *args, **kwargs):
        return self._fsdp_unit.around(self._modules[_INNER], args, kwargs)

    def check_is_root(self) -> bool:
        """Is no other wrapper around this one?"""
        return self._is_root

    def named_parameters(self, *args, **kwargs):
        """Inside ``summon_full_params`` under the names without wrappers."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield _plain(name) if self._is_summoned else name, p

    def named_buffers(self, *args, **kwargs):
        """Inside ``summon_full_params`` under the names without wrappers."""
        for name, b in super().named_buffers(*args, **kwargs):
            yield _plain(name) if self._is_summoned else name, b

    def apply(self, fn):
        """``fn`` sees whole parameters, and what it writes is kept."""
        with self.summon_full_params(self, recurse=False):
            return super().apply(fn)

    def state_dict(self, *args, destination=None, prefix: str = "", keep_vars: bool = False):
        """Whole tensors, or with ``SHARDED_STATE_DICT`` the parts, under the wrapped module's names."""
        if args:
            destination, prefix, keep_vars = positional(args, destination, prefix, keep_vars)
        before = set(destination or ())
        kind, config, flat = self._settings.state_dict_type, self._settings.state_dict_config, self._flat_unit()
        with contextlib.nullcontext() if flat is None else _by_names(flat, kind):
            found = self.module.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        if flat is not None and prefix + FLAT in found:
            found[prefix + FLAT] = flat.local(found[prefix + FLAT])
        for name in [name for name in found if name not in before]:
            if kind is StateDictType.FULL_STATE_DICT and isinstance(found[name], DTensor):
                found[name] = found[name].full_tensor()
            if config.offload_to_cpu and not isinstance(found[name], DTensor):
                found[name] = found[name].cpu()
            if getattr(config, "rank0_only", False) and world.get_rank():
                del found[name]
        return found

    def _flat_unit(self) -> FlatUnit | None:
        """The unit, if its parameters are one now."""
        unit = self._fsdp_unit
        return unit if isinstance(unit, FlatUnit) and unit.places and not unit.is_open else None

    def _load_from_state_dict(self, state_dict, prefix, *args) -> None:
        """Names as ``state_dict`` gives them become those of the modules inside; tensors are made whole, or cut."""
        flat = self._flat_unit()
        if flat is not None and prefix + FLAT in state_dict:
            state_dict[prefix + FLAT] = flat.padded(state_dict[prefix + FLAT])
        elif flat is not None:  # until _loaded
            flat.open(_wholes(flat))
        mine = {_plain(name): p for name, p in self.module.named_parameters(remove_duplicate=False)}
        for key in [key for key in state_dict if key.startswith(prefix)]:
            name = key[len(prefix) :]
            value = _laid_as(state_dict.pop(key), mine.get(_plain(name)))
            state_dict[f"{prefix}{_INNER}.{name.removeprefix(f'{_INNER}.')}"] = value

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0):
        """Scale gradients so that their norm over all processes is at most ``max_norm``; returns that norm."""
        from ...nn.utils import clip_grads_with_norm_, get_total_norm

        if not self._is_root:
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP instance")
        parameters = list(self.parameters())
        grads = [
            p._unit.local(p.grad) if isinstance(p, FlatParameter) else p.grad for p in parameters if p.grad is not None
        ]
        cut = [g for g in grads if isinstance(g, DTensor)]
        norm = get_total_norm(cut, norm_type)
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()
        if whole := [g for g in grads if not isinstance(g, DTensor)]:  # of parameters that are ignored
            norm = get_total_norm([norm, *whole], norm_type)
        clip_grads_with_norm_(parameters, max_norm, norm)
        return norm

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients add up in each process inside, and are reduced by the next backward outside."""
        if not self._is_root:
            raise RuntimeError(
                "`no_sync()` on inner FSDP instances is not supported. Please call `no_sync()` on root FSDP module."
            )
        units = units_of(self.modules())
        outer = [unit.syncs for unit in units]
        for unit in units:
            unit.syncs = False
        try:
            yield
        finally:
            for unit, syncs in zip(units, outer):
                unit.syncs = syncs

    def register_comm_hook(self, state: object, hook) -> None:
        """Have ``hook(state, gradients, part)`` reduce the row of each unit's gradients into this process's part of it.

        With ``NO_SHARD`` it is ``hook(state, gradients)``, which changes them. Nothing is divided before or after.
        Differs from PyTorch: with ``use_orig_params`` the row is what the first process has of each parameter, then
        what the next has.
        """
        if not self._is_root:
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        for wrapper in self.fsdp_modules(self):
            if wrapper.sharding_strategy in _HYBRID:
                raise AssertionError(f"Communication hook is not supported for hybrid strategies: {wrapper}")
            if wrapper._fsdp_unit.sends is not None:
                raise AssertionError("A communication hook is already registered")
        if not callable(hook):
            raise ValueError(f"The communication hook must be callable but got {hook}")
        for unit in units_of(self.modules()):
            unit.sends = functools.partial(hook, state)

    @staticmethod
    def fsdp_modules(module, root_only: bool = False) -> list:
        """The wrappers in ``module``, or those that are in no other."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return [m for m in found if m._is_root] if root_only else found

    @staticmethod
    def set_state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """What ``state_dict`` is to give from now on; returns what it was to give."""
        before = None
        for m in FullyShardedDataParallel.fsdp_modules(module):
            before = m._settings
            m._settings = settings(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """``set_state_dict_type`` for a ``with`` block."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        before = [m._settings for m in found]
        configs = state_dict_config, optim_state_dict_config
        FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, *configs)
        try:
            yield
        finally:
            for m, settings in zip(found, before):
                m._settings = settings

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False,
        with_grads: bool = False,
    ):  # fmt: skip
        """Inside, parameters are whole, in all processes or the first; with ``writeback`` what is written is kept."""
        if rank0_only and writeback:
            raise NotImplementedError("summon_full_params: rank0_only=True needs writeback=False")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not recurse:
            wrappers = [m for m in wrappers if m is module]
        units = [unit for unit in units_of(wrappers) if not getattr(unit, "is_open", False)]
        wholes = [_wholes(unit, offload_to_cpu, with_grads) for unit in units]  # by all processes
        if rank0_only and world.get_rank():
            units, wholes = [], []
        for unit, whole in zip(units, wholes):
            unit.open(whole)
        outside = [m for m in wrappers if not m._is_summoned]
        for m in outside:
            m._is_summoned = True
        try:
            yield
        finally:
            for m in outside:
                m._is_summoned = False
            for unit in units:
                whole = unit.close()
                if writeback:
                    unit.write(whole)

    @staticmethod
    def optim_state_dict(model, optim, optim_state_dict=None, group=None) -> dict:
        """The optimizer's state by the names of parameters, whole or in parts as ``state_dict_type`` says."""
        from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        if optim_state_dict is not None:
            raise NotImplementedError("optim_state_dict: only an optimizer's own state; leave optim_state_dict away")
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        is_whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        found = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=is_whole))
        rank0_only = is_whole and getattr(settings.optim_state_dict_config, "rank0_only", False)
        return {} if rank0_only and world.get_rank() else found

    @staticmethod
    def optim_state_dict_to_load(
        model, optim, optim_state_dict: dict, is_named_optimizer=False, load_directly=False, group=None
    ) -> dict:
        """What ``optim.load_state_dict`` takes, of what ``optim_state_dict`` gave, whole or in parts."""
        from ..checkpoint.state_dict import _names, _own_state_dict

        found = _own_state_dict(optim, _names(model), optim_state_dict, True)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict, optim_state_key_type, model, optim_input=None, optim=None
    ) -> dict:
        """The same state by names of parameters or, with ``PARAM_ID``, by their numbers in the optimizer."""
        from ..checkpoint.state_dict import _names

        names = _names(model)
        listed = model.parameters() if optim is None else [p for group in optim.param_groups for p in group["params"]]
        pairs = [(name, number) for number, name in enumerate(name for p in listed for name in names[p])]
        to_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        keys = {number: name for name, number in pairs} if to_name else dict(pairs)
        groups = [{**g, "params": [keys.get(k, k) for k in g["params"]]} for g in optim_state_dict["param_groups"]]
        return {"state": {keys.get(k, k): v for k, v in optim_state_dict["state"].items()}, "param_groups": groups}

    @staticmethod
    def full_optim_state_dict(model, optim, optim_input=None, rank0_only: bool = True, group=None) -> dict:
        """``optim_state_dict`` with whole tensors, in the first process only."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def sharded_optim_state_dict(model, optim, group=None) -> dict:
        """``optim_state_dict`` with parts."""
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict: dict, model, optim_input=None, optim=None) -> dict:
        """What ``optim.load_state_dict`` takes, of what ``full_optim_state_dict`` gave."""
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, full_optim_state_dict)

    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict: dict, model, optim) -> dict:
        """What ``optim.load_state_dict`` takes, of what ``sharded_optim_state_dict`` gave."""
        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, sharded_optim_state_dict)

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: dict | None, model, optim_input=None, optim=None, group=None
    ) -> dict:
        """``shard_full_optim_state_dict`` of what only the first process has."""
        from ..checkpoint.state_dict import _from_first

        return FullyShardedDataParallel.optim_state_dict_to_load(model, optim, _from_first(full_optim_state_dict))

    @staticmethod
    def get_state_dict_type(module) -> StateDictSettings:
        """What ``state_dict`` and ``optim_state_dict`` give."""
        return next(iter(FullyShardedDataParallel.fsdp_modules(module)))._settings


def _replicas(mesh: DeviceMesh) -> DeviceMesh:
    """The same ranks with all parameters in each: many replicas, each cut in one part."""
    if mesh.mesh_dim_names == ("replicate", "shard") and mesh.size(1) == 1:  # of the wrapper around this one
        return mesh
    warn_user(
        "The `NO_SHARD` sharding strategy is deprecated. If having issues, please use `DistributedDataParallel` "
        "instead.",
        FutureWarning,
    )
    return DeviceMesh(mesh.device_type, mesh._ranks.reshape(-1, 1), mesh_dim_names=("replicate", "shard"))


def _wholes(unit: Unit, offload_to_cpu: bool = False, with_grads: bool = False) -> list:
    """A unit's parameters, whole."""
    grads = unit.whole_gradients() if with_grads else itertools.repeat(None)
    found = []
    for t, is_trained, grad in zip(unit.wholes(), unit.trained(), grads):
        found.append(Parameter(t.cpu() if offload_to_cpu else t, is_trained))
        found[-1].grad = grad
    return found


@contextlib.contextmanager
def _by_names(unit: FlatUnit, kind: StateDictType):
    """Inside, a flat parameter's values stand under the parameters' names, whole or cut along their rows."""
    if kind is StateDictType.LOCAL_STATE_DICT:
        yield
        return
    wholes = _wholes(unit)
    if kind is StateDictType.SHARDED_STATE_DICT:
        wholes = [Parameter(cut_rows(t, unit.mesh), t.requires_grad) for t in wholes]
    unit.open(wholes)
    try:
        yield
    finally:
        unit.close()


def _wrap_inside(module, policy, options: dict) -> None:
    """Wrap the modules inside that a policy chooses; with mixed precision, also those that are to have none."""
    ignored = {part for m in options["ignored_modules"] or () for part in m.modules()}
    for name, part in module.named_modules():
        if isinstance(part, FullyShardedDataParallel):
            raise ValueError(
                f"FSDP auto wrapping requires modules to not already have FSDP applied but found {name} in\n{module}"
            )
    wanted = {m: {**options, **own} for m, own in chosen(module, policy, ignored).items()}
    precision = options["mixed_precision"]
    exempt = tuple(precision._module_classes_to_ignore) if precision is not None else ()
    for part in [m for m in module.modules() if isinstance(m, exempt) and m is not module]:
        wanted[part] = {**options, **wanted.get(part, {}), "mixed_precision": None}
        _keep_precision(part)
    sites: dict = {}
    for parent in module.modules():
        for name, child in parent.named_children():
            sites.setdefault(child, []).append((parent, name))
    for part, own in wanted.items():
        wrapper = FullyShardedDataParallel(part, **own)
        for parent, name in sites[part]:
            parent.add_module(name, wrapper)


def _keep_precision(module) -> None:
    """Have a module inside of others with mixed precision compute in its own; its output is as its inputs were."""
    came: list = []

    def enter(module, args):
        came.append(next((a.dtype for a in args if isinstance(a, Tensor) and a.is_floating_point()), None))
        return _map(args, lambda t: _cast(t, float32))

    def leave(module, args, output):
        dtype = came.pop()
        return output if dtype is None else _map(output, lambda t: _cast(t, dtype))

    module.register_forward_pre_hook(enter, prepend=True)
    module.register_forward_hook(leave, always_call=True)


def _own_modules(module, left=()) -> list:
    """``module`` and what is inside, breadth first; but not what other wrappers have, and what is ``left`` alone."""
    found = [module]
    for part in found:
        inside = [m for m in part.children() if not isinstance(m, FullyShardedDataParallel) and m not in left]
        found += [m for m in dict.fromkeys(inside) if m not in found]
    return found


def _fill(module, init, ignored_modules) -> None:
    """Give values to what is on ``meta``: by ``init(module)``, or by ``reset_parameters()`` where there is anything."""
    modules = _own_modules(module, {part for m in ignored_modules or () for part in m.modules()})
    if not any(t.is_meta for part in modules for t in _own_tensors(part)):
        return
    for part in modules:
        if init is not None:
            init(part)
        elif _own_tensors(part):
            part.to_empty(device="cpu", recurse=False)
            part.reset_parameters()


def _own_tensors(module) -> list[Tensor]:
    return [*module.parameters(recurse=False), *module.buffers(recurse=False)]


def _broadcast(module, mesh, ignored: set) -> None:
    """The first process's values for all."""
    parameters = [p for p, _ in parameters_of([module], ignored)]
    buffers = [b for part in _own_modules(module) for b in part.buffers(recurse=False)]
    for group in mesh.get_all_groups():
        same_values([*parameters, *buffers], group, 0)


def _plain(name: str) -> str:
    """A name without wrappers."""
    return name.replace(f"{_INNER}.", "")


def _loaded(module, report) -> None:
    """Keep what was loaded; say keys that are missing or not expected under the names that states have."""
    unit = module._fsdp_unit
    if isinstance(unit, FlatUnit) and unit.is_open and not module._is_summoned:
        unit.write(unit.close())
    for keys in report:
        keys[:] = [_plain(key) for key in keys]


def _laid_as(value, mine):
    """A tensor whole or cut, as a parameter is."""
    if isinstance(mine, FlatParameter):
        return value
    if isinstance(value, DTensor) and mine is not None and not isinstance(mine, DTensor):
        return value.full_tensor()
    if isinstance(mine, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), mine.device_mesh, mine.placements, src_data_rank=None)
    return value
