"""A model as a file: StableHLO by ``jax.export`` and the weights, runnable without the model's source.

The file is a zip with ``program`` (the serialized StableHLO), ``weights/<n>.npy`` and ``meta.json`` (argument shapes,
and where in the result each output belongs). Nothing in it is executed as Python.
"""

from __future__ import annotations

import io
import json
import zipfile

import jax
import numpy as np

from .. import dtypes
from ..autograd.mode import no_grad
from ..device import cpu
from ..engine.xla.devices import place_of
from ..tensor import Tensor, wrap
from .discover import Watch
from .residence import current
from .trace import trace_until_known
from .tree import Leaf, flatten, unflatten

_FORMAT = 1


class ExportedProgram:
    """A compiled function with its weights: call it with tensors of the shapes it was exported with."""

    def __init__(self, program, weights: list[np.ndarray], meta: dict):
        self._program, self._weights, self._meta = program, weights, meta
        self._call = jax.jit(program.call)

    def __call__(self, *args, **kwargs):
        given: list[Tensor] = []
        flatten((args, kwargs), given)
        self._check(given)
        for t in given:
            t._sync()
        outputs = self._call([t._array for t in given], self._weights)
        on_numpy = all(t._array.__class__ is np.ndarray for t in given)
        made = [wrap(np.array(o) if on_numpy else o) for o in outputs]
        return unflatten(_from_json(self._meta["result"]), made)

    def _check(self, given) -> None:
        expected = self._meta["arguments"]
        if len(given) != len(expected):
            raise TypeError(f"this exported program takes {len(expected)} tensors, got {len(given)}")
        for i, (t, (shape, dtype)) in enumerate(zip(given, expected)):
            if list(t.shape) != shape or t.dtype.name != dtype:
                raise RuntimeError(
                    f"this exported program takes a {dtype} tensor of shape {shape} as argument {i}, "
                    f"got {t.dtype.name} of shape {list(t.shape)}; export again for other shapes"
                )

    def module(self):
        return self

    def eval(self):
        return self

    @property
    def code(self) -> str:
        """The program's StableHLO text."""
        return str(self._program.mlir_module())

    def save(self, f) -> None:
        """Write to a path or a binary file."""
        with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("meta.json", json.dumps(self._meta))
            archive.writestr("program", bytes(self._program.serialize()))
            for i, array in enumerate(self._weights):
                with archive.open(f"weights/{i}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.ascontiguousarray(array).view(_storable(array.dtype)))


def export(mod, args: tuple, kwargs: dict | None = None, *, platforms=None) -> ExportedProgram:
    """Compile ``mod`` (a module or a function) for arguments like these, as something that can be saved.

    ``platforms`` are those the file should run on, e.g. ``("cpu", "cuda")``; by default the one it is on now.
    """
    kwargs = kwargs or {}
    if not isinstance(args, tuple):
        raise TypeError(f"export(): argument 'args' must be a tuple of example inputs, not {type(args).__name__}")
    given: list[Tensor] = []
    flatten((args, kwargs), given)
    with no_grad():
        watch = Watch()
        with watch.watching():
            mod(*args, **kwargs)
        state, views = watch.survivors(but=given), list(watch.views)
        device = next((t.device for t in [*given, *state] if t.device != cpu), cpu)
        learned, state = trace_until_known(mod, args, kwargs, given, state, views, [], device)
    closed = learned.jaxpr

    def run(arguments, weights):
        key = np.zeros(4, dtype=np.uint32)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arguments, *weights, key)[: learned.results]

    shapes = [[jax.ShapeDtypeStruct(t._array.shape, t._array.dtype) for t in ts] for ts in (given, state)]
    program = jax.export.export(jax.jit(run), platforms=platforms)(*shapes)
    meta = {
        "format": _FORMAT,
        "arguments": [(list(t.shape), t.dtype.name) for t in given],
        "result": _to_json(learned.structure),
        "weights": [t.dtype.name for t in state],
    }
    return ExportedProgram(program, [np.asarray(current(t, place_of(device))) for t in state], meta)


def load(f) -> ExportedProgram:
    """Read what ``save`` wrote; needs JAX, but not the model's source."""
    with zipfile.ZipFile(f) as archive:
        try:
            meta = json.loads(archive.read("meta.json"))
            program = jax.export.deserialize(bytearray(archive.read("program")))
        except KeyError as error:
            raise RuntimeError(f"not a file written by rushlight.export: {error.args[0]}") from None
        if meta.get("format") != _FORMAT:
            raise RuntimeError(f"exported by another version of rushlight (format {meta.get('format')})")
        weights = []
        for i, name in enumerate(meta["weights"]):
            raw = np.lib.format.read_array(io.BytesIO(archive.read(f"weights/{i}.npy")), allow_pickle=False)
            weights.append(raw.view(getattr(dtypes, name if name != "bool" else "bool_").numpy))
    return ExportedProgram(program, weights, meta)


def _storable(dtype):
    """bfloat16 is not NumPy's own: its bits are stored as integers."""
    return np.uint16 if dtype.name == "bfloat16" else dtype


def _to_json(value):
    if isinstance(value, Leaf):
        return {"tensor": value.index}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [_to_json(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[k, _to_json(v)] for k, v in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    raise TypeError(f"export: a result of type {type(value).__name__} cannot be saved; return tensors and containers")


def _from_json(value):
    ((kind, content),) = value.items()
    if kind == "tensor":
        return Leaf(content)
    if kind == "value":
        return content
    if kind == "dict":
        return {k: _from_json(v) for k, v in content}
    parts = [_from_json(v) for v in content]
    return tuple(parts) if kind == "tuple" else parts
