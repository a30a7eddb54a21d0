"""``python -m rushlight.utils.collect_env``: what to paste into a bug report, with PyTorch's labels."""

from __future__ import annotations

import platform
import sys
from typing import NamedTuple

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

_LIBRARIES = ("rushlight", "numpy", "ml_dtypes", "jax", "jaxlib", "torch", "torchvision", "safetensors", "pillow")


def __dir__():
    return __all__


class SystemEnv(NamedTuple):
    """What ``get_env_info`` finds; a field that does not apply here is None."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str | None
    hip_compiled_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str | None
    cpu_info: str
    settings: str
    pip_packages: str


def get_env_info() -> SystemEnv:
    """Versions, devices and settings of this process."""
    from .. import __version__, config, cuda

    gpus = [cuda.get_device_name(i) for i in range(cuda.device_count())] if cuda.is_available() else []
    return SystemEnv(
        torch_version=str(__version__),
        is_debug_build="False",
        cuda_compiled_version=None,
        hip_compiled_version="N/A",
        os=_system(),
        libc_version="-".join(platform.libc_ver()).strip("-") or "N/A",
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", ""),
        python_platform=platform.platform(),
        is_cuda_available=str(bool(gpus)),
        nvidia_gpu_models="\n".join(f"GPU {i}: {name}" for i, name in enumerate(gpus)) or None,
        cpu_info=platform.processor() or platform.machine(),
        settings=config.show(),
        pip_packages=_libraries(),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """``envinfo`` as text."""
    shown = {name: "Could not collect" if value is None else value for name, value in envinfo._asdict().items()}
    return _TEXT.format(**shown)


def get_pretty_env_info() -> str:
    """All of it as text.

    >>> print(rushlight.utils.collect_env.get_pretty_env_info().splitlines()[0])
    PyTorch version: 2.13.0+rushlight0.1.0
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


_TEXT = """PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
GPU models and configuration: {nvidia_gpu_models}

CPU: {cpu_info}
{settings}

Versions of relevant libraries:
{pip_packages}"""


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = f"{platform.system()} {platform.release()}"
    return f"{name} ({platform.machine()})"


def _libraries() -> str:
    from importlib.metadata import PackageNotFoundError, version

    lines = []
    for name in _LIBRARIES:
        try:
            lines.append(f"[pip3] {name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return "\n".join(lines)


if __name__ == "__main__":
    main()
