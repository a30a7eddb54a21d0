"""``summary``: a model's layers with output shapes, parameters, multiply-adds and memory, from one forward pass.

Hooks on every module see the shapes. Multiply-adds are counted where they happen: an op interceptor sees every matrix
product and convolution, and credits it to the module being called, whatever that module's class is.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import math
from collections.abc import Callable

from ..autograd.mode import intercepting, no_grad
from ..autograd.op import differentiable
from ..compiler.tree import flatten
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..random import fork_rng
from ..tensor import Tensor

__all__ = ["Row", "Summary", "summary"]


def summary(model, input_data=None, *, input_size=None, dtype=None, depth: int | None = None) -> Summary:
    """The layers of ``model``, as one call with ``input_data`` finds them; prints as a table, in notebooks as HTML.

    ``input_data`` is a tensor, a tuple of arguments or a dict of keyword arguments. ``input_size``, one size or a list
    of them, stands for random inputs of these sizes, of ``dtype`` (one, or a list; integers are zeros). With neither,
    only parameters are counted. ``depth`` limits what is shown, not what is counted. The model runs in evaluation mode,
    without gradients, and is left as it was.

    >>> print(rushlight.inspect.summary(nn.Linear(3, 2), input_size=(4, 3)))
    Layer   Output shape  Parameters  Mult-adds  Memory
    ───────────────────────────────────────────────────
    Linear  [4, 2]                 8         24    32 B
    ───────────────────────────────────────────────────
    Parameters: 8 (32 B), of which 8 are trained
    Mult-adds: 24
    Memory: 48 B input, 32 B outputs
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary(): argument 'model' must be a Module, not {type(model).__name__}")
    if input_data is None and input_size is None:
        rows = list(_rows(model))
        args, kwargs = (), {}
    else:
        with fork_rng():
            args, kwargs = _arguments(model, input_data, input_size, dtype)
            rows = _called(model, args, kwargs)
    _count_parameters(model, rows)
    inputs: list[Tensor] = []
    flatten((args, kwargs), inputs)
    return Summary(model, rows, sum(t.nbytes for t in inputs), depth)


@dataclasses.dataclass
class Row:
    """One call of one module. Parameters and multiply-adds are its own, without those of modules called inside."""

    depth: int
    name: str
    module: Module
    last: bool = True
    shapes: list = dataclasses.field(default_factory=list)
    bytes: int = 0
    parameters: int = 0
    mult_adds: int = 0
    called: bool = False
    repeated: bool = False  # the module has a row above: its parameters are counted there
    leaf: bool = True

    @property
    def kind(self) -> str:
        return self.module._get_name()


class Summary:
    """What ``summary`` found: ``rows``, totals, and the table as text (``str``) or HTML."""

    def __init__(self, model, rows: list[Row], input_bytes: int, depth: int | None):
        self.rows, self.depth, self.input_bytes = rows, depth, input_bytes
        unique = [p for p in model.parameters() if not is_lazy(p)]
        self.total_params = sum(p.numel() for p in unique)
        self.trainable_params = sum(p.numel() for p in unique if p.requires_grad)
        self.param_bytes = sum(p.nbytes for p in unique)
        self.total_mult_adds = sum(row.mult_adds for row in rows)
        self.output_bytes = sum(row.bytes for row in rows if row.leaf)
        self._called = any(row.called for row in rows)

    def __str__(self) -> str:
        labels = _labels(self.rows)
        table = [_HEADER] + [
            (label, *_cells(row))
            for label, row in zip(labels, self.rows)
            if self.depth is None or row.depth <= self.depth
        ]
        columns = range(5) if self._called else (0, 2)
        width = {i: max(len(line[i]) for line in table) for i in columns}
        lines = [
            "  ".join(line[i].ljust(width[i]) if i < 2 else line[i].rjust(width[i]) for i in columns).rstrip()
            for line in table
        ]
        rule = "─" * (sum(width.values()) + 2 * (len(columns) - 1))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._totals()])

    __repr__ = __str__

    def _totals(self) -> list[str]:
        trained = f"of which {self.trainable_params:,} are trained"
        lines = [f"Parameters: {self.total_params:,} ({_size(self.param_bytes)}), {trained}"]
        if self._called:
            lines.append(f"Mult-adds: {self.total_mult_adds:,}")
            lines.append(f"Memory: {_size(self.input_bytes)} input, {_size(self.output_bytes)} outputs")
        return lines

    def _repr_html_(self) -> str:
        shown = [row for row in self.rows if self.depth is None or row.depth <= self.depth]
        sides = ["left", "left", "right", "right", "right"]
        head = "".join(f"<th style='text-align:{side};padding:2px 8px'>{c}</th>" for side, c in zip(sides, _HEADER))
        body = "".join(_html_row(row) for row in shown)
        totals = "<br>".join(map(html.escape, self._totals()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{totals}</p>"


_HEADER = ("Layer", "Output shape", "Parameters", "Mult-adds", "Memory")


def _cells(row: Row):
    shapes = ", ".join(str(list(s)) for s in row.shapes)
    held = row.parameters or (row.repeated and any(True for _ in row.module.parameters()))
    parameters = "–" if not held else "(above)" if row.repeated else f"{row.parameters:,}"
    if not row.called:
        return "", parameters, "", ""
    return shapes, parameters, f"{row.mult_adds:,}" if row.mult_adds else "–", _size(row.bytes)


def _labels(rows: list[Row]) -> list[str]:
    """Names drawn as a tree."""
    labels: list[str] = []
    open_bars: list[bool] = []
    for row in rows:
        name = f"{_plain(row.name)}: {_plain(row.kind)}" if row.name else _plain(row.kind)
        if row.depth == 0:
            labels.append(name)
            continue
        del open_bars[row.depth - 1 :]
        labels.append("".join("   " if last else "│  " for last in open_bars) + ("└─ " if row.last else "├─ ") + name)
        open_bars.append(row.last)
    return labels


def _plain(name: str) -> str:
    """A name that takes one line of a terminal, and no more of it than a table has room for."""
    name = name if len(name) <= 80 else f"{name[:60]}…{name[-19:]}"
    return name if name.isprintable() else repr(name)[1:-1]


def _html_row(row: Row) -> str:
    name, kind = html.escape(_plain(row.name)), html.escape(_plain(row.kind))
    name = f"<b>{name}</b> {kind}" if name else f"<b>{kind}</b>"
    cells = "".join(
        f"<td style='text-align:{'left' if i == 0 else 'right'};padding:2px 8px'>{html.escape(c)}</td>"
        for i, c in enumerate(_cells(row))
    )
    return f"<tr><td style='text-align:left;padding-left:{0.5 + 1.4 * row.depth}em'>{name}</td>{cells}</tr>"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


# -- the pass ----------------------------------------------------------------------------------------------------------


def _rows(model):
    """A row for every place of a module, in the order of registration; what a shared one holds is below its first."""
    seen: set[int] = set()
    pending = [(0, "", model, True)]
    while pending:
        depth, name, module, last = pending.pop()
        yield Row(depth, name, module, last, repeated=id(module) in seen)
        if id(module) not in seen:
            seen.add(id(module))
            children = list(module.named_children())
            final = len(children) - 1
            pending += [(depth + 1, child, m, i == final) for i, (child, m) in enumerate(children)][::-1]


def _called(model, args, kwargs) -> list[Row]:
    """Call the model and note every call of every module in it."""
    paths = {id(m): name for name, m in model.named_modules()}
    rows: list[Row] = []
    seen: set[int] = set()
    running: list[Row] = []

    def begin(module, _):
        # Seen from the module that calls it: one of a list that is not called itself is "blocks.0".
        outside = f"{paths[id(running[-1].module)]}." if running and paths[id(running[-1].module)] else ""
        row = Row(len(running), paths[id(module)].removeprefix(outside), module, called=True)
        row.repeated = id(module) in seen
        seen.add(id(module))
        if running:
            running[-1].leaf = False
        rows.append(row)
        running.append(row)

    def end(module, _, output):
        row, found = running.pop(), []
        flatten(output, found)
        row.shapes, row.bytes = [tuple(t.shape) for t in found], sum(t.nbytes for t in found)

    def credit(count, *_):
        if running:
            running[-1].mult_adds += count

    with _evaluating(model), contextlib.ExitStack() as hooks:
        for module in dict.fromkeys(model.modules()):
            for handle in (module.register_forward_pre_hook(begin), module.register_forward_hook(end, prepend=True)):
                hooks.callback(handle.remove)
        with no_grad(), intercepting(Counter(credit)):
            model(*args, **kwargs)
    _mark_last(rows)
    return rows


def _mark_last(rows: list[Row]) -> None:
    """Which row is the last child of the one it hangs on?"""
    seen: list[bool] = []  # by depth: was a later sibling met, reading upwards
    for row in reversed(rows):
        del seen[row.depth + 1 :]
        seen += [False] * (row.depth + 1 - len(seen))
        row.last = not seen[row.depth]
        seen[row.depth] = True


@contextlib.contextmanager
def _evaluating(model):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


def _arguments(model, data, size, dtype):
    if data is None:
        from ..ops import PUBLIC

        like = next((p for p in model.parameters() if not is_lazy(p)), None)
        device = None if like is None else like.device
        usual = like.dtype if like is not None and like.is_floating_point() else None
        sizes = [size] if all(hasattr(n, "__index__") for n in size) else size
        dtypes = dtype if isinstance(dtype, (list, tuple)) else [dtype] * len(sizes)
        if len(dtypes) != len(sizes):
            raise ValueError(f"summary(): {len(dtypes)} dtypes were given for {len(sizes)} inputs")

        def made(size, dtype):
            numbers = dtype is None or dtype.is_floating_point or dtype.is_complex
            return PUBLIC["rand" if numbers else "zeros"](*size, dtype=dtype or usual, device=device)

        return tuple(made(s, d) for s, d in zip(sizes, dtypes)), {}
    if isinstance(data, dict):
        return (), data
    return (tuple(data) if isinstance(data, (tuple, list)) else (data,)), {}


def _count_parameters(model, rows: list[Row]) -> None:
    """Each parameter once, in the first row of its module; of a module never called, in that of what holds it."""
    first: dict[int, Row] = {}
    for row in rows:
        first.setdefault(id(row.module), row)
    counted: set[int] = set()
    seen: set[int] = set()
    pending: list[tuple] = [(model, None)]
    while pending:
        module, holder = pending.pop()
        row = first.get(id(module), holder)
        if id(module) in seen:
            continue
        seen.add(id(module))
        for p in module._parameters.values():
            if p is not None and id(p) not in counted and row is not None and not is_lazy(p):
                counted.add(id(p))
                row.parameters += p.numel()
        pending.extend((child, row) for child in reversed([*module.children()]))


# -- multiply-adds -----------------------------------------------------------------------------------------------------


class Counter:
    """An op interceptor that tells ``credit`` how many multiply-adds each op takes; its name, result and inputs."""

    def __init__(self, credit):
        self.credit = credit

    def __call__(self, call, args, static):
        op = call.op
        if op.name in _OPENED:  # made of products: run its plain form, so that these are met one by one
            with intercepting(self):
                return op.forward(differentiable, *args, **{**op.static, **static})
        result = call(*args, **static)
        count = _PRODUCTS.get(op.name)
        if count is not None:
            self.credit(count(result, *args), op.name, result, args)
        return result


_OPENED = frozenset({"add_matmul", "add_matmul_sum", "add_matvec", "attention", "conv_tbc", "recurrent"})

_PRODUCTS: dict[str, Callable[..., int]] = {
    "matmul": lambda y, x, w: y.numel() * x.shape[-1],
    "matvec": lambda y, x, w: y.numel() * x.shape[-1],
    "vecmat": lambda y, x, w: y.numel() * x.shape[-1],
    "vecdot": lambda y, x, w: x.numel(),
    "linear": lambda y, x, w, b=None: y.numel() * x.shape[-1],
    "conv": lambda y, x, w, b=None: y.numel() * math.prod(w.shape[1:]),
    "conv_input": lambda y, g, w, b=None: g.numel() * math.prod(w.shape[1:]),
}
