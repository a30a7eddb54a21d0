"""``DistributedDataParallel``: the same module in every process, its gradients averaged while backward still runs."""

from __future__ import annotations

import contextlib

from ... import distributed as dist
from ...autograd.mode import is_grad_enabled, no_grad
from ...ops.public import PUBLIC
from ...tensor import Tensor
from ..module import Module
from .reducer import Reducer

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Wraps ``module``; after ``backward()`` every process has the mean of all processes' gradients."""

    reducer: Reducer
    modules_buffers: list[Tensor]

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
        **_,
    ):
        super().__init__()
        self.process_group = dist.distributed_c10d._get_default_group() if process_group is None else process_group
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if mixed_precision is not None or device_mesh is not None or delay_all_reduce_named_params is not None:
            raise NotImplementedError(
                "mixed_precision, device_mesh and delay_all_reduce_named_params of DistributedDataParallel are not "
                "built yet; use autocast for mixed precision"
            )
        places = {p.device for p in module.parameters()}
        if device_ids and {place.type for place in places} == {"cpu"}:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"single-device/multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, "
                f"output_device {output_device}, and module parameters {places}."
            )
        self.module, self.dim = module, dim
        self.device_ids, self.output_device = device_ids, output_device
        self.device = next(iter(places))
        self.device_type, self.is_multi_device_module = self.device.type, len(places) > 1
        self.broadcast_buffers = broadcast_buffers is not False
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        self._check_shapes([p for _, p in named])
        buffers = [b for n, b in module.named_buffers() if n not in ignored]
        self.__dict__["modules_buffers"] = buffers
        if init_sync:
            self._sync([*[p for _, p in named], *buffers])
        self.__dict__["reducer"] = Reducer(
            [p for _, p in named if p.requires_grad], self.process_group, cap=self.bucket_bytes_cap,
            find_unused=find_unused_parameters and not static_graph, as_views=gradient_as_bucket_view,
            static_graph=static_graph,
        )  # fmt: skip

    def forward(self, *inputs, **kwargs):
        if self.require_forward_param_sync and self.broadcast_buffers and self.modules_buffers:
            self._sync(self._buffers_now())
        exchanges = is_grad_enabled() and self.require_backward_grad_sync
        if exchanges and not self.reducer.finished:
            raise RuntimeError(self.reducer._unfinished())
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = exchanges
        if exchanges:
            self.reducer.prepare(_tensors(output) if self.reducer.find_unused else [])
        return output

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
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination=False):
        """Not built yet."""
        raise NotImplementedError(
            "DistributedDataParallel.join is not built yet: give all processes equally many batches"
        )

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.static_graph = True
        self.reducer.find_unused = False

    def _get_ddp_logging_data(self) -> dict:
        return {
            "world_size": dist.get_world_size(self.process_group),
            "rank": dist.get_rank(self.process_group),
            "module_name": type(self.module).__name__,
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": self.find_unused_parameters,
            "static_graph": self.static_graph,
        }

    def _buffers_now(self) -> list[Tensor]:
        return [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore]

    def _check_shapes(self, parameters) -> None:
        """All processes must have the same parameters; else the exchange would mix them up."""
        if dist.get_world_size(self.process_group) == 1:
            return
        mine = [tuple(p.shape) for p in parameters]
        every: list = [None] * dist.get_world_size(self.process_group)
        dist.all_gather_object(every, mine, group=self.process_group)
        for rank, theirs in enumerate(every):
            if len(theirs) != len(mine):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {dist.get_rank()} has {len(mine)} params, "
                    f"while rank {rank} has inconsistent {len(theirs)} params."
                )
            for i, (a, b) in enumerate(zip(mine, theirs)):
                if a != b:
                    raise RuntimeError(
                        f"[{dist.get_rank()}]: params[{i}] in this process with sizes {list(a)} appears not to match "
                        f"sizes of the same param in process {rank}."
                    )

    def _sync(self, tensors: list[Tensor]) -> None:
        """Process 0's values for all; few messages for many tensors."""
        if dist.get_world_size(self.process_group) == 1:
            return
        by_kind: dict = {}
        for t in tensors:
            by_kind.setdefault((t.dtype, t.device), []).append(t)
        with no_grad():
            for together in by_kind.values():
                flat = PUBLIC["cat"]([t.detach().reshape(-1) for t in together])
                dist.broadcast(flat, group=self.process_group, group_src=0)
                at = 0
                for t in together:
                    t.detach().copy_(flat[at : at + t.numel()].view(t.shape))
                    at += t.numel()


def _tensors(output) -> list[Tensor]:
    """The tensors anywhere in what forward gave."""
    from ...utils._pytree import tree_leaves

    return [t for t in tree_leaves(output) if isinstance(t, Tensor)]
