"""PyTorch's import paths for what lives in ``nn``: ``nn.modules.module``, ``nn.modules.container`` …"""

from __future__ import annotations

import importlib
import sys

_PLACES = {
    "container": "containers", "module": "module", "lazy": "lazy", "sparse": "layers.embedding",
    "channelshuffle": "layers.vision", "pixelshuffle": "layers.vision", "upsampling": "layers.vision",
}  # fmt: skip


def __getattr__(name: str):
    """``nn.modules.Linear`` is ``nn.Linear``."""
    from .. import __dict__ as names  # type: ignore[attr-defined]

    if name.startswith("_") or name not in names:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return names[name]


def __dir__():
    from .. import containers, layers

    return ["Module", *containers.__all__, *layers.__dir__()]


def _link(name: str, target: str) -> None:
    """Make ``import …nn.modules.<name>`` find the module ``target``."""
    module = importlib.import_module(target, __package__.removesuffix(".modules"))
    sys.modules[f"{__name__}.{name}"] = module
    globals()[name] = module


def _link_layers() -> None:
    """Link the core, and every file of ``nn.layers`` under its own name."""
    from .. import layers

    for name, place in _PLACES.items():
        _link(name, f".{place}")
    prefix = layers.__name__ + "."
    for full in [m for m in sys.modules if m.startswith(prefix)]:
        _link(full.removeprefix(prefix), "." + full.removeprefix(layers.__name__.removesuffix("layers")))
    _link("utils", ".modules.utils")  # not nn.utils
    globals()["activation"].MultiheadAttention = layers.MultiheadAttention  # where PyTorch has it


_link_layers()
