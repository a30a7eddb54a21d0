"""Nested containers as trees: ``tree_map(function, tree)``. PyTorch programs import this in spite of its underscore.

A kind of container is known by two functions: one takes it apart into children and a context, one puts it together
again. ``register_pytree_node`` adds a kind; those of Python are registered here.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..ops import returns
from ..tensor import Size

__all__ = [
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "key_get",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

PyTree = Any
Context = Any


# -- kinds of containers ---------------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How containers of a type are taken apart and put together."""

    type: Any
    flatten_fn: Callable  # container -> (children, context)
    unflatten_fn: Callable  # (children, context) -> container
    flatten_with_keys_fn: Callable | None = None  # container -> ((key, child) pairs, context)


class _Serial(NamedTuple):
    """How a kind is written to JSON: its name, and the context to and from what JSON has."""

    typename: str
    dump: Callable
    load: Callable


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_SERIAL: dict[Any, _Serial] = {}


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Make ``cls`` a container: ``flatten_fn(it)`` gives (children, context), ``unflatten_fn`` takes them back."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _SERIAL[cls] = _Serial(name, to_dumpable_context or json.dumps, from_dumpable_context or json.loads)


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options) -> None:
    """The older name."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls) -> None:
    del SUPPORTED_NODES[cls], _SERIAL[cls]


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None) -> None:
    """Make a dataclass a container of its fields; a field that is None is left out."""
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.name not in (drop_field_names or ())]

    def flatten(it):
        present = [n for n in names if getattr(it, n) is not None]
        return [getattr(it, n) for n in present], [present, [n for n in names if n not in present]]

    def flatten_with_keys(it):
        children, context = flatten(it)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children)], context

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def is_namedtuple(obj) -> bool:
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj) -> bool:
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "n_fields", None), int)


def is_structseq(obj) -> bool:
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


is_structseq_instance = is_structseq


def _get_node_type(tree):
    """The type a container is registered under."""
    kind = type(tree)
    if kind in SUPPORTED_NODES or not isinstance(tree, tuple):
        return kind
    if is_namedtuple_class(kind):
        return namedtuple
    if kind.__module__ == returns.__name__:  # what max, sort … return: registered when one is first met
        keys = lambda it: ([(GetAttrKey(n), c) for n, c in zip(it.__match_args__, it)], None)
        _builtin(kind, _of_sequence, lambda c, _: kind(c), keys, f"torch.return_types.{kind.__name__}")
    return kind


# -- places in a tree ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple


def keystr(kp) -> str:
    """A path as Python would write it: ``['a'][0].b``."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    for key in kp:
        obj = key.get(obj)
    return obj


# -- Python's containers ---------------------------------------------------------------------------------------------


def _sequence_keys(flatten):
    def with_keys(it):
        children, context = flatten(it)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context

    return with_keys


def _mapping_keys(flatten):
    def with_keys(it):
        return [(MappingKey(key), child) for key, child in it.items()], flatten(it)[1]

    return with_keys


def _of_sequence(it):
    return list(it), None


def _of_dict(it):
    return list(it.values()), list(it)


def _of_defaultdict(it):
    return list(it.values()), [it.default_factory, list(it)]


def _of_deque(it):
    return list(it), it.maxlen


def _of_namedtuple(it):
    return list(it), type(it)


def _field_keys(it):
    return [(GetAttrKey(name), child) for name, child in zip(it._fields, it)], type(it)


def _builtin(cls, flatten, unflatten, with_keys, name: str) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, with_keys)
    _SERIAL[cls] = _Serial(name, json.dumps, json.loads)


_builtin(tuple, _of_sequence, lambda c, _: tuple(c), _sequence_keys(_of_sequence), "builtins.tuple")
_builtin(list, _of_sequence, lambda c, _: list(c), _sequence_keys(_of_sequence), "builtins.list")
_builtin(dict, _of_dict, lambda c, keys: dict(zip(keys, c)), _mapping_keys(_of_dict), "builtins.dict")
_builtin(
    OrderedDict, _of_dict, lambda c, keys: OrderedDict(zip(keys, c)), _mapping_keys(_of_dict), "collections.OrderedDict"
)
_builtin(
    defaultdict,
    _of_defaultdict,
    lambda c, context: defaultdict(context[0], zip(context[1], c)),
    _mapping_keys(_of_defaultdict),
    "collections.defaultdict",
)
_builtin(deque, _of_deque, lambda c, maxlen: deque(c, maxlen=maxlen), _sequence_keys(_of_deque), "collections.deque")
_builtin(Size, _of_sequence, lambda c, _: Size(c), _sequence_keys(_of_sequence), "torch.Size")
_builtin(namedtuple, _of_namedtuple, lambda c, kind: kind(*c), _field_keys, "collections.namedtuple")
_MAPPINGS = (dict, OrderedDict, defaultdict)


# The functions by PyTorch's names: containers derived from these are registered with them.
_dict_flatten, _dict_flatten_with_keys = _of_dict, _mapping_keys(_of_dict)
_odict_flatten = _ordereddict_flatten = _of_dict
_list_flatten = _tuple_flatten = _of_sequence
_list_flatten_with_keys = _tuple_flatten_with_keys = _sequence_keys(_of_sequence)
_dict_unflatten = SUPPORTED_NODES[dict].unflatten_fn
_odict_unflatten = _ordereddict_unflatten = SUPPORTED_NODES[OrderedDict].unflatten_fn
_list_unflatten, _tuple_unflatten = SUPPORTED_NODES[list].unflatten_fn, SUPPORTED_NODES[tuple].unflatten_fn


# -- the shape of a tree ---------------------------------------------------------------------------------------------


class TreeSpec:
    """The shape of a tree: a container's type and context, and the shapes of its children."""

    def __init__(self, type, context, children_specs: list[TreeSpec]):
        self.type, self.context = type, context
        self.children_specs: list[TreeSpec] = children_specs
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves: int = sum(child.num_leaves for child in children_specs)
        self.num_children = len(children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return self.children_specs.copy()

    def child(self, index: int) -> TreeSpec:
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable):
        """The tree of this shape with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def flatten_up_to(self, tree) -> list:
        """The parts of ``tree`` that stand where this shape has its leaves."""
        parts: list = []
        self._collect(tree, parts)
        return parts

    def _build(self, leaves):
        children = [child._build(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def _collect(self, tree, parts: list) -> None:
        kind = _get_node_type(tree)
        if kind != self.type and not (kind in _MAPPINGS and self.type in _MAPPINGS):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if kind in _MAPPINGS:
            keys = self.context[1] if self.type is defaultdict else self.context
            _check_keys(keys, tree)
            children = [tree[key] for key in keys]
        elif kind is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self.children_specs, children):
            spec._collect(child, parts)

    def __eq__(self, other) -> bool:
        return isinstance(other, TreeSpec) and (
            (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self, indent: int = 0) -> str:
        space = " " * (indent + 2)
        children = f",\n{space}".join(child.__repr__(indent + 2) for child in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"


class LeafSpec(TreeSpec):
    """The shape of what is no container."""

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def _build(self, leaves):
        return next(leaves)

    def _collect(self, tree, parts: list) -> None:
        parts.append(tree)

    def __repr__(self, indent: int = 0) -> str:
        return "*"


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    return _LEAF_SPEC


def _check_keys(keys, tree) -> None:
    missing, extra = [k for k in keys if k not in tree], [k for k in tree if k not in keys]
    if missing or extra:
        said = [f"missing key(s): {set(missing)}"] if missing else []
        said += [f"extra key(s): {set(extra)}"] if extra else []
        raise ValueError(f"Node keys mismatch; {'; '.join(said)}.")


# -- apart and together ----------------------------------------------------------------------------------------------


def tree_is_leaf(tree, is_leaf=None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def tree_flatten(tree, is_leaf=None):
    """(leaves, the tree's shape)

    >>> rushlight.utils._pytree.tree_flatten({"a": 1, "b": (2, [3])})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree, leaves: list, is_leaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf), …], the tree's shape)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None) -> list:
    return list(_with_paths((), tree, is_leaf))


def _with_paths(path: tuple, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_get_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_unflatten(leaves, treespec: TreeSpec):
    """The tree of this shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec but got item of "
            f"type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None) -> list:
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs) -> list:
    return tree_leaves((args, kwargs))


def tree_structure(tree, is_leaf=None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """``func`` of every leaf (and of those at its place in ``rests``), in a tree of the same shape."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*together) for together in zip(leaves, *others)])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` for what it does; the tree itself is given back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for together in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests]):
        func(*together)
    return tree


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As ``tree_map``, with the path before each leaf."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(path, leaf, *rest) for (path, leaf), *rest in zip(pairs, *others)])


def map_only(kinds):
    """A decorator: the function is called for leaves of these kinds only; others stay as they are."""
    asks = kinds if callable(kinds) and not isinstance(kinds, (type, tuple, types.UnionType)) else None

    def decorate(func):
        return lambda leaf: func(leaf) if (asks(leaf) if asks else isinstance(leaf, kinds)) else leaf

    return decorate


def tree_map_only(kind, /, func, tree, is_leaf=None):
    """``func`` of the leaves of one kind (a type, several, or a predicate); others stay."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kind, /, func, tree, is_leaf=None):
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kind, /, pred, tree, is_leaf=None) -> bool:
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, kind))


def tree_any_only(kind, /, pred, tree, is_leaf=None) -> bool:
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, kind))


def _broadcast_to_and_flatten(tree, treespec: TreeSpec, is_leaf=None) -> list | None:
    """``tree`` as leaves for ``treespec``, a leaf serving all below its place; None where they do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _get_node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children_specs)]
    return None if any(p is None for p in parts) else [leaf for part in parts for leaf in part or ()]


# -- as text ---------------------------------------------------------------------------------------------------------


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The shape as JSON."""
    return json.dumps([1, _to_json(treespec)])


def treespec_loads(serialized: str) -> TreeSpec:
    _, data = json.loads(serialized)
    return _of_json(data)


def treespec_pprint(treespec: TreeSpec) -> str:
    class _Asterisk(str):
        __repr__ = str.__str__

    return repr(treespec.unflatten([_Asterisk("*")] * treespec.num_leaves))


def _to_json(spec: TreeSpec) -> dict:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serial = _SERIAL.get(spec.type)
    if serial is None or spec.type in (namedtuple, defaultdict):
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not supported: its context is a Python type")
    children = [_to_json(child) for child in spec.children_specs]
    return {"type": serial.typename, "context": serial.dump(spec.context), "children_spec": children}


def _of_json(data: dict) -> TreeSpec:
    if data["type"] is None:
        return _LEAF_SPEC
    kind = next((kind for kind, serial in _SERIAL.items() if serial.typename == data["type"]), None)
    if kind is None:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered.")
    return TreeSpec(kind, _SERIAL[kind].load(data["context"]), [_of_json(child) for child in data["children_spec"]])
