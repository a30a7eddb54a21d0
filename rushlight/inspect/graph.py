"""``graph``: a picture of an autograd graph or of a module tree, as SVG.

The order of an autograd graph's nodes is igraph's, by Sugiyama's method (``pip install rushlight[inspect]``). A module
tree is lines of text and needs no layout. Lines and text have the colour of the page's text, so pictures suit light and
dark pages. Which module a node belongs to is told by the parameters it uses (``folding.py``), so a large graph can be
drawn with modules as boxes.
"""

from __future__ import annotations

import html
import itertools
from collections import Counter, deque
from pathlib import Path
from typing import Any

from ..autograd.tape import AccumulateGrad, Node, Output
from ..nn.module import Module
from ..nn.parameter import is_lazy
from ..tensor import Tensor
from . import folding

__all__ = ["Picture", "graph"]

_LEAF, _RESULT, _OP, _MODULE = "#3b82f6", "#22a06b", "#94a3b8", "#c2803a"
_FONT = "font-family='ui-monospace,SFMono-Regular,Menlo,DejaVu Sans Mono,monospace'"
_CHARACTER = 7.3  # the width of a character at 12 px, generously


def graph(thing, model=None, *, limit: int = 400, depth: int | None = None) -> Picture:
    """Draw how a tensor was computed, or which modules a model is made of.

    Of a tensor: its autograd graph, leaves on top; ``model`` gives the leaves their parameters' names, and more than
    ``limit`` nodes are not drawn. With ``depth``, each module of that depth in ``model`` is one box. Of a module: the
    tree of its submodules. Notebooks show the picture; ``save`` writes it, to a name in ``.html`` as a page with all
    depths, that zooms and can be searched.

    >>> x = rushlight.ones(2, requires_grad=True)
    >>> rushlight.inspect.graph((x * 2).sum())
    <Picture: 3 nodes>
    """
    if isinstance(thing, Module):
        return _draw_modules(thing)
    if not isinstance(thing, Tensor):
        raise TypeError(f"graph(): expected a Tensor or a Module, got {type(thing).__name__}")
    if not thing.requires_grad:
        raise RuntimeError(
            "graph(): this tensor does not require gradients, so there is no graph of how it was computed"
        )
    if depth is not None and model is None:
        raise ValueError("graph(): argument 'depth' needs the model whose modules are to be boxes")
    return _draw_nodes(thing, model, limit, depth)


class Picture:
    """An SVG image: inline in notebooks, ``save(path)`` for a file, ``svg`` for its text."""

    def __init__(self, svg: str, count: int, what: str, levels=None):
        self.svg, self.count, self._what = svg, count, what
        self._levels = levels or (lambda: [(f"{count} {what}", svg)])  # (title, picture) of each depth, least first

    def save(self, path) -> None:
        """Write it: a page if the name ends in ``.html``, else SVG."""
        text = self._page() if str(path).endswith(".html") else self.svg
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _page(self) -> str:
        template = (Path(__file__).parent / "page" / "graph.html").read_text(encoding="utf-8")
        levels = "".join(f"<figure data-title='{html.escape(title)}'>{svg}</figure>" for title, svg in self._levels())
        return template.replace("{{LEVELS}}", levels)

    def _repr_html_(self) -> str:
        return f"<div style='overflow:auto;max-height:80vh'>{self.svg}</div>"

    def __repr__(self) -> str:
        return f"<Picture: {self.count} {self._what}>"


# -- the autograd graph ------------------------------------------------------------------------------------------------


def _draw_nodes(tensor: Tensor, model: Module | None, limit: int, depth: int | None) -> Picture:
    nodes, edges, more = _collect(tensor, limit)
    names = {} if model is None else {id(p): name for name, p in model.named_parameters()}
    boxes = [_Box(_describe(node, names), isinstance(node, AccumulateGrad)) for node in nodes]
    paths = folding.paths(nodes, edges, names)

    def folded(depth: int) -> tuple[list[_Box], list]:
        groups, between = folding.folded(paths, edges, depth)
        return [_group_box(model, group, boxes) if len(group) > 1 else boxes[group[0]] for group in groups], between

    def levels():
        deepest = max((path.count(".") + 1 for path in paths if path), default=0)
        counts = {len(boxes)}
        for d in range(1, deepest + 1):
            drawn, between = folded(d)
            if len(drawn) not in counts:  # a level that folds nothing more is no level
                counts.add(len(drawn))
                yield f"modules, depth {d}", _drawing(drawn, between, more)
        yield f"all {len(boxes)} nodes", _drawing(boxes, edges, more)

    drawn, between = (boxes, edges) if depth is None else folded(depth)
    return Picture(_drawing(drawn, between, more), len(drawn), "nodes", levels)


class _Box:
    """What stands for a node, or for the nodes of a module."""

    def __init__(self, label: list[str], is_leaf: bool = False, colour: str = ""):
        self.label, self.is_leaf, self.colour = label, is_leaf, colour
        self.width = max(map(len, label)) * _CHARACTER + 20


def _group_box(model, group: list[int], boxes: list[_Box]) -> _Box:
    path = group.path  # type: ignore[attr-defined]
    kind = model.get_submodule(path)._get_name()
    return _Box([path, f"{kind}, {len(group)} nodes"], colour=_MODULE)


def _drawing(boxes: list[_Box], edges, more: int) -> str:
    widths = [box.width for box in boxes]
    leaves = {i for i, box in enumerate(boxes) if box.is_leaf}
    places, paths = _place(widths, edges, leaves)
    parts = [_path(points) for points in paths]
    for i, box in enumerate(boxes):
        colour = box.colour or (_LEAF if box.is_leaf else _RESULT if i == 0 else _OP)
        parts.append(_box(places[i], widths[i], box.label, colour, round_=box.is_leaf))
    left = min([x - w / 2 for (x, _), w in zip(places, widths)] + [x for path in paths for x, _ in path]) - 12
    right = max([x + w / 2 for (x, _), w in zip(places, widths)] + [x for path in paths for x, _ in path]) + 12
    height = max(y for _, y in places) + 64
    legend, wide = _legend(left + 12, -52, any(box.colour for box in boxes))
    parts += legend
    right = max(right, left + wide)
    if more:
        are = "node is" if more == 1 else "nodes are"
        parts.append(_text(left + 12, -78, f"further back, {more:,} more {are} not drawn", 0.7, "start"))
    top = -98 if more else -72
    return _svg(left, top, right - left, height - top - 34, parts)


def _legend(x: float, y: float, with_modules: bool):
    """What the colours mean, in one line; and how wide it is."""
    parts, start = [], x
    meanings = [(_LEAF, "leaf"), (_OP, "operation"), (_RESULT, "result")]
    for colour, word in meanings + ([(_MODULE, "module")] if with_modules else []):
        radius = 7 if colour == _LEAF else 3
        parts.append(
            f"<rect x='{x:.1f}' y='{y - 7}' width='22' height='14' rx='{radius}' fill='{colour}' fill-opacity='0.16' "
            f"stroke='{colour}'/>{_text(x + 28, y + 4, word, 0.7, 'start')}"
        )
        x += 28 + len(word) * _CHARACTER + 18
    return parts, x - start + 24


def _igraph():
    try:
        import igraph
    except ImportError:
        raise ImportError("drawing an autograd graph needs igraph: pip install 'rushlight[inspect]'") from None
    return igraph


def _collect(tensor: Tensor, limit: int):
    """(nodes, the result's first; edges (maker, user) by number; how many nodes are left out)."""
    node: Any = tensor._node
    root: Node = node.parent if type(node) is Output else node
    number, nodes, edges = {root: 0}, [root], []
    left_out: set = set()
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        for edge in node.edges:
            if edge is None:
                continue
            maker = edge.parent if type(edge) is Output else edge
            if maker not in number and maker not in left_out:
                waiting.append(maker)
                if len(nodes) < limit:
                    number[maker] = len(nodes)
                    nodes.append(maker)
                else:
                    left_out.add(maker)
            if maker in number and node in number:
                edges.append((number[maker], number[node]))
    return nodes, list(dict.fromkeys(edges)), len(left_out)


def _layers(count: int, edges) -> list[int]:
    """A node's layer, from the top: right above the first that uses it, so that leaves stay near their users."""
    users: list[list[int]] = [[] for _ in range(count)]
    makers: list[list[int]] = [[] for _ in range(count)]
    for maker, user in edges:
        users[maker].append(user)
        makers[user].append(maker)
    below = [0] * count
    left = [len(u) for u in users]
    ready = [i for i in range(count) if not left[i]]
    while ready:
        node = ready.pop()
        for maker in makers[node]:
            below[maker] = max(below[maker], below[node] + 1)
            left[maker] -= 1
            if not left[maker]:
                ready.append(maker)
    deepest = max(below)
    return [deepest - b for b in below]


_GAP, _DOWN = 26.0, 74.0  # between neighbours in a layer, between layers


def _place(widths, edges, leaves):
    """(the centre of every node, the points of every edge).

    igraph orders the nodes of each layer, and the bends of edges that pass it, so that few edges cross. Where they then
    stand is found here by sweeps: everything moves to the middle of its neighbours in the layer before, as far as the
    widths allow.
    """
    layer = _layers(len(widths), edges)
    drawn = _igraph().Graph(n=len(widths), edges=edges, directed=True).layout_sugiyama(layers=layer, maxiter=200)
    items = [(layer[i], x) for i, (x, _) in enumerate(drawn.coords)]
    _keep_together(items, edges, leaves)
    widths, chains = list(widths), []
    for (maker, user), bends in zip(edges, drawn.edge_routing):
        chain = [maker]
        for x, y in bends:
            chain.append(len(items))
            items.append((round(y), x))
            widths.append(8.0)
        chains.append([*chain, user])
    x = _sweep(items, widths, chains, len(layer), leaves)
    at = [(x[i], items[i][0] * _DOWN) for i in range(len(items))]
    return at[: len(layer)], [[at[i] for i in chain] for chain in chains]


def _keep_together(items, edges, leaves) -> None:
    """Leaves with one user, such as a layer's weight and bias, become neighbours: igraph may put others in between."""
    users: dict[int, list[int]] = {}
    for maker, user in edges:
        users.setdefault(maker, []).append(user)
    groups: dict[tuple[int, int], list[int]] = {}  # (user, layer) -> its leaves there
    for leaf in sorted(leaves):
        if len(users.get(leaf, ())) == 1:
            groups.setdefault((users[leaf][0], items[leaf][0]), []).append(leaf)
    for (_, layer), group in groups.items():
        middle = sum(items[leaf][1] for leaf in group) / len(group)
        for i, leaf in enumerate(group):
            items[leaf] = layer, middle + 1e-6 * i


def _sweep(items, widths, chains, count, leaves):
    rows: list[list[int]] = [[] for _ in range(1 + max(depth for depth, _ in items))]
    for i in sorted(range(len(items)), key=lambda i: items[i][1]):
        rows[items[i][0]].append(i)
    before: list[list] = [[] for _ in items]
    after: list[list] = [[] for _ in items]
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            # Leaves pull little, so that the main line stays straight; the bends of one edge pull most.
            pull = 0.05 if a in leaves else 1 + 3 * (a >= count) + 3 * (b >= count)
            before[b].append((a, pull))
            after[a].append((b, pull))
    x = [0.0] * len(items)
    for turn in range(25):
        up = turn % 2 == 1
        for row in reversed(rows) if up else rows:
            near = [(after if up else before)[i] for i in row]
            wanted = [sum(x[j] * p for j, p in n) / sum(p for _, p in n) if n else x[i] for i, n in zip(row, near)]
            weights = [sum(p for _, p in n) + 0.01 for n in near]
            for i, place in zip(row, _apart(wanted, [widths[i] for i in row], weights)):
                x[i] = place
    return x


def _apart(wanted, widths, weights):
    """Places in the given order without overlap, nearest to the wanted ones in the least-squares sense.

    Less the room that everything to its left takes, places must only not decrease: that is isotonic regression, done by
    merging neighbours that are out of order.
    """
    room = [0.0]
    for a, b in itertools.pairwise(widths):
        room.append(room[-1] + (a + b) / 2 + _GAP)
    blocks: list[list] = []  # [place, weight, how many]
    for place, offset, weight in zip(wanted, room, weights):
        blocks.append([place - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            place_, weight_, n = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + place_ * weight_) / (last[1] + weight_)
            last[1] += weight_
            last[2] += n
    places = [place for place, _, n in blocks for _ in range(n)]
    return [place + offset for place, offset in zip(places, room)]


def _describe(node, names: dict) -> list[str]:
    if isinstance(node, AccumulateGrad):
        variable = node.variable
        if variable is None:
            return ["leaf", "(gone)"]
        return [names.get(id(variable), "leaf"), str(list(variable.shape))]
    name = node.name().removesuffix("0").removesuffix("1").removesuffix("Backward").rpartition("::")[2]
    shape = node.shape
    if shape is None:  # several outputs, of which some may not be differentiable
        shape = next((output[1] for output in getattr(node, "outputs", ()) if output is not None), None)
    return [name] if shape is None else [name, str(list(shape))]


# -- the module tree ---------------------------------------------------------------------------------------------------

_ROW, _STEP = 28, 24


def _draw_modules(model: Module) -> Picture:
    rows = list(_rows(model, "", 0, Counter()))
    parts: list[str] = []
    last_at: dict[int, int] = {}  # depth -> where the latest row of that depth is
    widest = 0.0
    for i, (depth, name, module, again) in enumerate(rows):
        x, y = depth * _STEP, i * _ROW
        if depth:
            parent, sibling = last_at[depth - 1] + 11, last_at.get(depth, -1)
            parts.append(_line(f"M{x - _STEP + 10} {max(parent, sibling)}V{y}H{x - 2}"))
        last_at[depth] = y
        text, note = _module_text(name, module, again)
        widest = max(widest, x + (len(text) + len(note) + 2) * _CHARACTER + 30)
        colour = _OP if module._modules else _LEAF
        width = len(text) * _CHARACTER + 18
        parts.append(
            f"<g><title>{html.escape(_title(module))}</title><rect x='{x}' y='{y - 11}' width='{width:.0f}' "
            f"height='22' rx='5' fill='{colour}' fill-opacity='0.16' stroke='{colour}'/>"
            f"{_text(x + 9, y + 4, text, 1, 'start')}{_text(x + width + 9, y + 4, note, 0.6, 'start')}</g>"
        )
    return Picture(_svg(-8, -20, widest + 16, len(rows) * _ROW + 12, parts), len(rows), "modules")


def _rows(module, name, depth, seen):
    again = bool(seen[id(module)])
    seen[id(module)] += 1
    yield depth, name, module, again
    if not again:
        for child, m in module._modules.items():
            if m is not None:
                yield from _rows(m, child, depth + 1, seen)


def _module_text(name, module, again):
    own = sum(p.numel() for p in module.parameters() if not is_lazy(p))
    note = "shared, see above" if again else f"{own:,} parameters" if own else ""
    return f"{name}: {module._get_name()}" if name else module._get_name(), note


def _title(module) -> str:
    return f"{module._get_name()}({module.extra_repr()})"


# Notebooks' own styles for <pre> are proportional in places (nbconvert's lab template): columns would not line up.
_MONOSPACE = (
    "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace !important;line-height:1.35"
)


def module_html(model: Module) -> str:
    """What a notebook shows of a module."""
    return _draw_modules(model)._repr_html_()


def tensor_html(tensor: Tensor) -> str:
    """What a notebook shows of a tensor: its text, and, folded away, the graph of how it was computed."""
    text = f"<pre style='{_MONOSPACE}'>{html.escape(repr(tensor))}</pre>"
    if tensor.is_leaf:
        return text
    try:
        picture = graph(tensor)
    except ImportError:
        return text
    return f"{text}<details><summary>graph of {picture.count} nodes</summary>{picture._repr_html_()}</details>"


# -- SVG ---------------------------------------------------------------------------------------------------------------


# For a file that is opened by itself, where the picture is the root: it fits the screen, and follows dark mode.
_ALONE = (
    "<style>svg:root{max-width:100%;height:auto;background:#fff;color:#1c2430}"
    "@media (prefers-color-scheme:dark){svg:root{background:#11151c;color:#e4e9f1}}</style>"
)


def _svg(x, y, width, height, parts) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{x:.0f} {y:.0f} {width:.0f} {height:.0f}' "
        f"width='{width:.0f}' height='{height:.0f}' {_FONT} font-size='12' fill='currentColor'>"
        f"{_ALONE}{''.join(parts)}</svg>"
    )


def _box(centre, width, label, colour, round_) -> str:
    x, y = centre
    lines = [_text(x, y + 4 if len(label) == 1 else y - 3, label[0], 1)]
    if len(label) > 1:
        lines.append(_text(x, y + 12, label[1], 0.65, size=11))
    return (
        f"<g><rect x='{x - width / 2:.1f}' y='{y - 20}' width='{width:.1f}' height='40' rx='{20 if round_ else 6}' "
        f"fill='{colour}' fill-opacity='0.16' stroke='{colour}'/>{''.join(lines)}</g>"
    )


def _text(x, y, text, opacity, anchor="middle", size=None) -> str:
    size = f" font-size='{size}'" if size else ""
    style = f"text-anchor='{anchor}' fill-opacity='{opacity}'{size}"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{html.escape(text)}</text>"


def _path(points) -> str:
    """A smooth line through the points, from below one box to above the next, with a head."""
    points = [(points[0][0], points[0][1] + 20), *points[1:-1], (points[-1][0], points[-1][1] - 21)]
    d = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        d += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    x, y = points[-1]
    return (
        _line(d) + f"<path d='M{x - 4:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7:.1f}Z' fill-opacity='0.55'/>"
    )


def _line(d: str) -> str:
    return f"<path d='{d}' fill='none' stroke='currentColor' stroke-opacity='0.45' stroke-width='1.2'/>"
