"""``rushlight.backends``: switches that PyTorch programs set. Those without a counterpart here are kept and ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class _Switches:
    """Attributes a program may set and read back; ``is_available`` says whether the thing exists here."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, available: bool = False, **values):
        self.__dict__.update(values)
        self._available = available

    def is_available(self) -> bool:
        return self._available

    def is_built(self) -> bool:
        return self._available


cudnn = _Switches(enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=10)
cudnn.version = lambda: None


class _Cuda(_Switches):
    def is_built(self) -> bool:
        from . import cuda

        return cuda.is_available()

    is_available = is_built


cuda = _Cuda(matmul=_Switches(allow_tf32=False, allow_fp16_reduced_precision_reduction=True))
cuda.enable_flash_sdp = cuda.enable_math_sdp = cuda.enable_mem_efficient_sdp = lambda enabled: None
cuda.flash_sdp_enabled = cuda.math_sdp_enabled = cuda.mem_efficient_sdp_enabled = lambda: True
mps = _Switches()
mkl = _Switches()
mkldnn = _Switches(enabled=False)
openmp = _Switches()
