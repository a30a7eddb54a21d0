"""The layers, one family per file; each file's ``__all__`` becomes a name of ``nn``."""

from types import ModuleType as _Module

from .activation import *
from .adaptive import *
from .attention import *
from .batchnorm import *
from .conv import *
from .distance import *
from .dropout import *
from .embedding import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .loss import *
from .normalization import *
from .padding import *
from .pooling import *
from .rnn import *
from .transformer import *
from .vision import *

# The names of all of them, not the files. Set this way because a type checker takes a computed list for an empty one.
_names = [name for name, thing in globals().items() if name[0] != "_" and not isinstance(thing, _Module)]
globals().update(__all__=_names)


def __dir__():
    return _names
