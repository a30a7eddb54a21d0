"""How tensors print: PyTorch's text, to the letter."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap

import numpy as np

from . import config
from .dtypes import bool_, get_default_dtype, int64
from .engine import SPREAD, namespace_of

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_text"]


@dataclasses.dataclass
class PrinterOptions:
    """Digits, how many elements to print before leaving some out, how many at each edge then, and the line's width."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrinterOptions()
_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Change how tensors print.

    >>> rushlight.set_printoptions(precision=2)
    >>> rushlight.tensor([1.12345])
    tensor([1.12])
    >>> rushlight.set_printoptions(profile="default")
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in {**_PROFILES.get(profile, {}), **{k: v for k, v in given.items() if v is not None}}.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict:
    """The options in force, by name."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**options):
    """``set_printoptions`` for a ``with`` block."""
    outer = get_printoptions()
    set_printoptions(**{"sci_mode": PRINT_OPTS.sci_mode, **options})
    try:
        yield
    finally:
        set_printoptions(**outer)


def tensor_text(t, contents: str | None = None) -> str:
    """The ``repr`` of a tensor; ``contents`` stands in for its values."""
    if t._array.__class__ is SPREAD.array:
        from .distributed.tensor.dtensor import text

        return text(t)
    from .autograd.mode import state

    if state.transforms:
        return _transformed_text(t, contents, state.transforms)
    return _batched_text(t) if hasattr(t._array, "mapped") else _plain_text(t, contents)


def _plain_text(t, contents) -> str:
    prefix = ("tensor" if _prints_as_tensor(type(t)) else type(t).__name__) + "("
    notes = [f"device='{t.device}'"] if _names_device(t.device) else []
    if t.is_meta:
        notes.append(f"size={tuple(t.shape)}")
        if t.dtype is not get_default_dtype():
            notes.append(f"dtype={t.dtype}")
        contents = contents or "..."
    elif t._array.size == 0 and contents is None:
        if t.ndim != 1:
            notes.append(f"size={tuple(t.shape)}")
        if t.dtype is not get_default_dtype():
            notes.append(f"dtype={t.dtype}")
        contents = "[]"
    else:
        if not _is_usual(t.dtype):
            notes.append(f"dtype={t.dtype}")
        if contents is None:
            contents = _values_text(_host_values(t), len(prefix))
    try:
        node = t.grad_fn
        name = None if node is None else node.name().rpartition("::")[2]
    except RuntimeError:  # a view whose base was written in a way that it cannot follow
        name = "Invalid"
    if name is not None:
        notes.append(f"grad_fn=<{name}>")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    if "_tangents" in t.__dict__:
        notes += [f"tangent={tangent}" for tangent in reversed(t.__dict__["_tangents"].values())][:1]
    return _with_notes(prefix + contents, notes, len(prefix))


def _transformed_text(t, contents, transforms) -> str:
    """A tensor inside transforms of ``func``: wrapped, as PyTorch's are, by each that it depends on."""
    from .tensor import wrap

    around, array = [], t._array
    for number, transform in reversed(list(enumerate(transforms, 1))):
        if isinstance(transform, frozenset):
            if _reaches(t._node, transform):
                around.append(f"GradTrackingTensor(lvl={number}, value=")
        elif transform in t.__dict__.get("_tangents", ()):
            around.append(f"GradTrackingTensor(lvl={number}, value=")
        elif getattr(array, "level", None) is transform:
            around += [f"BatchedTensor(lvl={number}, bdim={getattr(array, 'shown', 0)}, value="] * array.mapped
            array = _as_given(array)
    value = wrap(array) if around else t
    text = _batched_text(value) if hasattr(array, "mapped") else _plain_text(value, contents)
    return _wrapped(around, text)


def _reaches(node, goals) -> bool:
    stack, seen = [node], {None}
    while stack:
        node = stack.pop()
        if node in goals:
            return True
        if node not in seen:
            seen.add(node)
            stack.extend(node.edges)
    return False


def _as_given(array):
    """What lies under a ``vmap``, with the examples where they were in what it was given."""
    place = getattr(array, "shown", 0)
    return namespace_of(array.inner).moveaxis(array.inner, 0, place) if place else array.inner


def _batched_text(t) -> str:
    """A tensor of a ``vmap`` that is not on here: which one, and the values of all examples."""
    from .tensor import wrap

    array = t._array
    around = [f"BatchedTensor(lvl={array.level.depth}, bdim={getattr(array, 'shown', 0)}, value="] * array.mapped
    return _wrapped(around, tensor_text(wrap(_as_given(array))))


def _wrapped(around, text) -> str:
    for line in reversed(around):
        text = f"{line}\n{textwrap.indent(text, '    ')}\n)"
    return text


def _prints_as_tensor(cls) -> bool:
    return cls.__name__ in ("Tensor", "Parameter", "Buffer", "UninitializedParameter")


def _names_device(device) -> bool:
    if device.type == "cpu":
        return config.default_device.type != "cpu"
    return config.default_device.type == "cpu" or device.type != config.default_device.type or bool(device.index)


def _is_usual(dtype) -> bool:
    """Can a reader tell the dtype from the digits?"""
    default = get_default_dtype()
    return dtype in (default, default.to_complex(), int64, bool_)


def _host_values(t) -> np.ndarray:
    t._sync()
    array = t._array if isinstance(t._array, np.ndarray) else namespace_of(t._array).to_numpy(t._array)
    # Wider types print the same digits, and NumPy computes with them faster.
    wide = np.complex128 if t.dtype.is_complex else np.float64
    return array.astype(wide) if t.dtype.is_floating_point or t.dtype.is_complex else array


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    """Add ``dtype=…`` and the like, each on the last line if it fits there, else on a new one."""
    room = PRINT_OPTS.linewidth
    last = len(text) - text.rfind("\n") + 1
    parts = [text]
    for note in notes:
        if last + len(note) + 2 > room:
            parts.append(",\n" + " " * indent + note)
            last = indent + len(note)
        else:
            parts.append(", " + note)
            last += len(note) + 2
    return "".join(parts) + ")"


def _values_text(values: np.ndarray, indent: int) -> str:
    cut = values.size > PRINT_OPTS.threshold
    shown = _edges(values) if cut else values
    form = _complex_format(shown) if shown.dtype.kind == "c" else _number_format(shown)
    return _block(values, indent, form, cut)


def _edges(values: np.ndarray) -> np.ndarray:
    """The elements that are printed when some are left out."""
    n = PRINT_OPTS.edgeitems
    for axis, size in enumerate(values.shape):
        if size > 2 * n:
            keep = [*range(n), *range(size - n, size)]
            values = np.take(values, keep, axis=axis)
    return values


def _block(values: np.ndarray, indent: int, form: _Format, cut: bool) -> str:
    if values.ndim == 0:
        return form.text(values[()])
    size, n = values.shape[0], PRINT_OPTS.edgeitems
    gap = cut and size > 2 * n
    rows = [*values[:n], *values[size - n :]] if gap else list(values)
    if values.ndim == 1:
        parts = [form.text(v) for v in rows]
    else:
        parts = [_block(v, indent + 1, form, cut) for v in rows]
    if gap:
        parts.insert(n, " ..." if values.ndim == 1 else "...")
    if values.ndim > 1:
        separator = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
        return "[" + separator.join(parts) + "]"
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (form.width + 2))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


class _Format:
    """How one element prints: ``write`` makes the text, ``width`` is what lines reckon with."""

    def __init__(self, write, width: int):
        self.write, self.width = write, width

    def text(self, value) -> str:
        return self.write(value).rjust(self.width)


class _ComplexFormat(_Format):
    """The real part is filled up, the imaginary part follows it closely."""

    def text(self, value) -> str:
        return self.write(value)


def _number_format(values: np.ndarray) -> _Format:
    if values.dtype.kind in "biu":
        return _Format(str, max((len(str(v)) for v in values.reshape(-1).tolist()), default=0))
    finite = values[np.isfinite(values) & (values != 0)].astype(np.float64)
    write = _float_writer(finite)
    return _Format(write, max((len(write(v)) for v in finite.tolist()), default=1))


def _float_writer(finite: np.ndarray):
    """Whole numbers as ``3.``, others with ``precision`` digits, either with exponents if sizes differ too much."""
    precision = PRINT_OPTS.precision
    whole, scientific = True, False
    if finite.size:
        sizes = np.abs(finite)
        smallest, largest = sizes.min(), sizes.max()
        whole = bool((finite == np.ceil(finite)).all())
        scientific = largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4)
        if PRINT_OPTS.sci_mode is not None:
            scientific = PRINT_OPTS.sci_mode
    if scientific:
        return lambda v: f"{v:.{precision}e}"
    if whole:
        return lambda v: f"{v:.0f}." if math.isfinite(v) else f"{v:.0f}"
    return lambda v: f"{v:.{precision}f}"


def _complex_format(values: np.ndarray) -> _ComplexFormat:
    real, imaginary = _number_format(values.real), _number_format(values.imag)

    def write(value):
        part = imaginary.text(value.imag).lstrip()
        sign = "" if part[0] in "+-" else "+"
        return f"{real.text(value.real)}{sign}{part}j"

    return _ComplexFormat(write, real.width + imaginary.width + 1)
