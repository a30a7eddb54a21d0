"""``rushlight.version``: what programs ask about the build. There are no CUDA or ROCm libraries of our own."""

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "rushlight", "xpu"]

rushlight = "0.1.0"  # our own version
__version__ = f"2.13.0+rushlight{rushlight}"  # the PyTorch whose names and behaviour these are
cuda = hip = rocm = xpu = git_version = None
debug = False


def __dir__():
    return __all__
