"""``Compiled``: what ``compile`` makes of a function."""

from __future__ import annotations

import functools
import weakref

from ..autograd import mode
from ..autograd.mode import state as mode_state
from ..device import cpu
from ..engine import DEFER
from ..engine.xla.devices import place_of
from ..errors import warn_user
from ..tensor import Tensor
from .backward import awaits_backward
from .commit import LOCK
from .cut import Cut
from .discover import Watch
from .executable import Disturbed, Executable, Outdated, Shared, Slot, Unexpected
from .guards import CompileError, Executed, Unguardable, World
from .path import Path
from .played import played
from .program import Program
from .stance import current as stance
from .together import NEVER, Disagreed, Together, Vote, over_processes
from .trace import trace_until_known
from .tree import distinct, flatten, signature

__all__ = ["CompileError", "Compiled"]


_all: weakref.WeakSet = weakref.WeakSet()
_ATTEMPTS = 3  # a function may need some calls until it makes nothing new
_ENTRIES = 16  # worlds, and ways through them, that are remembered for arguments of one kind
_WAYS = 8  # ways through a function that depend on values
# In the place of entries: on an accelerator, a function whose backward comes later. What is called there is recorded
# anyway, and one program of a whole step, forward and backward and optimizer, is better than parts of it.
_RECORDED: list = []
_ANOTHER_WAY = object()  # what a program says that is not for the way that Python takes now
_KINDS = 256  # kinds of arguments that are remembered
_ON_RECOMPILE = ("eager_on_recompile", "fail_on_recompile")


def forget_all() -> None:
    for compiled in _all:
        compiled._entries.clear()


class Compiled:
    """A compiled function: a cache of programs by argument shapes, grad mode, and what else they depend on."""

    def __init__(self, fn, fallback=False, options=None, fullgraph=False, quiet=False):
        self._fn, self._fallback, self._options = fn, fallback, options
        self._fullgraph, self._quiet, self._told = fullgraph, quiet, quiet
        self._entries: dict = {}
        reason = getattr(getattr(fn, "__self__", fn), "compiled_in_parts", None)
        self._cut: Cut | None = Cut(fn, self._part, reason) if reason else None  # it is not one program
        self.compilations = 0
        self._together: Together | None = None  # of a function over several processes: all of them
        self._vote: Vote | None = None  # what they say to the call that is being made
        self._never = False  # have all of them found that it cannot be compiled?
        functools.update_wrapper(self, fn, updated=())
        _all.add(self)

    def __call__(self, *args, **kwargs):
        # Inside another compiled function, or kept out: a plain call.
        if (mode.active and mode_state.writers) or stance.eager or self._never:
            return self._fn(*args, **kwargs)
        if self._cut is not None:
            return self._cut(args, kwargs)
        if mode.active and mode_state.profile is not None:
            return mode_state.profile.program(f"compiled: {self._name()}", self, args, kwargs)
        with LOCK:
            if self._together is not None and self._vote is None:
                return self._with_others(args, kwargs)
            key = (tuple(map(signature, args)), signature(kwargs) if kwargs else None, mode_state.grad)
            given, twice = _tensors(args, kwargs)
            if twice is not None:
                key = (*key, twice)
            if mode.active and (mode_state.interceptors or mode_state.inference):
                key = (*key, mode_state.inference, tuple(map(_interceptor_key, mode_state.interceptors)))
            entries = self._entries.get(key)
            if entries is None:
                entries = self._entries[key] = []
            elif entries is _RECORDED:
                return self._plainly(args, kwargs)
            missed: list[Entry] = []
            for again in (False, True):
                for entry in entries:
                    if entry not in missed and entry.fits(given, again):
                        result = self._run(entry, args, kwargs, given) if entry.ready else _ANOTHER_WAY
                        if result is not _ANOTHER_WAY:
                            if entry is not entries[0]:
                                _move_to_front(entries, entry)
                            return result
                        missed.append(entry)
            if stance.name in _ON_RECOMPILE:
                return self._not_compiled(args, kwargs)
            if len(self._entries) > _KINDS:
                del self._entries[next(iter(self._entries))]
            result = self._another(entries, missed, args, kwargs, given)
            if DEFER and not self._fullgraph and awaits_backward(result):
                self._entries[key] = _RECORDED
            if self._together is None:
                mesh = over_processes((*given, *(entries[-1].state if entries else ())))
                self._together = None if mesh is None else Together(mesh)
            return result

    def _with_others(self, args, kwargs):
        """A call of a function whose tensors lie in several processes: they agree on what to launch."""
        vote = self._together.vote()  # type: ignore[union-attr]
        if vote is None:  # another world: what was known of the last one is over
            self._together = None
            self._entries.clear()
            return self(*args, **kwargs)
        self._vote = vote
        try:
            with vote.told:
                return self(*args, **kwargs)
        finally:
            self._vote = None

    def _plainly(self, args, kwargs):
        """The function itself. Other processes are told, unless they know."""
        if self._vote is not None:
            self._vote.abstain()
        return self._fn(*args, **kwargs)

    def _not_over_processes(self, args, kwargs):
        """There is no program here; if there is none in any process, nobody asks again."""
        if self._vote.abstain(NEVER):  # type: ignore[union-attr]
            self._never = True
            self._tell("compile: tensors over several processes, and no program: the function is called as it is", 4)
        return self._fn(*args, **kwargs)

    def _tell(self, what: str, level: int) -> None:
        """A warning, once, at the line that called the function."""
        if not self._told:
            self._told = True
            warn_user(what)

    def _name(self) -> str:
        """What a profile calls it."""
        function = getattr(self._fn, "__self__", self._fn)  # of a method of a module, the module
        return getattr(self._fn if function is self._fn else type(function), "__qualname__", type(function).__name__)

    def _another(self, entries, missed, args, kwargs, given):
        """No program fits: run eagerly, and remember what was seen. ``missed`` are ways that were not taken."""
        if len(missed) >= _WAYS or any(known.again > _WAYS for known in missed):
            if self._vote is not None:
                return self._plainly(args, kwargs)
            error = CompileError(f"compile: Python takes more than {_WAYS} ways through this function.")
            return self._in_parts(error, args, kwargs)
        entry = Entry((self._fn, args, kwargs))
        result = self._first(entry, args, kwargs, given)
        for known in missed:
            if known.path == entry.path:
                known.again += 1
                known.ready = True
                return result
        entry.ready = not missed  # another way is worth a program when it is taken again
        del entries[_ENTRIES - 1 :]
        entries.append(entry)
        return result

    def _not_compiled(self, args, kwargs):
        """There is no program, and there is to be no new one."""
        if stance.name == "fail_on_recompile":
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile': there is no program for these "
                "arguments, or something that it depends on has changed"
            )
        return self._plainly(args, kwargs)

    def __get__(self, instance, owner=None):
        """A compiled function in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def _first(self, entry, args, kwargs, given):
        """Run eagerly and watch, so that the next call can be traced."""
        if self._vote is not None:
            self._vote.abstain()
        watch, executed, before, path = Watch(), Executed(), mode.snapshot(), Path()
        try:
            with watch.watching(), executed, path.followed():
                result = self._fn(*args, **kwargs)
        except BaseException as error:
            if not isinstance(error, Exception):
                mode.restore(before)  # an interrupt may have come while a switch was on its way back
            raise
        returned: list[Tensor] = []
        flatten(result, returned)
        made = watch.made()
        entry.learn(watch, executed, watch.survivors(but=given + [t for t in returned if id(t) in made]))
        entry.path = () if self._fullgraph or self._fallback else tuple(path.taken)
        return result

    def _run(self, entry, args, kwargs, given):
        if entry.hopeless:
            return self._not_over_processes(args, kwargs)
        if entry.program is None:
            if stance.name in _ON_RECOMPILE:
                return self._not_compiled(args, kwargs)
            before = mode.snapshot()
            try:
                entry.program = self._compile(entry, args, kwargs, given)
            except BaseException as error:
                if not isinstance(error, Exception):
                    mode.restore(before)
                    raise
                if isinstance(error.__cause__, Unguardable) and entry.attempts < _ATTEMPTS:
                    return self._first(entry, args, kwargs, given)
                if self._vote is not None:
                    entry.hopeless = True
                    return self._not_over_processes(args, kwargs)
                if self._fullgraph:
                    raise
                return self._in_parts(error, args, kwargs)
        try:
            bound = entry.with_bound(given) if entry.places else given
            entry.program.vote = self._vote
            return entry.program(bound, (self._fn, args, kwargs))
        except Outdated:
            entry.program = None
            return self._run(entry, args, kwargs, given)
        except Shared:
            return self._eagerly(args, kwargs)
        except Disturbed:
            return self._plainly(args, kwargs)  # that comes to an end whoever takes what
        except Disagreed:
            if self._together.differed == _ATTEMPTS:  # type: ignore[union-attr]
                self._tell(
                    "compile: processes have different programs of this function, as when a rank is a number in its "
                    "arithmetic: it is called as it is", 4,
                )  # fmt: skip
            return self._plainly(args, kwargs)
        except Unexpected:
            if self._vote is not None:
                self._vote.again()
            if entry.path:
                return _ANOTHER_WAY
            return self._plainly(args, kwargs)  # an operator refuses what it is given: it says so itself

    def _eagerly(self, args, kwargs):
        """This call is not one that its program could do."""
        self._tell(
            "compile: the function writes to memory that an argument shares with another tensor that it uses; such "
            "calls run eagerly",
            5,
        )
        return self._plainly(args, kwargs)

    def _in_parts(self, error, args, kwargs):
        """This function is not one program: its Python runs now and at every call."""
        if not isinstance(error, CompileError):
            result = self._fn(*args, **kwargs)  # it may be wrong itself; then this says so
            error = CompileError(f"compile: this function cannot be traced: {type(error).__name__}: {error}")
            self._cut_up(error)
            return result
        self._cut_up(error)
        return self._cut(args, kwargs)

    def _cut_up(self, error: CompileError) -> None:
        self._cut = Cut(self._fn, self._part, str(error))
        self._entries.clear()
        if not self._quiet:
            warn_user(
                f"{error}\nThe function is cut: its Python runs at every call"
                + (", eagerly." if self._fallback else ", and the modules it calls are compiled each by itself. ")
                + "fullgraph=True makes this an error."
            )

    def reason_for_cut(self, *args, **kwargs) -> str | None:
        """Call it, and say why it is not one program, if it is none."""
        entry, (given, _) = Entry((self._fn, args, kwargs)), _tensors(args, kwargs)
        try:
            for _ in range(_ATTEMPTS):
                self._first(entry, args, kwargs, given)
                try:
                    self._compile(entry, args, kwargs, given)
                except CompileError as error:
                    if not isinstance(error.__cause__, Unguardable):
                        raise
                else:
                    return None
            self._compile(entry, args, kwargs, given)
        except CompileError as error:
            return str(error)
        return None

    def _part(self, module) -> Compiled | None:
        return None if self._fallback else Compiled(module, options=self._options, quiet=True)

    def _compile(self, entry, args, kwargs, given) -> Executable:
        if entry.outside:
            raise CompileError(f"compile: {entry.outside[0]}, which has to happen at every call.")
        state, views = entry.state, entry.views
        device = next((t.device for t in [*given, *state] if t.device != cpu), cpu)
        lockstep = [o._in_lockstep() for o in entry.optimizers]
        with Executed() as executed:
            try:
                learned, state = trace_until_known(
                    self._fn, args, kwargs, given, state, views, entry.optimizers, device, lockstep, entry.world,
                    checked=device == cpu, path=Path(entry.path) if entry.path and device == cpu else None,
                )  # fmt: skip
            except Unguardable as error:
                raise CompileError(f"compile: this function cannot be compiled: {error}") from error
        self.compilations += 1
        together = [o for o, yes in zip(entry.optimizers, lockstep) if yes]
        entry.settle(given, state, learned.places, executed)
        given = entry.with_bound(given)
        slots = entry.slots(given)
        if device == cpu:
            program = played(learned, given, slots, entry.optimizers, together, device)
            if program is not None:
                return program
        return Program(learned, len(given), slots, entry.optimizers, together, place_of(device), self._options)


def _move_to_front(entries: list, entry) -> None:
    entries.remove(entry)
    entries.insert(0, entry)


def _tensors(args, kwargs) -> tuple[list[Tensor], tuple | None]:
    """The tensors among the arguments and their gradients, each once; and who is who, if one is there twice."""
    given = [t for t in args if isinstance(t, Tensor)]
    if kwargs or len(given) < len(args):
        given = []
        flatten((args, kwargs), given)
    given += [t._grad for t in given if t._grad is not None]
    if len(given) == 2 and given[0] is not given[1]:  # the usual case
        return given, None
    if len(given) > 1 and len(set(map(id, given))) < len(given):
        return distinct(given)
    return given, None


class Entry:
    """One set of argument shapes and one world: first only what was seen in the eager run, later also the program."""

    def __init__(self, roots):
        self.program: Executable | None = None
        self.attempts = 0
        self.hopeless = False  # over several processes: it cannot be traced
        self.ready, self.again = True, 0  # may it be compiled; how often was this way taken that it was not found for
        self.path: tuple = ()  # the truths and whole numbers that Python asked for
        self.places: list = []
        self._roots, self._world = roots, None

    def learn(self, watch: Watch, executed: Executed, state) -> None:
        self.attempts += 1
        self.state, self.views = state, watch.views
        self.optimizers, self.modules, self._executed = watch.optimizers, watch.modules, [executed]

    @property
    def outside(self) -> list[str]:
        return self._executed[0].outside

    def world(self, places) -> World:
        fn, *arguments = self._roots
        return World((fn, *self.modules, *self.optimizers), arguments, self._executed, places, self.state)

    def with_bound(self, given) -> list[Tensor]:
        """``given``, and the tensors that the function binds anew."""
        return self._with_bound(given)[0]

    def _with_bound(self, given):
        bound: list[Tensor] = []
        flatten([place.get() for place in self.places], bound)
        return distinct([*given, *bound])

    def settle(self, given, state, places, executed) -> None:
        """Traced: what holds now must hold at every call."""
        self.state, self.places = state, places
        self._executed = [*self._executed, executed]
        self._bound = [signature(place.get()) for place in places]
        switches = [(group, name) for o in self.optimizers for group in o.param_groups for name in o.switches]
        self._switched = [(group, name, bool(group[name])) for group, name in switches]
        self._world = self.world(places)
        seen = self._world.reached | {id(t._grad) for t in state}
        self._same = [(i, t) for i, t in enumerate(given) if id(t) in seen]  # arguments that it knows anyway
        self._others = {id(t) for t in state}  # that an argument must not be
        self._who = self._with_bound(given)[1]

    def fits(self, given, again: bool) -> bool:
        """Is the world still as it was when this entry was made? See ``World.unchanged``."""
        if self._world is None:
            return True
        if not self._others.isdisjoint(map(id, given)):
            return False
        if self._same and any(given[i] is not t for i, t in self._same):
            return False
        if self._bound:
            if self._bound != [signature(place.get()) for place in self.places]:
                return False
            if self._who != self._with_bound(given)[1]:
                return False
        for group, name, switched in self._switched:
            if bool(group[name]) is not switched:
                return False
        return self._world.unchanged(again)

    def slots(self, given) -> list[Slot]:
        inputs = [*given, *self.state]
        gradients = {id(t._grad): (i, t) for i, t in enumerate(inputs) if t._grad is not None}
        made = []
        for t in self.state:
            leaf = gradients.get(id(t))
            made.append(Slot(t) if leaf is None else Slot(t, leaf[1], leaf[0], id(t) in self._world.reached))
        return made


def _interceptor_key(handler):
    """What a program depends on of an interceptor in force: an autocast's settings, else which one it is."""
    return getattr(getattr(handler, "__self__", None), "signature", None) or id(handler)
