"""``torch.onnx.export``: a model as an ONNX file.

The model is run and recorded (``recording.py``) more than once, with other values and with other sizes where sizes are
open. What must be the same each time is compared, so that nothing that depends on a value or on an open size becomes a
constant unnoticed. Where only whole numbers differ, the sizes of a reshape say, the graph computes them.
"""

from __future__ import annotations

import inspect
import itertools
import math
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..nn.module import Module
from ..random import get_rng_state, set_rng_state
from ..tensor import Tensor, wrap
from ..utils._pytree import tree_flatten, tree_unflatten
from .graph import Draft, Node, OnnxExporterError
from .recording import record

__all__ = ["ONNXProgram", "export", "is_in_onnx_export"]

OPSET = 18
_state = threading.local()


def is_in_onnx_export() -> bool:
    """Is a model being exported now?"""
    return getattr(_state, "exporting", False)


def export(
    model: Module | Callable,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: dict | None = None,
    verbose: bool | None = None,
    input_names: list[str] | None = None,
    output_names: list[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    dynamic_axes: dict | None = None,
    verify: bool = False,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    **torch_options: Any,
) -> ONNXProgram | None:
    """Write ``model``, called with ``args``, as an ONNX file ``f``; the program is returned unless ``dynamo=False``.

    Sizes in ``dynamic_axes`` (by the names of inputs) or ``dynamic_shapes`` (by the names of arguments) stay open. The
    model is exported as in evaluation. Needs the package ``onnx``: ``pip install rushlight[onnx]``.
    """
    _need("onnx")
    args, kwargs = args if isinstance(args, tuple) else (args,), dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not kwargs and not dynamo:
        args, kwargs = args[:-1], args[-1]  # PyTorch's older way to give keywords
    call = _Call(model, args, kwargs, input_names)
    symbols = call.open_sizes(dynamic_axes, dynamic_shapes)
    random = get_rng_state()  # random numbers differ between recordings, and so are noticed
    try:
        drafted = _drafted(call, symbols)
    finally:
        set_rng_state(random)
    model_proto = _to_proto(*drafted, symbols, output_names, opset_version or OPSET)
    program = ONNXProgram(model_proto, call.inputs)
    if verify:
        program.check(model, args, kwargs)
    if f is not None:
        program.save(f)
    return program if dynamo else None


class ONNXProgram:
    """An exported model: ``model_proto`` is ONNX's, ``save`` writes it, a call runs it with onnxruntime."""

    def __init__(self, model_proto, inputs: list[Tensor]):
        self.model_proto, self._inputs = model_proto, inputs
        self._session: Any = None

    def save(self, destination: str | os.PathLike, **torch_options: Any) -> None:
        """Write the file; weights go into a second one where they are too large for it."""
        import onnx

        large = self.model_proto.ByteSize() > 1_500_000_000
        if hasattr(destination, "write"):
            destination.write(self.model_proto.SerializeToString())
        else:
            onnx.save_model(self.model_proto, os.fspath(destination), save_as_external_data=large)

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Run it, with onnxruntime."""
        _need("onnxruntime")
        import onnxruntime

        if self._session is None:
            providers = ["CPUExecutionProvider"]
            self._session = onnxruntime.InferenceSession(self.model_proto.SerializeToString(), providers=providers)
        given = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        names = [i.name for i in self._session.get_inputs()]
        found = self._session.run(None, dict(zip(names, [np.asarray(t._array) for t in given])))
        return [wrap(np.asarray(array)) for array in found]

    def check(self, model, args, kwargs) -> None:
        """Raise if onnxruntime finds other numbers than the model."""
        with _evaluating(model):
            expected = [t for t in tree_flatten(model(*args, **kwargs))[0] if isinstance(t, Tensor)]
        for mine, theirs in zip(expected, self(*args, **kwargs)):
            np.testing.assert_allclose(theirs.numpy(), mine.detach().numpy(), rtol=1e-3, atol=1e-4)

    def optimize(self) -> None:
        """Nothing: runtimes do that when they load the file."""

    def __repr__(self) -> str:
        import onnx

        return f"ONNXProgram(\n{onnx.printer.to_text(self.model_proto.graph)[:2000]}\n)"


# -- the call that is exported -----------------------------------------------------------------------------------------


class _Call:
    """A model and its arguments, which can be recorded with other tensors in their places."""

    def __init__(self, model, args, kwargs, input_names):
        self.model = model
        self._leaves, self._tree = tree_flatten((args, kwargs))
        self._places = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, Tensor)]
        self.inputs = [self._leaves[i] for i in self._places]
        self.parameters = _parameter_names(model, args, kwargs)
        self.names = _input_names(self.inputs, self.parameters, input_names)
        self._known = {}
        if isinstance(model, Module):
            self._known = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        if any(name in self._known for name in self.names):
            self._known = {f"weights.{name}": t for name, t in self._known.items()}

    def record(self, tensors: list[Tensor]) -> Draft:
        leaves = list(self._leaves)
        for place, t in zip(self._places, tensors):
            leaves[place] = t
        args, kwargs = tree_unflatten(leaves, self._tree)
        _state.exporting = True
        try:
            with _evaluating(self.model):
                return record(self.model, args, kwargs, tensors, self.names, self._known)
        finally:
            _state.exporting = False

    def open_sizes(self, dynamic_axes, dynamic_shapes) -> dict[str, list[tuple[int, int]]]:
        """symbol -> the (input, axis) that have this size."""
        given: dict[int, Any] = {}
        for name, axes in (dynamic_axes or {}).items():
            if name in self.names:  # of outputs it follows
                given[self.names.index(name)] = axes
        if dynamic_shapes is not None:
            if len(self.parameters) != len(self.inputs):
                raise OnnxExporterError("dynamic_shapes: arguments that are not one tensor each; use dynamic_axes")
            by_name = dynamic_shapes if isinstance(dynamic_shapes, dict) else dict(zip(self.parameters, dynamic_shapes))
            for name, axes in by_name.items():
                if name not in self.parameters:
                    raise OnnxExporterError(f"dynamic_shapes: the model has no argument '{name}': {self.parameters}")
                if axes:
                    given[self.parameters.index(name)] = axes
        found: dict[str, list[tuple[int, int]]] = {}
        for i, axes in given.items():
            for axis, symbol in _named_axes(axes):
                found.setdefault(_symbol_name(symbol, self.names[i], axis), []).append((i, axis % self.inputs[i].ndim))
        return found


def _named_axes(axes) -> list[tuple[int, Any]]:
    """(axis, what its size is called) of {0: "batch"}, of [0], or of ("batch", None)."""
    if isinstance(axes, dict):
        return [(axis, symbol) for axis, symbol in axes.items() if symbol is not None]
    if isinstance(axes, tuple):
        return [(axis, symbol) for axis, symbol in enumerate(axes) if symbol is not None]
    return [(axis, None) for axis in axes]


def _symbol_name(symbol, name: str, axis: int) -> str:
    if isinstance(symbol, str):
        return symbol
    given = getattr(symbol, "__name__", None) or getattr(symbol, "name", None)
    return given if isinstance(given, str) and given.isidentifier() else f"{name}_dim_{axis}"


def _parameter_names(model, args, kwargs) -> list[str]:
    """The names of the arguments that were given."""
    function = model.forward if isinstance(model, Module) else model
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return [f"input_{i}" for i in range(len(args))] + list(kwargs)
    names = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{i}" for i in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        else:
            names.append(name)
    return [
        n for n, v in zip(names, [*args, *kwargs.values()]) if any(isinstance(t, Tensor) for t in tree_flatten(v)[0])
    ]


def _input_names(inputs, parameters, given) -> list[str]:
    plain = parameters if len(parameters) == len(inputs) else [f"input_{i}" for i in range(len(inputs))]
    names = [*(given or ()), *plain[len(given or ()) :]]
    if len(names) != len(inputs):
        raise OnnxExporterError(f"input_names: {len(given or ())} names for {len(inputs)} tensors")
    return names


class _evaluating:
    """Inside, the modules of a model are in evaluation."""

    def __init__(self, model):
        self._modules = [(m, m.training) for m in model.modules()] if isinstance(model, Module) else []

    def __enter__(self):
        for module, _ in self._modules:
            module.training = False

    def __exit__(self, *_):
        for module, training in self._modules:
            module.training = training


# -- recording more than once ------------------------------------------------------------------------------------------


def _drafted(call: _Call, symbols: dict) -> tuple[Draft, dict, dict]:
    """(the draft; how its whole numbers grow: constant -> {(symbol, …): by how much}; the outputs' open axes).

    With a size, and with the product of two: more is not looked for, and a last recording says whether it was enough.
    """
    least = {s: max(2, call.inputs[i].shape[axis]) for s, ((i, axis), *_) in symbols.items()}
    base = call.record(_resized(call.inputs, symbols, least))
    _compare(base, call.record(_resized(call.inputs, symbols, least, other_values=True)), None)
    terms: dict[str, dict[tuple, np.ndarray]] = {}
    axes: dict[tuple[int, int], dict] = {}
    for grown in [(s,) for s in symbols] + list(itertools.combinations(symbols, 2)):
        other = call.record(_resized(call.inputs, symbols, {s: n + (s in grown) for s, n in least.items()}))
        for name, more in _compare(base, other, grown[0]).items():
            known = terms.setdefault(name, {})
            rest = more - sum(known[part] for part in itertools.combinations(grown, 1) if part in known)
            if rest.any():
                known[grown] = rest
        for i, (mine, theirs) in enumerate(zip(base.outputs, other.outputs)):
            for axis, (n, m) in enumerate(zip(mine.shape, theirs.shape)):
                if n != m:
                    axes.setdefault((i, axis), {})[grown] = m - n
    steps = {s: 3 + i for i, s in enumerate(symbols)}
    if symbols:
        last = call.record(_resized(call.inputs, symbols, {s: n + steps[s] for s, n in least.items()}))
        for name, more in _compare(base, last, next(iter(symbols))).items():
            found = sum(slope * math.prod(steps[s] for s in grown) for grown, slope in terms.get(name, {}).items())
            if not np.array_equal(more, found):
                raise OnnxExporterError(f"a size in the model grows unevenly with {', '.join(symbols)}")
    return base, terms, axes


def _resized(inputs, symbols, sizes, other_values: bool = False) -> list[Tensor]:
    arrays = [np.array(t._array) for t in inputs]
    for symbol, places in symbols.items():
        for i, axis in places:
            count = arrays[i].shape[axis]
            arrays[i] = np.take(arrays[i], np.minimum(np.arange(sizes[symbol]), count - 1), axis=axis)
    if other_values:
        arrays = [a * a.dtype.type(0.75) + a.dtype.type(0.0625) if a.dtype.kind == "f" else a for a in arrays]
    return [wrap(a) for a in arrays]


def _compare(base: Draft, other: Draft, symbol: str | None) -> dict[str, np.ndarray]:
    """By how much whole numbers differ, of two drafts that must be equal otherwise."""
    why = (
        "the values of its inputs, or on random numbers"
        if symbol is None
        else f"the size '{symbol}', which is to stay open"
    )
    same = len(base.nodes) == len(other.nodes) and base.constants.keys() == other.constants.keys()
    if not same or any(repr(mine) != repr(theirs) for mine, theirs in zip(base.nodes, other.nodes)):
        raise OnnxExporterError(f"the model is another graph for other inputs: it depends on {why}")
    slopes = {}
    for name, mine in base.constants.items():
        theirs = other.constants[name]
        if mine is theirs or np.array_equal(mine, theirs, equal_nan=mine.dtype.kind in "fc"):
            continue
        if symbol is None or mine.dtype != np.int64 or mine.ndim != 1 or mine.shape != theirs.shape:
            raise OnnxExporterError(f"a constant of the model depends on {why}")
        slopes[name] = theirs - mine
    return slopes


# -- the file ----------------------------------------------------------------------------------------------------------


def _to_proto(draft: Draft, terms, axes, symbols, output_names, opset: int):
    import onnx
    from onnx import helper, numpy_helper

    nodes = [*_computed(draft, terms, symbols), *draft.nodes]
    constants = {name: array for name, array in draft.constants.items() if not terms.get(name)}
    renamed = dict(zip([value.name for value in draft.outputs], output_names or ()))
    open_axes = {place: symbol for symbol, places in symbols.items() for place in places}
    inputs = [
        _described(value, [open_axes.get((i, a), n) for a, n in enumerate(value.shape)])
        for i, value in enumerate(draft.inputs)
    ]
    least = {s: draft.inputs[i].shape[axis] for s, ((i, axis), *_) in symbols.items()}
    outputs = []
    for i, value in enumerate(draft.outputs):
        shape = [_axis_name(axes.get((i, a)), f"output_{i}_dim_{a}", n, least) for a, n in enumerate(value.shape)]
        outputs.append(_described(value, shape, renamed.get(value.name)))
    made = [
        helper.make_node(
            node.kind,
            [renamed.get(name, name) for name in node.inputs],
            [renamed.get(name, name) for name in node.outputs],
            **{key: _attribute(value) for key, value in node.attributes.items()},
        )
        for node in nodes
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(made, "main_graph", inputs, outputs, weights)
    imports = [helper.make_opsetid("", opset)]
    proto = helper.make_model(graph, opset_imports=imports, producer_name="rushlight", ir_version=10)
    onnx.checker.check_model(proto)
    return proto


def _described(value, shape, name: str | None = None):
    from onnx import helper

    return helper.make_tensor_value_info(name or value.name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def _axis_name(grows: dict | None, name: str, size: int, least: dict):
    """The size of an output's axis: a number, the symbol it is, or ``name`` if it is anything else."""
    alone = [grown[0] for grown, slope in (grows or {}).items() if len(grown) == 1 and slope == 1]
    if not grows or not alone:
        return name if grows else size
    return alone[0] if len(alone) == 1 and least[alone[0]] == size else name


def _attribute(value):
    from onnx import helper

    if isinstance(value, np.dtype):
        return helper.np_dtype_to_tensor_dtype(value)
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else value


def _computed(draft: Draft, terms, symbols) -> list[Node]:
    """Nodes that make whole numbers from the sizes of inputs: as recorded, and more for what the sizes are more."""
    if not any(terms.values()):
        return []
    nodes, more = [], {}
    for symbol, ((i, axis), *_) in symbols.items():
        value = draft.inputs[i]
        at, least = draft.constant(np.array([axis])), draft.constant(np.array([value.shape[axis]]))
        more[(symbol,)] = f"more_{symbol}"
        nodes += [
            Node("Shape", (value.name,), (f"shape_{symbol}",), {}),
            Node("Gather", (f"shape_{symbol}", at), (f"size_{symbol}",), {"axis": 0}),
            Node("Sub", (f"size_{symbol}", least), (f"more_{symbol}",), {}),
        ]
    for pair in {grown for slopes in terms.values() for grown in slopes if len(grown) == 2}:
        more[pair] = draft.fresh("product")
        nodes.append(Node("Mul", (f"more_{pair[0]}", f"more_{pair[1]}"), (more[pair],), {}))
    for name, slopes in terms.items():
        total = draft.constant(draft.constants[name])
        for grown, slope in slopes.items():
            product, added = draft.fresh("product"), draft.fresh("sum")
            nodes.append(Node("Mul", (more[grown], draft.constant(slope)), (product,), {}))
            nodes.append(Node("Add", (total, product), (added,), {}))
            total = added
        nodes.append(Node("Identity", (total,), (name,), {}))
    return nodes


def _need(package: str) -> None:
    try:
        __import__(package)
    except ImportError:
        command = "rushlight[onnx]" if package == "onnx" else package
        text = f"torch.onnx needs the package {package}: pip install {command}"
        raise ModuleNotFoundError(text, name=package) from None
