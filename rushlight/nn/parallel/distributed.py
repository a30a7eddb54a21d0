"""``DistributedDataParallel``: the same module in every process, its gradients averaged while backward still runs."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect

from ... import distributed as dist
from ... import dtypes
from ...autograd.mode import is_grad_enabled
from ...distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from ...distributed.algorithms.join import Join, Joinable, JoinHook, _JoinConfig
from ...distributed.utils import _verify_param_shape_across_processes, same_values
from ...engine import SPREAD
from ...errors import warn_user
from ...futures import Future
from ...ops.public import PUBLIC
from ...tensor import Tensor
from ..layers.batchnorm import SyncBatchNorm
from ..layers.embedding import Embedding, EmbeddingBag
from ..module import Module
from ..parameter import is_lazy
from .delayed import Delayed
from .reducer import FIRST, BuiltinCommHookType, Reducer

__all__ = ["DistributedDataParallel"]


@dataclasses.dataclass
class _MixedPrecision:
    """What ``mixed_precision`` takes, which is refused."""

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    buffer_dtype: dtypes.dtype | None = None


class DistributedDataParallel(Module, Joinable):
    """Wraps ``module``; after ``backward()`` every process has the mean of all processes' gradients.

    ``batched_grad_copy`` is taken and changes nothing: it saves a GPU's launches. ``mixed_precision`` is not built.
    """

    reducer: Reducer
    modules_buffers: list[Tensor]
    compiled_in_parts = "DistributedDataParallel exchanges gradients while backward runs"  # for ``compile``

    def __init__(
        self,
        module: Module,
        device_ids=None,
        output_device=None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group=None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ):
        super().__init__()
        self._join_config = _JoinConfig()
        if bool(delay_all_reduce_named_params is None) != bool(param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        if mixed_precision is not None:
            raise NotImplementedError(
                "mixed_precision of DistributedDataParallel is not built; use torch.autocast around forward, or "
                "fully_shard with a MixedPrecisionPolicy"
            )
        self.process_group, self.device_mesh = _group_of(process_group, device_mesh), device_mesh
        if any(is_lazy(p) for p in module.parameters()):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if SPREAD.array is not None and any(p._array.__class__ is SPREAD.array for p in module.parameters()):
            raise NotImplementedError(
                "DistributedDataParallel of a module with DTensors is not built; use fully_shard over a mesh whose "
                "other dimension has cut them"
            )
        if check_reduction:
            warn_user(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using "
                "it.",
                FutureWarning,
            )
        places = {p.device for p in module.parameters()}
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if (device_ids or output_device is not None) and {place.type for place in places} == {"cpu"}:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"single-device/multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, "
                f"output_device {output_device}, and module parameters {places}."
            )
        self.module, self.dim = module, dim
        self.device_ids, self.output_device = device_ids, output_device
        self.device = next(iter(places))
        self.device_type, self.is_multi_device_module = self.device.type, len(places) > 1
        at_init = self._choose_buffers(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        caps = _caps(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap, self.mixed_precision = caps[-1], mixed_precision
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        delayed = list(delay_all_reduce_named_params or ())
        ignored = {*getattr(module, "_ddp_params_and_buffers_to_ignore", ()), *[name for name, _ in delayed]}
        self.parameters_to_ignore = ignored
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        buffers = [b for n, b in module.named_buffers() if n not in ignored]
        self.__dict__["modules_buffers"] = buffers
        if init_sync:
            _verify_param_shape_across_processes(self.process_group, [p for _, p in named])
            self._sync([*[p for _, p in named], *[p for _, p in delayed], *(buffers if at_init else ())])
        self._caps, self._caps_listed = caps, bool(bucket_cap_mb_list)
        self._make_reducer(named)
        if delayed:
            self.reducer.delayed = Delayed(delayed, param_to_hook_all_reduce, self.reducer)

    def forward(self, *inputs, **kwargs):
        exchanges = is_grad_enabled() and self.require_backward_grad_sync
        if exchanges:
            self.reducer.check_finished()
        self.reducer.joining = self._join_config.enable  # then buckets stay: not all processes see the same order
        if self._join_config.enable:
            self._step_in_join(exchanges)
        self._sync_buffers()
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = exchanges
        if exchanges:
            self.reducer.prepare(_tensors(output) if self.reducer.find_unused else [])
        return output

    def _make_reducer(self, named: list) -> None:
        tables = {m.weight for m in self.module.modules() if isinstance(m, (Embedding, EmbeddingBag)) and m.sparse}
        self.__dict__["reducer"] = Reducer(
            [p for _, p in named if p.requires_grad], self.process_group, caps=self._caps, listed=self._caps_listed,
            find_unused=self.find_unused_parameters and not self.static_graph, as_views=self.gradient_as_bucket_view,
            static_graph=self.static_graph, alike=self.skip_all_reduce_unused_params, sparse=tables,
        )  # fmt: skip

    def __getstate__(self) -> dict:
        """All but what belongs to this process: the group, and what exchanges with it."""
        _default(self.process_group)
        left = ("process_group", "reducer", "modules_buffers", "_join_config", "device_mesh")
        return {name: value for name, value in super().__getstate__().items() if name not in left}

    def __setstate__(self, state: dict) -> None:
        """Among the processes of the default group; hooks have to be registered anew."""
        super().__setstate__(state)
        self.process_group, self.device_mesh = _group_of(None, None), None
        self._join_config = _JoinConfig()
        ignored = self.parameters_to_ignore
        self.__dict__["modules_buffers"] = [b for n, b in self.module.named_buffers() if n not in ignored]
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._make_reducer([(n, p) for n, p in self.module.named_parameters() if n not in ignored])

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients stay each process's own inside: for adding up several batches before the exchange."""
        outer, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = outer

    def register_comm_hook(self, state: object, hook) -> None:
        """Have ``hook(state, bucket)`` exchange each bucket; it gives a Future of the flat gradients."""
        _check_hook(hook)
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """``register_comm_hook`` of a hook that PyTorch has in C++."""
        fp16 = comm_hook_type is BuiltinCommHookType.FP16_COMPRESS
        self.register_comm_hook(None, fp16_compress_hook if fp16 else allreduce_hook)

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination=False):
        """A context for a loop in which processes have unevenly many batches; see ``Join``."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs) -> JoinHook:
        return _Follow(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self):
        return self.device

    @property
    def join_process_group(self):
        return self.process_group

    def will_sync_module_buffers(self) -> bool:
        """Does the next forward pass begin with process 0's buffers?"""
        return self.require_forward_param_sync and self.broadcast_buffers and len(self.modules_buffers) > 0

    def _choose_buffers(self, broadcast_buffers: bool | None, forward_sync_buffers: bool | None) -> bool:
        """Whether buffers become process 0's in each forward pass; the result says whether they do so now."""
        if broadcast_buffers is not None and forward_sync_buffers is not None:
            warn_user(
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated "
                "and its value is ignored when `forward_sync_buffers` is provided.",
                FutureWarning,
            )
            broadcast_buffers = None
        elif broadcast_buffers is not None:
            warn_user(
                "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead, with which buffers are made "
                "equal when the module is wrapped, also if it is False.",
                FutureWarning,
            )
        wanted = broadcast_buffers if forward_sync_buffers is None else forward_sync_buffers
        self.broadcast_buffers = self.forward_sync_buffers = wanted is not False
        return broadcast_buffers is not False

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.static_graph = True
        self.reducer.find_unused = False

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore) -> None:
        """Names of parameters and buffers that each process keeps for itself, once ``module`` is wrapped."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self) -> dict:
        return {
            "world_size": dist.get_world_size(self.process_group),
            "rank": dist.get_rank(self.process_group),
            "module_name": type(self.module).__name__,
            "backend_name": dist.get_backend(self.process_group),
            "num_parameter_tensors": len(self.reducer.parameters),
            "total_parameter_size_bytes": sum(p.nbytes for p in self.reducer.parameters),
            "has_sync_bn": int(any(isinstance(m, SyncBatchNorm) for m in self.module.modules())),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": self.find_unused_parameters,
            "static_graph": self.static_graph,
        }

    def _step_in_join(self, exchanges: bool) -> None:
        """One step among processes of which some have no inputs left: count those that do, say what will be done."""
        work = Join.notify_join_context(self)
        if work is not None and not self.reducer.by_initial_size:
            self.reducer.divide_by = int(work.result()[0].item())
        self._announce(exchanges)

    def _announce(self, exchanges: bool) -> bool:
        """Whether any process exchanges gradients in this step."""
        flag = PUBLIC["full"]((1,), float(exchanges), device=self.device)
        dist.all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def _sync_buffers(self, joined: bool = False) -> None:
        if not self.will_sync_module_buffers():
            return
        self._sync(self._buffers_now(), self._last_at_work(joined) if self._join_config.enable else 0)

    def _last_at_work(self, joined: bool) -> int:
        """The highest rank that still has inputs: its buffers are everybody's."""
        rank = PUBLIC["full"]((1,), -1.0 if joined else float(dist.get_rank(self.process_group)), device=self.device)
        dist.all_reduce(rank, dist.ReduceOp.MAX, group=self.process_group)
        return int(rank.item())

    def _buffers_now(self) -> list[Tensor]:
        return [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    def _sync(self, tensors: list[Tensor], source: int = 0) -> None:
        same_values(tensors, self.process_group, source)


class _Follow(JoinHook):
    """A process without inputs: it takes part in the others' exchanges with zeros."""

    def __init__(self, ddp: DistributedDataParallel, by_initial_size: bool):
        self._ddp = ddp
        ddp.reducer.by_initial_size = by_initial_size
        ddp.reducer.divide_by = dist.get_world_size(ddp.process_group)

    def main_hook(self) -> None:
        ddp = self._ddp
        exchange = ddp._announce(False)
        ddp._sync_buffers(joined=True)
        ddp.require_forward_param_sync = exchange
        if exchange:
            ddp.reducer.follow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """The last process at work has the model; the others take it over."""
        ddp = self._ddp
        source = ddp._last_at_work(joined=not is_last_joiner)
        ddp._sync([*ddp.module.parameters(), *ddp._buffers_now()], source)
        ddp.reducer.divide_by, ddp.reducer.by_initial_size = dist.get_world_size(ddp.process_group), True


def _group_of(process_group, device_mesh):
    """The processes whose gradients are averaged."""
    if process_group is not None and device_mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if device_mesh is None:
        return dist.distributed_c10d._get_default_group() if process_group is None else process_group
    if device_mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
    return device_mesh.get_group(mesh_dim=0)


def _check_hook(hook) -> None:
    """A communication hook's annotations, where it has any, are those of ``hook(state, bucket)``."""
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    bucket, result = signature.parameters.get("bucket"), signature.return_annotation
    if bucket is not None and not _may_be(bucket.annotation, dist.GradBucket):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    if not _may_be(result, Future, Future[Tensor]):
        raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")


def _may_be(annotation, *kinds) -> bool:
    """Whether an annotation is one of these, or absent, or a text that nobody has looked up."""
    return annotation is inspect.Signature.empty or isinstance(annotation, str) or annotation in kinds


def _caps(one: float | None, several: list | None) -> list[int]:
    """How many bytes the buckets have, in their order; the last of these is for all that follow."""
    if several:
        if any(size < 0 for size in several):
            raise TypeError(f"bucket_cap_mb_list: sizes of buckets cannot be negative, but got {several}")
        return [int(size * (1 << 20)) for size in several]
    cap = int((25 if one is None else one) * (1 << 20))
    return [FIRST if one is None else cap, cap]


def _tensors(output) -> list[Tensor]:
    """The tensors anywhere in what forward gave: in lists, dictionaries and dataclasses."""
    from ...utils._pytree import tree_leaves

    found = []
    for leaf in tree_leaves(output):
        if isinstance(leaf, Tensor):
            found.append(leaf)
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            found += [t for field in dataclasses.fields(leaf) for t in _tensors(getattr(leaf, field.name))]
    return found


def _default(group) -> None:
    """Only a module of the default group can be copied or saved: no other group can be found again."""
    if group is not dist.distributed_c10d._get_default_group():
        raise RuntimeError(
            "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when "
            "you have called init_process_group and have not passed process_group argument to DDP constructor"
        )
