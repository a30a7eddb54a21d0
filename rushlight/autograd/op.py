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

import inspect

from .. import dtypes
from ..engine.fallback import FORWARDS
from .call import caller, check_broadcast
from .plan import Rule, names_of
from .registry import differentiable

__all__ = ["check_broadcast", "differentiable", "op", "operator", "variant"]


def op(_forward=None, **options):
    """Declare an operator; see the module's text. The options, beside a rule for each array:

    node:     the graph node's name; ``MulBackward0`` for an op called ``mul`` if not given.
    promote:  ``"common"`` casts all arrays to PyTorch's result dtype first, ``"float"`` makes integers float too.
    keep:     names of arrays that promotion leaves as they are (a mask).
    check:    ``check(*arrays)``, called on what is not plainly float32 or float64 alone: refuses bad dtypes.
    takes:    ``"real"`` refuses complex numbers, ``"full"`` half precision too, as PyTorch's kernels do.
    view:     the output shares memory with the first input (where the engine can).
    write:    for a view op: ``write(xp, x, value, **static)``, x with the viewed part replaced; see ``views``.
    position: a static argument that says where, not how much: an engine that records may take it as an input.
    exact:    moves elements without arithmetic, so half precision needs no float32 detour.
    uses:     which of several outputs the rules look at, by number, if not all: the others may be written to.
    wide:     half precision is computed in float32 on every engine, and of several outputs only the first goes back.
    """

    def declare(forward):
        declared = Op(forward, **options)
        call = caller(declared)
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

    def __init__(
        self,
        forward,
        *,
        node=None,
        promote=None,
        keep=(),
        check=None,
        takes=None,
        view=False,
        write=None,
        position=None,
        exact=False,
        wide=False,
        derive=False,
        aux=None,
        residuals=False,
        uses=None,
        **rules,
    ):
        self.name = forward.__name__.strip("_")
        self.forward = forward
        self.promote, self.view, self.write, self.exact, self.aux = promote, view, write, exact or view, aux
        self.wide, self.position = wide, position
        self.lowered = None  # the half precision that floating-point arrays are cast to: see ``lowering``
        self.turns = view and self.name in (
            "transpose",
            "swapaxes",
            "matrix_transpose",
            "strided",
            "windows",
            "diagonal",
        )
        self.arrays, self.variadic, self.static = _parameters(forward)
        self.label = self.name  # what error messages call it: PyTorch's name, where that is another
        self.check, self.keep = check or _refusal(forward, takes), tuple(self.arrays.index(name) for name in keep)
        self.aux_names = names_of(aux)[1:] if aux else ()
        self.derive, self.residuals, self.uses = derive, residuals, uses
        if derive:
            rules = dict.fromkeys(self.arrays, _needs(*self.arrays, *self.static))
        self.rules = {argument: Rule(argument, rule) for argument, rule in rules.items()}
        unknown = set(self.rules) - set(self.arrays)
        if unknown:
            raise TypeError(f"op {self.name}: gradient rule for unknown argument {sorted(unknown)}")
        self.node = node or _camel(self.name) + "Backward0"


def _refusal(forward, takes):
    """The ``check`` of an op whose kernels in PyTorch serve only some dtypes."""
    if takes is None:
        return None
    name = forward.__name__.strip("_")

    def check(*arrays):
        given = [dtypes.of_numpy(a.dtype) for a in arrays if hasattr(a, "dtype")]
        floats = [d for d in given if d.is_floating_point]
        half = takes == "full" and bool(floats) and all(d.itemsize < 4 for d in floats)
        wrong = next((d for d in given if d.is_complex), floats[0] if half else None)
        if wrong is not None:
            word = wrong.char.removesuffix("Tensor")
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{word}'")

    return check


def operator(call):
    """The same op as a method for one of Python's operators."""
    made = caller(call.op, operator=True)
    made.op, made.__name__, made.__doc__ = call.op, call.__name__, call.__doc__
    return made


def variant(call, node: str, first=False):
    """The same op under another node name, as PyTorch names overloads: ``variant(xp.sum, "SumBackward1")``.

    ``first``: nobody gets to see more than the first of several outputs, so the others need no gradient.
    """
    made = caller(call.op, node, first=first)
    made.op, made.__name__, made.__doc__ = call.op, call.__name__, call.__doc__
    return made


def _needs(*names):
    """A stand-in rule that only says what to save; ``derive`` computes the gradients of all arguments at once."""

    def rule(*_):
        raise NotImplementedError

    rule.needs = names
    return rule


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _parameters(forward):
    """(names of the array arguments, name of the variadic one or None, {static name: default})."""
    forward = inspect.unwrap(forward)
    code, defaults = forward.__code__, forward.__kwdefaults__ or {}
    keywords = code.co_argcount + code.co_kwonlyargcount
    arrays = code.co_varnames[1 : code.co_argcount]
    variadic = code.co_varnames[keywords] if code.co_flags & inspect.CO_VARARGS else None
    static = {name: defaults.get(name) for name in code.co_varnames[code.co_argcount : keywords] if name != "aux"}
    return arrays if variadic is None else (*arrays, variadic), variadic, static
