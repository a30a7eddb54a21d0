"""Checkpoints in several files, with an index that says which tensor is where, as Hugging Face's libraries do."""

from __future__ import annotations

import contextlib
import json
import os
import re

from ..serialization import load, save
from ..tensor import Tensor
from . import safetensors
from .atomic import alone, replacing

__all__ = ["load_sharded", "save_sharded"]

_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def save_sharded(
    state_dict: dict[str, Tensor],
    directory,
    max_shard_size: int | str = "5GB",
    safe_serialization: bool = True,
    metadata: dict | None = None,
) -> str:
    """Write a state dict into files of at most ``max_shard_size`` and an index; returns the index's path.

    The index is replaced last: until then, and if this is interrupted, the checkpoint that was there stays whole.
    """
    directory = os.fspath(directory)
    os.makedirs(directory, exist_ok=True)
    index = os.path.join(directory, (_SAFE if safe_serialization else _PICKLED) + ".index.json")
    with alone(directory) as sure:
        old = _files_of(index)
        if sure:  # else they may be another's, being saved
            _delete(directory, _interrupted(directory, safe_serialization, old))
        weight_map = _save_shards(state_dict, directory, _bytes(max_shard_size), safe_serialization, fresh=bool(old))
        total = sum(t.nbytes for t in state_dict.values())
        text = json.dumps({"metadata": {"total_size": total, **(metadata or {})}, "weight_map": weight_map}, indent=2)
        with replacing(index) as file:
            file.write(text.encode() + b"\n")
        _delete(directory, old - {*weight_map.values()})
    return index


def load_sharded(path, map_location="cpu", *, names=None, mmap: bool = False) -> dict[str, Tensor]:
    """Read a state dict from an index file, or from the folder that has one; only ``names``, where given.

    One that is replaced meanwhile is read again: the result is one checkpoint or the other.
    """
    index = _index_in(os.fspath(path))
    while True:
        weight_map = _weight_map(index)
        try:
            return _load_shards(index, weight_map, names, map_location, mmap)
        except FileNotFoundError:
            if _weight_map(index) == weight_map:  # nobody replaced it: the file is missing
                raise


def _load_shards(index: str, weight_map: dict[str, str], names, map_location, mmap: bool) -> dict[str, Tensor]:
    folder = os.path.dirname(index)
    wanted = weight_map.keys() if names is None else set(names)
    missing = wanted - weight_map.keys()
    if missing:
        raise KeyError(f"{index} has no tensor {sorted(missing)[0]!r}")
    state: dict[str, Tensor] = {}
    files: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        if name in wanted:
            files.setdefault(file, []).append(name)
    for file, mine in files.items():
        state.update(_read(os.path.join(folder, file), mine, map_location, mmap))
    return {name: state[name] for name in weight_map if name in wanted}


def _save_shards(state_dict, directory: str, limit: int, safe: bool, fresh: bool) -> dict[str, str]:
    """Write the shards; returns which tensor is in which file."""
    shards = _split(state_dict, limit)
    weight_map = {}
    for file, names in zip(_file_names(len(shards), safe, fresh), shards):
        part, path = {name: state_dict[name] for name in names}, os.path.join(directory, file)
        if safe:
            safetensors.save_file(_packed(part), path, {"format": "pt"})
        else:
            save(part, path)
        weight_map.update(dict.fromkeys(names, file))
    return weight_map


def _read(path: str, names, map_location, mmap: bool) -> dict[str, Tensor]:
    if path.endswith(".safetensors"):
        with safetensors.safe_open(path, device=map_location or "cpu") as file:
            return {name: file.get_tensor(name) for name in names}
    state = load(path, map_location, mmap=mmap)
    absent = [name for name in names if name not in state]
    if absent:
        raise RuntimeError(f"the index says that {path} has tensor '{absent[0]}', but it has not")
    return {name: state[name] for name in names}


def _index_in(path: str) -> str:
    if not os.path.isdir(path):
        return path
    for name in (_SAFE, _PICKLED):
        index = os.path.join(path, name + ".index.json")
        if os.path.exists(index):
            return index
    raise FileNotFoundError(f"no {_SAFE}.index.json or {_PICKLED}.index.json in {path}")


def _weight_map(index: str) -> dict[str, str]:
    """The index's table, if it names files of its own folder only."""
    try:
        with open(index, encoding="utf-8") as file:
            table = json.load(file)["weight_map"]
        valid = all(isinstance(v, str) and v and os.path.basename(v) == v and "\\" not in v for v in table.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        valid = False
    if not valid:
        raise RuntimeError(f"{index} is damaged, or names files outside its folder")
    return table


def _files_of(index: str) -> set[str]:
    return {*_weight_map(index).values()} if os.path.exists(index) else set()


def _file_names(count: int, safe: bool, fresh: bool):
    """The usual names; with something new in them when a checkpoint is there that must not be touched yet."""
    stem, ending = (_SAFE if safe else _PICKLED).rsplit(".", 1)
    tag = f"-{os.urandom(4).hex()}" if fresh else ""
    return [f"{stem}{tag}-{i + 1:05d}-of-{count:05d}.{ending}" for i in range(count)]


def _interrupted(directory: str, safe: bool, named: set[str]) -> set[str]:
    """Shards, whole or partial, that killed saves left: those that the index does not name.

    Where there is no index, only those that have a name which ``fresh`` makes: others may be somebody else's.
    """
    stem, ending = (_SAFE if safe else _PICKLED).rsplit(".", 1)
    tag = "(-[0-9a-f]{8})" + ("?" if named else "")
    left = re.compile(rf"\.?{stem}{tag}-\d{{5}}-of-\d{{5}}\.{ending}(\.[0-9a-f]{{8}}\.partial)?")
    return {name for name in os.listdir(directory) if left.fullmatch(name)} - named


def _delete(directory: str, names: set[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(directory, name))


def _packed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor in memory of its own, as safetensors files want them."""
    packed, seen = {}, set()
    for name, t in state.items():
        shared = t.data_ptr() in seen and t.numel() > 0
        packed[name] = t.detach().contiguous().clone() if shared or _is_part(t) else t
        seen.add(t.data_ptr())
    return packed


def _is_part(t: Tensor) -> bool:
    return not t.is_contiguous() or t.untyped_storage().nbytes() != t.nbytes


def _split(state_dict: dict[str, Tensor], limit: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    size = 0
    for name, t in state_dict.items():
        if shards[-1] and size + t.nbytes > limit:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += t.nbytes
    return shards


def _bytes(size: int | str) -> int:
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", size)
    if not found or found[2].upper() not in _UNITS:
        raise ValueError(f"max_shard_size must be a number of bytes or like '5GB', not {size!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])
