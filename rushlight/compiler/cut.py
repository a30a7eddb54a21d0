"""A function that is not one program: ``fullgraph=False``.

Where a value is needed (``.item()``, ``if loss > 1``, ``x[mask]``), or where a function does what a program cannot
(``print``, ``random.random()``, an iterator), its own Python runs at every call, so nothing of it can be stale. On the
CPU the modules that it calls are compiled each by itself, forward and backward; one that has such a place itself is cut
in the same way, down to its children. On accelerators eager code is recorded and run as programs anyway, see
docs/design/deferred.md, so there a cut function is simply called.
"""

from __future__ import annotations

from ..autograd import mode
from ..engine import DEFER
from ..nn.hooks import everyone
from ..nn.module import Module
from .module import OptimizedModule

_PARTS = 64  # modules of one function that are kept compiled
_LARGE = 64 * 1024  # bytes of parameters; below that a layer without children is quicker as it is
reasons: list[str] = []  # of all functions that were cut, for ``explain``


class Cut:
    """Calls ``fn`` as it is; ``part(module)`` makes a compiled function of a module that it calls."""

    def __init__(self, fn, part, reason: str):
        self._fn, self._make, self.reason = fn, part, reason
        self._itself = fn if isinstance(fn, Module) else getattr(fn, "__self__", None)
        self._parts: dict[int, tuple] = {}  # with the module, whose id must not become another's
        reasons.append(reason)

    def __call__(self, args, kwargs):
        outer = everyone.observers
        everyone.observed_by((*outer, _nothing))
        try:
            with mode.pushed("stand_ins", self._part):
                return self._fn(*args, **kwargs)
        finally:
            everyone.observed_by(outer)

    def _part(self, module):
        """What is called in the place of ``module``; None for itself."""
        known = self._parts.get(id(module))
        if known is not None:
            return known[1]
        if module is self._itself or isinstance(module, OptimizedModule) or not _is_worthwhile(module):
            return None
        if len(self._parts) == _PARTS:
            self._parts.pop(next(iter(self._parts)))
        made = self._make(module)
        self._parts[id(module)] = module, made
        return made


def _is_worthwhile(module: Module) -> bool:
    """Is it a module of some size, on the CPU, or where operators run one by one?"""
    parameters = list(module.parameters())
    if DEFER and any(p.device.type != "cpu" for p in parameters):
        return False
    return bool(module._modules) or sum(p.nbytes for p in parameters) > _LARGE


def _nothing(module) -> None:
    """Somebody must look on, or modules without hooks would take the short way."""
