"""A model as a file: StableHLO by ``jax.export`` and the weights, runnable without the model's source.

The file is a zip with ``program`` (the serialized StableHLO), ``weights/<n>.npy`` and ``meta.json`` (argument shapes,
and where in the result each output belongs). Nothing in it is executed as Python, and what the program calls is looked
at before it runs.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from typing import Any

import jax
import numpy as np

from .. import dtypes
from ..autograd.mode import no_grad
from ..device import cpu
from ..engine.xla.devices import place_of, portable
from ..io.atomic import replacing
from ..tensor import Tensor, wrap
from .discover import Watch
from .open_sizes import open_sizes
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
        sizes: dict[str, int] = {}
        for i, (t, (shape, dtype)) in enumerate(zip(given, expected)):
            if not self._fits(t.shape, shape, sizes) or t.dtype.name != dtype:
                raise RuntimeError(
                    f"this exported program takes a {dtype} tensor of shape {shape} as argument {i}, "
                    f"got {t.dtype.name} of shape {list(t.shape)}; export again for other shapes"
                )

    def _fits(self, have, want: list, sizes: dict[str, int]) -> bool:
        """Is it such a shape? The same name is the same size everywhere, and within its limits."""
        if len(have) != len(want):
            return False
        for n, expected in zip(have, want):
            low, high = self._meta.get("open", {}).get(expected, (expected, expected))
            if not low <= n <= (high or n) or sizes.setdefault(expected, n) != n:
                return False
        return True

    def module(self):
        return self

    def eval(self):
        return self

    @property
    def code(self) -> str:
        """The program's StableHLO text."""
        return str(self._program.mlir_module())

    def save(self, f) -> None:
        """Write to a path, which is replaced only when the new file is whole, or to a binary file."""
        if isinstance(f, (str, os.PathLike)):
            with replacing(f) as file, io.BufferedWriter(_Lent(file)) as buffered:  # type: ignore[type-var]
                self._write(buffered)
        else:
            self._write(f)

    def _write(self, file) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("meta.json", json.dumps(self._meta))
            archive.writestr("program", bytes(self._program.serialize()))
            for i, array in enumerate(self._weights):
                with archive.open(f"weights/{i}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.ascontiguousarray(array).view(_storable(array.dtype)))


def export(
    mod, args: tuple, kwargs: dict | None = None, *, platforms=None, dynamic_shapes: Any = None
) -> ExportedProgram:
    """Compile ``mod`` (a module or a function) for arguments like these, as something that can be saved.

    ``dynamic_shapes`` says which sizes stay open, by argument: ``{"x": {0: Dim("batch")}}``. ``platforms`` are those
    the file should run on, e.g. ``("cpu", "cuda")``; by default the one it is on now.
    """
    kwargs = kwargs or {}
    if not isinstance(args, tuple):
        raise TypeError(f"export(): argument 'args' must be a tuple of example inputs, not {type(args).__name__}")
    given: list[Tensor] = []
    flatten((args, kwargs), given)
    names, limits = open_sizes(mod, args, kwargs, dynamic_shapes)
    shapes = _symbolic([t._array.shape for t in given], names, limits)
    with no_grad():
        watch = Watch()
        with watch.watching():
            mod(*args, **kwargs)
        state, views = watch.survivors(but=given), list(watch.views)
        device = next((t.device for t in [*given, *state] if t.device != cpu), cpu)
        try:
            with portable():
                learned, state = trace_until_known(mod, args, kwargs, given, state, views, [], device, shapes=shapes)
        except (TypeError, ValueError) as error:  # a size was needed as a number
            if not limits:
                raise
            raise RuntimeError(f"export: the sizes {', '.join(limits)} cannot stay open here: {error}") from error
    closed = learned.jaxpr

    def run(arguments, weights):
        key = np.zeros(4, dtype=np.uint32)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arguments, *weights, key)[: learned.results]

    weights = [jax.ShapeDtypeStruct(t._array.shape, t._array.dtype) for t in state]
    arguments = [jax.ShapeDtypeStruct(shape, t._array.dtype) for shape, t in zip(shapes, given)]
    program = jax.export.export(jax.jit(run), platforms=platforms)(arguments, weights)
    meta = {
        "format": _FORMAT,
        "arguments": [([name or n for name, n in zip(ns, t.shape)], t.dtype.name) for ns, t in zip(names, given)],
        "open": limits,
        "result": _to_json(learned.structure[0]),
        "weights": [t.dtype.name for t in state],
    }
    return ExportedProgram(program, [np.asarray(current(t, place_of(device))) for t in state], meta)


def _symbolic(shapes: list, names: list, limits: dict[str, tuple]) -> list[tuple]:
    """The shapes with JAX's symbols in the place of named sizes."""
    if not limits:
        return shapes
    rules = [f"{name} >= {low}" for name, (low, _) in limits.items()]
    rules += [f"{name} <= {high}" for name, (_, high) in limits.items() if high]
    symbols = dict(zip(limits, jax.export.symbolic_shape(", ".join(limits), constraints=rules)))
    return [tuple([symbols.get(name, n) for name, n in zip(ns, shape)]) for ns, shape in zip(names, shapes)]


def load(f) -> ExportedProgram:
    """Read what ``save`` wrote; needs JAX, but not the model's source.

    The file is checked before anything of it runs: its parts are as large as they say, and the program calls nothing
    outside XLA but the linear algebra that JAX brings along.
    """
    try:
        with zipfile.ZipFile(f) as archive:
            parts = _Parts(archive)
            meta = json.loads(parts.read("meta.json"))
            if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
                raise RuntimeError("exported by another version of rushlight, or not by rushlight.export")
            program = jax.export.deserialize(bytearray(parts.read("program")))
            _check_calls(str(program.mlir_module()))
            weights = [_weight(parts.read(f"weights/{i}.npy"), name) for i, name in enumerate(meta["weights"])]
            _check_result(meta["result"], len(program.out_avals))
    except Exception as error:  # whatever libraries say of bytes that make no sense
        if isinstance(error, (RuntimeError, OSError)) and not isinstance(error, RecursionError):
            raise
        raise RuntimeError(f"not a file written by rushlight.export, or damaged: {str(error)[:200]}") from None
    return ExportedProgram(program, weights, meta)


class _Parts:
    """The parts of an exported program's file. None is packed, so all of them are no larger than the file."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        file: Any = archive.fp
        self.left = file.seek(0, 2)

    def read(self, name: str) -> bytes:
        info = self.archive.getinfo(name)
        self.left -= info.file_size
        if info.compress_type != zipfile.ZIP_STORED or self.left < 0:
            raise RuntimeError(f"part '{name}' of the exported program is packed, or larger than the file: damaged")
        return self.archive.read(info)


def _weight(data: bytes, name: str) -> np.ndarray:
    """The array in an .npy file, if it is of the dtype called ``name`` and as large as it says."""
    dtype = next(d for d in dtypes.ALL if d.name == name).numpy
    file = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, stored = read(file)
    rest = len(data) - file.tell()
    if fortran or stored != _storable(dtype) or math.prod(shape) * dtype.itemsize != rest:
        raise RuntimeError(f"a weight of {rest} bytes says it is {stored} of shape {shape}: the file is damaged")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape).copy()


def _check_calls(text: str) -> None:
    """Refuse a program that leaves XLA: Python callbacks, kernels of its own, or waiting for somebody to feed it."""
    for found in _LEAVES.finditer(text):
        name = (found[2] or "").strip('"')
        if found[1] != "custom_call" or not _CALLS.fullmatch(name):
            raise RuntimeError(
                f"the exported program calls {(name or found[1])[:100]!r}, which rushlight.export does not write; it "
                "was not loaded"
            )


_LEAVES = re.compile(r'stablehlo\.(custom_call|infeed|outfeed|send|recv)\b"?(?: @("[^"]*"|[\w$.\-]+))?')
_CALLS = re.compile(
    r"(lapack|cusolver|cusparse|hipsolver|cu|hip)_\w+_ffi|(cu|hip)_lu_pivots_to_permutation|Eigh|Qr|LuDecomposition|"
    r"ProductOfElementaryHouseholderReflectors|ApproxTopK|Sharding|SPMD\w+|annotate_device_placement|shape_assertion|"
    r"stablehlo\.dynamic_\w+"
)


def _check_result(value, count: int) -> None:
    """The result is containers of the program's outputs and of plain values."""
    pending = [value]
    while pending:
        ((kind, content),) = pending.pop().items()
        if kind == "tensor" and not (type(content) is int and 0 <= content < count):
            raise RuntimeError(f"the file's result has tensor {content!r:.50} of {count}: damaged")
        if kind == "dict":
            pending.extend(part for _, part in content)
        elif kind in ("tuple", "list"):
            pending.extend(content)
        elif kind not in ("tensor", "value"):
            raise RuntimeError(f"the file's result has a {kind!r:.50}: damaged")


class _Lent(io.RawIOBase):
    """A raw file that stays open when what is wrapped around it is closed."""

    def __init__(self, file):
        self.file = file

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data) -> int:
        return self.file.write(data)

    def seek(self, *place) -> int:
        return self.file.seek(*place)


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
