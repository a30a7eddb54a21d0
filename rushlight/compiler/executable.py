"""What all programs have in common, however they are executed: their inputs, and what becomes of their results."""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from ..autograd.mode import set_grad_enabled
from ..autograd.mode import state as mode_state
from ..engine.xla.devices import KEY_WORDS
from ..tensor import Tensor
from . import meshes
from .backward import Again, CompiledBackward
from .trace import Traced
from .tree import Leaf, unflatten


class Outdated(Exception):
    """What the trace took for granted is so no longer: trace again."""


class Shared(Exception):
    """The program writes to memory that an argument has in common with another of its tensors: it knows no views."""


class Disturbed(Exception):
    """Whenever the program was about to run, somebody took a tensor away: it has not run."""


class Unexpected(Exception):
    """An operator was given values that it refuses, an index out of range, say: the program has changed nothing."""


class Slot:
    """A state input: ``tensor``, which, with a ``leaf``, is whatever is that leaf's ``.grad`` (input ``grad_of``).

    ``pinned``: the function sees that tensor elsewhere too, so another one in ``.grad`` is another program.
    """

    __slots__ = ("dtype", "grad_of", "laid", "leaf", "pinned", "shape", "start", "tensor", "unread")

    def __init__(self, tensor: Tensor, leaf: Tensor | None = None, grad_of: int | None = None, pinned: bool = False):
        self.shape, self.dtype = tensor._array.shape, tensor._array.dtype
        self.laid = meshes.laid(tensor._array)
        self.tensor: Any = tensor
        self.leaf: Any = leaf
        self.grad_of, self.pinned, self.start, self.unread = grad_of, pinned, 0, False

    def takes(self, t: Tensor) -> bool:
        same = t._array.shape == self.shape and t._array.dtype == self.dtype and t._node is None
        return same and meshes.laid(t._array) == self.laid


class Executable:
    """A trace, with the state in ``slots``, which say where each state tensor is found."""

    _backward: Any = None  # the jitted backward pass of results that can be differentiated from outside
    vote: Any = None  # over several processes: what they say to the call that is being made, see together.py
    digest: int | None = None

    def __init__(self, learned: Traced, arguments: int, slots: list[Slot], optimizers, lockstep):
        self.learned, self.arguments, self.slots, self.optimizers = learned, arguments, slots, optimizers
        self._lockstep = lockstep  # optimizers whose parameters the trace took to have made the same number of steps
        self._structure, self._bound = learned.structure
        self._single = isinstance(self._structure, Leaf)
        self._kept = [slot.tensor for slot in slots if slot.leaf is None]
        self._options = [(group, name) for o in optimizers for group in o.param_groups for name in o.dynamic]
        self._hyper: tuple = ((), None, ())  # the optimizers' numbers as given, as floats, and as they are sent
        self._made = not (learned.passed or learned.viewed or learned.gradients or learned.again)

    def _sent(self, numbers: np.ndarray):
        """The optimizers' numbers, where the program takes them."""
        return numbers

    def _input_value(self, i: int, arguments, arrays):
        """What backward is given of an input that it needs."""
        raise NotImplementedError

    def _numbers(self):
        """The optimizers' numbers; sent only when one has changed."""
        given = [group.get(name) for group, name in self._options]
        if not all(map(is_, given, self._hyper[0])) or not self._hyper[0]:
            values = [v for o in self.optimizers for v in o._hyper_values()]
            known = given if all(map(_is_fixed, given)) else ()
            sent = self._hyper[2]
            if values != self._hyper[1]:
                sent = self._sent(np.array(values, dtype=np.float64))
            self._hyper = known, values, sent
        return self._hyper[2]

    def _input(self, i: int, arguments) -> Tensor:
        return arguments[i] if i < self.arguments else self.slots[i - self.arguments].tensor

    def _structured(self, results: list):
        """The function's result, of its tensors."""
        return results[0] if self._single else unflatten(self._structure, results)

    def _put_known(self, made: list, arguments) -> None:
        """Results that are something that there was before, or views of it."""
        learned = self.learned
        for result, i in learned.passed.items():
            made[result] = self._input(i, arguments)
        for result, (i, view) in learned.viewed.items():
            made[result] = _view_again(self._input(i, arguments), view)
        for result, i in learned.gradients.items():
            made[result] = self._input(i, arguments).grad
        for result, earlier in learned.again.items():
            made[result] = made[earlier]

    def _put_in_places(self, results: list) -> None:
        """What the function binds anew, tensors and truths."""
        if self.learned.places:
            for place, value in zip(self.learned.places, unflatten(self._bound, results)):
                place.put(value)
        for place, truth in self.learned.switched:
            place.put(truth)

    def _reason_not_again(self) -> str | None:
        """Why the function cannot be run again for gradients of gradients, if that is so."""
        if self.learned.uses_rng:
            return "it draws random numbers"
        if self.learned.places or self.learned.written or self.learned.new_grads:
            return "it changes state"
        return "it runs under autocast or another mode" if mode_state.interceptors else None

    def _attach(self, results, arguments, residuals, arrays, call) -> None:
        """Give differentiable results a node whose backward pass is the compiled tail."""
        tail: Any = self.learned.tail
        targets = [self._input(i, arguments) for i, _ in tail.targets]
        values = tail.values(residuals, lambda i: self._input_value(i, arguments, arrays))
        again = Again(call, self._reason_not_again(), [*arguments, *self._kept], targets, [i for i, _ in tail.roots])
        node = CompiledBackward(self._backward, values, targets, [results[i] for i, _ in tail.roots], again)
        for place, (i, _) in enumerate(tail.roots):
            results[i]._node = node.output(place, results[i])


def key_words():
    """Fresh words of the default generator: compiled randomness follows ``manual_seed``."""
    from ..random import default_generator

    return default_generator.key_words(KEY_WORDS)


def _is_fixed(option) -> bool:
    """Can an option that is the same object have no other value?"""
    if isinstance(option, tuple):
        return all(map(_is_fixed, option))
    return not isinstance(option, (Tensor, list))


def _view_again(base: Tensor, view) -> Tensor:
    """The view of ``base`` that ``view`` describes, as the function made it when it was traced."""
    t = base if view.recorded is not None else base.detach()
    with set_grad_enabled(bool(view.recorded)):
        for op, static, index in view.path:
            t = op.call(t, **static)
            t = t if index is None else t[index]
    return t
