"""``autocast``: matrix products in half precision, what needs range or accuracy in float32, the rest as it comes."""

from __future__ import annotations

import functools
import threading
import warnings

from .. import dtypes
from ..autograd import mode
from ..autograd.op import differentiable
from ..device import device
from ..tensor import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# By the names of rushlight's ops: products and convolutions, which accelerators are fast at …
_LOWER = frozenset(
    [
        "matmul",
        "linear",
        "bilinear",
        "add_matmul",
        "add_matmul_sum",
        "add_matvec",
        "matvec",
        "vecmat",
        "conv",
        "conv_transpose",
        "scaled_dot_product_attention",
        "attention",
        "lstm",
        "gru",
        "rnn",
    ]
)
# … and what loses too much in half precision, everywhere,
_SINGLE = frozenset(
    [
        "cdist",
        "dist",
        "det",
        "slogdet",
        "svd",
        "eig",
        "eigh",
        "qr",
        "lu",
        "lu_factor_ex",
        "cholesky_ex",
        "inv_ex",
        "solve_ex",
        "solve_triangular",
        "lstsq",
        "pinv",
        "matrix_exp",
        "fft_c2c",
        "fft_c2r",
        "fft_r2c",
        "nansum",
        "median_and_index",
        "kthvalue",
        "renorm",
    ]
)
# and on accelerators only, as in PyTorch.
_SINGLE_ON_ACCELERATORS = frozenset(
    [
        "arccos",
        "arcsin",
        "cosh",
        "erfinv",
        "exp",
        "expm1",
        "log",
        "log10",
        "log1p",
        "log2",
        "reciprocal",
        "rsqrt",
        "sinh",
        "tan",
        "power",
        "softplus",
        "layer_norm",
        "group_norm",
        "vector_norm",
        "cosine_similarity",
        "cumprod",
        "cumsum",
        "logcumsumexp",
        "logsumexp",
        "softmax",
        "log_softmax",
        "prod",
        "sum",
    ]
)

_default_dtypes = {"cpu": dtypes.bfloat16}


class autocast(mode._Switch):
    """Inside, ops on float32 tensors of one kind of device choose their dtype: ``with autocast("cuda"):``.

    >>> with rushlight.autocast("cpu"):
    ...     (rushlight.ones(2, 2) @ rushlight.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        self.fast_dtype = dtype or get_autocast_dtype(self.device)
        self._enabled = enabled
        if enabled and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False
        self._single = _SINGLE if self.device == "cpu" else _SINGLE | _SINGLE_ON_ACCELERATORS
        self._entered: list = []

    def __enter__(self):
        pushed = mode.intercepting(self._handle)
        pushed.__enter__()
        self._entered.append(pushed)
        _active.stack.append(self)
        mode.state.casting = self._enabled
        return self

    def __exit__(self, *_):
        _active.stack.pop()
        mode.state.casting = bool(_active.stack) and _active.stack[-1]._enabled
        self._entered.pop().__exit__()

    @property
    def signature(self) -> tuple:
        """What code compiled inside depends on."""
        return (self.device, self.fast_dtype, self._enabled)

    def clone(self):
        return autocast(self.device, self.fast_dtype, self._enabled)

    def _handle(self, call, args, static):
        if self._enabled and _active.stack[-1] is self:
            name = call.op.name
            if name in _LOWER:
                args = [self._lowered(a) for a in args]
            elif name in self._single or name.endswith("_loss") or "cross_entropy" in name:
                args = [self._raised(a) for a in args]
        return call(*args, **static)

    def _lowered(self, a):
        eligible = (
            isinstance(a, Tensor) and a.dtype.is_floating_point and a.dtype not in (self.fast_dtype, dtypes.float64)
        )
        return differentiable.astype(a, dtype=self.fast_dtype.numpy) if eligible and self._here(a) else a

    def _raised(self, a):
        low = isinstance(a, Tensor) and a.dtype in (dtypes.bfloat16, dtypes.float16)
        return differentiable.astype(a, dtype=dtypes.float32.numpy) if low and self._here(a) else a

    def _here(self, a) -> bool:
        return a.device.type == self.device


class _Active(threading.local):
    def __init__(self):
        self.stack: list[autocast] = []


_active = _Active()


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Is an ``autocast`` in force here, for this kind of device (``cuda`` if not said)?"""
    stack = _active.stack
    return bool(stack) and stack[-1]._enabled and stack[-1].device == (device_type or "cuda")


def is_autocast_available(device_type: str) -> bool:
    return device_type in ("cpu", "cuda", "xla", "tpu")


def get_autocast_dtype(device_type: str):
    """The half precision that ``autocast`` uses on a kind of device unless it is told another."""
    if _active.stack and _active.stack[-1].device == device_type:
        return _active.stack[-1].fast_dtype
    return _default_dtypes.get(device_type, dtypes.float16 if device_type == "cuda" else dtypes.bfloat16)


def set_autocast_dtype(device_type: str, dtype) -> None:
    _default_dtypes[device_type] = dtype


def custom_fwd(fwd=None, *, device_type: str = "cuda", cast_inputs=None):
    """For ``Function.forward``: run it as the caller's autocast says, or with inputs cast and autocast off."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapped(ctx, *args, **kwargs):
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return wrapped


def custom_bwd(bwd=None, *, device_type: str = "cuda"):
    """For ``Function.backward``: run it under the autocast that ``custom_fwd`` saw."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapped(ctx, *args, **kwargs):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return wrapped


def _cast(value, dtype):
    if isinstance(value, Tensor):
        return value.to(dtype) if value.dtype.is_floating_point and value.dtype is not dtypes.float64 else value
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    return type(value)(_cast(v, dtype) for v in value) if isinstance(value, (list, tuple)) else value
