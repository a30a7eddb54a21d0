"""NumPy's arrays: eager code on the CPU. ``namespace`` is what rules see, ``kernels`` has faster bodies by family."""

from .memory import align, keep

keep()
align()
