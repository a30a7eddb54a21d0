"""``rushlight.backends``: switches that PyTorch programs set. Those without a counterpart here are kept and ignored."""

from __future__ import annotations

import contextlib
import sys
import types
from typing import TYPE_CHECKING, Any

from . import config

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def __dir__():
    return __all__


class _Switches(types.ModuleType):
    """Attributes a program may set and read back; ``is_available`` says whether the thing exists here."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, name: str, available: bool = False, **values):
        super().__init__(f"{__name__}.{name}")
        self.__dict__.update(values)
        self._available = available

    def is_available(self) -> bool:
        return self._available

    def is_built(self) -> bool:
        return self._available


class _WithGpu(_Switches):
    """Switches of something that is there when a GPU is."""

    def is_built(self) -> bool:
        from . import cuda

        return cuda.is_available()

    is_available = is_built


class _Cudnn(_WithGpu):
    def version(self) -> None:
        """XLA brings its own cuDNN and does not say which."""

    def is_acceptable(self, tensor) -> bool:
        return tensor.is_cuda

    def set_flags(self, **flags) -> tuple:
        """Set switches by name (``_enabled=False``), those that are not None; their values before."""
        names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
        before = tuple(getattr(self, name) for name in names)
        for name, value in flags.items():
            if value is not None:
                setattr(self, name.removeprefix("_"), value)
        return before

    @contextlib.contextmanager
    def flags(self, **flags):
        """Switches for a block."""
        before = dict(self.__dict__)
        self.set_flags(**flags)
        try:
            yield
        finally:
            self.__dict__.update(before)


class _Cuda(_WithGpu):
    """Which kernel computes attention is chosen by itself. The switches say only which of PyTorch's may be named."""

    def __getattr__(self, name: str):
        switch = name.removeprefix("enable_").removesuffix("_enabled").removesuffix("_sdp")
        if not name.endswith(("_sdp", "_sdp_enabled")) or switch not in self.attention:
            raise AttributeError(f"torch.backends.cuda has no attribute {name!r}")
        if name.startswith("enable_"):
            return lambda enabled: self.attention.update({switch: bool(enabled)})
        return lambda: self.attention[switch]

    @contextlib.contextmanager
    def sdp_kernel(self, enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
        before = dict(self.attention)
        self.attention.update(
            flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
        )
        try:
            yield {}
        finally:
            self.attention.update(before)

    def preferred_linalg_library(self, backend=None) -> str:
        return "default"

    preferred_blas_library = preferred_linalg_library

    def is_flash_attention_available(self) -> bool:
        """Is PyTorch's own kernel there? XLA chooses for itself."""
        return False


cudnn = _Cudnn(
    "cudnn",
    enabled=True,
    benchmark=False,
    deterministic=False,
    allow_tf32=True,
    benchmark_limit=10,
    fp32_precision="none",
    conv=_Switches("cudnn.conv", fp32_precision="tf32"),
    rnn=_Switches("cudnn.rnn", fp32_precision="tf32"),
)


class _Matmul(_Switches):
    """``allow_tf32`` is ``set_float32_matmul_precision`` by another name."""

    @property
    def allow_tf32(self) -> bool:
        return config.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        config.set_float32_matmul_precision("high" if allow else "highest")

    @property
    def fp32_precision(self) -> str:
        """The newer switch: "tf32", "ieee", or "none" while nobody has set it."""
        return "tf32" if self.allow_tf32 else self.__dict__.get("precision", "none")

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        self.__dict__["precision"] = precision
        self.allow_tf32 = precision == "tf32"


cuda = _Cuda(
    "cuda",
    attention=dict.fromkeys(("flash", "mem_efficient", "math", "cudnn", "overrideable"), True),
    matmul=_Matmul(
        "cuda.matmul",
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
    ),
)
mps = _Switches("mps")
mkl = _Switches("mkl")
mkldnn = _Switches("mkldnn", enabled=False, fp32_precision="none")
fp32_precision = "none"
openmp = _Switches("openmp")

__path__: list[str] = []  # a package to the import system: programs say `import torch.backends.cudnn as cudnn`
sys.modules.update({part.__name__: part for part in (cudnn, cuda, mps, mkl, mkldnn, openmp)})
