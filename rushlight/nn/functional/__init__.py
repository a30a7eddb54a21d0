"""Layers as functions, under PyTorch's names; one family per file, each file's ``__all__`` a part of this namespace."""

from .activation import *  # noqa: F403
from .attention import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .norm import *  # noqa: F403
from .padding import *  # noqa: F403
from .pool import *  # noqa: F403
from .sparse import *  # noqa: F403
from .vision import *  # noqa: F403
