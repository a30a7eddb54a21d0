"""``ZeroRedundancyOptimizer``: each process keeps the optimizer's state of some parameters, and updates those.

Parameters and gradients are whole everywhere, as ``DistributedDataParallel`` leaves them; after a step every process
sends the parameters that it has updated to all others. (Rajbhandari et al., https://arxiv.org/abs/1910.02054, stage 1.)
"""

from __future__ import annotations

from typing import Any

from ...ops.public import PUBLIC
from ...optim import Optimizer
from ...tensor import Tensor
from .. import collectives, objects, world
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """``optimizer_class(…, **defaults)`` of this process's share of the parameters.

    In each group the largest parameters are dealt out first, each to the process that has least so far. With
    ``parameters_as_bucket_view`` the parameters of one process lie in one piece of memory and travel together.

    Differs from PyTorch: ``overlap_with_ddp=True`` is refused; ``load_state_dict`` leaves what it is given as it is.
    """

    def __init__(
        self,
        params,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults,
    ):
        if overlap_with_ddp:
            raise NotImplementedError(
                "overlap_with_ddp=True: steps inside of DistributedDataParallel's exchange are not here; leave it out, "
                "and call step() after backward()"
            )
        given = _checked(params)
        self._shares: list[list[list[Tensor]]] = []
        self._ready = False  # groups that the constructor adds are shared out when all are there
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        _check_one_type(self._parameters())
        self.process_group = world.the(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = world.get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._buckets: list[list[tuple[int, Tensor]]] = []
        self._consolidated: list[dict] = []
        self._share_out()
        self.optim = optimizer_class(self._own_groups(), **defaults)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._trainable = [p.requires_grad for p in self._parameters()]
        self._fill_buckets()
        self._ready = True

    def add_param_group(self, param_group: dict) -> None:
        """More parameters; all processes must add the same. Those that are there stay where they are."""
        super().add_param_group(param_group)
        if not self._ready:
            return
        _check_one_type(self._parameters())
        self._share_out()
        self.optim.add_param_group(self._own_groups()[-1])
        self._trainable = [p.requires_grad for p in self._parameters()]
        self._fill_buckets()

    def step(self, closure=None, **kwargs):
        """Update this process's share, and have everybody's."""
        Join.notify_join_context(self)
        trainable = [p.requires_grad for p in self._parameters()]
        if trainable != self._trainable:
            self._trainable = trainable
            self._fill_buckets()
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Every process's share for all."""
        if self.parameters_as_bucket_view:
            travelling = [entry for buckets in self._buckets for entry in buckets]
        else:
            travelling = [(r, p.detach()) for r, share in enumerate(self._shares) for group in share for p in group]
        works = [collectives.broadcast(t, None, self.process_group, True, group_src=r) for r, t in travelling]
        for work in works:
            work.wait()

    # -- saving and loading --------------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all processes to process ``to`` of the group; all call it."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        mine = _on_cpu(self.optim.state_dict())
        found: list | None = [None] * self.world_size if self.rank == to else None
        objects.gather_object(mine, found, group=self.process_group, group_dst=to)
        self._consolidated = found or []

    def state_dict(self) -> dict:
        """The state of all parameters, as an optimizer of one process has it, from the last consolidation."""
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        whole = super().state_dict()
        numbers = {p: i for i, p in enumerate(self._parameters())}
        for share, local in zip(self._shares, self._consolidated, strict=True):
            for params, packed in zip(share, local["param_groups"], strict=True):
                for p, i in zip(params, packed["params"], strict=True):
                    if i in local["state"]:
                        whole["state"][numbers[p]] = local["state"][i]
        whole["state"] = dict(sorted(whole["state"].items()))
        return whole

    def load_state_dict(self, state_dict: dict) -> None:
        """Take over options, and of the state what belongs to this process's share."""
        super().load_state_dict({**state_dict, "state": {}})
        numbers = {p: i for i, p in enumerate(self._parameters())}
        local = self.optim.state_dict()
        mine = [p for group in self._shares[self.rank] for p in group]
        places = [i for group in local["param_groups"] for i in group["params"]]
        found = {i: state_dict["state"].get(numbers[p]) for i, p in zip(places, mine, strict=True)}
        local["state"] = {i: value for i, value in found.items() if value is not None}
        self.optim.load_state_dict(local)
        self._copy_options(self.param_groups, self.optim.param_groups)

    # -- in a Join -------------------------------------------------------------------------------------------------

    def join_hook(self, **kwargs) -> JoinHook:
        """A process without inputs makes the others' steps with them; its gradients are those of the last one."""
        return _Following(self)

    @property
    def join_device(self):
        return self._parameters()[0].device

    @property
    def join_process_group(self):
        return self.process_group

    # -- who has what ----------------------------------------------------------------------------------------------

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _share_out(self) -> None:
        """``_shares[rank][group]``: the parameters that a process updates."""
        sizes = [0] * self.world_size
        self._shares = [[] for _ in sizes]
        for group in self.param_groups:
            for share in self._shares:
                share.append([])
            for p in sorted(group["params"], key=Tensor.numel, reverse=True):
                rank = sizes.index(min(sizes))
                self._shares[rank][-1].append(p)
                sizes[rank] += p.numel()

    def _own_groups(self) -> list[dict]:
        return [{**g, "params": mine} for g, mine in zip(self.param_groups, self._shares[self.rank])]

    def _partition_parameters(self) -> list[list[dict]]:
        """For each process, its share of each group."""
        return [[{**g, "params": part} for g, part in zip(self.param_groups, share)] for share in self._shares]

    @staticmethod
    def _copy_options(source: list[dict], target: list[dict]) -> None:
        for one, other in zip(source, target, strict=True):
            other.update({name: value for name, value in one.items() if name != "params"})

    def _fill_buckets(self) -> None:
        """Have the trainable parameters of each process, by device, lie in one piece of memory."""
        if not self.parameters_as_bucket_view:
            return
        self._buckets = []
        for rank, share in enumerate(self._shares):
            by_device: dict = {}
            for p in (p for group in share for p in group):
                if p.requires_grad:
                    by_device.setdefault(p.device, []).append(p)
                else:
                    p.data = p.data.clone()  # it may lie in a bucket that is no more
            self._buckets.append([(rank, _joined(together)) for together in by_device.values()])


class _Following(JoinHook):
    def __init__(self, zero: ZeroRedundancyOptimizer):
        self._zero = zero

    def main_hook(self) -> None:
        self._zero.step()


def _joined(params: list[Tensor]) -> Tensor:
    """A bucket with the values of these parameters, which become views of it."""
    bucket, at = PUBLIC["cat"]([p.data.flatten() for p in params]), 0
    for p in params:
        p.data = bucket[at : at + p.numel()].view_as(p.data)
        at += p.numel()
    return bucket


def _checked(params) -> list:
    """Parameters, or groups of them, as a list; PyTorch's errors for what is neither."""
    kind = params.type() if isinstance(params, Tensor) else type(params).__name__
    if isinstance(params, Tensor):
        raise TypeError(f"`params` argument should be an iterable of Tensors, but got {kind}")
    try:
        given = list(params)
    except TypeError:
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {kind}") from None
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not all(isinstance(p, Tensor) for p in given) and not all(isinstance(p, dict) for p in given):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    if any(isinstance(p, dict) and "params" not in p for p in given):
        raise ValueError("a parameter group passed in `params` has no key 'params'")
    return given


def _check_one_type(params: list[Tensor]) -> None:
    kinds = list(dict.fromkeys(p.type() for p in params))
    if len(kinds) > 1 or params[0].is_sparse:
        raise ValueError(
            f"ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got {kinds}"
        )


def _on_cpu(value):
    """A copy of a state dict whose tensors are all on the CPU."""
    if isinstance(value, Tensor):
        return value.detach().clone().cpu()
    if isinstance(value, dict):
        return {key: _on_cpu(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_on_cpu(part) for part in value])
    return value
