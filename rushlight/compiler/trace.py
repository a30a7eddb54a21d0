"""Run a function once on tracers: from Python to a jaxpr, with every tensor put back as it was."""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
import types
from functools import partial, reduce

import jax
import jax.extend.core
import numpy as np

from ..autograd import mode
from ..autograd.node import OpNode
from ..autograd.tape import AccumulateGrad, Node, run_backward
from ..autograd.views import read
from ..engine import is_batched, namespace_of
from ..engine.xla.devices import KEY_WORDS, NEEDS_VALUE, checking, compiling_for, tracing
from ..engine.xla.exchange import Recorder, exchange_p
from ..errors import ValuesNeeded
from ..tensor import Storage, Tensor, wrap
from . import meshes
from .commit import insist
from .discover import Watch
from .guards import CompileError, Place, Unguardable, World
from .tree import distinct, flatten

_LIBRARIES = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    *(os.path.dirname(str(library.__file__)) + os.sep for library in (jax, np)),
)
_STANDARD = os.path.dirname(os.__file__) + os.sep


class Traced:
    """What a trace learned: the jaxpr, and what its outputs are.

    The outputs of the jaxpr are, in order: the function's tensor results, the written inputs (``written``: places
    among arguments then state), the new gradients (``new_grads``: places of their leaves), and, where results can be
    differentiated from outside, the values that their backward pass will need (``residuals``), and ``checked``.
    """

    def __init__(self):
        self.jaxpr = None
        self.structure = None  # of the result, see tree
        self.results = 0
        self.places: list[Place] = []  # what the function binds anew: their values follow the results
        self.switched: list[tuple[Place, bool]] = []  # where it leaves another truth than it found
        self.passed: dict[int, int] = {}  # results that are inputs themselves: {result: input}
        self.viewed: dict[int, tuple] = {}  # those that are views of inputs: {result: (input, View)}
        self.gradients: dict[int, int] = {}  # those that are a leaf's new gradient: {result: leaf}
        self.again: dict[int, int] = {}  # those that are an earlier result: {result: the earlier one}
        self.written: list[int] = []
        self.new_grads: list[int] = []
        self.no_grads: list[int] = []  # tensors whose .grad is None afterwards, and was not before
        self.moved_grads: dict[int, int] = {}  # {tensor: the input that is its .grad afterwards, and was not before}
        self.tail: Tail | None = None
        self.uses_rng = False
        self.checked = False  # is there one more output, whether all values are such as operators expect?
        self.used: list[bool] = []  # of each input: does the program read it?
        self.exchanges = 0  # collectives that it makes, see exchanges.py
        self.mesh = None  # that arrays lie on
        self.forms: list = []  # of each input: how it lies on the mesh, or None
        self.laid: list = []  # of each output: how it lies on the mesh, or None


class Tail:
    """The part of the graph that a compiled forward leaves for an outside ``backward()``."""

    def __init__(self, roots, targets, slots, arrays):
        self.roots = roots  # (place among the results, node)
        self.targets = targets  # (place among the inputs, node)
        self.slots = slots  # (getter, setter) of every value that backward needs, where it sits in the graph
        inputs = {id(meshes.held(a)): i for i, a in enumerate(arrays)}
        # What is simply an input of the program is taken from there, not returned by it a second time.
        self._inputs = [inputs.get(id(get())) for get, _ in slots]

    def outputs(self):
        return [get() for (get, _), i in zip(self.slots, self._inputs) if i is None]

    def values(self, outputs, input_value):
        """The residuals in the slots' order, from the program's outputs and its inputs."""
        outputs = iter(outputs)
        return [next(outputs) if i is None else input_value(i) for i in self._inputs]


def trace_until_known(
    fn, args, kwargs, given, state, views, optimizers, device, lockstep=(), world=None, checked=False, shapes=None,
    path=None,
):  # fmt: skip
    """``trace``, again with whatever it meets that was not known before; what it learned, and all the state.

    ``world(places)`` is a ``World`` without those places; None if what the function binds anew is of no interest.
    ``checked``: the program looks whether values are such as operators expect. ``shapes`` are those of ``given``, if
    not their own. ``path`` answers where Python asks for values.
    """
    places: list[Place] = []
    for _ in range(8):
        kept: list[Tensor] = []
        flatten([place.get() for place in places], kept)
        known, _ = distinct([*given, *kept])
        followed = {id(t) for t in kept}
        state = _with_gradients(known, [t for t in state if id(t) not in followed])
        learned, watch, found = trace(
            fn,
            args,
            kwargs,
            known,
            state,
            views,
            optimizers,
            device,
            lockstep,
            places,
            world and world(places),
            checked,
            shapes,
            path,
        )
        ids = {id(t) for t in [*known, *state]}
        missed = [t for t in watch.survivors(but=known) if id(t) not in ids and not is_traced(t)]
        unseen = [t for t in watch.views if not any(t is v for v in views)]
        if not missed and not unseen and not found:
            return learned, state
        state, views, places = [*state, *missed], [*views, *unseen], [*places, *found]
    raise CompileError("compile: every trace met new state; the function makes tensors that outlive each call")


def _with_gradients(known, state) -> list[Tensor]:
    """``state`` and the gradients that it has now: since the function was watched there may be others."""
    gradients = [t._grad for t in [*known, *state] if t._grad is not None]
    if len({id(g) for g in gradients}) < len(gradients):
        raise CompileError("compile: two tensors that it uses have one and the same .grad")
    ids = {id(t) for t in [*known, *state]}
    return [*state, *(g for g in gradients if id(g) not in ids)]


def trace(
    fn, args, kwargs, given, state, views: list[Tensor], optimizers, device, lockstep=(), places=(), world=None,
    checked=False, shapes=None, path=None,
):  # fmt: skip
    """Trace ``fn(*args, **kwargs)`` with ``given`` (arguments, what is at ``places``) and ``state`` as its inputs.

    ``views`` are tensors that view an input; ``lockstep`` says of each optimizer whether its parameters have made the
    same number of steps. Returns what was learned, a watch of what the trace met, and places that are bound anew
    besides ``places``.
    """
    learned, watch, found = Traced(), Watch(), []
    learned.places = list(places)
    inputs = [*given, *state]
    hyper = [v for o in optimizers for v in o._hyper_values()]
    journal, gradients = Journal(inputs, views, world), [t._grad for t in inputs]

    learned.mesh, learned.forms = meshes.mesh_of(inputs), [meshes.laid(t._array) for t in inputs]
    recorder = Recorder()

    def body(arrays, hyper_values, rng):
        arrays = [a if form is None else form.of(a) for a, form in zip(arrays, learned.forms)]
        with (
            _hyper(optimizers, hyper_values, lockstep), tracing(device, rng), meshes.staging(learned.mesh),
            watch.watching(journal.note), mode.pushed("rings", recorder),
        ):  # fmt: skip
            journal.install(arrays)
            with checking() as checks, path.followed() if path is not None else contextlib.nullcontext():
                result = fn(*args, **kwargs)
            found[:], learned.switched = ([], []) if world is None else _bound_anew(world)
            outputs = _collect(learned, (result, [place.get() for place in places]), inputs, arrays, gradients, watch)
            learned.checked = checked and bool(checks)
            checks = meshes.agreed(learned.mesh, checks)
            learned.laid = [meshes.laid(x) for x in outputs]
            outputs = [meshes.held(x) for x in outputs]
            return [*outputs, reduce(operator.and_, checks)] if learned.checked else outputs

    like = [jax.ShapeDtypeStruct(held.shape, held.dtype) for held in [meshes.held(t._array) for t in inputs]]
    like[: len(shapes or ())] = [jax.ShapeDtypeStruct(shape, t._array.dtype) for shape, t in zip(shapes or (), given)]
    try:
        try:
            learned.jaxpr = jax.make_jaxpr(body)(like, hyper, jax.ShapeDtypeStruct((KEY_WORDS,), np.uint32))
        finally:
            journal.restore()
    except NEEDS_VALUE as error:
        raise CompileError(_explain(error)) from error
    except Unguardable as error:
        raise CompileError(f"compile: this function cannot be compiled: {error}") from error
    except BaseException:
        insist(journal.restore)  # an interrupt may have come while it was at it
        raise
    jaxpr, learned.exchanges = learned.jaxpr.jaxpr, recorder.count
    used = {id(v) for equation in jaxpr.eqns for v in equation.invars} | {id(v) for v in jaxpr.outvars}
    learned.used = [id(v) in used for v in jaxpr.invars[: len(inputs)]]
    learned.uses_rng = id(jaxpr.invars[-1]) in used
    journal.forget()  # constants made in the trace stand in it too
    watch.forget_made()
    return learned, watch, found


def _bound_anew(world: World) -> tuple[list[Place], list[tuple[Place, bool]]]:
    """The places where the function has left tensors, and truths, that it did not find there.

    Other objects are refused. A truth follows from what the trace took for granted, and makes for two worlds; a number
    that is counted on would make for another each time.
    """
    places, switched = [], []
    for place, old in world.changes():
        new, tensors = place.get(), []
        flatten(new, tensors)
        if not tensors:
            if type(new) is type(old) and isinstance(new, (bool, int, float, str, type(None))) and new == old:
                continue
            if type(new) is type(old) is bool and not isinstance(place.container, types.MappingProxyType):
                switched.append((place, new))
                continue
            raise Unguardable(f"it changes {place.key!r} from {old!r:.40} to {new!r:.40}, which a program cannot do")
        if any(t._node is not None for t in tensors):
            raise Unguardable(f"it keeps a tensor with its graph in {place.key!r}; detach() it")
        places.append(place)
    return places, switched


class Boundary(Node):
    """Stands for the graph that led to an input: a traced backward pass must not go on into it."""

    __slots__ = ()

    def __init__(self, t: Tensor):
        super().__init__((), t._array.shape, t._array.dtype, namespace_of(t._array))

    def apply(self, xp, g, graph, keep):
        raise Unguardable("backward() inside it goes on into the graph of a tensor that was made outside")


def narrowed(closed, outputs):
    """The jaxpr with those of its ``outputs`` that are merely widened floats returned before they are widened."""
    jaxpr = closed.jaxpr
    made_by = {v: e for e in jaxpr.eqns for v in e.outvars}
    outvars = list(jaxpr.outvars)
    for i in outputs:
        equation = made_by.get(outvars[i]) if isinstance(outvars[i], jax.extend.core.Var) else None
        if equation is not None and equation.primitive.name == "convert_element_type":
            (source,) = equation.invars
            if isinstance(source, jax.extend.core.Var) and source.aval.dtype.itemsize < outvars[i].aval.dtype.itemsize:
                outvars[i] = source
    return closed.replace(jaxpr=jaxpr.replace(outvars=outvars))


def ahead(closed, arguments: int):
    """(the arguments that it takes, the part of the jaxpr that computes its last output) if it needs nothing else."""
    jaxpr = closed.jaxpr
    wanted, equations = {jaxpr.outvars[-1]}, []
    for equation in reversed(jaxpr.eqns):
        if not wanted.isdisjoint(equation.outvars):
            if equation.primitive is exchange_p or equation.primitive.name == "seen":  # others have a part in it
                return None
            equations.append(equation)
            wanted.update(v for v in equation.invars if isinstance(v, jax.extend.core.Var))
    taken = [i for i, v in enumerate(jaxpr.invars) if v in wanted]
    if len(equations) > _FEW or any(i >= arguments for i in taken):
        return None
    part = jaxpr.replace(eqns=equations[::-1], outvars=jaxpr.outvars[-1:], invars=[jaxpr.invars[i] for i in taken])
    return taken, closed.replace(jaxpr=part)


_FEW = 100  # equations that may be computed twice


def is_traced(t: Tensor) -> bool:
    return isinstance(meshes.held(t._array), jax.core.Tracer)


class Journal:
    """How the tensors were that a trace touches: it puts tracers into its inputs, and everything back afterwards."""

    def __init__(self, inputs, views, world: World | None):
        self._inputs, self._views, self._world = inputs, views, world
        self._known: set[int] = set()
        self._before: list[tuple] = []
        self._memory: list[tuple] = []
        self._seen = [(t._view, t._view.seen) for t in [*inputs, *views] if t._view is not None]
        for t in [*inputs, *views]:
            self._write_down(t)

    def _write_down(self, t: Tensor) -> None:
        self._known.add(id(t))
        self._before.append((t, t._array, t._node, t._grad, t._view, t._storage, t._version))

    def note(self, t: Tensor) -> None:
        """The trace meets a tensor; one that is not known yet may be about to be changed."""
        while id(t) not in self._known and not is_traced(t):
            if t._view is not None and t._view.base is None:
                t._sync()  # or its memory, put back, would be older than it says
            self._write_down(t)
            if t._grad is not None:
                self.note(t._grad)
            if t._array.__class__ is np.ndarray:
                self._memory.append((t._array, t._array.copy()))
            if t._view is None or t._view.base is None:
                break
            t = t._view.base

    def install(self, arrays) -> None:
        for t, array in zip(self._inputs, arrays):
            t._array, t._view = array, None
            t._storage = Storage()
            if t._node is not None and not t._node.is_leaf:
                t._node = Boundary(t)
        for t in self._views:
            base, t._storage = t._view.base, t._view.base._storage
            t._array = read(namespace_of(base._array), base._array, t._view.path)
            t._view.seen = t._storage.version

    def forget(self) -> None:
        self._before, self._memory, self._seen = [], [], []

    def restore(self) -> None:
        for t, array, node, grad, view, storage, version in self._before:
            t._array, t._node, t._grad, t._view, t._storage = array, node, grad, view, storage
            if storage is not None:
                storage.version = version
        for view, version in self._seen:
            view.seen = version
        for array, values in self._memory:
            if array.flags.writeable:
                np.copyto(array, values)
        if self._world is not None:
            self._world.restore()


@contextlib.contextmanager
def _hyper(optimizers, values, lockstep):
    """Optimizers read these traced numbers instead of the floats in their groups."""
    values = iter(values)
    try:
        for o, together in zip(optimizers, lockstep):
            o._traced_hyper = [next(values) for _ in o._hyper_values()]
            o._lockstep = together
        yield
    finally:
        for o in optimizers:
            o._traced_hyper, o._lockstep = None, False


def _collect(learned: Traced, result, inputs, arrays, gradients, watch):
    tensors: list[Tensor] = []
    learned.structure = flatten(result, tensors)
    for t in tensors:
        t._sync()
        watch.note(t)  # if it outlives the trace it was not made in it
    learned.results = len(tensors)
    learned.written = []
    outputs = [t._array for t in tensors]
    known = {id(t): i for i, t in enumerate(inputs)}
    learned.passed = {i: known[id(t)] for i, t in enumerate(tensors) if id(t) in known}
    learned.viewed = {i: (known[id(t._view.base)], t._view) for i, t in enumerate(tensors)
                      if t._view is not None and id(t._view.base) in known and i not in learned.passed}  # fmt: skip
    fresh = {id(t._grad): i for i, t in enumerate(inputs) if t._grad is not None and id(t._grad) not in known}
    learned.gradients = {i: fresh[id(t)] for i, t in enumerate(tensors) if id(t) in fresh}
    first: dict[int, int] = {}
    learned.again = {i: first[id(t)] for i, t in enumerate(tensors) if first.setdefault(id(t), i) != i}
    for i, (t, array) in enumerate(zip(inputs, arrays)):
        t._sync()
        if t._array is not array:
            learned.written.append(i)
            outputs.append(t._array)
    outputs += _collect_gradients(learned, inputs, gradients, known)
    learned.tail = _tail(tensors, inputs, arrays)
    if learned.tail is not None:
        outputs += learned.tail.outputs()
    return outputs


def _collect_gradients(learned: Traced, inputs, before, known) -> list:
    """Where ``.grad`` is another than ``before``: nothing, one of the inputs, or a new tensor, which is output."""
    learned.new_grads, learned.no_grads, learned.moved_grads = [], [], {}
    outputs: dict[int, object] = {}
    for i, (t, old) in enumerate(zip(inputs, before)):
        new = t._grad
        if new is old:
            continue
        if new is None:
            learned.no_grads.append(i)
        elif id(new) in known:
            learned.moved_grads[i] = known[id(new)]
        elif new._node is not None:
            raise Unguardable("it leaves a .grad with its graph (create_graph=True)")
        elif id(new) in outputs or (new._view is not None and id(new._view.base) in known):
            raise Unguardable("it leaves a .grad that shares its memory with another tensor")
        else:
            new._sync()
            learned.new_grads.append(i)
            outputs[id(new)] = new._array
    return list(outputs.values())


def _tail(results, inputs, arrays) -> Tail | None:
    """What an outside backward() through the results would need, or None if there is nothing to differentiate."""
    roots = [
        (i, t._node) for i, t in enumerate(results) if t._node is not None and not isinstance(t._node, AccumulateGrad)
    ]
    nodes, stack = {}, [node for _, node in roots]
    while stack:
        node = stack.pop()
        if id(node) in nodes:
            continue
        nodes[id(node)] = node
        if isinstance(node, OpNode) and node.saved is None:
            return None  # backward() ran inside: nothing is left to do outside
        stack.extend(e for e in node.edges if e is not None)
    targets = [(i, t._node) for i, t in enumerate(inputs) if t._node is not None and id(t._node) in nodes]
    if not roots or not targets:
        return None
    slots = []
    for node in nodes.values():
        if isinstance(node, OpNode):
            slots += _slots(node)
    return Tail(roots, targets, slots, arrays)


def _slots(node: OpNode):
    """(getter, setter) for every tracer that a node keeps."""
    node.saved, node.versions = tuple([_stand_in(v) for v in node.saved]), ()
    found = _places(node, "saved", node.saved)
    if node.details is not None:
        found += _places(node.details, "residuals", node.details.residuals)
    return found


def _places(owner, name: str, value, path=()):
    """The slots for the tracers in ``value``, which is where ``path`` leads in the nested tuple ``owner.name``."""
    if isinstance(value, tuple):
        return [slot for i, v in enumerate(value) for slot in _places(owner, name, v, (*path, i))]
    if isinstance(value, Tensor):
        return _places(value, "_array", value._array)
    if is_batched(value):
        return _places(value, "inner", value.inner)
    if meshes.is_spread(value):
        return _places(value, "physical", value.physical)
    if not isinstance(value, jax.core.Tracer):
        return []
    return [(partial(_get, owner, name, path), partial(_set, owner, name, path))]


def _get(owner, name: str, path):
    return reduce(operator.getitem, path, getattr(owner, name))


def _set(owner, name: str, path, value) -> None:
    setattr(owner, name, _replaced(getattr(owner, name), path, value))


def _replaced(whole, path, value):
    if not path:
        return value
    first, *rest = path
    return (*whole[:first], _replaced(whole[first], rest, value), *whole[first + 1 :])


def _stand_in(t):
    """The graph outlives the trace, its tensors must not: another with the same place in the graph."""
    if isinstance(t, tuple):
        return tuple([_stand_in(v) for v in t])
    if not isinstance(t, Tensor):
        return t
    stand_in = wrap(t._array)
    stand_in._node = t._node
    return stand_in


def trace_backward(learned: Traced, device, options, processes=None, levels=()):
    """The tail's backward pass, jitted: (residuals, gradients of the results) -> gradients of the inputs.

    ``processes``: those that the function is a program of, and ``levels`` those of its residuals, see ``apart``.
    """
    tail, mesh = learned.tail, learned.mesh
    assert tail is not None
    given = [learned.laid[i] for i, _ in tail.roots] if mesh is not None else [None] * len(tail.roots)
    forms: list = []

    def body(residuals, gradients):
        for (_, put), value in zip(tail.slots, residuals):
            put(value)
        targets = [node for _, node in tail.targets]
        gradients = [g if how is None else how.of(g) for g, how in zip(gradients, given)]
        with compiling_for(device), meshes.staging(mesh):
            found = run_backward([node for _, node in tail.roots], gradients, retain=True, wanted=set(targets))
        forms[:] = [meshes.laid(found.get(node)) for node in targets]
        return [meshes.held(found.get(node)) for node in targets]

    if processes is not None:
        avals, first = learned.jaxpr.out_avals, len(learned.laid) - len(levels)
        kept = list(zip(avals[first:], levels))
        whole = lambda i: (learned.jaxpr.in_avals[i], processes.level_of(learned.forms[i]))
        kept = tail.values(kept, whole)
        like = [avals[i] for i, _ in tail.roots]
        return meshes.BackwardTogether(body, processes, kept, like, given, forms, options)
    run = jax.jit(body, compiler_options=options)
    return run if mesh is None else meshes.Backward(run, given, forms)


def _internal(filename: str) -> bool:
    """Is it not the user's: ours, JAX's, NumPy's, or Python's own?"""
    if filename.startswith(_LIBRARIES):
        return True
    return filename.startswith(_STANDARD) and "site-packages" not in filename


def _explain(error) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _internal(f.filename)]
    where = f'"{frames[-1].filename}", line {frames[-1].lineno}: {frames[-1].line}' if frames else "an unknown line"
    if isinstance(error, ValuesNeeded):
        return f"compile: at {where}\n{error}"
    return (
        f"compile: a traced value was needed as a Python number at {where}\n"
        "While a function is compiled its tensors have no values, so .item(), float() and print of a value cannot work "
        "there. Return the tensor and look at it outside; compare tensors, not numbers (`if loss > 1:`, which with "
        "fullgraph=True has to be rushlight.where)."
    )
