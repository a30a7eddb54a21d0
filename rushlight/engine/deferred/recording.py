"""Recordings, and the programs that answer them.

A recording is a flat list of integers: for each call its kind's number and where its inputs come from (an earlier call
of the same recording, or, negative, outside). When a step ends or a value is needed the whole takes off as one XLA
program, found again by that list. Outputs that nobody holds any more are not computed; inputs that nobody holds any
more give their memory.

Programs are started by a thread of their own, one after the other, so that Python goes on recording the next step
meanwhile. No signal reaches that thread: an interrupt finds every array either computed or on its way.
"""

from __future__ import annotations

import atexit
import collections
import gc
import itertools
import os
import queue
import sys
import threading
import weakref
from operator import itemgetter
from typing import Any

import jax
import numpy as np

from ..cold.compiler import Job
from ..cold.interpreter import interpreter_for
from ..native import library
from ..xla.devices import check_room, device_at, explained, memory, traced_for_precision
from ..xla.options import compiler_options, use_cache
from . import kinds, report
from .array import Deferred
from .kinds import Kind

_LONG = 2_000  # calls; from then on a recording ends where it seems to begin again
_LONGEST = 20_000  # calls; here it ends in any case
_WARM, _HOT = 8, 24  # times: interpreted so often a program is given to the compiler, and from then on it must be ready
_PATIENCE = 60  # seconds until Python ends all the same: who waits for other processes may wait for ever
_SHIFT = 16  # a slot is the number of the call, and in these bits which of its outputs
_MASK = (1 << _SHIFT) - 1


_numbers = itertools.count()


class Recording:
    """What one thread has asked of one device since its last program took off."""

    def __init__(self, place):
        self.place, self.owner, self.device = place, threading.get_ident(), device_at(place)
        self.name = str(self.device)  # a key that is quick
        self.lock = threading.RLock()
        self._begin()

    def _begin(self) -> None:
        self.number = next(_numbers)
        self.log: list[tuple] = []  # (kind, where its inputs come from, outputs, numbers, key's words) of each call
        self.inputs: list[Deferred] = []
        self.slots: dict[int, int] = {}  # id of an input that another recording holds too -> its slot here
        self.before: list[tuple] = []  # (a tensor that was written, the slot of what it had)
        self.leaving: Flight | None = None  # made of this recording, but perhaps not on its way yet

    def add(self, kind: Kind, arrays: list[Deferred], numbers=(), key=None):
        """Record one call; returns its outputs, put together as the function's result was.

        The call is there whole or not at all, whenever an interrupt comes: one ``append`` is all that changes anything.
        """
        with self.lock:
            log = self.log
            if self.leaving is not None or (len(log) >= _LONG and self._is_over(kind)):
                self.run()
                log = self.log
            refs, made = promise(self, self.place, arrays, kind.outputs, len(log) << _SHIFT)
            log.append((kind, refs, made, numbers, key))
        build = kind.build
        return made[0] if build is None else build(made)

    def _is_over(self, kind: Kind) -> bool:
        return kind is self.log[0][0] or len(self.log) >= _LONGEST

    def _enter(self, a: Deferred) -> int:
        """The slot of an array from outside."""
        if a.value is None and a.flight is None:
            a.recording.run()  # another thread's, or another device's
        slot = self.slots.get(id(a))
        if slot is None:
            if a.place is not None and a.place is not self.place:
                raise _two_places(self.place, a.place)
            self.inputs.append(a)
            slot = -len(self.inputs)
            if a.recording is None:
                a.recording, a.slot = self, slot
            else:
                self.slots[id(a)] = slot
        return slot

    def run(self) -> None:
        """Start the program that computes what is promised and still wanted; done to the end if it was interrupted."""
        _spent.clear()
        with self.lock:
            if not self.log:
                return
            outputs = list(itertools.chain.from_iterable(map(itemgetter(2), self.log)))
            if self.leaving is None:
                with _gate:
                    wanted = tuple([i for i, n in enumerate(_holders(outputs)) if n > _FREE + 1])
                    free = _given_away(self.inputs, [outputs[i] for i in wanted])
                if wanted:
                    self.leaving = Flight(_program(self, wanted, free), self, outputs)
            if self.leaving is not None:
                for place, i in enumerate(self.leaving.program.live):
                    outputs[i].flight, outputs[i].seat = self.leaving, place
                _start_worker()
                _last[:] = [self.leaving]
                _queue.put(self.leaving)
            for a in itertools.chain(self.inputs, outputs):
                if a.recording is self:
                    a.recording = None
            self._begin()


def plain_promise(recording: Recording, place, arrays: list, outputs: tuple, slot: int) -> tuple[list, list]:
    """(where ``arrays`` come from in this recording, a promise for each of ``outputs``, numbered from ``slot``)."""
    refs = [a.slot if a.recording is recording else recording._enter(a) for a in arrays]
    made = []
    for i, aval in enumerate(outputs):
        a = object.__new__(Deferred)
        a.aval, a.shape, a.dtype, a.place, a.value = aval, aval.shape, aval.dtype, place, None
        a.recording, a.slot, a.flight, a.owned = recording, slot + i, None, True
        made.append(a)
    return refs, made


promise = plain_promise if library is None else library.promise  # the same in C

# Taken while results are handed out, and while somebody looks at who holds or waits for them.
_gate = threading.RLock()  # a signal handler may come here again
os.register_at_fork(after_in_child=_gate._at_fork_reinit)  # type: ignore[attr-defined]


def _holders(objects: list) -> list[int]:
    """How many references each object has; through ``map``, so that nothing here adds to them in passing."""
    return list(map(sys.getrefcount, objects))


_FREE = _holders([object()])[0]  # what that says of an object that only a list holds


def _given_away(inputs: list[Deferred], results: list[Deferred]) -> tuple[int, ...]:
    """Which inputs give their memory: those that nobody holds any more, as long as a result of their size needs it."""
    needed = collections.Counter([a.aval for a in results])
    given = []
    for i, n in enumerate(_holders(inputs)):
        a = inputs[i]
        if n <= _FREE and a.owned and needed[a.aval] > 0 and a.place is not None:
            needed[a.aval] -= 1
            given.append(i)
    return tuple(given)


class Flight:
    """A program on its way, and the arrays that it will give their values."""

    def __init__(self, program: Program, recording: Recording, outputs: list[Deferred]):
        self.program = program
        self.numbers = [n for call in recording.log for n in call[3]]
        self.keys = [call[4] for call in recording.log if call[4] is not None]
        self.inputs = [_ticket(a) for a in recording.inputs]
        self.handed_on: dict[int, Any] = {}  # results that later programs wait for, by seat
        self.targets = [weakref.ref(outputs[i]) for i in program.live]
        self.before = recording.before
        self.failure: Failure | None = None
        self.landed = False
        self._flying = threading.Lock()  # not an Event: an interrupt in its ``wait`` can come out as another error
        self._flying.acquire()

    def run(self) -> None:
        """In the thread that starts programs: compute, and hand out. A second time it has nothing to do."""
        if self.landed:
            return
        results: list = []
        try:
            values = [_value(a) for a in self.inputs]
            results = self.program(values, self.numbers, self.keys)
            _spent.append([values, self.inputs])
            del values
        except _Unmade as unmade:
            self._fail(unmade.args[0])
        except BaseException as error:
            self._fail(Failure(error))
        self.inputs, self.numbers, self.keys, self.before = [], [], [], []
        with _gate:
            for target, value in zip(self.targets, results):
                a = target()
                if a is not None:
                    a.value, a.flight = value, None
                del a  # who looks next at who holds it is not to find us
            self.handed_on = {seat: results[seat] for seat in self.handed_on} if results else {}
            self.landed = True
        self._flying.release()

    def _fail(self, failure: Failure) -> None:
        """Leave word what the tensors had that this was to write."""
        self.failure, first = failure, {}
        for tensor, slot in self.before:
            first.setdefault(id(tensor), (tensor, slot))
        made = self._made_before([slot for _, slot in first.values() if slot >= 0])
        for tensor, slot in first.values():
            value = made.get(slot) if slot >= 0 else _kept(self.inputs[-slot - 1], tensor)
            if value is not None and not (isinstance(value, jax.Array) and value.is_deleted()):
                failure.before.append((self, tensor, value))

    def _made_before(self, slots: list[int]) -> dict:
        """{slot: value} of what was made in this recording and then written, the first moments of an optimizer say."""
        if not slots:
            return {}
        calls = self.program.calls
        where = {slot: i for i, slot in enumerate(_slots(calls))}
        try:
            program = Program(calls, tuple(where[s] for s in slots), (), self.program.place)
            results = program([_value(a) for a in self.inputs], self.numbers, self.keys)
        except Exception:  # the memory is not there for these either
            return {}
        return dict(zip(slots, results))

    def wait(self) -> None:
        """Until it has landed, well or with a ``failure``."""
        while not self.landed:
            if self._flying.acquire(timeout=0.5):
                self._flying.release()
            else:
                _start_worker()


def _ticket(a: Deferred):
    """What a flight keeps of an input: its value, or the flight and the seat it comes with.

    Not the array itself. Who holds an array decides whether it gives its memory, hence which program runs, and that
    must not depend on how far the other thread has come.
    """
    flight = a.flight
    if flight is None:
        return a.value
    with _gate:
        if a.value is not None:
            return a.value
        flight.handed_on.setdefault(a.seat)
        return _Ticket((flight, a.seat))


class _Ticket(tuple):
    """(a flight, a seat): one of its results, when it has landed."""


def _value(given):
    if given.__class__ is not _Ticket:
        return given
    flight, seat = given
    if flight.failure is not None:
        raise _Unmade(flight.failure)
    return flight.handed_on[seat]


def _kept(given, tensor):
    """What a tensor had; if that is the result of a program that failed, what it had before that."""
    if given.__class__ is not _Ticket:
        return given
    flight, seat = given
    if flight.failure is None:
        return flight.handed_on[seat]
    return next((value for f, t, value in flight.failure.before if f is flight and t is tensor), None)


class Failure:
    """Why a program could not run, nor all that needed its results; and what their tensors had ``before``."""

    def __init__(self, error: BaseException):
        self.error = error
        self.before: list[tuple] = []  # (flight, tensor, value)

    def tell(self):
        """Raise it. The first who is told finds the tensors as they were."""
        landed()  # programs that wait for results of this one are to fail too, not to begin where it began
        with _gate:
            for flight, tensor, value in self.before:
                t = tensor()
                if t is not None and t._array.__class__ is Deferred and t._array.flight is flight:
                    t._array = Deferred(value)
                    t._counted().version += 1  # for views of it
            self.before = []
        raise self.error


class _Unmade(Exception):
    """An input of a program is the result of one that failed; its argument is the ``Failure``."""


_queue: queue.SimpleQueue = queue.SimpleQueue()
# Arrays that programs have used, for whoever records to let go of: JAX gives the interpreter away for each, and the
# thread that starts programs would wait milliseconds to get it back.
_spent: list[list] = []
_OBJECTS = 10_000  # more than so many new ones make the collector look
_last: list[Flight] = []  # the one that took off last, if somebody may have to wait for it
_worker: Any = None


def spare_collector() -> None:
    """Set aside what exists from the collector of reference cycles: after a compilation most of it is here to stay.

    A full collection goes through everything that JAX holds, 100 ms of a training step now and then. What has become
    garbage since the last time is collected first; ``cuda.empty_cache()`` does this too. A step makes ten thousand
    objects and lets go of all of them: with Python's setting, 700, the collector would look at them a dozen times.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    first, *others = gc.get_threshold()
    if 0 < first < _OBJECTS:
        gc.set_threshold(_OBJECTS, *others)


def _start_worker() -> None:
    """Have the thread that starts programs; a forked process has lost its parent's."""
    global _worker
    if _worker is None or not _worker.is_alive():
        _worker = threading.Thread(target=_work, name="rushlight programs", daemon=True)
        _worker.start()
        # It asks for the interpreter a few times for each program; with 5 ms each time the device would wait.
        sys.setswitchinterval(min(sys.getswitchinterval(), 0.0001))


def _work() -> None:
    while (flight := _queue.get()) is not None:
        flight.run()
        del flight


@atexit.register
def _close() -> None:
    """What has taken off is waited for when Python ends: a thread inside XLA would end the process by SIGABRT."""
    if _worker is not None and _worker.is_alive():
        _queue.put(None)
        _worker.join(_PATIENCE)


def landed() -> None:
    """Wait until everything that was asked for has been handed to the devices, and let go of what that has used up."""
    settle()
    if _last:
        _last[-1].wait()
        _last.clear()
    _spent.clear()


def _two_places(one, other) -> RuntimeError:
    return RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{device_at(one)} and {device_at(other)}! Move one with .to(device)."
    )


# -- whose recording ---------------------------------------------------------------------------------------------------


class _Local(threading.local):
    recordings: Any = None  # {JAX device: this thread's recording}
    last: Any = None  # the recording that was asked for last


_local = _Local()
_all: set = set()


def recording_on(place) -> Recording:
    """This thread's recording for a device."""
    mine = _local.recordings
    if mine is None:
        mine = _local.recordings = {}
    found = mine.get(place)
    if found is None:
        found = mine[place] = Recording(place)
        _all.add(found)
    _local.last = found
    return found


def last_place():
    return None if _local.last is None else _local.last.place


def recording_of(arrays: list[Deferred]) -> Recording:
    """The recording that a call on ``arrays`` belongs to."""
    place = next((a.place for a in arrays if a.place is not None), None)
    return recording_on(place or last_place() or jax.local_devices()[0])


def settle(everywhere: bool = False) -> None:
    """Run what this thread, or every thread, has recorded."""
    for recording in list(_all if everywhere else (_local.recordings or {}).values()):
        if recording.log:
            recording.run()


def replaced(written: list) -> None:
    """Tensors are about to have other arrays. If those cannot be computed, they get back what they have now."""
    recording, ref = written[0][1].recording, weakref.ref
    if recording is not None:
        recording.before += [
            (ref(t), t._array.slot)
            for t, array in written
            if t._array.__class__ is Deferred and t._array.recording is recording is array.recording
        ]


# -- programs ----------------------------------------------------------------------------------------------------------


class Program:
    """A recording to be run again and again, for given outputs that are wanted and inputs whose memory it may use.

    It is compiled when it first runs. Where there is an interpreter, it is interpreted the first times, and compiled
    when it keeps coming back: a second of the compiler's is worth some tens of runs. Which of the two runs does not
    depend on timing, so results do not either.
    """

    def __init__(self, calls: tuple, live: tuple, dead: tuple, place, line: str = ""):
        self.calls, self.live, self.dead, self.place = calls, live, dead, place
        self._given = frozenset(dead)
        self._whole: Any = jax.jit(
            _interpreter(calls, live, dead), donate_argnums=0, compiler_options=compiler_options(place.platform, None)
        )
        self._needs: int | None = None  # bytes beside its inputs; 0 where nobody knows what there is
        self._holding = f"It is for the step that {line} ends, which was not made. " if line else ""
        self._here = jax.device_put(np.zeros(0, np.uint8), place)
        self._cold = interpreter_for(place.platform)
        self._seen = 0  # how often it has been interpreted
        self._job: Job | None = None  # the compiler is at it

    def __call__(self, values, numbers, keys):
        if self._cold is not None:
            results = self._interpreted(values, numbers, keys)
            if results is not None:
                return results
        arguments = self._arguments(values, numbers, keys)
        first = self._needs is None
        try:
            if self._needs is None:
                self._needs = self._measure(arguments)
            if self._needs:
                check_room(self.place, self._needs, self._holding, arguments)
            results = self._whole(*arguments)
        except jax.errors.JaxRuntimeError:
            with explained(self.place, self._holding):
                raise
        if first and self.place.platform != "cpu":
            spare_collector()
        return results

    def _arguments(self, values, numbers, keys) -> tuple:
        given, kept = [values[i] for i in self.dead], [v for i, v in enumerate(values) if i not in self._given]
        # An array of no elements says where to run, also for a program that is given nothing else.
        return given, kept, numbers, np.stack(keys) if keys else None, self._here

    def _interpreted(self, values, numbers, keys):
        """The results call by call; None if it is to be compiled, by now or because it cannot be interpreted."""
        if self._seen >= _HOT and self._job is not None:
            self._whole, self._cold = self._job.result(), None
            return None
        try:
            results = self._cold.run(list(_calls(self.calls, numbers, keys)), self.live, values, self.place)
        except Exception:  # whatever the library refuses; nothing has been changed
            self._cold = None
            return None
        self._seen += 1
        if self._seen == _WARM:
            shapes = jax.tree.map(_shape, self._arguments(values, numbers, keys))
            self._job = Job(lambda: self._whole.lower(*shapes).compile())
        return results

    def _measure(self, arguments) -> int:
        """How much memory it needs: a device that runs out in the midst of it has lost what it was given."""
        if not memory(self.place)[1]:
            return 0
        program = self._whole.lower(*arguments).compile() if hasattr(self._whole, "lower") else self._whole
        needs: Any = program.memory_analysis()
        return max(0, needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes)


def _shape(x):
    """What a program is compiled for in the place of an array of the device's."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) if isinstance(x, jax.Array) else x


def _slots(calls: tuple) -> list[int]:
    """The slot of each output of a recording."""
    slots, at, number = [], 0, 0
    while at < len(calls):
        kind = kinds.by_id[calls[at]]
        slots += [(number << _SHIFT) + i for i in range(len(kind.outputs))]
        at, number = at + 1 + kind.arrays, number + 1
    return slots


def _calls(calls: tuple, numbers, keys):
    """The calls of a recording one by one: (kind, sources, numbers, key's words).

    A source is (a call, one of its outputs), or a number: that input.
    """
    numbers, keys, at = iter(numbers), iter(keys), 0
    while at < len(calls):
        kind = kinds.by_id[calls[at]]
        refs = calls[at + 1 : at + 1 + kind.arrays]
        at += 1 + kind.arrays
        sources = [(r >> _SHIFT, r & _MASK) if r >= 0 else -r - 1 for r in refs]
        yield kind, sources, [next(numbers) for _ in range(kind.numbers)], next(keys) if kind.keyed else None


def _interpreter(calls: tuple, live: tuple, dead: tuple):
    """The function that a recording is: its calls one after the other, on the arrays that JAX traces it with."""
    given = frozenset(dead)

    def whole(donated, kept, numbers, keys, here):
        donated, kept = iter(donated), iter(kept)
        inputs = [next(donated) if i in given else next(kept) for i in range(len(given) + kept.__length_hint__())]
        values: list[list] = []  # of each call
        for kind, sources, mine, key in _calls(calls, numbers, (keys[i] for i in itertools.count())):
            arrays = [values[s[0]][s[1]] if isinstance(s, tuple) else inputs[s] for s in sources]
            values.append(kind.run(arrays, mine, key))
        outputs = list(itertools.chain.from_iterable(values))
        return [outputs[i] for i in live]

    return whole


_programs: dict[tuple, list[Program]] = {}


def _program(recording: Recording, live: tuple, dead: tuple) -> Program:
    """A program for this recording: one made for it, or one that computes a little more or takes a little less."""
    calls: list[int] = []
    for kind, refs, *_ in recording.log:
        calls.append(kind.id)
        calls += refs
    key = recording.place, tuple(calls)
    variants = _programs.setdefault(key, [])
    wanted, free = set(live), set(dead)
    for program in variants:
        if (program.live == live or wanted.issubset(program.live)) and program._given <= free:
            return program
    use_cache()
    line = report.compiled(len(recording.log), len(variants) > 0)
    program = Program(key[1], live, dead, recording.place, line)
    variants.append(program)
    return program


def forget() -> None:
    """Drop every program, and the kinds they are made of."""
    settle(everywhere=True)
    _programs.clear()
    kinds.forget()


traced_for_precision.append(forget)
