"""The layers, one family per file; each file's ``__all__`` becomes a name of ``nn``."""

from .flatten import *
from .linear import *
