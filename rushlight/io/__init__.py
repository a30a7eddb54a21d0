"""Checkpoints on disk: PyTorch's files and safetensors, both ways, safe by default.

``rushlight.save`` and ``rushlight.load`` are in ``rushlight.serialization``; here are the formats:
``rushlight.io.safetensors`` and ``save_sharded``/``load_sharded``.
"""


def __getattr__(name: str):
    import importlib

    if name in ("save_sharded", "load_sharded"):
        return getattr(importlib.import_module(".sharded", __name__), name)
    if name in ("safetensors", "sharded"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
