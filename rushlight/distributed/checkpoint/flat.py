"""A state dict as one level: names with dots, and the way back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ...tensor import Tensor

__all__ = ["flattened", "named_paths", "put"]


def flattened(state_dict: dict) -> tuple[dict[str, object], dict[str, tuple]]:
    """(value by name, path by name): ``{"a": {"b": 1}}`` has ``a.b``, at ``("a", "b")``.

    Lists are opened only if they hold tensors or dicts somewhere; tuples never are.
    """
    values: dict[str, object] = {}
    paths: dict[str, tuple] = {}

    def walk(path: tuple, value) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                walk((*path, key), item)
        elif isinstance(value, list) and _holds(value):
            for i, item in enumerate(value):
                walk((*path, i), item)
        else:
            name = ".".join(map(str, path))
            if name in values:
                raise ValueError(f"duplicated flatten key {name}")
            values[name], paths[name] = value, path

    for key, value in state_dict.items():
        walk((key,), value)
    return values, paths


def _holds(items: list) -> bool:
    return any(
        isinstance(item, (Tensor, Mapping)) or (isinstance(item, (list, tuple)) and _holds(list(item)))
        for item in items
    )


def named_paths(state_dict: dict, paths: dict[str, tuple]) -> dict[str, tuple]:
    """Paths as files have them: keys of dicts are text, places in lists are numbers."""
    made = {}
    for name, path in paths.items():
        here, named = state_dict, []
        for part in path:
            named.append(part if isinstance(here, list) else str(part))
            here = here[part]
        made[name] = tuple(named)
    return made


def put(state_dict: dict, path: tuple, value) -> None:
    """Set what stands at ``path``, making the dicts and lists on the way."""
    here = state_dict
    for part, after in itertools.pairwise(path):
        if isinstance(here, list):
            _lengthen(here, part)
        missing: dict | list = [] if isinstance(after, int) else {}
        if isinstance(here, list):
            if here[part] is None:
                here[part] = missing
            here = here[part]
        else:
            here = here.setdefault(part, missing)
    if isinstance(here, list):
        _lengthen(here, path[-1])
    here[path[-1]] = value


def _lengthen(items: list, place: int) -> None:
    items.extend([None] * (place + 1 - len(items)))
