"""Layers as functions, under PyTorch's names; one family per file, each file's ``__all__`` a part of this namespace."""

from types import FunctionType as _Function, ModuleType as _Module

from ...compat import missing as _missing
from ...autograd.overriding import asking as _asking
from ...ops.kinds import checked as _checked
from .activation import *
from .attention import *
from .conv import *
from .distance import *
from .dropout import *
from .linear import *
from .loss import *
from .norm import *
from .padding import *
from .pool import *
from .sparse import *
from .vision import *
from . import by_number

# The names of all of them, not the files. Set this way because a type checker takes a computed list for an empty one.
_names = [name for name, thing in globals().items() if name[0] != "_" and not isinstance(thing, _Module)]
globals().update(__all__=_names)
_FREE = frozenset(
    {"inplace", "sparse", "return_indices", "antialias", "hard", "keepdim", "swap", "size_average", "reduce"}
)
globals().update(
    {name: _asking(_checked(globals()[name], _FREE)) for name in _names if isinstance(globals()[name], _Function)}
)


def __dir__():
    return _names


__getattr__ = _missing(__name__)
