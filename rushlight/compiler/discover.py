"""Find a function's state: the tensors outside it that it reads or writes.

Nothing is declared. A run is watched, every tensor that enters an op or is written in place is noted by weak
reference, and what is still alive afterwards, without being an argument or a result, is state: temporaries are gone.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

from ..autograd import mode
from ..config import epoch
from ..engine import is_batched
from ..nn.hooks import everyone
from ..tensor import Tensor
from .guards import Unguardable


class Watch:
    """Notes the tensors and optimizers that a block of code touches."""

    def __init__(self):
        self._tensors: dict[int, weakref.ref] = {}
        self.optimizers: list = []
        self._modules: dict[int, object] = {}
        self.views: list[Tensor] = []  # views of state, found by ``survivors``
        self._made: list[weakref.ref] = []  # what ops returned
        self._tell = None

    def note(self, t: Tensor) -> None:
        key = id(t)
        known = self._tensors.get(key)
        if (known is None or known() is not t) and not is_batched(t._array):
            self._tensors.pop(key, None)  # of one that is gone: its place in the order would be a matter of chance
            self._tensors[key] = weakref.ref(t)
            if self._tell is not None:
                self._tell(t)

    def __call__(self, call, args, static):
        """The op interceptor."""
        for a in args:
            if isinstance(a, Tensor):
                self.note(a)
        result = call(*args, **static)
        made = result if result.__class__ is tuple else (result,)
        self._made += [weakref.ref(t) for t in made if isinstance(t, Tensor) and not any(t is a for a in args)]
        return result

    def made(self) -> set[int]:
        """The ids of tensors that ops returned and that are still alive."""
        return {id(made()) for made in self._made if made() is not None}

    def forget_made(self) -> None:
        """The trace is over: raise if a tensor that it made is still somewhere."""
        if any(made() is not None for made in self._made):
            gc.collect()
        for made in self._made:
            t = made()
            if t is not None:
                raise Unguardable(
                    f"it keeps a tensor of shape {list(t.shape)} that it makes where compile does not see it. Return "
                    "it, or assign it to a module's attribute."
                )
        self._made = []

    def note_optimizer(self, optimizer) -> None:
        if not any(o is optimizer for o in self.optimizers):
            self.optimizers.append(optimizer)

    def note_module(self, module) -> None:
        self._modules.setdefault(id(module), module)

    @property
    def modules(self) -> list:
        return list(self._modules.values())

    @contextlib.contextmanager
    def watching(self, tell=None):
        """Take notes in a block; ``tell`` hears of every tensor before anything is done with it."""
        note, self._tell = self.note_module, tell
        read = self._reader(threading.get_ident())
        everyone.observed_by((*everyone.observers, note))
        epoch.readers = (*epoch.readers, read)
        try:
            with (
                mode.intercepting(self),
                mode.pushed("writers", self.note),
                mode.pushed("optimizers", self.note_optimizer),
            ):
                yield self
        finally:
            epoch.readers = tuple(r for r in epoch.readers if r is not read)
            everyone.observed_by(tuple(o for o in everyone.observers if o is not note))
            self._tell = None  # it knows temporary tensors, which are to be gone

    def _reader(self, thread: int):
        """Notes the tensors whose values this thread looks at."""
        return lambda t: self.note(t) if threading.get_ident() == thread else None

    def survivors(self, but: list[Tensor]) -> list[Tensor]:
        """The state: live noted tensors (views by their base), optimizer state, and the gradients of all these."""
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
            add(t._grad)  # of a frozen one too: optimizers look at it, and forget it

        for ref in list(self._tensors.values()):
            add(ref())
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    add(p)
                    for value in optimizer.state.get(p, {}).values():
                        add(value)
        return list(found.values())
