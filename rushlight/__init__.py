"""PyTorch's ``nn.Module`` and all it stands on, in readable Python: ``import rushlight as torch``."""

# ruff: noqa: E402 (this file is the list of public names; the warning filter comes first)
import warnings

# NumPy warns where PyTorch silently gives inf or nan. Only warnings raised inside rushlight are hushed.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"rushlight\.")

from . import autograd, ops
from . import fft, func, linalg, signal, special, utils
from ._printing import set_printoptions
from .config import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    set_default_device,
    set_float32_matmul_precision,
    set_num_interop_threads,
    set_num_threads,
    use_deterministic_algorithms,
)
from .device import device
from .errors import OutOfMemoryError
from .dtypes import (
    bfloat16,
    bool_ as bool,
    complex64,
    complex64 as cfloat,
    complex128,
    complex128 as cdouble,
    dtype,
    finfo,
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
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .layout import *
from . import random
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .storage import TypedStorage, UntypedStorage
from .tensor import Size, Tensor
from . import optim
from .autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__version__ = "0.1.0"

from math import e, inf, nan, pi

newaxis = None

globals().update(ops.PUBLIC)

from . import __future__, nn

globals().update(ops.PUBLIC)  # again: nn.functional has added names that PyTorch has here too, such as celu

from .compiler import compile
from . import serialization
from .serialization import load, save

# Modules of their own that few programs need: imported when first named.
_LATER = (
    "multiprocessing",
    "cuda",
    "backends",
    "amp",
    "export",
    "jit",
    "distributions",
    "accelerator",
    "version",
    "testing",
    "hub",
    "vision",
    "inspect",
)


def _later(name):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in ("autocast", "is_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype"):
        from . import amp

        return getattr(amp, name)
    return None


from . import compat

__getattr__ = compat.missing(__name__, _later)  # an unknown name: the error lists the nearest ones
for _module in (
    autograd,
    fft,
    func,
    linalg,
    signal.windows,
    special,
    nn,
    nn.functional,
    nn.init,
    nn.utils,
    optim,
    optim.lr_scheduler,
    utils,
):
    compat.tell_nearest_names(_module)
