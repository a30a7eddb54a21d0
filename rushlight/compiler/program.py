"""A program compiled by XLA: a traced function, the state it lives on, and the call that runs it."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, islice, repeat, starmap
from operator import is_
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..autograd.mode import state as mode_state
from ..autograd.views import put
from ..engine import computed, landed
from ..engine.numpy.alignment import aligned_copy, is_aligned
from ..engine.xla.devices import check_room, device_at, explained, memory, size_text
from ..engine.xla.options import compiler_options, use_cache
from ..engine.xla.world import Asked, cause, quiet
from ..errors import DistBackendError
from ..storage import is_lent
from ..tensor import Tensor, wrap
from . import apart, meshes
from .commit import RUNNING, Run, insist
from .exchanges import Exchanges, Part, changed_meanwhile
from .executable import Disturbed, Executable, Outdated, Shared, Slot, Unexpected, key_words
from .guards import CompileError
from .residence import SMALL, Group, current, lies_at, move, own_buffer
from .steps import played_test
from .trace import Traced, ahead, narrowed, trace_backward

_ndarray = np.ndarray
_ATTEMPTS = 9  # a signal handler that comes more often than tensors can be gathered must not hold a call up for ever
_SMALL = 64 * 1024  # bytes; XLA copies an argument in NumPy's memory at once, larger ones in another thread
_COPIED = 256 * 1024  # bytes; up to this size we copy it, beyond it the call waits


class Program(Executable):
    """Executes a trace by XLA.

    Small state travels in two groups, what the program writes and what it only reads; large state in buffers of its
    own, donated where written. The jaxpr's inputs are put together from these inside the compiled program.
    """

    def __init__(self, learned: Traced, arguments: int, slots: list[Slot], optimizers, lockstep, place, options):
        self._written_group: Any = None
        self._lent: list[Tensor] = []  # state whose memory somebody outside has too
        self._read_group: Any = None
        super().__init__(learned, arguments, slots, optimizers, lockstep)
        self.place, mesh = place, learned.mesh
        self.over_processes = mesh is not None and not meshes.is_here(mesh)
        self._processes: Any = meshes.processes(mesh, learned.forms[arguments:]) if self.over_processes else None
        self._home = self._home_of_tensors()
        self._old_grads = self._replaceable()
        self._outputs = self._outputs_by_input()
        self._new_lie = self._lie(learned.results + len(learned.written), learned.new_grads)
        self._new_grads = [i for i in learned.new_grads if i not in self._old_grads]
        self._replaced = set(learned.new_grads).difference(self._new_grads)
        self._written_arguments = [i for i in range(arguments) if i in self._outputs]
        use_cache()
        self._layout()
        placed = (*self._small_written, *self._small_read, *self._large_written, *self._large_read)
        self._grad_slots = [slot for slot in placed if slot.leaf is not None]
        self._look_ahead()
        self._narrow_gradients()
        self._settled = False  # has the last call gone straight to C++, no Python of JAX's in between?
        state = sum(math.prod(slot.shape) * slot.dtype.itemsize for slot in slots)
        self._holding = f"The compiled function's own state takes {size_text(state)}. "
        self._count_outputs()
        options = compiler_options(place.platform, options)
        self._exchanges = self._divided(options) if learned.exchanges else None
        # Old gradients are not read, but given too: their memory is where the new ones go.
        final, left = (self._final, []) if self._processes is None else self._of_all_processes()
        lie: dict[str, Any] = {} if mesh is None else {"out_shardings": self._shardings()}
        self._execute = jax.jit(
            final, donate_argnums=range(self._cuts[1]), keep_unused=True, compiler_options=options, **lie
        )
        if learned.tail is not None:
            self._backward = trace_backward(learned, device_at(place), options, self._processes, left)

    def __del__(self):
        if self._written_group is not None:
            _forgotten.append((self._written_group, [slot.tensor for slot in self._large_written]))
            dissolve_forgotten()

    # -- building ----------------------------------------------------------------------------------------------------

    def _home_of_tensors(self):
        """Where what is not over a mesh goes."""
        if self._processes is not None:
            return self._processes.home
        return self.place if self.learned.mesh is None else meshes.everywhere(self.learned.mesh)

    def _outputs_by_input(self) -> dict[int, int]:
        """{input: the jaxpr output that is its new value}; a leaf's new gradient is its old one's new value."""
        learned = self.learned
        found = {i: learned.results + k for k, i in enumerate(learned.written)}
        first = learned.results + len(learned.written)
        for k, leaf in enumerate(learned.new_grads):
            if leaf in self._old_grads:
                found[self._old_grads[leaf]] = first + k
        return found

    def _replaceable(self) -> dict[int, int]:
        """{leaf: the input that was its gradient} where nobody else has that one: the new one may take its place."""
        learned = self.learned
        elsewhere = {*learned.written, *learned.moved_grads.values(), *learned.passed.values()}
        elsewhere |= {i for i, _ in learned.viewed.values()}
        slots = [(i, slot) for i, slot in enumerate(self.slots, self.arguments) if not slot.pinned]
        lie = self._lie(len(learned.written) + learned.results, learned.new_grads)
        return {
            slot.grad_of: i for i, slot in slots
            if slot.grad_of is not None and i not in elsewhere and lie.get(slot.grad_of) == slot.laid
        }  # fmt: skip

    def _lie(self, first: int, names) -> dict:
        """How outputs lie, by their names; the first of them is output ``first``."""
        return dict(zip(names, self.learned.laid[first : first + len(names)]))

    def _layout(self) -> None:
        """Sort the slots into (written, read) x (small, large); small ones get a start in their dtype's flat buffer."""
        self._small_written, self._small_read, self._large_written, self._large_read = [], [], [], []
        sizes: dict = {}
        for k, slot in enumerate(self.slots):
            written, used = self.arguments + k in self._outputs, self.learned.used[self.arguments + k]
            size = math.prod(slot.shape)
            slot.unread = not used
            if not (written or used):
                continue
            if size * slot.dtype.itemsize <= SMALL and slot.laid is None:
                (self._small_written if written else self._small_read).append(slot)
                slot.start = sizes.get((written, slot.dtype), 0)
                sizes[written, slot.dtype] = slot.start + size
            else:
                (self._large_written if written else self._large_read).append(slot)

    def _look_ahead(self) -> None:
        """Values of arguments are looked at before the program runs, if there are any to look at; others by itself."""
        self._jaxpr, self._checked = closed, checked = self.learned.jaxpr, self.learned.checked
        self._shapes = [aval.shape for aval in closed.out_avals[: self.learned.results]]
        self._check = None
        found = ahead(closed, self.arguments) if checked else None
        if found is not None and not any(self.learned.forms[i] for i in found[0] if self.over_processes):
            self._taken, part = found
            self._check = played_test(part) or jax.jit(
                lambda *arrays: jax.core.eval_jaxpr(part.jaxpr, part.consts, *arrays)[0]
            )
            self._jaxpr = closed.replace(jaxpr=closed.jaxpr.replace(outvars=closed.jaxpr.outvars[:-1]))
            self._checked = False

    def _narrow_gradients(self) -> None:
        """Large gradients leave the program in the precision they were computed in; whoever looks gets them widened."""
        places = {id(slot): self._outputs[self.arguments + k] for k, slot in enumerate(self.slots)
                  if slot.leaf is not None and self.arguments + k in self._outputs}  # fmt: skip
        if self._checked:  # then the old gradient may be the new one
            places = {}
        large = [places[id(slot)] for slot in self._large_written if id(slot) in places and slot.unread]
        self._jaxpr = narrowed(self._jaxpr, large)

    def _divided(self, options) -> Exchanges:
        """The parts that end with an exchange; the last one, after all of them, is what this program executes."""
        if self.learned.tail is not None or self.learned.mesh is not None:
            raise CompileError("compile: a forward pass alone, or one over a mesh, that exchanges is not one program.")
        made = lambda part: self._compiled_part(part, options)
        parts = Exchanges(self._jaxpr, self.learned.exchanges, self._checked, self.place.platform == "cpu", made)
        self._jaxpr, self._checked = parts.last, False
        return parts

    def _compiled_part(self, part: Part, options):
        """A part as a program; the host looks at the flag, if it has one."""

        def body(*given):
            inputs, _, others = self.unpacked(given)
            return jax.core.eval_jaxpr(part.closed.jaxpr, part.closed.consts, *inputs, *others)

        def run(*given):
            sent, *made = execute(*given)
            return (sent, made) if not part.checked or made[-1] else None

        execute = jax.jit(body, compiler_options=options)
        return run

    def _count_outputs(self) -> None:
        """Where each kind of output begins: buffers of small state, large state, results, written arguments, ..."""
        learned = self.learned
        self._written_names = list(dict.fromkeys(slot.dtype.name for slot in self._small_written))
        self._read_names = list(dict.fromkeys(slot.dtype.name for slot in self._small_read))
        kinds = (self._written_names, self._large_written, range(learned.results), self._written_arguments)
        self._cuts = list(accumulate(map(len, (*kinds, self._new_grads))))
        changed = learned.no_grads or learned.moved_grads
        self._plain = not (self._written_arguments or self._new_grads or changed or learned.places)

    def _final(self, *given):
        """The whole program: cut the flat buffers, run the jaxpr, put the written ones together again.

        It is given what ``_inputs`` returns and returns one flat tuple: JAX is quicker without structure.
        """
        inputs, values, carried = self.unpacked(given)
        outputs = jax.core.eval_jaxpr(self._jaxpr.jaxpr, self._jaxpr.consts, *inputs, *carried)
        return self._sorted_outputs(outputs, values)

    def unpacked(self, given):
        """The jaxpr's inputs; the values of all slots, by their ids; what is left of ``given``."""
        given, values = iter(given), {}
        for small, names, large in (
            (self._small_written, self._written_names, self._large_written),
            (self._small_read, self._read_names, self._large_read),
        ):
            buffers = dict(zip(names, given))
            values.update(zip(map(id, large), given))
            for slot in small:
                flat = buffers[slot.dtype.name]
                part = jax.lax.slice(flat, (slot.start,), (slot.start + math.prod(slot.shape),))
                values[id(slot)] = jnp.reshape(part, slot.shape)
        arguments = list(islice(given, self.arguments))
        hyper = next(given) if self._options else ()
        scalars = [hyper[i] for i in range(hyper.shape[0])] if self._options else []
        unread = np.zeros(())  # stands for what the program does not look at
        key = next(given) if self.learned.uses_rng else unread
        return [*arguments, *(values.get(id(slot), unread) for slot in self.slots), *scalars, key], values, given

    def _sorted_outputs(self, outputs, old: dict) -> tuple:
        """The jaxpr's outputs as ``_count_outputs`` says; if a check fails, state stays as it was."""
        learned, parts = self.learned, {}
        new = {id(slot): outputs[self._outputs[self.arguments + k]] for k, slot in enumerate(self.slots)
               if self.arguments + k in self._outputs}  # fmt: skip
        if self._checked:
            new = {key: jnp.where(outputs[-1], value, old[key]) for key, value in new.items()}
        for slot in self._small_written:
            parts.setdefault(slot.dtype.name, []).append(jnp.reshape(new[id(slot)], -1))
        first_new = learned.results + len(learned.written)
        return (
            *(jnp.concatenate(parts[name]) for name in self._written_names),
            *(new[id(slot)] for slot in self._large_written),
            *outputs[: learned.results],
            *(outputs[self._outputs[i]] for i in self._written_arguments),
            *(outputs[first_new + learned.new_grads.index(i)] for i in self._new_grads),
            *outputs[first_new + len(learned.new_grads) :],
        )

    def _shardings(self) -> tuple:
        """How outputs lie on the mesh, in the order of ``_sorted_outputs``."""
        everywhere = meshes.everywhere(self.learned.mesh)
        home, lie = everywhere, lambda how: how.sharding
        if self._processes is not None:
            home, lie = self._processes.home.sharding, lambda how: self._processes.sharding(how.sharding)
        lies = [home if how is None else lie(how) for how in self.learned.laid]
        kept = self.learned.results + len(self.learned.written) + len(self.learned.new_grads)
        lies[kept:] = [None] * len(lies[kept:])  # what backward needs lies as XLA likes
        return self._in_order(lies, home, everywhere)

    def _in_order(self, of_outputs: list, packed, flag) -> tuple:
        """What is known of the jaxpr's outputs, of buffers of small state, and of the flag, as they are returned."""
        first_new, places = self.learned.results + len(self.learned.written), self._outputs
        by_slot = {
            id(slot): places[self.arguments + k] for k, slot in enumerate(self.slots) if self.arguments + k in places
        }
        return (
            *(packed for _ in self._written_names),
            *(of_outputs[by_slot[id(slot)]] for slot in self._large_written),
            *of_outputs[: self.learned.results],
            *(of_outputs[places[i]] for i in self._written_arguments),
            *(of_outputs[first_new + self.learned.new_grads.index(i)] for i in self._new_grads),
            *of_outputs[first_new + len(self.learned.new_grads) :],
            *((flag,) if self._checked else ()),
        )

    def _of_all_processes(self):
        """(``_final`` as a program of all processes, the levels of what backward needs), see ``apart``."""
        learned, processes = self.learned, self._processes
        kept = learned.results + len(learned.written) + len(learned.new_grads)
        levels: list = [processes.level_of(how) for how in learned.laid]
        levels[kept:] = [None] * len(levels[kept:])
        like, given = self._like_inputs()
        wanted = [*self._in_order(levels, processes.own, None)]
        final, found = apart.program(self._final, processes, like, given, wanted)
        return final, found[self._cuts[-1] : self._cuts[-1] + len(levels) - kept]

    def _like_inputs(self) -> tuple[list, list]:
        """(shapes and dtypes, levels) of what one process gives the program, in the order of ``_inputs``."""
        avals, levels = self.learned.jaxpr.in_avals, []
        count, like = self.arguments + len(self.slots), []
        places = {id(slot): self.arguments + k for k, slot in enumerate(self.slots)}
        for small, names, large in (
            (self._small_written, self._written_names, self._large_written),
            (self._small_read, self._read_names, self._large_read),
        ):
            for name in names:
                size = sum(math.prod(slot.shape) for slot in small if slot.dtype.name == name)
                like.append(jax.ShapeDtypeStruct((size,), np.dtype(name)))
                levels.append(self._processes.own)
            like += [avals[places[id(slot)]] for slot in large]
            levels += [self._processes.level_of(slot.laid) for slot in large]
        like += avals[: self.arguments]
        levels += [self._processes.level_of(how) for how in self.learned.forms[: self.arguments]]
        if self._options:
            like.append(jax.ShapeDtypeStruct((len(avals) - count - 1,), np.float64))
            levels.append(None)
        if self.learned.uses_rng:
            like.append(avals[-1])
            levels.append(self._processes.own)
        return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in like], levels

    # -- running -----------------------------------------------------------------------------------------------------

    def __call__(self, arguments: list[Tensor], call: tuple):
        """Run on ``arguments``, the tensors in ``call``: the function, its arguments and keywords."""
        landed()  # what is recorded may still need arrays that are given away here
        arrays, large = self._arrays(arguments)
        if self._check is not None and not self._check(*[arrays[i] for i in self._taken]):
            raise Unexpected
        with RUNNING:
            if _forgotten:
                dissolve_forgotten()
            counted = [id(t._storage) for t in arguments if t._storage is not None]
            if counted:
                self._check_memory(arguments, counted, self._written_group)
            exchanged: list = []
            run, attempts = self._executed(arguments, arrays, call, exchanged), 1
            while not run.outputs:  # somebody took a tensor away: once more, with that
                if attempts == _ATTEMPTS and not self._promised(exchanged):
                    raise Disturbed
                run, attempts = self._executed_again(arguments, arrays, call, exchanged), attempts + 1
        for t in self._lent:
            t._come_home()  # somebody outside sees and writes its memory
        if run.results is None:
            raise Unexpected
        if large:
            jax.block_until_ready(run.outputs)  # it reads memory that eager code goes on writing to
        return self._structured(run.results)

    def _executed(self, arguments, arrays, call, exchanged: list) -> Run:
        """Gather the group that is written, with all its members, and run on it."""
        written = self._written_group
        if self._grad_slots:
            self._follow_gradients(arguments, written is None or written.shown or not written.intact)
        if written is None or not written.intact:
            written = self._written_group = self._group(written, self._small_written, self._large_written)
        run = Run(self._commit, arguments, arrays, call)
        try:
            written.begin(run)
            inputs = self._inputs(arrays)
            if self._exchanges is not None:
                inputs = (*inputs, *self._exchanged(inputs, exchanged))
            run.inputs.append(inputs)
            if not self._settled:
                self._compile(run.inputs)
            if self.vote is not None:
                self.vote.launch(self)
            if written.awaits(run):  # what is taken out later takes the inputs back
                if self._settled and not self.over_processes:
                    run.execute(self._execute)
                else:
                    self._run_apart(run)
            run.finish()
            return run
        except BaseException as error:
            # Interrupted: before the program ran, or when its outputs were under way to their places. Or it failed.
            insist(run.finish if run.outputs else partial(written.failed, self._loss(error)))
            with explained(self.place, self._holding):
                raise

    def _executed_again(self, arguments, arrays, call, exchanged: list) -> Run:
        try:
            return self._executed(arguments, arrays, call, exchanged)
        except Outdated:
            if not self._promised(exchanged):
                raise
            raise changed_meanwhile() from None

    def _promised(self, exchanged: list) -> bool:
        """Do other processes count on this call?"""
        return bool(exchanged) or (self.vote is not None and self.vote.agreed)

    def _exchanged(self, inputs: tuple, exchanged: list) -> list:
        """What came from other processes, in ``exchanged``: they do not send it again if this has to begin anew."""
        if not exchanged:
            found = self._exchanges(inputs)  # type: ignore[misc]
            if found is None:
                raise Unexpected
            exchanged.append(found)
        return exchanged[0]

    def _check_memory(self, arguments, counted: list[int], written: Group | None) -> None:
        """Raise if an argument shares its memory with a tensor that is written, or is written and shares it.

        ``counted`` are the ids of the arguments' storages.
        """
        if written is not None and written.intact:
            states = {id(written.storage)}
        else:
            states = {id(slot.tensor._storage) for slot in (*self._small_written, *self._large_written)}
        if not states.isdisjoint(counted):
            raise Shared
        if self._written_arguments:
            states = {id(slot.tensor._storage) for slot in self.slots}
            for i in self._written_arguments:
                storage = arguments[i]._storage
                if storage is not None and (id(storage) in states or counted.count(id(storage)) > 1):
                    raise Shared

    def _inputs(self, arrays) -> tuple:
        """What the program is given, in the order in which ``_final`` takes it."""
        read = self._read_group
        if read is None or not read.intact:
            read = self._read_group = self._group(read, self._small_read)
        kept = [own_buffer(slot.tensor, self._home) for slot in self._large_read] if self._large_read else ()
        numbers = (self._numbers(),) if self._options else ()
        key = (key_words(),) if self.learned.uses_rng else ()
        if self._processes is not None:
            arrays, key = [self._at_home(x, i) for i, x in enumerate(arrays)], tuple(map(self._home.put, key))
        return (*self._written_group.lend(), *read.lend(), *kept, *arrays, *numbers, *key)

    def _at_home(self, array, i: int):
        """The array of input ``i``, where the program takes it."""
        if self._processes is None:
            return array
        how = self.learned.forms[i]
        return self._home.put(array) if how is None else self._processes.joining(array, how.sharding)

    def _arrays(self, arguments):
        """The arguments' arrays, and whether among them is NumPy memory too large to be copied for XLA."""
        arrays, large = [], False
        for t in arguments:
            if t._view is not None:
                t._sync()
            array = t._array
            if array.__class__ is not _ndarray:
                array = meshes.held(computed(array))
            elif array.nbytes <= _SMALL:  # XLA may read NumPy's memory after the call has returned
                array = array.copy()
            elif array.nbytes <= _COPIED or not is_aligned(array):
                array = aligned_copy(array)
            else:
                large = True
            arrays.append(array)
        return arrays, large

    def _run_apart(self, run: Run) -> None:
        known = _programs(self._execute)
        if self.over_processes:
            wait = not self._settled or self.place.platform == "cpu"
            with nullcontext() if self._settled else quiet():
                run.execute_asked(
                    Asked(self._named(), partial(_executed, self._execute, run, wait), connects=not self._settled)
                )
        else:
            run.execute_apart(self._execute)
        self._settled = bool(run.outputs) and _programs(self._execute) == known

    def _named(self) -> str:
        """What errors call it."""
        return "a compiled function" if self.vote is None else self.vote.what

    def _loss(self, error: Any) -> RuntimeError:
        """What is to be said of state that the program was given, if it has failed."""
        kind = DistBackendError if self.over_processes else RuntimeError
        return kind(
            f"the values of this tensor were given to a compiled program that failed ({cause(error)}): load them from "
            "a checkpoint"
        )

    def _commit(self, run: Run) -> None:
        """Put what the program returned where it belongs. May be interrupted, and done again from the start."""
        outputs, arguments = run.outputs[0], run.arguments
        buffers, large, results, written, fresh = self._cuts
        self._written_group.replace(dict(zip(self._written_names, outputs)), list(outputs[buffers:large]))
        if self._checked:
            if not outputs[-1]:
                run.results = None
                self._written_group.end()
                return
            outputs = outputs[:-1]
        if not self._plain:
            for i, value in zip(self._written_arguments, outputs[results:written]):
                t = arguments[i]
                put(t, self._written(value, t._array))
            for i, value in zip(self._new_grads, outputs[written:fresh]):
                leaf = self._input(i, arguments)
                shape = meshes.held(leaf._array).shape
                leaf._grad = self._made_of(value, leaf, self._new_lie.get(i), shape)  # a tensor that nobody has yet
            for i in self.learned.no_grads:
                self._input(i, arguments)._grad = None
            for i, source in self.learned.moved_grads.items():
                self._input(i, arguments)._grad = self._input(source, arguments)
        like = arguments[0] if arguments else self.slots[0].tensor if self.slots else None
        made = zip(outputs[large:results], self.learned.laid, self._shapes)
        run.results = [self._made_of(value, like, how, shape) for value, how, shape in made]
        if self._backward is not None and mode_state.grad:
            self._attach(run.results, arguments, outputs[fresh:], run.arrays, run.call)
        if not self._made:
            self._put_known(run.results, arguments)
        self._put_in_places(run.results)
        self._written_group.end()

    def _sent(self, numbers):
        mesh = self.learned.mesh
        return meshes.sent(numbers, self._home if mesh is None else meshes.everywhere(mesh))

    def _input_value(self, i, arguments, arrays):
        if i < self.arguments:
            return self._at_home(arrays[i], i)
        value = current(self._input(i, arguments), self._home)
        return value if lies_at(value, self._home) else self._at_home(value, i)

    def _made_of(self, value, like, how, shape) -> Tensor:
        return _result(value, like) if self.learned.mesh is None else meshes.result(value, how, shape)

    def _written(self, value, array):
        """A new value of an argument that has ``array``."""
        if meshes.is_spread(array):
            return array.holding(value)
        if self.learned.mesh is not None:
            value = meshes.mine(value, array.shape)
        return np.asarray(value) if array.__class__ is np.ndarray else value

    def _compile(self, given: list[tuple]) -> None:
        """Before the first run: compile, while nothing is given away yet, and see whether there is memory for it."""
        if not given:
            return  # they were taken back
        (inputs,) = given
        with explained(self.place, self._holding):
            needs: Any = self._execute.lower(*inputs).compile().memory_analysis()
            if memory(self.place)[1]:
                size = needs.temp_size_in_bytes + needs.output_size_in_bytes - needs.alias_size_in_bytes
                check_room(self.place, size, self._holding, inputs)

    def _follow_gradients(self, arguments, shown: bool) -> None:
        """What is in the leaves' ``.grad`` now is meant, whoever put it there.

        A gradient that the program replaces, as ``zero_grad`` and ``backward`` do, stays as it is for whoever has it:
        if it was ``shown``, or is not the program's own.
        """
        known: set[int] = set()
        for slot in self._grad_slots:
            grad = slot.leaf._grad
            if grad is slot.tensor and not shown:
                continue
            if grad is None or not slot.takes(grad):
                raise Outdated
            if slot.grad_of in self._replaced:
                grad._come_home()
                slot.leaf._grad = grad = _like(grad)
            if grad is not slot.tensor:
                if any(map(is_, arguments, repeat(grad))):
                    raise Shared
                known = known or {id(other.tensor) for other in self.slots}
                self._follow(slot, grad, known)
        if self._written_group is not None:
            self._written_group.shown = False

    def _follow(self, slot: Slot, grad: Tensor, known: set[int]) -> None:
        if slot.pinned or id(grad) in known:
            raise Outdated  # the function sees the old one, or this one, in two places
        known.discard(id(slot.tensor))
        known.add(id(grad))
        for group in (self._written_group, self._read_group):
            if group is not None:
                group.intact = False
        slot.tensor = grad  # last: an interrupt must not leave a group that seems to have it

    def _group(self, group: Group | None, small: list[Slot], large: list[Slot] | None = None) -> Group:
        """The group of these slots' tensors, packed anew: eager code has taken one out of it, or there was none."""
        if group is not None and not all(o._in_lockstep() for o in self._lockstep):
            raise Outdated
        group = Group(self._home, written=large is not None)
        group.gather([(slot.tensor, slot.start) for slot in small], [slot.tensor for slot in large or ()])
        self._lent = [slot.tensor for slot in self.slots if is_lent(slot.tensor)]
        return group


def _executed(function, run: Run, wait: bool) -> None:
    """``run.execute(function)``; with ``wait``, its outputs are there only if what computes them has not failed."""
    outputs = list(starmap(function, run.inputs))
    if wait:
        jax.block_until_ready(outputs)
    run.outputs.extend(outputs)


def _programs(jitted) -> int:
    return jitted._cache_size()


_forgotten: list[tuple[Group, list[Tensor]]] = []  # what programs had that are gone


def dissolve_forgotten() -> None:
    """Unless a program runs in another thread: a garbage collection in the thread it waits for must not wait for it."""
    if RUNNING.acquire(blocking=False):
        try:
            while _forgotten:
                group, members = _forgotten.pop()
                group.dissolve(members)
        finally:
            RUNNING.release()


def _like(t: Tensor) -> Tensor:
    """A new tensor with the same values."""
    return wrap(t._array.copy() if t._array.__class__ is np.ndarray else t._array)


def _result(value, like: Tensor | None) -> Tensor:
    """A result as a tensor on the device of ``like``: on NumPy, memory that is filled when somebody looks."""
    if like is not None and like._array.__class__ is not np.ndarray:
        return wrap(value)
    t = wrap(np.empty(value.shape, value.dtype))
    move(t, value)
    return t
