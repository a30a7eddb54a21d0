"""Policies: which modules inside ``FullyShardedDataParallel`` are units of their own."""

from __future__ import annotations

import contextlib
import functools

from ...compat import missing as _missing

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


__getattr__ = _missing(__name__)


class ModuleWrapPolicy:
    """Modules of these classes."""

    def __init__(self, module_classes):
        self.classes = tuple(module_classes)

    def chooses(self, module) -> bool:
        return isinstance(module, self.classes)

    def __call__(self, module, recurse: bool, *args, **kwargs) -> bool:
        return recurse or isinstance(module, self.classes)


class CustomPolicy:
    """Modules for which a function says so."""

    def __init__(self, lambda_fn):
        self.lambda_fn = lambda_fn

    def chooses(self, module) -> bool:
        return bool(self.lambda_fn(module))


def always_wrap_policy(*args, **kwargs) -> bool:
    return True


def transformer_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls) -> bool:
    """Modules of these classes, as a function for ``functools.partial``."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, lambda_fn) -> bool:
    return recurse or bool(lambda_fn(module))


def size_based_auto_wrap_policy(
    module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8), **_
) -> bool:
    """Modules with at least so many parameters."""
    return nonwrapped_numel >= min_num_params


_wrapping: list = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **options):
    """Inside, ``wrap`` wraps."""
    _wrapping.append(functools.partial(wrapper_cls, **options))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module, **options):
    """``module``, wrapped as the ``enable_wrap`` block says; as it is outside of one."""
    return _wrapping[-1](module, **options) if _wrapping else module
