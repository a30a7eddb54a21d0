"""``@op``: declare an operator once, for every engine and every order of differentiation.

    @op(x=lambda xp, g, w: xp.matmul(g, w),
        w=lambda xp, g, x: xp.matmul(xp.matrix_transpose(g), x))
    def project(xp, x, w):
        return xp.matmul(x, xp.matrix_transpose(w))

The forward function is pure and is written against the namespace ``xp``: NumPy's, XLA's, or ``differentiable``, where
every op itself is a name and works on Tensors. Positional parameters are arrays (or Python numbers, or None where
optional); keyword-only parameters are static and hashable. There is one gradient rule per array. A rule asks by
parameter name for what it needs, and only that is kept until backward:

    g          the gradient of the output (a list with one entry per output when there are several, zeros where unused)
    y          the output
    x, w, …    an input
    x_shape    only an input's shape
    axis, …    a static argument
    aux        the value of the ``aux`` function (see below)

A rule may return a gradient that is larger or smaller than its input by broadcasting, of the same size in another
shape, or of another dtype: the tape fits it.

A last ``*name`` parameter takes any number of arrays. A rule that asks for it, or for ``name_shape``, gets the list;
a rule given for it returns the list of their gradients.

``aux=function`` names a pure function of (some of) the op's arguments that is computed once in forward, handed to it
as the keyword ``aux``, and reused by the rules: norm statistics, pool indices. When the backward pass is recorded it
is computed again from the tensors, so it too is differentiated.

``derive=True`` makes the rules from the forward function itself, by running it in ``differentiable`` on backward.
It costs a second forward; give rules to what is hot.

``residuals=True`` is for an op whose fused bodies in the engines bring their own backward. Such a body,
``body(needs, *arrays, **static)``, is told which gradients will be wanted (a bit per array; 0: nothing is recorded) and
returns (output, residuals), a nested tuple that the engine's backward gets as ``aux``; residuals None leave backward to
the rules, and so does a recorded backward pass.
"""

from __future__ import annotations

import copy
import functools
import inspect
import weakref
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..engine import LOW_PRECISION, namespace_of
from ..engine import numpy as numpy_engine
from ..engine.fallback import FORWARDS
from ..errors import type_name
from ..tensor import Storage, Tensor, View, wrap
from . import mode
from .mode import state
from .tape import _TWICE, AccumulateGrad, Node, Output, _sequence, run_backward

__all__ = ["differentiable", "op"]


class Namespace:
    """The operator registry as an array namespace: ``differentiable.matmul(a, b)`` on Tensors records its op."""

    if TYPE_CHECKING:  # filled by @op

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


differentiable = Namespace()

_ndarray = np.ndarray
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_new = object.__new__
_PLAIN_SCALARS = frozenset({int, float, bool, type(None)})
_OPERANDS = (Tensor, int, float, complex, np.number, np.bool_)
_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


def op(
    _forward=None,
    *,
    node=None,
    promote=None,
    keep=(),
    check=None,
    view=False,
    write=None,
    exact=False,
    wide=False,
    derive=False,
    aux=None,
    residuals=False,
    **rules,
):
    """Declare an operator; see the module's text.

    node:     the graph node's name; ``MulBackward0`` for an op called ``mul`` if not given.
    promote:  ``"common"`` casts all arrays to PyTorch's result dtype first, ``"float"`` makes integers float too.
    keep:     names of arrays that promotion leaves as they are (a mask).
    check:    ``check(*arrays)``, called on what is not plainly float32 or float64 alone: refuses bad dtypes.
    view:     the output shares memory with the first input (where the engine can).
    write:    for a view op: ``write(xp, x, value, **static)``, x with the viewed part replaced; see ``views``.
    exact:    moves elements without arithmetic, so half precision needs no float32 detour.
    wide:     half precision is computed in float32 on every engine, and of several outputs only the first goes back.
    """

    def declare(forward):
        declared = Op(forward, node, promote, keep, check, view, write, exact, wide, derive, aux, residuals, rules)
        call = _caller(declared)
        call.op, call.__name__, call.__qualname__, call.__doc__ = (
            declared,
            declared.name,
            declared.name,
            forward.__doc__,
        )
        call.__module__ = forward.__module__
        declared.call = call
        setattr(differentiable, declared.name, call)
        FORWARDS[declared.name] = forward
        return call

    return declare if _forward is None else declare(_forward)


class Op:
    """A declared operator: its forward, its rules, and what each combination of needed gradients must save."""

    def __init__(self, forward, node, promote, keep, check, view, write, exact, wide, derive, aux, residuals, rules):
        self.name = forward.__name__.strip("_")
        self.forward = forward
        self.promote, self.view, self.write, self.exact, self.aux = promote, view, write, exact or view, aux
        self.wide = wide
        self.arrays, self.variadic, self.static = _parameters(forward)
        self.label = self.name  # what error messages call it: PyTorch's name, where that is another
        self.check, self.keep = check, tuple(self.arrays.index(name) for name in keep)
        self.aux_names = _names(aux)[1:] if aux else ()
        self.derive, self.residuals = derive, residuals
        if derive:
            rules = dict.fromkeys(self.arrays, _needs(*self.arrays, *self.static))
        self.rules = {argument: _Rule(argument, rule) for argument, rule in rules.items()}
        unknown = set(self.rules) - set(self.arrays)
        if unknown:
            raise TypeError(f"op {self.name}: gradient rule for unknown argument {sorted(unknown)}")
        self.node = node or _camel(self.name) + "Backward0"


class Plans(dict):
    """The plans of an op whose nodes are called ``node``, by which inputs want gradients: a bit for each."""

    def __init__(self, op: Op, node: str):
        self.op, self.node = op, node

    def __missing__(self, needs: int) -> Plan:
        plan = self[needs] = Plan(self.op, self.node, needs)
        return plan


class _Rule:
    __slots__ = ("argument", "function", "needs")

    def __init__(self, argument, function):
        self.argument, self.function = argument, function
        self.needs = getattr(function, "needs", None) or _names(function)[2:]


class Plan:
    """For one op and one set of wanted gradients: which values to save, and how each rule picks from them.

    ``names`` are the values that the rules ask for, in this order: inputs (``count`` of them), the output if
    ``output``, then what ``others`` lists as (kind, which): static arguments, shapes, the inputs of ``*name``, aux.
    A node saves all but the static arguments, which it has anyway.
    """

    __slots__ = ("op", "node", "names", "rules", "count", "pick", "output", "others", "many", "saves_more")

    def __init__(self, op: Op, node: str, needs: int):
        self.op, self.node = op, node
        wanted = [op.rules.get(a) if needs >> i & 1 else None for i, a in enumerate(op.arrays)]
        if op.variadic and needs >> len(op.arrays) - 1:
            wanted[-1] = op.rules.get(op.variadic)
        self.many = len(wanted) - 1 if op.variadic and wanted[-1] else None  # the place of a rule for ``*name``
        asked = dict.fromkeys(n for r in wanted if r for n in r.needs)
        sources = sorted([(*_source(op, name), name) for name in asked], key=lambda source: _ORDER[source[0]])
        self.names = tuple(name for _, _, name in sources)
        place = {name: i for i, name in enumerate(self.names)}
        self.rules = tuple(
            (i, r.function, tuple(place[n] for n in r.needs)) for i, r in enumerate(wanted) if r is not None
        )
        inputs = [which for kind, which, _ in sources if kind == "input"]
        self.count, self.output = len(inputs), "y" in asked
        self.others = tuple((kind, which) for kind, which, _ in sources if kind not in ("input", "y"))
        # A tuple of what is kept; of one argument as args[i:i+1], for itemgetter(i) would give the argument itself.
        first = inputs[0] if inputs else 0
        self.pick = itemgetter(*inputs) if len(inputs) > 1 else itemgetter(slice(first, first + len(inputs)))

        self.saves_more = any(kind != "static" for kind, _ in self.others)

    def keep(self, args, out, aux=None) -> tuple:
        """What a node of this plan saves of one call."""
        kept = self.pick(args)
        if self.output:
            kept += (out,)
        if self.saves_more:
            for kind, which in self.others:
                if kind == "shape":
                    value = args[which]
                    kept += (value._array.shape if isinstance(value, Tensor) else (),)
                elif kind == "shapes":
                    kept += (tuple([_shape(a) for a in args[which:]]),)
                elif kind != "static":
                    kept += (args[which:] if kind == "inputs" else aux,)
        return kept


_ORDER = {"input": 0, "y": 1, "shape": 2, "shapes": 2, "inputs": 2, "aux": 2, "static": 3}


def _shape(value):
    return value._array.shape if isinstance(value, Tensor) else ()


def _source(op: Op, name: str):
    """Where the value that a rule calls ``name`` comes from: the kind of source, and which of them."""
    if name in ("y", "aux"):
        return (name, None)
    if name in op.arrays:
        return ("inputs" if name == op.variadic else "input", op.arrays.index(name))
    if name in op.static:
        return ("static", name)
    if name.endswith("_shape") and name[:-6] in op.arrays:
        return ("shapes" if name[:-6] == op.variadic else "shape", op.arrays.index(name[:-6]))
    raise TypeError(
        f"op {op.name}: a gradient rule asks for '{name}', which is no argument of {op.arrays + tuple(op.static)}"
    )


class Details:
    """What an OpNode keeps beyond saved values, when there is anything: most nodes have none."""

    __slots__ = ("residuals", "compute", "outputs", "packed")

    def __init__(self, residuals=None, compute=None):
        self.residuals = residuals
        self.compute = compute  # the dtype forward computed in, where that was not the inputs' own
        self.outputs = None  # of several: (weak reference to its node, shape, dtype) each
        self.packed = False  # saved-tensor hooks hold what was saved


class OpNode(Node):
    """A recorded call of an op. ``saved`` holds a value for each of the plan's names but the static arguments."""

    __slots__ = ("plan", "saved", "static", "versions", "guard", "details")
    plan: Plan
    saved: Any
    static: dict | None  # as given; a default may be missing
    versions: Any  # (storage, version), or None if it was never written, of each saved input; () if none ever was
    guard: Any  # (storage, version) of an output that was saved, once somebody might write to it
    details: Details | None

    @property
    def op(self) -> Op:
        return self.plan.op

    def name(self) -> str:
        return self.plan.node

    def rename(self, node: str) -> None:
        """Be called ``node`` from now on."""
        plan = self.plan
        self.plan = copy.copy(plan)
        self.plan.node = node

    def shown(self) -> OpNode:
        """This node for a user's eyes. To record is cheaper with one class for all; the name comes when it is seen."""
        if type(self).__name__ != self.plan.node:
            self.__class__ = _named(self.plan.node)
        return self

    def watch(self, storage: Storage) -> None:
        if self.plan.output and (self.details is None or not self.details.packed):
            self.guard = (storage, storage.version)

    def apply(self, xp, g, graph, keep):
        saved, plan, details = self.saved, self.plan, self.details
        if saved is None:
            raise RuntimeError(_TWICE)
        self._check_versions(saved)
        if details is None and not graph and not plan.others:
            values = [v._array if isinstance(v, Tensor) else v for v in saved]
        else:
            values, g = self._values(xp, graph), self._incoming(xp, g, graph)
        backward = None if graph else xp.BACKWARD.get(plan.op.name)
        known = None if backward is None else self._known(values)
        if not keep and saved:
            self.saved = None
        if known is not None:
            return backward(g, self.edges, known)
        if plan.op.derive:
            return _derive(plan.op, self.edges, plan.names, values, g, graph)
        grads = [None] * len(self.edges)
        for i, rule, places in plan.rules:
            grads[i] = rule(xp, g, *[values[p] for p in places])
        if plan.many is not None:
            grads[plan.many :] = grads[plan.many]
        return grads

    def _check_versions(self, saved) -> None:
        """Raise if something saved was written in place since."""
        if self.guard is not None:
            storage, version = self.guard
            if storage.version != version:
                raise RuntimeError(modified_in_place(wrap(saved[self.plan.count]), self, storage.version, version))
        versions = self.versions
        for i in range(self.plan.count):
            value = saved[i]
            if isinstance(value, Tensor):
                storage, version = (versions and versions[i]) or (value._storage, 0)
                if storage is not None and storage.version != version:
                    raise RuntimeError(modified_in_place(value, value._node, storage.version, version))

    def _known(self, values):
        """What an engine's backward gets, by name; None where the fused forward left backward to the rules."""
        known = dict(zip(self.plan.names, values))
        if self.plan.op.residuals:
            known["aux"] = self._unpacked(self.details.residuals)
            if known["aux"] is None:
                return None
        return known

    def _unpacked(self, saved):
        """``saved`` as it was before saved-tensor hooks had it, if they had."""
        if self.details is None or not self.details.packed:
            return saved
        from .graph import unpack

        return unpack(saved, self.edges)

    def _values(self, xp, graph):
        """What rules asked for, as this pass wants it: raw arrays in forward's dtype, or Tensors in the graph."""
        plan, saved = self.plan, self._unpacked(self.saved)
        values = [value if graph else self._raw(xp, value) for value in saved[: plan.count]]
        if plan.output:
            values.append(self._output(saved[plan.count]) if graph else self._raw(xp, saved[plan.count]))
        for kind, which in plan.others:
            value = self._static(which) if kind == "static" else saved[len(values)]
            if kind == "inputs" and not graph:
                value = [self._raw(xp, v) for v in value]
            elif kind == "aux" and graph:
                value = self._aux_again(xp, values, value)
            values.append(value)
        return values

    def _static(self, name):
        return self.static[name] if name in self.static else self.plan.op.static[name]

    def _incoming(self, xp, g, graph):
        details = self.details
        if details is None:
            return g
        if type(g) is list:
            g = [self._zeros(meta, graph) if x is None else x for x, meta in zip(g, details.outputs)]
        if graph or details.compute is None:
            return g
        return [self._raw(xp, x) for x in g] if type(g) is list else self._raw(xp, g)

    def _raw(self, xp, value):
        """An array in the dtype forward computed in: everything for a promoting op, else only half precision."""
        if isinstance(value, Tensor):
            value = value._array
        details = self.details
        if details is None or details.compute is None or not hasattr(value, "dtype"):
            return tuple([self._raw(xp, v) for v in value]) if isinstance(value, tuple) else value
        if (self.plan.op.promote and value.dtype.kind != "b") or value.dtype in LOW_PRECISION:
            return _cast(xp, value, details.compute)
        return value

    def _output(self, y):
        """The output as a Tensor of this graph; built here, for holding on to it would be a cycle."""
        if isinstance(y, tuple):
            return tuple(_with_node(a, self.output(i)) for i, a in enumerate(y))
        return _with_node(y, self)

    def output(self, index):
        """The node of one of several outputs; made again if its tensor is gone."""
        if self.shape is not None:
            return self
        meta = self.details.outputs[index]
        if meta is None:  # not differentiable
            return None
        made, shape, dtype = meta
        return made() or Output(self, index, shape, dtype)

    def _aux_again(self, xp, values, aux):
        """aux as a differentiable function of the inputs; a constant if the rules kept no input it depends on."""
        op = self.plan.op
        known = {**op.static, **self.static, **dict(zip(self.plan.names, values))}
        if all(n in known for n in op.aux_names):
            return op.aux(xp, *[known[n] for n in op.aux_names])
        return tuple(wrap(v) for v in aux) if isinstance(aux, tuple) else wrap(aux)

    def _zeros(self, meta, graph):
        if meta is None:
            return None
        _, shape, dtype = meta
        zeros = self.xp.zeros(shape, dtype=dtype)
        return wrap(zeros) if graph else zeros

    @property
    def outputs(self):
        return self.details.outputs

    @property
    def saved_tensors(self):
        if self.saved is None:
            raise RuntimeError(_TWICE)
        return tuple(v for v in self._unpacked(self.saved) if isinstance(v, Tensor))


@functools.cache
def _named(node: str) -> type:
    return type(node, (OpNode,), {"__slots__": ()})


def modified_in_place(value, node, version, expected) -> str:
    """The message about a saved tensor that was written before backward could use it; ``node`` is what made it."""
    made_by = ""
    if node is not None and type(node) is not AccumulateGrad:
        index, node = (node.index, node.parent) if type(node) is Output else (0, node)
        made_by = f", which is output {index} of {node.name().rstrip('0123456789').removesuffix('Backward')},"
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
        "was changed in there or anywhere later. Good luck!"
        if state.anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{_type_name(value._array.dtype)} {list(value.shape)}]{made_by} is at version {version}; expected version "
        f"{expected} instead. Hint: {hint}"
    )


def _caller(o: Op, node=None, operator=False):
    """The function that is the op: ``_general_caller``, behind a short cut where there are but one or two arrays."""
    plans = Plans(o, node or o.node)
    general = _general_caller(o, plans, operator)
    general.op, general.node = o, node or o.node  # interceptors are handed this one, and want to know what it is
    if o.variadic or o.aux is not None or o.residuals or len(o.arrays) > 2 or (o.static and len(o.arrays) > 1):
        return general
    short = _static_caller if o.static or o.view else _single_caller if len(o.arrays) == 1 else _pair_caller
    return short(o, plans, general)


# The short cuts take the commonest case in few steps: float32 or float64 arrays of NumPy's, nothing to convert, no mode
# but the grad switch. Whatever else comes, bad arguments among them, is handed to the general caller.


def _numpy_function(o: Op):
    """What computes the op on NumPy arrays: its body; the function of its name, where forward only calls that."""
    body = numpy_engine.BODIES.get(o.name)
    if body is None and _only_calls(o):
        return getattr(numpy_engine, o.name)
    return functools.partial(body or o.forward, numpy_engine)


def _only_calls(o: Op) -> bool:
    """Does forward do nothing but call the function of the op's name with its arrays? Told by running it on tokens."""
    tokens, probe = [object() for _ in o.arrays], _Probe()
    try:
        return o.forward(probe, *tokens) is probe and probe.called == [(o.name, *tokens)]
    except Exception:
        return False


class _Probe:
    """A namespace that notes which of its functions are called, with what; each returns the namespace."""

    def __init__(self):
        self.called = []

    def __getattr__(self, name):
        return lambda *args: self.called.append((name, *args)) or self


def _pair_caller(o: Op, plans: Plans, general):
    """For ops of two arrays, or one and a Python number."""
    compute, recorded, known = _numpy_function(o), bool(o.rules), [None] * 4

    def call(x, w):
        if mode.active or not (x.__class__ is Tensor or isinstance(x, Tensor)):
            return general(x, w)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh()
        a, node = x._array, x._node
        dtype = a.dtype
        if a.__class__ is not _ndarray or (dtype is not _F32 and dtype is not _F64):
            return general(x, w)
        if w.__class__ is float or w.__class__ is int:
            b, other, storage = w, None, None
        elif w.__class__ is Tensor or isinstance(w, Tensor):
            if w._view is not None and w._view.seen != w._storage.version:
                w._refresh()
            b, other, storage = w._array, w._node, w._storage
            if b.__class__ is not _ndarray or b.dtype is not dtype:
                return general(x, w)
        else:
            return general(x, w)
        try:
            out = compute(a, b)
        except (ValueError, TypeError):
            return general(x, w)  # which knows how to say what is wrong
        if out.__class__ is not _ndarray:
            if out.__class__ is tuple:
                return general(x, w)
            out = np.asarray(out)
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if recorded and (node is not None or other is not None) and state.grad:
            if out.dtype is not dtype and out.dtype.kind in "biu":
                return t
            needs = 1 if other is None else 2 if node is None else 3
            plan = known[needs]
            if plan is None:
                plan = known[needs] = plans[needs]
            saved = plan.keep((x, w), out) if plan.output or plan.saves_more else plan.pick((x, w))
            mine = x._storage
            if (mine is None or not (mine.version or mine.inference)) and (
                storage is None or not (storage.version or storage.inference)
            ):
                versions = ()
            else:
                versions = _versions(saved[: plan.count])
            t._node = _node(plan, (node, other), numpy_engine, out, saved, None, versions)
        return t

    return call


def _single_caller(o: Op, plans: Plans, general):
    """For ops of one array."""
    compute, recorded = _numpy_function(o), bool(o.rules)

    def call(x):
        if mode.active or not (x.__class__ is Tensor or isinstance(x, Tensor)):
            return general(x)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh()
        a, node = x._array, x._node
        dtype = a.dtype
        if a.__class__ is not _ndarray or (dtype is not _F32 and dtype is not _F64):
            return general(x)
        out = compute(a)
        if out.__class__ is not _ndarray:
            if out.__class__ is tuple:
                return general(x)
            out = np.asarray(out)
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if node is not None and recorded and state.grad and (out.dtype is dtype or out.dtype.kind not in "biu"):
            plan, storage = plans[1], x._storage
            saved = plan.keep((x,), out)
            plain = storage is None or not (storage.version or storage.inference)
            versions = () if plain else _versions(saved[: plan.count])
            t._node = _node(plan, (node,), numpy_engine, out, saved, None, versions)
        return t

    return call


def _static_caller(o: Op, plans: Plans, general):
    """For ops of one array with static arguments, and for views."""
    forward, recorded, is_view = numpy_engine.BODIES.get(o.name, o.forward), bool(o.rules), o.view

    def call(x, **static):
        if mode.active or not isinstance(x, Tensor):
            return general(x, **static)
        if x._view is not None and x._view.seen != x._storage.version:
            x._refresh()
        a, node = x._array, x._node
        dtype = a.dtype
        if a.__class__ is not _ndarray or (dtype is not _F32 and dtype is not _F64 and not is_view):
            return general(x, **static)
        out = forward(numpy_engine, a, **static)
        if out.__class__ is not _ndarray:
            if out.__class__ is tuple:
                return general(x, **static)
            out = np.asarray(out)
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if is_view:
            _link_view(o, x, t, static)
        if node is not None and recorded and state.grad and (out.dtype is dtype or out.dtype.kind not in "biu"):
            plan, storage = plans[1], x._storage
            saved = plan.keep((x,), out) if plan.names else ()
            plain = storage is None or not (storage.version or storage.inference)
            versions = () if plain else _versions(saved[: plan.count])
            t._node = _node(plan, (node,), numpy_engine, out, saved, static, versions)
        return t

    return call


def _general_caller(o: Op, plans: Plans, operator=False):
    """The function that runs, wraps and records op ``o``; everything that happens on every call is in sight here.

    With ``operator`` it is fit for ``Tensor.__add__``: an operand of a foreign type gives NotImplemented.
    """
    forward, promote, exact, is_view, name = o.forward, o.promote, o.exact, o.view, o.name
    detour = o.wide
    numpy_forward = numpy_engine.BODIES.get(name, forward)
    defaults, differentiable_op = o.static, bool(o.rules)
    aux, aux_names, array_names, keep, check, residuals = o.aux, o.aux_names, o.arrays, o.keep, o.check, o.residuals

    def call(*args, **static):
        if mode.active and state.interceptors:
            return mode.intercept(call, args, static)
        xp = numpy_engine
        arrays, nodes, needs, bit, common, plain = [], [], 0, 1, None, True
        for a in args:
            if isinstance(a, Tensor):
                if a._view is not None and a._view.seen != a._storage.version:
                    a._refresh()
                array, n = a._array, a._node
                if array.__class__ is not _ndarray:
                    xp = namespace_of(array)
                if array.dtype is not common:
                    if common is None:
                        common = array.dtype
                    else:
                        plain = False
                if n is not None:
                    needs |= bit
                nodes.append(n)
                arrays.append(array)
            else:
                if a.__class__ not in _PLAIN_SCALARS:
                    plain = False
                nodes.append(None)
                arrays.append(a)
            bit += bit

        if xp is not numpy_engine and len(arrays) > 1:
            xp.check_same_device(arrays)
        compute = final = auxiliary = None
        if not (plain and (common is _F32 or common is _F64)) and not is_view:
            if operator and not all(isinstance(a, _OPERANDS) for a in args):
                return NotImplemented
            if common is None and args:
                raise _not_a_tensor(o, args)
            if check is not None:
                check(*arrays)
            arrays, compute, final = _convert(
                args, arrays, promote, keep, detour or (xp is numpy_engine and not exact), xp
            )
        body = numpy_forward if xp is numpy_engine else xp.BODIES.get(name, forward)
        try:
            if not defaults and aux is None and not residuals:
                out = body(xp, *arrays)
            else:
                static = {**defaults, **static}
                if residuals and body is not forward:
                    out, auxiliary = body(needs if state.grad else 0, *arrays, **static)
                elif aux is None:
                    out = body(xp, *arrays, **static)
                else:
                    known = {**static, **dict(zip(array_names, arrays))}
                    auxiliary = aux(xp, *[known[n] for n in aux_names])
                    out = body(xp, *arrays, aux=auxiliary, **static)
        except (ValueError, TypeError):
            if operator and any(a is None for a in args):
                return NotImplemented
            if promote:
                check_broadcast(arrays)
            raise
        except RuntimeError:
            if xp is numpy_engine:
                raise
            with xp.explained():  # of memory that ran out
                raise

        if out.__class__ is tuple:
            return _several(o, plans, args, nodes, needs, xp, out, auxiliary, static, compute, final)
        if final is not None:
            out = _cast_back(xp, out, compute, final)
        if out.__class__ is not _ndarray and xp is numpy_engine:
            out = np.asarray(out)
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if is_view:
            _link_view(o, args[0], t, static)
        if needs and differentiable_op and state.grad and (out.dtype is common or out.dtype.kind not in "biu"):
            t._node = _record(plans[needs], args, nodes, xp, out, auxiliary, static, compute)
        elif mode.active and state.inference and t._storage is None:
            t._storage = Storage(inference=True)
        return t

    return call


def _node(plan, edges, xp, out, saved, static, versions):
    node = _new(OpNode)
    node.plan, node.edges, node.xp, node.saved, node.static = plan, edges, xp, saved, static
    node.versions = versions
    node.shape, node.dtype, node.sequence = out.shape, out.dtype, next(_sequence)
    node.hooks = node.guard = node.details = None
    return node


def _record(plan, args, edges, xp, out, auxiliary, static, compute):
    """Make the node of one call of any kind; ``out`` is a tuple for an op with several outputs."""
    op, several = plan.op, out.__class__ is tuple
    saved = plan.keep(args, out, auxiliary)
    node = _node(plan, edges, xp, out[0] if several else out, saved, static, _versions(saved[: plan.count]))
    if several:
        node.shape = node.dtype = None
    if several or compute is not None or op.residuals:
        node.details = Details(auxiliary if op.residuals else None, compute)
    if mode.active and (state.saved_hooks or state.anomaly):
        from .graph import pack

        pack(node)
    return node


def _versions(saved) -> tuple:
    """See ``OpNode.versions``."""
    versions = []
    for value in saved:
        storage = value._storage if isinstance(value, Tensor) else None
        if storage is not None and storage.inference:
            raise RuntimeError(_INFERENCE)
        versions.append(None if storage is None else (storage, storage.version))
    return tuple(versions)


def _several(o, plans, args, nodes, needs, xp, outs, auxiliary, static, compute, final):
    """Wrap and record an op with several outputs: one node, and an Output node for each differentiable output."""
    if final is not None:
        outs = tuple(_cast_back(xp, a, compute, final) if i == 0 or not o.wide else a for i, a in enumerate(outs))
    if xp is numpy_engine:
        outs = tuple(np.asarray(a) for a in outs)
    tensors = tuple(wrap(a) for a in outs)
    if o.view:
        for i, t in enumerate(tensors):
            _link_view(o, args[0], t, static, index=i)
    if needs and o.rules and state.grad:
        node = _record(plans[needs], args, nodes, xp, outs, auxiliary, static, compute)
        made = []
        for i, t in enumerate(tensors):
            if t._array.dtype.kind not in "biu":
                t._node = Output(node, i, t._array.shape, t._array.dtype)
                made.append((weakref.ref(t._node), t._array.shape, t._array.dtype))
            else:
                made.append(None)
        node.details.outputs = tuple(made)
    return tensors


def _not_a_tensor(o, args):
    return TypeError(f"{o.label}(): argument 'input' (position 1) must be Tensor, not {type_name(args[0])}")


def check_broadcast(arrays) -> None:
    """Raise PyTorch's error if the shapes of ``arrays`` do not broadcast together."""
    shape: tuple = ()
    for a in arrays:
        other = getattr(a, "shape", ())
        for i in range(1, min(len(shape), len(other)) + 1):
            if shape[-i] != other[-i] and 1 not in (shape[-i], other[-i]):
                raise RuntimeError(
                    f"The size of tensor a ({shape[-i]}) must match the size of tensor b ({other[-i]}) at "
                    f"non-singleton dimension {max(len(shape), len(other)) - i}"
                )
        longer, shorter = (shape, other) if len(shape) >= len(other) else (other, shape)
        tail = len(longer) - len(shorter)
        shape = longer[:tail] + tuple(b if a == 1 else a for a, b in zip(longer[tail:], shorter))


def operator(call):
    """The same op as a method for one of Python's operators."""
    made = _caller(call.op, operator=True)
    made.op, made.__name__, made.__doc__ = call.op, call.__name__, call.__doc__
    return made


def variant(call, node: str):
    """The same op under another node name, as PyTorch names overloads: ``variant(xp.sum, "SumBackward1")``."""
    made = _caller(call.op, node)
    made.op, made.__name__, made.__doc__ = call.op, call.__name__, call.__doc__
    return made


def _link_view(o, base, t, static, index=None):
    """Remember what ``t`` is a view of and how it was cut out; on NumPy that only matters if it really aliases."""
    array, whole = t._array, base._array
    if array.__class__ is _ndarray and array.base is not whole and not _aliases(array, whole):
        return
    storage = t._storage = base._storage or base._counted()
    if storage.views is not None:
        storage.views.append(t)
    step = (o, static if len(static) == len(o.static) else {**o.static, **static}, index)
    if base._view is None or base._view.recorded is None:
        t._view = View(base, (step,), storage.version, state.grad)
    else:
        t._view = View(base._view.base, (*base._view.path, step), storage.version, state.grad)


def _aliases(array, whole) -> bool:
    if array.base is not None and array.base is whole.base:
        return True
    return not array.size or np.may_share_memory(array, whole)


def _with_node(array, node):
    t = wrap(array)
    t._node = node
    return t


def _needs(*names):
    """A stand-in rule that only says what to save; ``derive`` computes the gradients of all arguments at once."""

    def rule(*_):
        raise NotImplementedError

    rule.needs = names
    return rule


def _derive(o: Op, edges, names, values, g, graph):
    """Gradients of ``o`` by differentiating its forward function, run again in the ``differentiable`` namespace."""
    known = dict(zip(names, values))
    arrays = [known[name] for name in o.arrays]
    if o.variadic:
        arrays[-1:] = arrays[-1]
    static = {name: known[name] for name in o.static}
    outer, state.grad = state.grad, True
    try:
        # Fresh aliases: a path that leads on from one input to another must not be followed here.
        inputs = [_alias(a, wanted is not None, graph) for a, wanted in zip(arrays, edges)]
        if o.aux is not None:
            named = dict(zip(o.arrays, inputs))
            static["aux"] = o.aux(differentiable, *[named.get(n, static.get(n)) for n in o.aux_names])
        out = o.forward(differentiable, *inputs, **static)
        roots, gradients = [], []
        for t, gt in zip(out, g) if isinstance(out, tuple) else [(out, g)]:
            if isinstance(t, Tensor) and t._node is not None and gt is not None:
                roots.append(t._node)
                gradients.append(gt)
        wanted = [t._node for t, edge in zip(inputs, edges) if edge is not None]
        found = run_backward(roots, gradients, retain=graph, graph=graph, wanted=set(wanted))
    finally:
        state.grad = outer
    return [found.get(t._node) if edge is not None else None for t, edge in zip(inputs, edges)]


def _alias(array, wanted, graph):
    if graph and isinstance(array, Tensor):
        return differentiable.alias(array) if wanted else array
    if not hasattr(array, "dtype"):
        return array
    t = wrap(array)
    if wanted:
        t._node = AccumulateGrad(t)
    return t


# -- dtypes ----------------------------------------------------------------------------------------------------------


def _convert(args, arrays, promote, keep, detour, xp):
    """Cast arrays as PyTorch would before computing.

    Returns the arrays, the dtype they were brought to (None: as they were), and the dtype that half precision's
    ``detour`` over float32 must end in (None: no detour).
    """
    compute = final = None
    if promote is not None:
        with_dim, zero_dim, scalars = [], [], []
        for i, (a, array) in enumerate(zip(args, arrays)):
            if i in keep:
                continue
            if isinstance(a, Tensor):
                (with_dim if array.ndim else zero_dim).append(dtypes.of_numpy(array.dtype))
            elif a is not None:
                scalars.append(dtypes.of_scalar(a))
        target = dtypes.result_dtype(with_dim, zero_dim, scalars)
        if promote == "float" and not (target.is_floating_point or target.is_complex):
            target = dtypes.get_default_dtype()
        compute = target.numpy
        arrays = [
            a if i in keep else _cast(xp, a, compute) if hasattr(a, "dtype") else _fit_scalar(a, target)
            for i, a in enumerate(arrays)
        ]
    if detour:
        low = compute or next((a.dtype for a in arrays if hasattr(a, "dtype") and a.dtype in LOW_PRECISION), None)
        if low in LOW_PRECISION:
            final, compute = low, _F32
            arrays = [_cast(xp, a, _F32) if hasattr(a, "dtype") and a.dtype in LOW_PRECISION else a for a in arrays]
    return arrays, compute, final


def _fit_scalar(value, target):
    """A Python number that will meet arrays of dtype ``target``: integers wrap around as PyTorch's do."""
    if value is None or target.is_floating_point or target.is_complex:
        return value
    return np.asarray(value).astype(target.numpy)


def _cast(xp, array, numpy_dtype):
    return array if array.dtype == numpy_dtype else xp.astype(array, dtype=numpy_dtype)


def _cast_back(xp, array, compute, final):
    return xp.astype(array, dtype=final) if array.dtype == compute else array


def _type_name(numpy_dtype) -> str:
    return "torch." + dtypes.of_numpy(numpy_dtype).char if numpy_dtype is not None else "torch.Tensor"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _names(function) -> tuple:
    """A function's parameters, read off its code: hundreds of ops are declared at import, and ``inspect`` is slow."""
    if hasattr(function, "__signature__") or hasattr(function, "__wrapped__"):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _parameters(forward):
    """(names of the array arguments, name of the variadic one or None, {static name: default})."""
    forward = inspect.unwrap(forward)
    code, defaults = forward.__code__, forward.__kwdefaults__ or {}
    keywords = code.co_argcount + code.co_kwonlyargcount
    arrays = code.co_varnames[1 : code.co_argcount]
    variadic = code.co_varnames[keywords] if code.co_flags & inspect.CO_VARARGS else None
    static = {name: defaults.get(name) for name in code.co_varnames[code.co_argcount : keywords] if name != "aux"}
    return arrays if variadic is None else (*arrays, variadic), variadic, static
