"""Which module each node of an autograd graph belongs to, and the graph with whole modules as one node each.

A graph knows nothing of modules. But parameters have names, so what uses ``layer1.0.conv1.weight`` is in
``layer1.0.conv1``; and what ran between a part of ``layer1.0.bn1`` and a part of ``layer1.0.conv2`` is in ``layer1.0``.
"""

from __future__ import annotations

import graphlib
from collections import Counter

__all__ = ["Group", "folded", "paths"]


class Group(list):
    """Numbers of nodes that are drawn as one; ``path`` is the module's."""

    path = ""


def paths(nodes, edges, names: dict) -> list[str]:
    """The path of each node's module, as far as parameters tell; edges are (maker, user) by number."""
    owners: list[str | None] = [None] * len(nodes)  # of parameters, and of what uses them
    for i, node in enumerate(nodes):
        name = names.get(id(getattr(node, "variable", None)))
        owners[i] = None if name is None else name.rpartition(".")[0]
    for maker, user in edges:
        if hasattr(nodes[maker], "variable") and owners[maker] is not None:
            owners[user] = _shared(owners[user], owners[maker])
    ran = sorted((i for i, node in enumerate(nodes) if not hasattr(node, "variable")), key=lambda i: nodes[i].sequence)
    before = _carried(ran, owners)
    after = _carried(ran[::-1], owners)
    for i in ran:
        if owners[i] is None and before[i] is not None and after[i] is not None:
            owners[i] = _shared(before[i], after[i])
    return [path or "" for path in owners]


def _carried(order: list[int], owners: list[str | None]) -> dict[int, str | None]:
    """The last known owner at each place of the order."""
    found, last = {}, None
    for i in order:
        found[i] = last = last if owners[i] is None else owners[i]
    return found


def folded(paths: list[str], edges, depth: int) -> tuple[list[Group], list[tuple[int, int]]]:
    """Groups of nodes, one a module of ``depth`` (or less, where modules end earlier), and the edges between them.

    A module whose nodes have others in between, which would be before and after it, is left unfolded.
    """
    whole = set(paths)
    ends = {p for p in whole if p and not any(other.startswith(p + ".") for other in whole)}
    keys: list = []
    for i, path in enumerate(paths):
        parts = path.split(".")
        keys.append(".".join(parts[:depth]) if path and (len(parts) >= depth or path in ends) else i)
    while True:
        groups: dict = {}
        for i, key in enumerate(keys):
            groups.setdefault(key, Group()).append(i)
        numbers = {key: n for n, key in enumerate(groups)}
        between = {(numbers[keys[a]], numbers[keys[b]]) for a, b in edges if keys[a] != keys[b]}
        circle = _circle(len(groups), between)
        if not circle:
            break
        # The one that is left in most places: a module that is called twice, rather than what is between the calls.
        leaving = Counter(numbers[keys[a]] for a in {a for a, b in edges if keys[a] != keys[b]})
        opened = list(groups.values())[max(circle, key=leaving.__getitem__)]
        keys = [i if i in opened else key for i, key in enumerate(keys)]
    for key, group in groups.items():
        group.path = key if isinstance(key, str) else ""
    return list(groups.values()), sorted(between)


def _shared(*given: str | None) -> str | None:
    """The path of the innermost module that all are in."""
    known = [path.split(".") if path else [] for path in given if path is not None]
    if not known:
        return None
    shared = []
    for parts in zip(*known):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(shared)


def _order(count: int, edges) -> list[int]:
    sorter = graphlib.TopologicalSorter(dict.fromkeys(range(count), ()))
    for maker, user in edges:
        sorter.add(user, maker)
    return list(sorter.static_order())


def _circle(count: int, edges) -> list[int]:
    """Nodes that form a circle, if there is one."""
    try:
        _order(count, edges)
    except graphlib.CycleError as error:
        return error.args[1]
    return []
