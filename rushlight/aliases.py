"""Names that PyTorch has at its top level, or on Tensor, for what lives elsewhere here."""

from __future__ import annotations

from . import config, dtypes
from .autograd import anomaly, overriding
from .errors import warn_user
from .layout import contiguous_format
from .ops import refusals
from .ops.public import PUBLIC, public
from .tensor import Tensor

# -- methods as functions --------------------------------------------------------------------------------------------

_METHODS = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_
    atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach detach_ erf_ erfc_
    exp2_ exp_ expm1_ fix_ floor_ frac_ gcd_ get_device i0_ index_put_ is_distributed lcm_ ldexp_ log10_ log1p_
    log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_ sqrt_
    square_ tan_ tanh_ trunc_ xlogy_
"""


@public(function=False, out=False)
def is_distributed(self):
    """Whether the tensor is spread over processes: never, here."""
    return False


def _fill_diagonal(self, fill_value, wrap=False):
    """Write ``fill_value`` on the main diagonal; ``wrap`` goes on below a tall matrix, one row left out.

    >>> rushlight.zeros(2, 2).fill_diagonal_(3.0)
    tensor([[3., 0.],
            [0., 3.]])
    """
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if self.ndim == 2:
        rows, columns = self.shape
        for top in range(0, rows if wrap else 1, columns + 1):
            self[top:].diagonal().fill_(fill_value)
    else:
        every = PUBLIC["arange"](self.shape[0], device=self.device)
        self[(every,) * self.ndim] = fill_value
    return self


def _module_load(self, other, assign=False):
    """What ``load_state_dict`` puts in this tensor's place when modules swap tensors."""
    return other.detach() if assign else self.copy_(other).detach()


def _record_stream(self, stream):
    """Nothing to record: XLA keeps memory alive for as long as work needs it."""


def _assert(condition, message):
    """``assert`` as a function."""
    assert condition, message


PUBLIC["_assert"] = _assert

for _name, _method in (
    ("fill_diagonal_", _fill_diagonal), ("module_load", _module_load), ("record_stream", _record_stream),
):  # fmt: skip
    _method.__name__ = _method.__qualname__ = _name
    setattr(Tensor, _name, _method)


def _as_function(method):
    """A method as a function, which says of wrong arguments what functions say."""
    plain = getattr(method, "of", None)
    if plain is None:
        return method
    return overriding.asking(method, lambda name, _, args, kwargs: refusals.explain_function(name, plain, args, kwargs))


PUBLIC.update({name: _as_function(getattr(Tensor, name)) for name in _METHODS.split()})


# -- copies of views -------------------------------------------------------------------------------------------------


@public(method=False)
def detach_copy(input):
    """``detach`` as a copy."""
    return input.detach().clone()


@public(method=False)
def view_as_real_copy(input):
    """``view_as_real`` as a copy."""
    return PUBLIC["view_as_real"](input).clone()


@public(method=False)
def view_as_complex_copy(input):
    """``view_as_complex`` as a copy."""
    return PUBLIC["view_as_complex"](input).clone()


# -- control flow ----------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` or ``false_fn(*operands)``. Differs from PyTorch: a traced ``pred`` is refused."""
    return (true_fn if pred else false_fn)(*operands)


@public(method=False, out=False)
def while_loop(cond_fn, body_fn, carried_inputs):
    """``body_fn`` again and again, while ``cond_fn`` of what it carries is true."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        carried = tuple(body_fn(*carried))
    return carried


# -- settings --------------------------------------------------------------------------------------------------------

_MODES = {"default": 0, "warn": 1, "error": 2}


@public(method=False, out=False)
def set_default_tensor_type(t):
    """Old way to set the default dtype: a tensor type or its name, ``torch.DoubleTensor``."""
    warn_user(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    kind = PUBLIC.get(t.rpartition(".")[2]) if isinstance(t, str) else t
    if not hasattr(kind, "dtype"):
        raise TypeError(f"invalid type object: {t!r}; call torch.set_default_dtype(dtype) instead")
    dtypes.set_default_dtype(kind.dtype)


@public(method=False, out=False)
def set_deterministic_debug_mode(debug_mode):
    """0 or 'default', 1 or 'warn', 2 or 'error': what to do about operators that are not repeatable."""
    mode = _MODES.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    config.use_deterministic_algorithms(bool(mode), warn_only=mode == 1)


@public(method=False, out=False)
def get_deterministic_debug_mode():
    """0, 1 or 2: operators that are not repeatable are allowed, warned about, refused."""
    return config.are_deterministic_algorithms_enabled() * (1 if config.deterministic_warn_only else 2)


@public(method=False, out=False)
def set_flush_denormal(mode):
    """Small numbers are never flushed to zero here: ``False``, PyTorch's way to say that it cannot be set."""
    return False


@public(method=False, out=False)
def set_warn_always(b):
    """Give warnings every time, or once."""
    config.warn_always = bool(b)


@public(method=False, out=False)
def is_warn_always_enabled():
    """Are warnings given every time, not once?"""
    return config.warn_always


@public(method=False, out=False)
def set_anomaly_enabled(enabled, check_nan=True):
    """Switch anomaly detection on or off."""
    anomaly.set_detect_anomaly(enabled, check_nan)


# Cast weights are kept nowhere, so there is no cache to clear or to switch.


@public(method=False, out=False)
def clear_autocast_cache():
    """Does nothing: casts are not cached here."""


@public(method=False, out=False)
def is_autocast_cache_enabled():
    """Whether autocast was asked to keep casts."""
    return False


@public(method=False, out=False)
def set_autocast_cache_enabled(enabled):
    """Remembered only: casts are not cached here."""


@public(method=False, out=False)
def is_autocast_cpu_enabled():
    """Is autocast on for the CPU?"""
    return _amp().is_autocast_enabled("cpu")


@public(method=False, out=False)
def get_autocast_cpu_dtype():
    """The dtype that autocast casts to on the CPU."""
    return _amp().get_autocast_dtype("cpu")


@public(method=False, out=False)
def get_autocast_gpu_dtype():
    """The dtype that autocast casts to on GPUs."""
    return _amp().get_autocast_dtype("cuda")


@public(method=False, out=False)
def set_autocast_cpu_dtype(dtype):
    """Set the dtype that autocast casts to on the CPU."""
    _amp().set_autocast_dtype("cpu", dtype)


@public(method=False, out=False)
def set_autocast_gpu_dtype(dtype):
    """Set the dtype that autocast casts to on GPUs."""
    _amp().set_autocast_dtype("cuda", dtype)


_switched: dict = {}  # device type -> what ``set_autocast_enabled`` has switched on


@public(method=False, out=False)
def set_autocast_enabled(device_type, enabled=None):
    """Switch autocast on or off outside of any ``with``; one argument alone means "cuda"."""
    kind, enabled = ("cuda", device_type) if enabled is None else (device_type, enabled)
    before = _switched.pop(kind, None)
    if before is not None:
        before.__exit__()
    if enabled:
        _switched[kind] = _amp().autocast(kind)
        _switched[kind].__enter__()


@public(method=False, out=False)
def set_autocast_cpu_enabled(enabled):
    """Switch autocast on the CPU on or off."""
    set_autocast_enabled("cpu", enabled)


_nesting = 0  # how deep autocast regions are, for those who count them by hand


@public(method=False, out=False)
def autocast_increment_nesting():
    """One autocast block more; how many there are now."""
    global _nesting
    _nesting += 1
    return _nesting


@public(method=False, out=False)
def autocast_decrement_nesting():
    """One autocast block less; how many there are now."""
    global _nesting
    _nesting -= 1
    return _nesting


def _amp():
    from . import amp  # imported when needed, as by everybody

    return amp


# -- memory ----------------------------------------------------------------------------------------------------------


@public(method=False, out=False)
def to_dlpack(tensor):
    """The tensor's memory as a DLPack capsule."""
    return tensor.__dlpack__()


def _const_data_ptr(self):
    """The address of the first element, for who only reads it."""
    return self.data_ptr()


def _storage_type(self):
    """The class of the deprecated typed storage."""
    from . import storage

    return getattr(storage, self.dtype.char.replace("Tensor", "Storage"), None)


Tensor.const_data_ptr, Tensor.storage_type = _const_data_ptr, _storage_type  # type: ignore[attr-defined]


# -- what this build is ----------------------------------------------------------------------------------------------

PUBLIC.update(has_lapack=True, has_mkl=False, has_openmp=False, has_spectral=True)
PUBLIC["legacy_contiguous_format"] = contiguous_format


@public(method=False, out=False)
def compiled_with_cxx11_abi():
    """True: there is no C++ here whose binary interface could be the old one."""
    return True


@public(method=False, out=False)
def init_num_threads():
    """Nothing to set up: threads are made when they are first needed."""


@public(method=False, out=False)
def prepare_multiprocessing_environment(path):
    """Nothing to prepare."""


@public(method=False, out=False)
def thread_safe_generator():
    """The generator of a DataLoader's thread; there are none here."""


@public(method=False, out=False)
def get_device_module(device=None):
    """The module of a kind of device: ``rushlight.cuda`` for ``"cuda"``."""
    import importlib

    kind = getattr(device, "type", device) or str(config.get_default_device().type)
    try:
        return importlib.import_module(f"rushlight.{str(kind).split(':')[0]}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{device}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None
