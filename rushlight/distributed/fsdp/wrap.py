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

    def __repr__(self) -> str:
        return f"{super().__repr__()}({set(self.classes)})"


class CustomPolicy:
    """Modules for which a function says so: True, or a dict of options of their own."""

    def __init__(self, lambda_fn):
        self.lambda_fn = lambda_fn

    def chooses(self, module) -> bool | dict:
        found = self.lambda_fn(module)
        if not isinstance(found, (bool, dict)):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                f"{found}"
            )
        return found


def always_wrap_policy(*args, **kwargs) -> bool:
    return True


def transformer_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls) -> bool:
    """Modules of these classes, as a function for ``functools.partial``."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, lambda_fn) -> bool:
    return recurse or bool(lambda_fn(module))


def size_based_auto_wrap_policy(
    module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8), force_leaf_modules=None,
    exclude_wrap_modules=None,
) -> bool:  # fmt: skip
    """Modules in which so many parameters are left, when units inside have taken theirs.

    ``force_leaf_modules``: classes that are not looked into. ``exclude_wrap_modules``: classes that are no units.
    """
    from ...nn import ModuleDict, ModuleList, MultiheadAttention

    leaves = force_leaf_modules or {MultiheadAttention}
    excluded = exclude_wrap_modules or {ModuleList, ModuleDict}
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else excluded))


def chosen(root, policy, ignored: set) -> dict:
    """The modules inside ``root`` that a policy makes units, inner ones first, with the options each is to have.

    A policy is an object with ``chooses(module)``, or a function that is asked on the way down whether to look inside
    (``recurse=True``), and on the way up whether the module, with the parameters that are left, is a unit.
    """
    if not callable(getattr(policy, "chooses", None)):
        found: dict = {}
        _ask(root, policy, ignored, found)
        found.pop(root, None)
        return found
    inside = [m for m in root.modules() if m is not root and m not in ignored]
    answers = {m: policy.chooses(m) for m in reversed(inside)}
    return {m: answer if isinstance(answer, dict) else {} for m, answer in answers.items() if answer is not False}


def _ask(module, policy, ignored: set, found: dict) -> int:
    """Ask a function about ``module`` and what is inside; returns how many parameters went into units."""
    left = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=left):
        return 0
    taken = sum(_ask(child, policy, ignored, found) for child in module.children() if child not in ignored)
    if not policy(module=module, recurse=False, nonwrapped_numel=left - taken):
        return taken
    found[module] = {}
    return left


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
