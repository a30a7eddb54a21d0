"""``FullyShardedDataParallel``: the older face of ``fully_shard``, a module that wraps another."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ...autograd.mode import no_grad
from ...compat import missing as _missing
from ...errors import warn_user
from ...nn.module import Module
from ...nn.parameter import Parameter
from .. import world
from ..device_mesh import DeviceMesh, current_mesh
from ..tensor.dtensor import DTensor, distribute_tensor
from ..utils import same_values
from ._fully_shard import FSDPModule, MixedPrecisionPolicy, fully_shard, put_at
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

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
    "MixedPrecision", "OptimStateKeyType", "ShardedStateDictConfig", "ShardingStrategy", "StateDictType",
]  # fmt: skip

__getattr__ = _missing(__name__)
_INNER = "_fsdp_wrapped_module"


class FullyShardedDataParallel(Module):
    """Wraps ``module``; its parameters, gradients and optimizer state are cut over the processes.

    Differs from PyTorch: parameters keep their own names and shapes, as with ``use_orig_params=True``.
    """

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
        if sharding_strategy is ShardingStrategy.NO_SHARD:
            mesh = _replicas(mesh)
        if sync_module_states:
            _broadcast(module, mesh)
        precision = mixed_precision or MixedPrecision()
        policy = MixedPrecisionPolicy(precision.param_dtype, precision.reduce_dtype)
        ignored = {p for m in ignored_modules or () for p in m.parameters()} | set(ignored_states or ())
        frees = sharding_strategy not in (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
        self._settings = settings(StateDictType.FULL_STATE_DICT)
        self.__dict__["_mesh"] = mesh
        options = {"mesh": mesh, "reshard_after_forward": frees, "mp_policy": policy, "ignored_params": ignored}
        for part in _chosen(module, auto_wrap_policy):
            if part is not module and not isinstance(part, FSDPModule):
                fully_shard(part, **options)
        self.add_module(_INNER, module)
        if not isinstance(module, FSDPModule):
            fully_shard(module, **options)

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
        return self._modules[_INNER](*args, **kwargs)

    def named_parameters(self, *args, **kwargs):
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{_INNER}.", ""), p

    def named_buffers(self, *args, **kwargs):
        for name, b in super().named_buffers(*args, **kwargs):
            yield name.replace(f"{_INNER}.", ""), b

    def state_dict(self, *args, **kwargs):
        """Whole tensors, or with ``SHARDED_STATE_DICT`` the parts, under the wrapped module's names."""
        found = self._modules[_INNER].state_dict(*args, **kwargs)
        if self._settings.state_dict_type is StateDictType.FULL_STATE_DICT:
            for name, value in found.items():
                if isinstance(value, DTensor):
                    found[name] = value.full_tensor()
            if getattr(self._settings.state_dict_config, "rank0_only", False) and world.get_rank():
                found.clear()
        return found

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        return self.module.load_state_dict(_like(self.module, state_dict), strict)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0):
        """Scale gradients so that their norm over all processes is at most ``max_norm``; returns that norm."""
        from ...nn.utils import clip_grad_norm_

        norm = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients add up in each process inside, and are reduced by the next backward outside."""
        units = list(self.module._units(True))
        outer = [unit.syncs for unit in units]
        for unit in units:
            unit.syncs = False
        try:
            yield
        finally:
            for unit, syncs in zip(units, outer):
                unit.syncs = syncs

    @staticmethod
    def fsdp_modules(module, root_only: bool = False) -> list:
        return [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]

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
        outer = FullyShardedDataParallel.fsdp_modules(module)
        units = {id(unit): unit for m in outer for unit in m.module._units(recurse)}.values()
        parts = [(sites, p) for unit in units for sites, p, *_ in unit.places]
        wholes = [_whole(p, offload_to_cpu, with_grads) for _, p in parts]  # by all processes
        if rank0_only and world.get_rank():
            parts, wholes = [], []
        for (sites, _), whole in zip(parts, wholes):
            put_at(sites, whole)
        try:
            yield
        finally:
            for (sites, p), whole in zip(parts, wholes):
                put_at(sites, p)
                if writeback:
                    _write(p, whole)

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
    def get_state_dict_type(module) -> StateDictSettings:
        """What ``state_dict`` and ``optim_state_dict`` give."""
        return next(iter(FullyShardedDataParallel.fsdp_modules(module)))._settings


def _replicas(mesh: DeviceMesh) -> DeviceMesh:
    """The same ranks with all parameters in each: many replicas, each cut in one part."""
    warn_user(
        "The `NO_SHARD` sharding strategy is deprecated. If having issues, please use `DistributedDataParallel` "
        "instead.",
        FutureWarning,
    )
    return DeviceMesh(mesh.device_type, mesh._ranks.reshape(-1, 1), mesh_dim_names=("replicate", "shard"))


def _whole(p, offload_to_cpu: bool, with_grads: bool) -> Parameter:
    made = Parameter(p.detach().full_tensor().clone(), p.requires_grad)
    if with_grads and p.grad is not None:
        made.grad = p.grad.full_tensor()
    return made.cpu() if offload_to_cpu else made  # type: ignore[return-value]  # a Parameter on the CPU is itself


def _write(p, whole) -> None:
    with no_grad():
        p.copy_(distribute_tensor(whole.detach(), p.device_mesh, p.placements, src_data_rank=None))


def _chosen(module, policy) -> list:
    """The modules inside that a policy makes units of their own, inner ones first."""
    if policy is None:
        return []
    found = []
    for part in reversed(list(module.modules())):
        size = sum(p.numel() for p in part.parameters())
        if callable(getattr(policy, "chooses", None)):
            chosen = policy.chooses(part)
        else:
            chosen = policy(module=part, recurse=False, nonwrapped_numel=size)
        if chosen:
            found.append(part)
    return found


def _broadcast(module, mesh) -> None:
    """The first process's values for all."""
    for group in mesh.get_all_groups():
        same_values([*module.parameters(), *module.buffers()], group, 0)


def _like(module, state_dict: dict) -> dict:
    """Whole tensors cut as the module's parameters are."""
    mine = module.state_dict()
    made = {}
    for name, value in state_dict.items():
        if isinstance(mine.get(name), DTensor) and not isinstance(value, DTensor):
            value = distribute_tensor(value.detach(), mine[name].device_mesh, mine[name].placements, src_data_rank=None)
        made[name] = value
    return made
