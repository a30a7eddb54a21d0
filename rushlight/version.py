"""``rushlight.version``: what programs ask about the build. There are no CUDA or ROCm libraries of our own."""

from . import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip"]

cuda = hip = git_version = None
debug = False
