"""The layers, one family per file; each file's ``__all__`` becomes a name of ``nn``."""

from .flatten import *  # noqa: F403
from .linear import *  # noqa: F403
