"""The dropout family."""

from __future__ import annotations

from ...errors import warn_user
from ...ops.common import check_tensor
from ...ops.public import PUBLIC

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def dropout(input, p=0.5, training=True, inplace=False):
    """Each element zeroed with probability ``p``, the rest scaled by 1 / (1 - p)."""
    return _drop("dropout", input, p, training, inplace)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance of SELU's output."""
    return _drop("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """``alpha_dropout`` of whole channels."""
    return _drop("feature_alpha_dropout", input, p, training, inplace)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of an input (N, C, L) or (C, L)."""
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _drop_channels(input, p, training, inplace, batched=input.ndim == 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of an input (N, C, H, W)."""
    if input.ndim not in (3, 4):
        _warn_dimensions(2, input.ndim)
    elif input.ndim == 3:
        warn_user(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _drop_channels(input, p, training, inplace, batched=True)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of an input (N, C, D, H, W) or (C, D, H, W)."""
    if input.ndim not in (4, 5):
        _warn_dimensions(3, input.ndim)
    return _drop_channels(input, p, training, inplace, batched=input.ndim == 5)


def _drop(name, input, p, training, inplace):
    check_tensor(name, input)
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return PUBLIC[name + "_" if inplace else name](input, p, training)


def _drop_channels(input, p, training, inplace, batched):
    if batched:
        return _drop("feature_dropout", input, p, training, inplace)
    dropped = _drop("feature_dropout", input.unsqueeze(0), p, training, inplace).squeeze(0)
    return input if inplace else dropped


def _warn_dimensions(spatial, found):
    warn_user(
        f"dropout{spatial}d: Received a {found}-D input to dropout{spatial}d, which is deprecated and will result in "
        "an error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
        f"Note that dropout{spatial}d exists to provide channel-wise dropout on inputs with {spatial} spatial "
        f"dimensions, a channel dimension, and an optional batch dimension (i.e. {spatial + 1}D or "
        f"{spatial + 2}D inputs)."
    )
