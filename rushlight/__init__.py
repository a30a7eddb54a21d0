"""PyTorch's ``nn.Module`` and all it stands on, in readable Python: ``import rushlight as torch``."""

# ruff: noqa: E402 (this file is the list of public names; the warning filter comes first)
import sys
from typing import TYPE_CHECKING

from .errors import hush_numpy as _hush_numpy

_hush_numpy()

from . import autograd, ops, torch_version, version
from . import utils
from ._printing import set_printoptions
from .config import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    set_default_device,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
    use_deterministic_algorithms,
)
from .device import device
from .autograd.overriding import DisableTorchFunction, DisableTorchFunctionSubclass
from .errors import AcceleratorError, OutOfMemoryError
from .dtypes import (
    bfloat16,
    bool_ as bool,
    complex32,
    complex32 as chalf,
    complex64,
    complex64 as cfloat,
    complex128,
    complex128 as cdouble,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float16 as half,
    float32,
    float32 as float,
    float64,
    float64 as double,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int16 as short,
    int32,
    int32 as int,
    int64,
    int64 as long,
    qint8,
    qint32,
    quint8,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .layout import *
from . import random
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .storage import (
    OLD as _OLD_STORAGES,
    TypedStorage,
    UntypedStorage,
)
from .tensor import Size, Tensor
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__version__ = torch_version.TorchVersion(version.__version__)  # ours is version.rushlight

from math import e, inf, nan, pi

newaxis = None
globals().update(_OLD_STORAGES, Storage=_OLD_STORAGES["FloatStorage"])  # FloatStorage and its kin

globals().update(ops.PUBLIC)

if TYPE_CHECKING:  # to type checkers the names above are Any, but for this one, which is a module of ours too
    from .ops.creation import tensor

from . import __future__, aliases, checks, linalg, retired

globals().update(ops.PUBLIC)  # again: these have added names

from . import compiler
from .compiler import compile

# Modules that not every program needs: imported when first named, so that importing rushlight stays quick.
_LATER = (
    "accelerator",
    "amp",
    "ao",
    "backends",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "futures",
    "fx",
    "hub",
    "inspect",
    "jit",
    "library",
    "masked",
    "multiprocessing",
    "nested",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "quasirandom",
    "serialization",
    "signal",
    "sparse",
    "special",
    "testing",
    "types",
    "vision",
)
_LATER_NAMES = {
    "load": "serialization",
    "save": "serialization",
    "vmap": "func",
    "GradScaler": "amp",
    "autocast": "amp",
    "is_autocast_enabled": "amp",
    "get_autocast_dtype": "amp",
    "set_autocast_dtype": "amp",
}


def _later(name):
    """A module or name that is imported when first asked for, or None."""
    import importlib

    if name in _LATER:
        module = importlib.import_module(f"{__package__}.{name}")
        compat.tell_nearest_names(module)
        return module
    if name in _LATER_NAMES:
        value = globals()[name] = getattr(_later(_LATER_NAMES[name]), name)
        return value
    if name == "torch":  # torch.torch is torch
        return sys.modules[__package__]
    if name.startswith("_foreach_"):
        from .foreach import find

        return find(name)
    if name.startswith("__"):
        return None
    _later("nn")  # nn.functional adds names that PyTorch has here too, such as celu
    globals().update(ops.PUBLIC)
    return ops.PUBLIC.get(name)


# Not for users; some are here only after something imported them.
_INSIDE = {
    "TYPE_CHECKING",
    "absent",
    "aliases",
    "checks",
    "cli",
    "compat",
    "config",
    "dtypes",
    "engine",
    "errors",
    "foreach",
    "io",
    "operator_checks",
    "quantized",
    "retired",
    "schemas",
    "sys",
}


def __dir__():
    _later("nn")
    return sorted({*globals(), *ops.PUBLIC, *_LATER, *_LATER_NAMES} - _INSIDE)


from . import absent, compat
from .compat import install

sys.meta_path.append(absent.Finder)  # last: modules that are files come before those that are only names

__getattr__ = compat.missing(__name__, _later)  # an unknown name: the error lists the nearest ones
for _module in (autograd, autograd.graph, compiler, linalg, utils):
    compat.tell_nearest_names(_module)
