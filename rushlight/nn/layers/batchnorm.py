"""Batch normalization, and what it shares with instance normalization: statistics that follow the batches."""

from __future__ import annotations

from typing import Any

from ...ops.public import PUBLIC
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..lazy import LazyModuleMixin
from ..module import Module
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Weight, bias, and the running mean and variance of ``num_features`` channels."""

    _version = 2  # 2: num_batches_tracked
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    weight: Parameter  # None without ``affine``
    bias: Parameter
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        where = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(PUBLIC["empty"](num_features, **where)) if wanted else None)
        zeros, ones = PUBLIC["zeros"], PUBLIC["ones"]
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **where) if track else None)
        self.register_buffer("running_var", ones(num_features, **where) if track else None)
        self.register_buffer("num_batches_tracked", PUBLIC["tensor"](0, device=device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Back to mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                here = self.num_batches_tracked
                known = here is not None and here.device.type != "meta"
                state_dict[key] = here if known else PUBLIC["tensor"](0)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        training, factor, mean, variance = self.training, self.momentum, self.running_mean, self.running_var
        count = self.num_batches_tracked if training and self.track_running_stats else None
        if factor is None:  # the plain average of all batches
            factor = 0.0 if count is None else 1.0 / (count + 1)
        # Without running statistics the batch's own are used in evaluation too.
        own = training or (mean is None and variance is None)
        if training and not self.track_running_stats:
            mean = variance = None
        normalized = F.batch_norm(input, mean, variance, self.weight, self.bias, own, factor, self.eps)
        if count is not None:
            count.add_(1)
        return normalized


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Learns ``num_features`` from the first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ) -> None:
        # Nothing is allocated here: the sizes are not known.
        super().__init__(0, eps, momentum, affine=False, track_running_stats=False, bias=bias)
        where = {"device": device, "dtype": dtype}
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = PUBLIC["tensor"](0, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        if not self.has_uninitialized_params():
            return
        self._check_input_dim(input)
        self.num_features = input.shape[1]
        made: list[Any] = [self.weight, self.bias] if self.affine else []
        made += [self.running_mean, self.running_var] if self.track_running_stats else []
        for t in made:
            if t is not None:
                t.materialize((self.num_features,))
        self.reset_parameters()


def _expect(input, *dims):
    if input.dim() not in dims:
        wanted = " or ".join(f"{d}D" for d in dims)
        raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Each channel normalized over the batch, for inputs (N, C) or (N, C, L).

    >>> nn.BatchNorm1d(100)(rushlight.randn(20, 100)).shape
    torch.Size([20, 100])
    """

    def _check_input_dim(self, input):
        _expect(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel normalized over the batch, for inputs (N, C, H, W)."""

    def _check_input_dim(self, input):
        _expect(input, 4)


class BatchNorm3d(_BatchNorm):
    """Each channel normalized over the batch, for inputs (N, C, D, H, W)."""

    def _check_input_dim(self, input):
        _expect(input, 5)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """BatchNorm whose mean and variance in training are those of all processes' batches together.

    Differs from PyTorch: it works on the CPU too.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input):
        from ... import distributed

        own = self.training or (self.running_mean is None and self.running_var is None)
        if not own or not distributed.is_initialized() or distributed.get_world_size(self.process_group) == 1:
            return super().forward(input)
        self._check_input_dim(input)
        return self._together(input)

    def _together(self, input):
        """Normalized by the statistics of the group, through which gradients flow between processes."""
        from ...distributed.nn.functional import all_reduce

        dims = [0, *range(2, input.dim())]
        shape = [1, -1] + [1] * (input.dim() - 2)
        here = PUBLIC["full"]((1,), input.numel() / input.shape[1], dtype=input.dtype, device=input.device)
        sums = all_reduce(PUBLIC["cat"]([input.sum(dims), here]), group=self.process_group)
        count = sums[-1].detach()
        if count.item() < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
        mean = sums[:-1] / count
        centered = input - mean.view(shape)
        variance = all_reduce((centered * centered).sum(dims), group=self.process_group) / count
        if self.training and self.track_running_stats:
            self._follow(mean.detach(), variance.detach() * (count / (count - 1)))
        normalized = centered * PUBLIC["rsqrt"](variance + self.eps).view(shape)
        if self.weight is not None:
            normalized = normalized * self.weight.view(shape)
        return normalized if self.bias is None else normalized + self.bias.view(shape)

    def _follow(self, mean, variance) -> None:
        self.num_batches_tracked.add_(1)
        factor = 1.0 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        for running, now in ((self.running_mean, mean), (self.running_var, variance)):
            running.mul_(1 - factor).add_(now.to(running.dtype), alpha=factor)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """``module`` with every BatchNorm in it replaced by a SyncBatchNorm with the same state."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
