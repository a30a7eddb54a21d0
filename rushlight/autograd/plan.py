"""What a recorded call keeps: for each op and each set of wanted gradients, the values that its rules ask for."""

from __future__ import annotations

import inspect
from operator import itemgetter
from typing import TYPE_CHECKING

from ..tensor import Tensor

if TYPE_CHECKING:
    from .op import Op


class Plans(dict):
    """The plans of an op whose nodes are called ``node``, by which inputs want gradients: a bit for each."""

    def __init__(self, op: Op, node: str):
        self.op, self.node = op, node

    def __missing__(self, needs: int) -> Plan:
        plan = self[needs] = Plan(self.op, self.node, needs)
        return plan


class Rule:
    __slots__ = ("argument", "function", "needs")

    def __init__(self, argument, function):
        self.argument, self.function = argument, function
        self.needs = getattr(function, "needs", None) or names_of(function)[2:]


class Plan:
    """For one op and one set of wanted gradients: which values to save, and how each rule picks from them.

    ``names`` are the values that the rules ask for, in this order: inputs (``count`` of them, at ``inputs`` among the
    arguments), the output if ``output``, then what ``others`` lists as (kind, which): static arguments, shapes, the
    inputs of ``*name``, aux.
    A node saves all but the static arguments, which it has anyway. ``differentiates_aux``: the rules ask for all that
    aux depends on, so that a recorded pass computes it again; else it is a constant there.
    """

    __slots__ = (
        "op",
        "node",
        "needs",
        "names",
        "rules",
        "count",
        "inputs",
        "pick",
        "output",
        "others",
        "many",
        "saves_more",
        "frees",
        "differentiates_aux",
        "asked",
        "unasked",
        "plain",
        "quick",
    )

    def __init__(self, op: Op, node: str, needs: int):
        self.op, self.node, self.needs = op, node, needs
        wanted = [op.rules.get(a) if needs >> i & 1 else None for i, a in enumerate(op.arrays)]
        if op.variadic and needs >> len(op.arrays) - 1:
            wanted[-1] = op.rules.get(op.variadic)
        self.many = len(wanted) - 1 if op.variadic and wanted[-1] else None  # the place of a rule for ``*name``
        too = _KEPT_TOO.get(node) or _KEPT_TOO.get(op.name, {})
        also = [n for r in wanted if r for n in too.get(r.argument, ()) if n in op.arrays or n == "y"]
        asked = dict.fromkeys(n for r in wanted if r for n in r.needs)
        self.differentiates_aux = all(name in asked or name in op.static for name in op.aux_names)
        asked.update(dict.fromkeys(also))
        sources = sorted([(*_source(op, name), name) for name in asked], key=lambda source: _ORDER[source[0]])
        self.names = tuple(name for _, _, name in sources)
        place = {name: i for i, name in enumerate(self.names)}
        self.rules = tuple(
            (i, r.function, tuple(place[n] for n in r.needs)) for i, r in enumerate(wanted) if r is not None
        )
        inputs = tuple(which for kind, which, _ in sources if kind == "input")
        self.inputs, self.count, self.output = inputs, len(inputs), "y" in asked
        self.others = tuple((kind, which) for kind, which, _ in sources if kind not in ("input", "y"))
        # A tuple of what is kept; of one argument as args[i:i+1], for itemgetter(i) would give the argument itself.
        first = inputs[0] if inputs else 0
        self.pick = itemgetter(*inputs) if len(inputs) > 1 else itemgetter(slice(first, first + len(inputs)))

        self.saves_more = any(kind != "static" for kind, _ in self.others)
        # A raw pass takes what was saved as it is, then the static arguments that the rules asked for.
        self.plain = op.lowered is None and all(kind != "inputs" for kind, _ in self.others)
        self.quick = self.plain and self.many is None and not op.derive  # for the loop in C
        self.asked = tuple(which for kind, which in self.others if kind == "static")
        self.unasked = tuple(name for name in op.static if name not in self.names)  # an engine's backward may want it
        # Values are let go of after backward; shapes alone are not worth it, and allow another backward.
        self.frees = bool(inputs) or self.output or any(kind in ("inputs", "aux") for kind, _ in self.others)

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


_X, _Y, _SRC = {"x": ("x",)}, {"x": ("y",), "w": ("y",)}, {"src": ("src",)}
_BOTH = {"x": ("x", "src", "y"), "src": ("x", "src", "y")}
# By node or op: what PyTorch's node keeps for the gradient of each argument though the rule here does not ask for it.
# It is kept here too, so that writing to it before backward is refused as it is there.
_KEPT_TOO: dict[str, dict[str, tuple]] = {
    "ProdBackward0": _Y, "ProdBackward1": _Y, "CumprodBackward0": _Y, "LinalgDetBackward0": _Y, "EluBackward1": _Y,
    "LeakyReluBackward1": _Y, "HardtanhBackward1": _Y, "CeluBackward1": _Y, "RreluWithNoiseBackward1": _Y,
    "DistBackward0": _Y, "CdistBackward0": _Y, "PdistBackward0": _Y,
    "CummaxBackward0": _X, "CumminBackward0": _X, "GatherBackward0": _X, "TakeBackward0": _X,
    "MaskedSelectBackward0": _X, "FftR2CBackward0": _X, "nll_loss": _X,
    "MaxPool2DWithIndicesBackward0": _X, "MaxPool3DWithIndicesBackward0": _X,
    **{f"{kind}{dims}DBackward0": _X for dims in (1, 2, 3)
       for kind in ("AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "ReflectionPad", "ReplicationPad")},
    "ScatterReduceBackward0": _BOTH, "IndexReduceBackward0": _BOTH,
    "IndexAddBackward0": _SRC, "IndexCopyBackward0": _SRC,
    "ComplexBackward0": {"x": ("x",), "w": ("w",)},
    "DivBackward2": {"x": ("w",), "w": ("x", "w")},
    "ScaledDotProductFlashAttentionForCpuBackward0": dict.fromkeys(("q", "k", "v"), ("y",)),
    "ConvolutionBackward0": dict.fromkeys(("x", "g_", "w", "b"), ("x", "g_", "w")),  # or the transposed one
    "NativeBatchNormBackward0": dict.fromkeys(("x", "w", "b"), ("x", "w", "mean", "variance")),
}  # fmt: skip
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


def names_of(function) -> tuple:
    """A function's parameters, read off its code: hundreds of ops are declared at import, and ``inspect`` is slow."""
    if hasattr(function, "__signature__") or hasattr(function, "__wrapped__"):
        return tuple(inspect.signature(function).parameters)
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
