"""Run a function once on tracers: from Python to a jaxpr, with every tensor put back as it was."""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
from functools import partial, reduce

import jax
import jax.extend.core
import numpy as np

from ..autograd.node import OpNode
from ..autograd.tape import AccumulateGrad, run_backward
from ..engine.xla.devices import KEY_WORDS, tracing
from ..errors import ValuesNeeded
from ..tensor import Storage, Tensor, wrap
from .discover import Watch
from .tree import flatten

_NEEDS_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    ValuesNeeded,
)
_LIBRARIES = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    *(os.path.dirname(str(library.__file__)) + os.sep for library in (jax, np)),
)
_STANDARD = os.path.dirname(os.__file__) + os.sep


class CompileError(RuntimeError):
    """Something in a compiled function cannot be traced; the message names the line and the way out."""


class Traced:
    """What a trace learned: the jaxpr, and what its outputs are.

    The outputs of the jaxpr are, in order: the function's tensor results, the written inputs (``written``: places
    among arguments then state), the new gradients (``new_grads``: places of their leaves), and, where results can be
    differentiated from outside, the values that their backward pass will need (``residuals``).
    """

    def __init__(self):
        self.jaxpr = None
        self.structure = None  # of the result, see tree
        self.results = 0
        self.passed: dict[int, int] = {}  # results that are inputs themselves: {result: input}
        self.written: list[int] = []
        self.new_grads: list[int] = []
        self.no_grads: list[int] = []  # leaves whose .grad is None afterwards
        self.tail: Tail | None = None
        self.uses_rng = False
        self.used: list[bool] = []  # of each input: does the program read it?


class Tail:
    """The part of the graph that a compiled forward leaves for an outside ``backward()``."""

    def __init__(self, roots, targets, slots, arrays):
        self.roots = roots  # (place among the results, node)
        self.targets = targets  # (place among the inputs, node)
        self.slots = slots  # (getter, setter) of every value that backward needs, where it sits in the graph
        inputs = {id(a): i for i, a in enumerate(arrays)}
        # What is simply an input of the program is taken from there, not returned by it a second time.
        self._inputs = [inputs.get(id(get())) for get, _ in slots]

    def outputs(self):
        return [get() for (get, _), i in zip(self.slots, self._inputs) if i is None]

    def values(self, outputs, input_value):
        """The residuals in the slots' order, from the program's outputs and its inputs."""
        outputs = iter(outputs)
        return [next(outputs) if i is None else input_value(i) for i in self._inputs]


def trace_until_known(fn, args, kwargs, given, state, views, optimizers, device, lockstep=()):
    """``trace``, again with whatever state it meets that was not known before; what it learned, and all the state."""
    for _ in range(8):
        learned, watch = trace(fn, args, kwargs, [*given, *state], views, optimizers, device, lockstep)
        known = {id(t) for t in [*given, *state]}
        missed = [t for t in watch.survivors(but=given) if id(t) not in known and not is_traced(t)]
        unseen = [t for t in watch.views if not any(t is v for v in views)]
        if not missed and not unseen:
            return learned, state
        state, views = [*state, *missed], [*views, *unseen]
    raise CompileError("compile: every trace met new state; the function makes tensors that outlive each call")


def trace(fn, args, kwargs, inputs: list[Tensor], views: list[Tensor], optimizers, device, lockstep=()):
    """Trace ``fn(*args, **kwargs)`` with ``inputs`` (arguments, then state) as the program's inputs.

    ``views`` are tensors that view an input; ``lockstep`` says of each optimizer whether its parameters have made the
    same number of steps. Returns what was learned, and a watch of what the trace met.
    """
    learned, watch = Traced(), Watch()
    hyper = [v for o in optimizers for v in o._hyper_values()]

    def body(arrays, hyper_values, rng):
        with (
            _installed(inputs, views, arrays),
            _hyper(optimizers, hyper_values, lockstep),
            tracing(device, rng),
            watch.watching(),
        ):
            result = fn(*args, **kwargs)
            return _collect(learned, result, inputs, arrays, watch)

    shapes = [jax.ShapeDtypeStruct(t._array.shape, t._array.dtype) for t in inputs]
    try:
        learned.jaxpr = jax.make_jaxpr(body)(shapes, hyper, jax.ShapeDtypeStruct((KEY_WORDS,), np.uint32))
    except _NEEDS_VALUE as error:
        raise CompileError(_explain(error)) from error
    jaxpr = learned.jaxpr.jaxpr
    used = {id(v) for equation in jaxpr.eqns for v in equation.invars} | {id(v) for v in jaxpr.outvars}
    learned.used = [id(v) in used for v in jaxpr.invars[: len(inputs)]]
    learned.uses_rng = id(jaxpr.invars[-1]) in used
    return learned, watch


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


def is_traced(t: Tensor) -> bool:
    return isinstance(t._array, jax.core.Tracer)


@contextlib.contextmanager
def _installed(inputs, views, arrays):
    """Put tracers into the input tensors, and everything back afterwards, whatever happens."""
    before = [(t, t._array, t._node, t._grad, t._view, t._storage, t._version) for t in [*inputs, *views]]
    seen = [(t._view, t._view.seen) for t in [*inputs, *views] if t._view is not None]
    try:
        for t, array in zip(inputs, arrays):
            t._array, t._view = array, None
            t._storage = Storage()
        for t in views:
            t._storage = t._view.base._storage
            t._view.seen = -1  # it will read its part of the base's tracer
        yield
    finally:
        for t, array, node, grad, view, storage, version in before:
            t._array, t._node, t._grad, t._view, t._storage = array, node, grad, view, storage
            if storage is not None:
                storage.version = version
        for view, version in seen:
            view.seen = version


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


def _collect(learned: Traced, result, inputs, arrays, watch):
    tensors: list[Tensor] = []
    learned.structure = flatten(result, tensors)
    for t in tensors:
        t._sync()
        watch.note(t)  # if it outlives the trace it was not made in it
    learned.results = len(tensors)
    learned.written, learned.new_grads, learned.no_grads = [], [], []
    outputs = [t._array for t in tensors]
    known = {id(t): i for i, t in enumerate(inputs)}
    learned.passed = {i: known[id(t)] for i, t in enumerate(tensors) if id(t) in known}
    for i, (t, array) in enumerate(zip(inputs, arrays)):
        t._sync()
        if t._array is not array:
            learned.written.append(i)
            outputs.append(t._array)
    for i, t in enumerate(inputs):
        if type(t._node) is AccumulateGrad:
            if t._grad is None:
                learned.no_grads.append(i)
            elif id(t._grad) not in known:
                learned.new_grads.append(i)
                outputs.append(t._grad._array)
    learned.tail = _tail(tensors, inputs, arrays)
    if learned.tail is not None:
        outputs += learned.tail.outputs()
    return outputs


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


def trace_backward(tail: Tail, options):
    """The tail's backward pass, jitted: (residuals, gradients of the results) -> gradients of the inputs."""

    def body(residuals, gradients):
        for (_, put), value in zip(tail.slots, residuals):
            put(value)
        targets = [node for _, node in tail.targets]
        found = run_backward([node for _, node in tail.roots], list(gradients), retain=True, wanted=set(targets))
        return [found.get(node) for node in targets]

    return jax.jit(body, compiler_options=options)


def _internal(filename: str) -> bool:
    """Is it not the user's: ours, JAX's, NumPy's, or Python's own?"""
    if filename.startswith(_LIBRARIES):
        return True
    return filename.startswith(_STANDARD) and "site-packages" not in filename


def _explain(error) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _internal(f.filename)]
    where = f'"{frames[-1].filename}", line {frames[-1].lineno}: {frames[-1].line}' if frames else "an unknown line"
    if isinstance(error, ValuesNeeded):
        return f"compile: at {where}\n{error} Or compile with fallback=True to run this function eagerly."
    return (
        f"compile: a traced value was needed as a Python number at {where}\n"
        "While a function is compiled its tensors have no values, so .item(), float(), bool(), print of a value and "
        "Python branches on tensors cannot work there. Return the tensor and look at it outside, use rushlight.where "
        "instead of a branch, or compile with fallback=True to run this function eagerly."
    )
