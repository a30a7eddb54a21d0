"""``autocast``: matrix products in half precision, what needs range or accuracy in float32, the rest as it comes."""

from __future__ import annotations

import functools
import threading

from .. import dtypes
from ..autograd import lowering, mode
from ..autograd.op import differentiable
from ..device import device
from ..errors import warn_user
from ..tensor import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# By the names of rushlight's ops: products and convolutions, which accelerators are fast at
# ("conv_input" is a transposed convolution) …
_LOWER = {
    "matmul", "linear", "add_matmul", "add_matmul_sum", "vecmat", "conv", "conv_input", "conv_tbc", "attention",
    "recurrent", "prelu_kernel",
}  # fmt: skip
_LOWER_ON_ACCELERATORS = {"add_matvec", "matvec", "add_outer"}
# … and what loses too much in half precision, everywhere,
_SINGLE = {
    "cdist", "det", "slogdet", "svd", "eig", "eigh", "qr", "lu", "lu_factor_ex", "cholesky_ex", "inv_ex",
    "solve_ex", "solve_triangular", "lstsq", "prod", "mse_each", "mse_mean", "mse_sum",
}  # fmt: skip
# and in PyTorch's lists for one kind of device only; by the names of nodes, too, where one op serves several functions.
_SINGLE_ON_CPU = {
    "fft_c2c", "fft_c2r", "fft_r2c", "trace", "grid_sampler", "unpool", "polar", "view_as_complex", "geqrf",
    "householder_product", "ormqr", "cholesky_inverse", "cholesky_solve", "lu_solve", "AvgPool3DBackward0",
    "MaxPool3DWithIndicesBackward0", "AdaptiveAvgPool3DBackward0", "AdaptiveMaxPool3DBackward0",
    "FractionalMaxPool2DBackward0", "FractionalMaxPool3DBackward0", "ReflectionPad1DBackward0",
    "ReflectionPad2DBackward0", "ReplicationPad1DBackward0", "ReplicationPad2DBackward0",
    "ReplicationPad3DBackward0",
}  # fmt: skip
_SINGLE_ON_ACCELERATORS = {
    "arccos", "arcsin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt",
    "sinh", "tan", "power", "softplus", "NativeLayerNormBackward0", "NativeGroupNormBackward0", "vector_norm",
    "cumprod", "cumsum", "logcumsumexp", "logsumexp", "softmax", "log_softmax", "sum", "dist", "pdist", "renorm",
}  # fmt: skip

_default_dtypes = {"cpu": dtypes.bfloat16}


def _gpu_is_there() -> bool:
    from ..cuda import is_available

    return is_available()


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
        if enabled and self.device == "cuda" and not _gpu_is_there():
            warn_user("CUDA is not available or torch_xla is imported. Disabling autocast.")
            self._enabled = enabled = False
        if enabled and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            name = self.device.upper()
            warn_user(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            self._enabled = False
        on_cpu = self.device == "cpu"
        self._lower = _LOWER if on_cpu else _LOWER | _LOWER_ON_ACCELERATORS
        self._single = _SINGLE | (_SINGLE_ON_CPU if on_cpu else _SINGLE_ON_ACCELERATORS)
        self._entered: list = []
        self._kinds: dict = {}  # what is done to the arguments of an op, by the function that calls it

    def __enter__(self):
        pushed = mode.intercepting(self._handle)
        pushed.__enter__()
        self._entered.append(pushed)
        _active.stack.append(self)
        _active.changed()
        return self

    def __exit__(self, *_):
        _active.stack.pop()
        _active.changed()
        self._entered.pop().__exit__()

    @property
    def signature(self) -> tuple:
        """What code compiled inside depends on."""
        return (self.device, self.fast_dtype, self._enabled)

    def clone(self):
        return autocast(self.device, self.fast_dtype, self._enabled)

    # -- what ops and composites are given ---------------------------------------------------------------------------

    def _handle(self, call, args, static):
        if self._enabled and _active.deciding.get(self.device) is self:
            kind = self._kinds.get(call)
            if kind is None:
                kind = self._kinds[call] = self._kind(call.op.name, call.node)
            if kind == "lower" and not (self.device == "cpu" and static.get("kind") == "gru"):
                found = lowering.fused(call, args, self.fast_dtype.numpy)
                call, args = found or (call, self.lower(*args))
            elif kind == "single":
                args = self.raise_(*args)
        return call(*args, **static)

    def _kind(self, op: str, node: str) -> str:
        if op in self._lower:
            return "lower"
        return "single" if op in self._single or node in self._single or _is_loss(op) else "as given"

    def lower(self, *args) -> list:
        """The arguments in half precision, where they are floating-point tensors of this kind of device."""
        return [self._lowered(a) for a in args]

    def raise_(self, *args) -> list:
        """The arguments in float32, where they are half-precision tensors of this kind of device."""
        return [self._raised(a) for a in args]

    def single(self, function, args, kwargs):
        """Call a composite with float32 arguments, and without autocast inside."""
        args, kwargs = self.raise_(*args), {name: self._raised(value) for name, value in kwargs.items()}
        return self.without(function, *args, **kwargs)

    def without(self, function, *args, **kwargs):
        """Call a composite whose ops are to be left as they are."""
        with autocast(self.device, self.fast_dtype, enabled=False):
            return function(*args, **kwargs)

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


def _is_loss(name: str) -> bool:
    return name.endswith("_loss") or "cross_entropy" in name or name == "ctc"


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[autocast] = []
        self.deciding: dict[str, autocast] = {}  # by kind of device; those of others are no concern of it

    def changed(self) -> None:
        self.deciding = {a.device: a for a in self.stack}
        casting = [a for a in self.stack if a._enabled and self.deciding[a.device] is a]
        mode.state.casting = casting[-1] if casting else None


_active = _Active()


def _innermost(device_type: str) -> autocast | None:
    """The autocast that decides about one kind of device."""
    return _active.deciding.get(device_type)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Is an ``autocast`` in force here, for this kind of device (``cuda`` if not said)?"""
    found = _innermost(device_type or "cuda")
    return found is not None and found._enabled


def is_autocast_available(device_type: str) -> bool:
    """Can autocast be used on this kind of device?"""
    return device_type in ("cpu", "cuda", "xla", "tpu")


def get_autocast_dtype(device_type: str):
    """The half precision that ``autocast`` uses on a kind of device unless it is told another."""
    found = _innermost(device_type)
    if found is not None:
        return found.fast_dtype
    return _default_dtypes.get(device_type, dtypes.float16 if device_type == "cuda" else dtypes.bfloat16)


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Set the dtype that autocast casts to on this kind of device."""
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
