"""A small program, played: its steps run in C on the tensors' own memory (``steps.py``).

Nothing is handed over and nothing is away: inputs are read where they are, and when all is computed, results and state
are put in their places by the same call of C, which no signal and no other thread of Python's divides. Where a program
exchanges something with other processes (``exchanges.py``), its parts are played one after the other on what those
before made, in memory of the program's own; only the last one writes to tensors.
"""

from __future__ import annotations

from itertools import repeat, starmap
from operator import is_
from sys import getrefcount
from typing import Any

import numpy as np

from ..autograd.mode import state as mode_state
from ..engine import landed
from ..engine.native import library
from ..engine.numpy.alignment import aligned
from ..tensor import Tensor, wrap
from .commit import insist
from .exchanges import Exchanges, Part, changed_meanwhile
from .executable import Disturbed, Executable, Outdated, Shared, Slot, Unexpected, key_words
from .score import Effort
from .steps import play_of
from .trace import Traced, trace_backward
from .values import WORD, NotPlayed, Value

_ndarray, _empty = np.ndarray, np.empty
# (tensors, places) -> the arrays of those at these places; None if one is a view, or its values are elsewhere.
_arrays_of: Any = library.arrays_of if library is not None else None


def played(learned: Traced, arguments: list[Tensor], slots: list[Slot], optimizers, lockstep, device) -> Played | None:
    """The program as one that is played; None if it is none of the kind."""
    if learned.mesh is not None or learned.moved_grads:
        return None
    if learned.exchanges and (learned.tail is not None or learned.uses_rng):
        return None
    if any(t._array.__class__ is not _ndarray for t in (*arguments, *(slot.tensor for slot in slots))):
        return None
    program = Played(learned, len(arguments), slots, optimizers, lockstep)
    if program.play is None:
        return None
    if learned.tail is not None:
        program._backward = trace_backward(learned, device, None)
    return program


class Played(Executable):
    """Executes a trace on NumPy's memory. ``play`` takes inputs that are read or written, then what is new."""

    def __init__(self, learned: Traced, arguments: int, slots: list[Slot], optimizers, lockstep):
        super().__init__(learned, arguments, slots, optimizers, lockstep)
        closed, count = learned.jaxpr, arguments + len(slots)
        avals = [v.aval for v in closed.jaxpr.invars]
        self._taken = [i for i in range(count) if learned.used[i] or i in learned.written]
        places = {i: memory for memory, i in enumerate(self._taken, 1)}
        inputs = [Value(a.shape, a.dtype, places.get(i, 0)) for i, a in enumerate(avals[:count])]
        memory = len(places) + bool(self._options)
        inputs += [Value((), a.dtype, memory, 8 * k) for k, a in enumerate(avals[count:-1])]  # the optimizers' numbers
        memory += learned.uses_rng
        inputs.append(Value(avals[-1].shape, WORD, memory if learned.uses_rng else 0))
        self._new: list = []  # (shape, dtype) of what each call makes: results, gradients, what backward needs
        self._exchanges: Any = None
        self.play: Any = None
        flag, own, effort = learned.checked, memory + 1, Effort()
        if learned.exchanges:
            try:
                self._exchanges = parts = self._divided(inputs, memory, effort)
            except NotPlayed:
                return
            closed, flag = parts.last, False
            inputs += _taken(parts.takes, memory)
            memory += len(parts.takes)
        targets = self._targets(learned.jaxpr.out_avals, inputs, memory)
        self.play = play_of(closed, inputs, targets, flag, memory + 1, own, effort)
        self._written, self._state = set(learned.written), [slot.tensor for slot in slots]
        self._followed = [slot for i, slot in enumerate(slots, arguments) if i in places and slot.leaf is not None]
        self._gradients: list[Any] = [None] * len(learned.new_grads)  # those that this program has made
        self._gradient_places = [(i, len(self._result_places) + k) for k, i in enumerate(learned.new_grads)]
        changes = (learned.written, learned.new_grads, learned.no_grads, learned.places, learned.switched, optimizers)
        self._changes_nothing = self._made and not any(changes) and self._exchanges is None
        self._counts = [state["step"] for o in lockstep for state in o.state.values() if "step" in state]

    def _targets(self, avals, inputs, memory: int) -> list[Value | None]:
        """Where each output belongs: in an input that is written, or in memory of its own."""
        learned = self.learned
        known = {*learned.passed, *learned.viewed, *learned.gradients, *learned.again}
        if learned.tail is not None:
            known -= {i for i, _ in learned.tail.roots}  # which have a node, whatever is put in their place
        targets: list[Value | None] = []
        for k, a in enumerate(avals[: len(avals) - learned.checked]):
            if k in known:
                targets.append(None)
            elif learned.results <= k < learned.results + len(learned.written):
                targets.append(inputs[learned.written[k - learned.results]])
            else:
                self._new.append((a.shape, a.dtype))
                targets.append(Value(a.shape, a.dtype, memory + len(self._new)))
        self._result_places = [k for k in range(learned.results) if k not in known]
        return targets

    def _divided(self, inputs: list[Value], memory: int, effort: Effort) -> Exchanges:
        """The parts that end with an exchange; the last one, after all of them, is what ``play`` is."""

        def made(part: Part) -> _PlayedPart:
            avals = part.closed.out_avals[: len(part.closed.out_avals) - part.checked]
            effort.elements -= 2 * avals[0].size  # to scale and to add them is little beside their exchange
            first = memory + len(part.takes) + 1
            targets: list[Value | None] = [Value(a.shape, a.dtype, k) for k, a in enumerate(avals, first)]
            known = [*inputs, *_taken(part.takes, memory)]
            play = play_of(part.closed, known, targets, part.checked, first, memory + 1, effort, beside=True)
            if play is None:
                raise NotPlayed("a part")
            return _PlayedPart(play, avals)

        return Exchanges(self.learned.jaxpr, self.learned.exchanges, self.learned.checked, True, made)

    def __call__(self, arguments: list[Tensor], call: tuple):
        """Run on ``arguments``, the tensors in ``call``: the function, its arguments and keywords."""
        landed()
        if self._changes_nothing:
            return self._structured(self._computed(arguments, call))
        if self._exchanges is None:
            return self._run(arguments, call, ())
        given, _ = self._gathered(arguments)
        found = self._exchanges(self._in_order(given))
        if found is None:
            raise Unexpected
        try:
            result = self._run(arguments, call, found)
        except (Outdated, Shared, Disturbed):
            raise changed_meanwhile() from None
        for part in self._exchanges.parts:
            if part.run is not None:
                part.run.end()
        return result

    def _gathered(self, arguments: list[Tensor]) -> tuple[list, list[Tensor]]:
        """The arrays that it is given, and all its tensors."""
        for slot in self._followed:
            self._follow(slot, arguments)
        tensors = [*arguments, *self._state]
        given = _arrays_of(tensors, self._taken) or self._brought_home(tensors)
        for t in arguments:
            if t._storage is not None and self._shares(tensors):
                raise Shared
        if self._counts and len({t._array.item() for t in self._counts}) > 1:
            raise Outdated
        if self._options:
            given.append(self._numbers())
        if self.learned.uses_rng:
            given.append(key_words())
        return given, tensors

    def _run(self, arguments: list[Tensor], call: tuple, found):
        """Play all of it, or what is left when ``found`` has come from other processes."""
        given, tensors = self._gathered(arguments)
        run = _Run(tensors, call, self._empty(tensors))
        given += map(np.asarray, found)
        given += run.new
        try:
            try:
                run.done.extend(starmap(self.play, (given,)))
            except TypeError:
                run.done.extend(starmap(self.play, (self._in_order(given),)))
            self._commit(run)
        except BaseException:
            if run.done:
                insist(lambda: self._commit(run))
            raise
        if run.results is None:
            raise Unexpected
        return self._structured(run.results)

    def _computed(self, arguments, call) -> list[Tensor]:
        """The results of a program that has no more than those: there is nothing to be undone or done to the end."""
        tensors = [*arguments, *self._state]
        given = _arrays_of(tensors, self._taken) or self._brought_home(tensors)
        new = [_empty(shape, dtype) for shape, dtype in self._new]
        if self.learned.uses_rng:
            given.append(key_words())
        try:
            done = self.play(*given, *new)
        except TypeError:
            done = self.play(*self._in_order(given), *new)
        if not done:
            raise Unexpected
        results = list(map(wrap, new[: self.learned.results]))
        if self._backward is not None and mode_state.grad:
            self._attach(results, arguments, new[self.learned.results :], None, call)
        return results

    def _follow(self, slot: Slot, arguments) -> None:
        """What is in a leaf's ``.grad`` now is meant, whoever put it there."""
        grad = slot.leaf._grad
        if any(map(is_, arguments, repeat(grad))):
            raise Shared
        if grad is slot.tensor:
            return
        if grad is None or slot.pinned or not slot.takes(grad) or any(map(is_, self._state, repeat(grad))):
            raise Outdated
        slot.tensor = grad
        self._state = [slot.tensor for slot in self.slots]

    def _brought_home(self, tensors) -> list:
        """The arrays where some are with other programs, or views not up to date; a view is not to be written."""
        for i in self._taken:
            t = tensors[i]
            if t._view is not None and i in self._written:
                t._come_home()
                if t._view is not None:
                    raise Shared
            elif t._view is not None:
                t._sync()
        return [tensors[i]._array for i in self._taken]

    def _shares(self, tensors) -> bool:
        """Does an argument have memory in common with something else that is written?"""
        storages = [id(t._storage) if t._storage is not None else -i for i, t in enumerate(tensors, 1)]
        arguments, state = storages[: self.arguments], storages[self.arguments :]
        if any(storages[i] in arguments for i in self._written if i >= self.arguments):
            return True
        written = [arguments[i] for i in self._written if i < self.arguments]
        return any(arguments.count(storage) > 1 or storage in state for storage in written)

    def _empty(self, tensors) -> list:
        """Memory for what is new. A gradient that nobody else has is written over."""
        made = [_empty(shape, dtype) for shape, dtype in self._new]
        for k, (i, place) in enumerate(self._gradient_places):
            array = _own_array(self._gradients, k, tensors[i])
            if array is not None:
                made[place] = array
        return made

    def _in_order(self, given: list) -> list:
        """What ``play`` did not take: what is only read may lie in memory anyhow, what is written may not."""
        written = [k for k, i in enumerate(self._taken) if i in self._written]
        if not all(given[k].flags.c_contiguous and given[k].flags.writeable for k in written):
            raise Disturbed
        return [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in given]

    def _commit(self, run: _Run) -> None:
        """Tell the tensors what has happened. May be interrupted, and done again from the start."""
        if not run.done[0]:
            run.results = None
            return
        learned, tensors, new = self.learned, run.tensors, run.new
        while run.counted < len(learned.written):
            tensors[learned.written[run.counted]]._counted().version += 1
            run.counted += 1
        results: list = [None] * learned.results
        for k, array in zip(self._result_places, new):
            results[k] = wrap(array)
        for k, (i, place) in enumerate(self._gradient_places):
            leaf, grad = tensors[i], self._gradients[k]
            if grad is None or grad._array is not new[place] or leaf._grad is not grad:
                self._gradients[k] = leaf._grad = wrap(new[place])
        for i in learned.no_grads:
            tensors[i]._grad = None
        if self._backward is not None and mode_state.grad:
            residuals = new[len(self._result_places) + len(self._gradient_places) :]
            self._attach(results, tensors[: self.arguments], residuals, None, run.call)
        if not self._made:
            self._put_known(results, tensors[: self.arguments])
        self._put_in_places(results)
        run.results = results

    def _input_value(self, i, arguments, arrays):
        t = self._input(i, arguments)
        t._sync()
        return t._array.copy()  # which may be written before backward comes


class _PlayedPart:
    """A part up to an exchange. What it makes is in memory that serves again when the step has ``end``-ed.

    A step that does not come to its end leaves it to whoever still exchanges it.
    """

    def __init__(self, play, avals):
        self._play, self._avals = play, avals
        self._free: list | None = None
        self._used: list = []

    def __call__(self, *given):
        made, self._free = self._free or [aligned(a.size, a.dtype).reshape(a.shape) for a in self._avals], None
        if not self._play(*map(np.asarray, given), *made):
            return None
        self._used = made
        return made[0], made[1:]

    def end(self) -> None:
        self._free = self._used


def _taken(variables, memory: int) -> list[Value]:
    """What a part takes: each in a memory of its own, after ``memory``."""
    return [Value(v.aval.shape, v.aval.dtype, k) for k, v in enumerate(variables, memory + 1)]


class _Run:
    """One execution: ``done`` is empty, or holds what ``play`` returned; ``counted``: how many writes are."""

    __slots__ = ("call", "counted", "done", "new", "results", "tensors")

    def __init__(self, tensors, call, new):
        self.tensors, self.call, self.new, self.counted = tensors, call, new, 0
        self.done: list[bool] = []
        self.results: list | None = []


def _own_array(gradients: list, k: int, leaf: Tensor):
    """The array of a gradient that a program has made, if it is still the leaf's and nobody else has it."""
    if gradients[k] is None or leaf._grad is not gradients[k]:
        return None
    return gradients[k]._array if _holders(gradients[k]) == _ALONE else None


def _holders(grad: Tensor) -> tuple[int, int]:
    """How many have a tensor, and its array."""
    return getrefcount(grad), getrefcount(grad._array)


def _alone() -> tuple[int, int]:
    """``_holders`` of a gradient that only its leaf and its program have."""
    leaf, gradients = wrap(np.empty(1)), [wrap(np.empty(1))]
    leaf._grad = gradients[0]
    return _holders(gradients[0])


_ALONE = _alone()
