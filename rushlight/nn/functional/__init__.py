"""Layers as functions, under PyTorch's names; one family per file, each file's ``__all__`` a part of this namespace."""

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
