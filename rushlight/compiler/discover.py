"""Find a function's state: the tensors outside it that it reads or writes.

Nothing is declared. A run is watched, every tensor that enters an op or is written in place is noted by weak
reference, and what is still alive afterwards, without being an argument or a result, is state: temporaries are gone.
"""

from __future__ import annotations

import contextlib
import weakref

from ..autograd import mode
from ..autograd.tape import AccumulateGrad
from ..nn.hooks import everyone
from ..tensor import Tensor


class Watch:
    """Notes the tensors and optimizers that a block of code touches."""

    def __init__(self):
        self._tensors: dict[int, weakref.ref] = {}
        self.optimizers: list = []
        self._modules: dict[int, object] = {}
        self.views: list[Tensor] = []  # views of state, found by ``survivors``

    def note(self, t: Tensor) -> None:
        key = id(t)
        known = self._tensors.get(key)
        if known is None or known() is not t:
            self._tensors[key] = weakref.ref(t)

    def __call__(self, call, args, static):
        """The op interceptor."""
        for a in args:
            if isinstance(a, Tensor):
                self.note(a)
        return call(*args, **static)

    def note_optimizer(self, optimizer) -> None:
        if not any(o is optimizer for o in self.optimizers):
            self.optimizers.append(optimizer)

    def note_module(self, module) -> None:
        self._modules.setdefault(id(module), module)

    @property
    def modules(self) -> list:
        return list(self._modules.values())

    @contextlib.contextmanager
    def watching(self):
        note = self.note_module
        everyone.observed_by((*everyone.observers, note))
        try:
            with (
                mode.intercepting(self),
                mode.pushed("writers", self.note),
                mode.pushed("optimizers", self.note_optimizer),
            ):
                yield self
        finally:
            everyone.observed_by(tuple(o for o in everyone.observers if o is not note))

    def survivors(self, but: list[Tensor]) -> list[Tensor]:
        """The state: live noted tensors (views by their base), optimizer state, and the gradients of leaves."""
        found: dict[int, Tensor] = {}
        excluded = {id(t) for t in but}

        def add(t):
            if not isinstance(t, Tensor) or id(t) in excluded:
                return
            while t._view is not None and t._view.base is not None:  # a view: its base is the state
                self.views.append(t)
                t = t._view.base
            if id(t) in excluded or id(t) in found:
                return
            found[id(t)] = t
            if type(t._node) is AccumulateGrad:
                add(t._grad)

        for ref in list(self._tensors.values()):
            add(ref())
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    add(p)
                    for value in optimizer.state.get(p, {}).values():
                        add(value)
        return list(found.values())
