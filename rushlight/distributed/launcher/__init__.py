"""``torch.distributed.launcher``: several processes of a function or a script, started from Python."""

from .api import LaunchConfig, elastic_launch

__all__ = ["LaunchConfig", "elastic_launch"]


def __dir__():
    return __all__
