"""Neural networks: ``Module`` and everything built on it, under PyTorch's names."""

from . import attention as attention
from . import common_types as common_types
from . import containers, functional, init, layers, lazy, module, parameter
from . import grad as grad
from .containers import *
from .layers import *
from .module import Module as Module
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter
from .parameter import factory_kwargs as factory_kwargs
from . import parallel as parallel, utils as utils
from .parallel import DataParallel as DataParallel

# isort: split
from . import modules as modules  # PyTorch's import paths; it looks at all of the above

from ..compat import missing as _missing, tell_nearest_names as _tell_nearest_names

_names = [
    *containers.__all__,
    *layers.__dir__(),
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
globals().update(__all__=_names)  # set this way because a type checker takes a computed list for an empty one


def __dir__():
    return _names


__getattr__ = _missing(__name__)
for _module in (functional, init, utils):
    _tell_nearest_names(_module)
