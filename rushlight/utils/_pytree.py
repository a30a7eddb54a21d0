"""Nested containers as trees: ``tree_map(function, tree)``. PyTorch programs import this in spite of its underscore."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_unflatten"]


class TreeSpec:
    """The shape of a tree: its containers, with a place for each leaf."""

    def __init__(self, container, children: list[TreeSpec]):
        self.container, self.children = container, children  # None: a leaf

    @property
    def num_leaves(self) -> int:
        return 1 if self.container is None else sum(child.num_leaves for child in self.children)

    def __eq__(self, other):
        if not isinstance(other, TreeSpec) or type(self.container) is not type(other.container):
            return False
        keys = [list(s.container) for s in (self, other) if isinstance(s.container, dict)]
        return self.children == other.children and (not keys or keys[0] == keys[1])

    __hash__ = None  # type: ignore[assignment]


def tree_flatten(tree, is_leaf=None):
    """(leaves, the tree's shape)

    >>> rushlight.utils._pytree.tree_flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves: list, is_leaf) -> TreeSpec:
    container = type(tree) in _KINDS or (isinstance(tree, tuple) and hasattr(tree, "_fields"))
    if not container or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return TreeSpec(None, [])
    values = tree.values() if isinstance(tree, dict) else tree
    return TreeSpec(tree, [_flatten(value, leaves, is_leaf) for value in values])


_KINDS = {dict, list, tuple, OrderedDict, defaultdict}


def tree_unflatten(leaves, treespec: TreeSpec):
    """The tree of this shape with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree "
            f"that holds {treespec.num_leaves} items ({treespec}).",
        )
    return _build(iter(leaves), treespec)


def _build(leaves, spec: TreeSpec):
    container = spec.container
    if container is None:
        return next(leaves)
    values = [_build(leaves, child) for child in spec.children]
    if isinstance(container, dict):
        made = defaultdict(container.default_factory) if isinstance(container, defaultdict) else type(container)()
        made.update(zip(container, values))
        return made
    return type(container)(*values) if hasattr(container, "_fields") else type(container)(values)


def tree_leaves(tree, is_leaf=None) -> list:
    return tree_flatten(tree, is_leaf)[0]


def tree_map(func, tree, *rests, is_leaf=None):
    """``func`` of every leaf (and of those at its place in ``rests``), in a tree of the same shape."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*together) for together in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind, func, tree, is_leaf=None):
    """``func`` of the leaves of one kind; others stay."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)
