"""One compiled program: a traced function, the state it lives on, and the call that runs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..autograd.mode import state as mode_state
from ..autograd.tape import Node
from ..engine import numpy as numpy_engine
from ..engine.devices import KEY_WORDS
from ..tensor import Storage, Tensor
from .residence import SMALL, Pack, Resident, current, resident, settle
from .trace import Traced, trace_backward
from .tree import unflatten


class Place:
    """Where one state tensor is passed: in a pack (``pack``, ``start``) or on its own (``own``, donated if written)."""

    __slots__ = ("pack", "start", "own", "donated")

    def __init__(self, pack=None, start=0, own=None, donated=False):
        self.pack, self.start, self.own, self.donated = pack, start, own, donated


class Program:
    """Executes a trace. ``slots`` say where each state tensor is found: a Tensor, or the leaf whose ``.grad`` it is."""

    def __init__(self, learned: Traced, arguments: int, slots: list[Slot], optimizers, place, options):
        self.learned, self.arguments, self.slots, self.optimizers = learned, arguments, slots, optimizers
        self.place = place
        self._written = self._outputs_by_input()
        self._new_grads = [i for i in learned.new_grads if self._grad_slot(i) is None]
        self._layout()
        self._execute = jax.jit(self._final, donate_argnums=(0, 1), compiler_options=options)
        self._packs: list[Pack] | None = None
        self._backward = trace_backward(learned.tail) if learned.tail is not None else None

    # -- building ----------------------------------------------------------------------------------------------------

    def _outputs_by_input(self) -> dict[int, int]:
        """{input: the jaxpr output that is its new value}, a leaf's new gradient counting as its old one's new value."""
        learned = self.learned
        found = {i: learned.results + k for k, i in enumerate(learned.written)}
        first = learned.results + len(learned.written)
        for k, leaf in enumerate(learned.new_grads):
            slot = self._grad_slot(leaf)
            if slot is not None:
                found[slot] = first + k
        return found

    def _grad_slot(self, leaf: int) -> int | None:
        for k, slot in enumerate(self.slots):
            if slot.grad_of == leaf:
                return self.arguments + k
        return None

    def _layout(self) -> None:
        """Decide which state travels packed. One pack per dtype; whatever is large has a buffer of its own."""
        self._places, sizes, self._donated, self._kept = [], {}, [], []
        for k, slot in enumerate(self.slots):
            shape, dtype = slot.shape, slot.dtype
            size = int(np.prod(shape))
            written = self.arguments + k in self._written
            if size * dtype.itemsize <= SMALL:
                self._places.append(Place(pack=dtype, start=sizes.get(dtype, 0)))
                sizes[dtype] = sizes.get(dtype, 0) + size
            else:
                group = self._donated if written else self._kept
                self._places.append(Place(own=len(group), donated=written))
                group.append(k)
        self._pack_dtypes = list(sizes)

    def _final(self, packs, donated, kept, arguments, hyper, key):
        """The whole program: cut the packs, run the jaxpr, pack again."""
        inputs = list(arguments)
        for slot, where in zip(self.slots, self._places):
            if where.own is not None:
                inputs.append((donated if where.donated else kept)[where.own])
            else:
                flat = packs[self._pack_dtypes.index(where.pack)]
                size = int(np.prod(slot.shape))
                inputs.append(jnp.reshape(jax.lax.slice(flat, (where.start,), (where.start + size,)), slot.shape))
        scalars = [hyper[i] for i in range(hyper.shape[0])]
        closed = self.learned.jaxpr
        outputs = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *inputs, *scalars, *jax.tree.leaves(key))

        def after(i):
            return outputs[self._written[i]] if i in self._written else inputs[i]

        parts: dict = {d: [] for d in self._pack_dtypes}
        for k, where in enumerate(self._places):
            if where.own is None:
                parts[where.pack].append(jnp.ravel(after(self.arguments + k)))
        learned = self.learned
        first_new = learned.results + len(learned.written)
        fresh = [outputs[first_new + learned.new_grads.index(i)] for i in self._new_grads]
        return (
            [jnp.concatenate(p) if len(p) > 1 else p[0] for p in parts.values()],
            [after(self.arguments + k) for k in self._donated],
            outputs[: learned.results],
            [outputs[self._written[i]] for i in range(self.arguments) if i in self._written],
            fresh,
            outputs[first_new + len(learned.new_grads) :],
        )

    # -- running -----------------------------------------------------------------------------------------------------

    def __call__(self, arguments: list[Tensor]):
        tensors = [slot.tensor() for slot in self.slots]
        packs, donated, kept = self._gather(tensors)
        arrays = []
        for t in arguments:
            if t._view is not None:
                t._sync()
            arrays.append(t._array)
        hyper = np.array([v for o in self.optimizers for v in o._hyper_values()], dtype=np.float64)
        key = _key_words() if self.learned.uses_rng else _NO_KEY
        packs, donated, results, written_arguments, fresh, residuals = self._execute(
            packs, donated, kept, arrays, hyper, key
        )
        self._settle(tensors, packs, donated)
        for i, value in zip([i for i in range(self.arguments) if i in self._written], written_arguments):
            _give(arguments[i], value)
        for leaf, value in zip(self._new_grads, fresh):
            self._input(leaf, arguments, tensors)._grad = _tensor(value, self._input(leaf, arguments, tensors))
        for leaf in self.learned.no_grads:
            self._input(leaf, arguments, tensors)._grad = None
        like = arguments[0] if arguments else tensors[0] if tensors else None
        made = [_tensor(value, like) for value in results]
        if self._backward is not None and mode_state.grad:
            self._attach(made, arguments, tensors, residuals, arrays)
        return unflatten(self.learned.structure, made)

    def _input(self, i, arguments, tensors) -> Tensor:
        return arguments[i] if i < self.arguments else tensors[i - self.arguments]

    def _gather(self, tensors):
        """The program's inputs from its state, packing again only what eager code has changed since the last call."""
        fresh = self._packs is None
        changed = []
        for k, (t, where) in enumerate(zip(tensors, self._places)):
            view = t._view
            if (
                view.__class__ is Resident
                and view.version == t._storage.version
                and (where.own is not None or (not fresh and view.pack in self._packs and view.start == where.start))
            ):
                continue
            changed.append(k)
        if fresh or any(self._places[k].own is None for k in changed):
            self._repack(tensors)
        donated, kept = [], []
        for group, members in ((donated, self._donated), (kept, self._kept)):
            for k in members:
                t = tensors[k]
                view = resident(t)
                if view is None or view.pack is not None:
                    value = current(t, self.place)
                    view = settle(t)
                    view.array, view.pack = value, None
                    view.version = t._storage.version
                    view.seen = view.version
                group.append(view.array)
        return [p.array for p in self._packs], donated, kept

    def _repack(self, tensors) -> None:
        parts: dict = {d: [] for d in self._pack_dtypes}
        for t, where in zip(tensors, self._places):
            if where.own is None:
                value = current(t, self.place)
                parts[where.pack].append(np.asarray(value).ravel() if self.place.platform == "cpu" else jnp.ravel(value))
        join = np.concatenate if self.place.platform == "cpu" else jnp.concatenate
        self._packs = [Pack(jax.device_put(join(p), self.place)) for p in parts.values()]
        for t, where in zip(tensors, self._places):
            if where.own is None:
                view = settle(t)
                view.array, view.pack, view.start = None, self._packs[self._pack_dtypes.index(where.pack)], where.start
                view.version = t._storage.version
                view.seen = view.version

    def _settle(self, tensors, packs, donated) -> None:
        """The outputs are the state's new values; tensors learn of it by their version."""
        for pack, array in zip(self._packs, packs):
            pack.array = array
        for k, (t, where) in enumerate(zip(tensors, self._places)):
            if self.arguments + k in self._written:
                view = t._view
                storage = t._storage
                storage.version += 1
                view.version = storage.version
                if where.own is not None:
                    view.array = donated[where.own]

    def _attach(self, results, arguments, tensors, residuals, arrays) -> None:
        """Give differentiable results a node whose backward pass is the compiled tail."""
        tail = self.learned.tail
        targets = [self._input(i, arguments, tensors) for i, _ in tail.targets]
        values = tail.values(residuals, lambda i: arrays[i] if i < self.arguments else current(tensors[i - self.arguments], self.place))
        node = CompiledBackward(self._backward, values, targets, [results[i] for i, _ in tail.roots])
        for place, (i, _) in enumerate(tail.roots):
            results[i]._node = node.output(place, results[i])


_NO_KEY = np.zeros(KEY_WORDS, dtype=np.uint32)


def _key_words():
    """Fresh words of the default generator: compiled randomness follows ``manual_seed``."""
    from ..random import default_generator

    return default_generator.key_words(KEY_WORDS)


class Slot:
    """A state input: a tensor itself, or whatever is the ``.grad`` of input number ``grad_of`` (held in ``leaf``)."""

    __slots__ = ("shape", "dtype", "_tensor", "leaf", "grad_of")

    def __init__(self, tensor: Tensor, leaf: Tensor | None = None, grad_of: int | None = None):
        self.shape, self.dtype = tensor._array.shape, tensor._array.dtype
        self._tensor, self.leaf, self.grad_of = tensor, leaf, grad_of

    def tensor(self) -> Tensor:
        return self._tensor if self.leaf is None else self.leaf._grad


class CompiledBackward(Node):
    """The backward pass of a compiled forward, as one node of the eager graph."""

    __slots__ = ("_run", "_residuals", "_meta", "outputs")

    def __init__(self, run, residuals, targets, results):
        super().__init__(tuple(t._node for t in targets), None, None, numpy_engine)
        self._run, self._residuals = run, residuals
        self._meta = [(t._array.shape, t._array.dtype) for t in results]
        self.outputs = self._meta

    def output(self, place, result):
        from ..autograd.tape import Output

        return Output(self, place, result._array.shape, result._array.dtype)

    def apply(self, xp, g, graph, keep):
        if graph:
            raise RuntimeError("compile: create_graph=True through a compiled function is not supported; call the original function")
        if self._residuals is None:
            from ..autograd.tape import _TWICE

            raise RuntimeError(_TWICE)
        gradients = [np.zeros(shape, dtype) if x is None else x for x, (shape, dtype) in zip(g, self._meta)]
        found = self._run(self._residuals, gradients)
        if not keep:
            self._residuals = None
        on_numpy = all(x is None or x.__class__ is np.ndarray for x in g)
        return [np.array(f) if on_numpy and f is not None else f for f in found]


def _tensor(value, like: Tensor | None) -> Tensor:
    """A result as a tensor on the device of ``like``: on NumPy, memory that is filled when somebody looks."""
    t = object.__new__(Tensor)
    t._node = t._grad = t._storage = t._view = None
    t._array = value
    if like is None or like._array.__class__ is np.ndarray:
        t._array = np.empty(value.shape, value.dtype)
        _give(t, value)
    return t


def _give(t: Tensor, value) -> None:
    """Make ``value`` the current value of ``t``."""
    if t._array.__class__ is not np.ndarray:
        t._array = value
        t._storage = t._storage or Storage()
        t._storage.version += 1
        return
    view = settle(t)
    t._storage.version += 1
    view.array, view.pack, view.version = value, None, t._storage.version
