"""Instance normalization: each channel of each sample on its own."""

from __future__ import annotations

from ...errors import warn_user
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        """The number of dimensions of an input without a batch."""
        raise NotImplementedError

    def _check_input_dim(self, input):
        without = self._get_no_batch_dim()
        if input.dim() not in (without, without + 1):
            raise ValueError(f"expected {without}D or {without + 1}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        alone = input.dim() == self._get_no_batch_dim()
        channel = 0 if alone else 1
        if input.shape[channel] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel} to match num_features ({self.num_features}), but got: "
                    f"{input.shape[channel]}."
                )
            warn_user(
                f"input's size at dim={channel} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False"
            )
        if alone:
            return self._apply_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_norm(input)

    def _apply_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            found = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                error_msgs.append(_unwanted_statistics(type(self).__name__, found))
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


def _unwanted_statistics(layer, keys) -> str:
    names = " and ".join(f'"{key}"' for key in keys)
    return (
        f"Unexpected running stats buffer(s) {names} for {layer} with track_running_stats=False. If state_dict is a "
        f"checkpoint saved before 0.4.0, this may be expected because {layer} does not track running stats by default "
        "since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, instead set "
        f"track_running_stats=True in {layer} to enable them. See the documentation of {layer} for details."
    )


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample normalized, for inputs (N, C, L) or (C, L)."""

    def _get_no_batch_dim(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each sample normalized, for inputs (N, C, H, W) or (C, H, W)."""

    def _get_no_batch_dim(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each sample normalized, for inputs (N, C, D, H, W) or (C, D, H, W)."""

    def _get_no_batch_dim(self) -> int:
        return 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim = InstanceNorm1d._get_no_batch_dim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim = InstanceNorm2d._get_no_batch_dim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that learns ``num_features`` from its first input."""

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim = InstanceNorm3d._get_no_batch_dim
