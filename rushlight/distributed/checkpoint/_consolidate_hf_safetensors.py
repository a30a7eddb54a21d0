"""Parts of tensors in many safetensors files, made whole."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from ...io.safetensors import safe_open, save_file
from ...io.safetensors_format import damaged, dtype_of
from ...tensor import wrap
from .. import world
from ..collectives import barrier

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]

SHARDING = "DCP_SHARDING_INFO"  # in a file's header: where each of its parts begins


def file_name(number: int, count: int) -> str:
    return f"model-{number:05}-of-{count:05}.safetensors"


def consolidate_safetensors_files(input_dir, output_dir, fqn_to_index_mapping: dict, num_threads: int = 1) -> None:
    """Write the whole tensors of ``input_dir`` into ``output_dir``, each into the file that the mapping says."""
    _write_files(Path(input_dir), Path(output_dir), fqn_to_index_mapping, set(fqn_to_index_mapping.values()))
    _write_index(Path(output_dir), fqn_to_index_mapping)


def consolidate_safetensors_files_on_every_rank(
    input_dir, output_dir, fqn_to_index_mapping: dict, num_threads: int = 1, process_group=None
) -> None:
    """The same by all processes, each some of the files."""
    rank, size = (
        (world.get_rank(process_group), world.get_world_size(process_group)) if world.is_initialized() else (0, 1)
    )
    numbers = sorted(set(fqn_to_index_mapping.values()))
    _write_files(Path(input_dir), Path(output_dir), fqn_to_index_mapping, set(numbers[rank::size]))
    if size > 1:
        barrier(process_group)
    if rank == 0:
        _write_index(Path(output_dir), fqn_to_index_mapping)


def offsets_in(file: safe_open) -> dict[str, tuple[int, ...]]:
    """Where in its tensor each part of a file begins: at 0, where the header does not say."""
    try:
        said = json.loads((file.metadata() or {}).get(SHARDING, "{}"))
        found = {name: tuple(said[name]["saved_offsets"]) if name in said else None for name in file.keys()}  # noqa: SIM118
    except (ValueError, KeyError, TypeError):
        raise damaged("the places of parts in the header are none") from None
    for name, begin in found.items():
        shape = file._entry(name).shape
        if begin is None:
            found[name] = (0,) * len(shape)
        elif len(begin) != len(shape) or not all(type(n) is int and 0 <= n < 1 << 60 for n in begin):
            raise damaged(f"the part of '{name}' has no such place")
    return found  # type: ignore[return-value]  # every None is gone


def _write_files(source: Path, target: Path, numbers: dict[str, int], wanted: set[int]) -> None:
    parts = defaultdict(list)
    for path in sorted(source.glob("*.safetensors")):
        with safe_open(path) as file:
            for name, begin in offsets_in(file).items():
                parts[name].append((path, begin, file._entry(name)))
    target.mkdir(parents=True, exist_ok=True)
    for number in sorted(wanted):
        names = sorted(name for name, n in numbers.items() if n == number and name in parts)
        whole = {name: wrap(_whole(name, parts[name])) for name in names}
        save_file(whole, target / file_name(number, max(numbers.values())), {"format": "pt"})


def _whole(name: str, parts: list) -> np.ndarray:
    shape = [max(begin[i] + entry.shape[i] for _, begin, entry in parts) for i in range(len(parts[0][1]))]
    if sum(math.prod(entry.shape) for *_, entry in parts) != math.prod(shape):  # before memory is taken for it
        raise damaged(f"parts of '{name}' do not make a whole of {shape}")
    made = np.empty(shape, dtype_of(name, parts[0][2]).numpy)
    for path, begin, entry in parts:
        with safe_open(path) as file:
            made[tuple(slice(o, o + n) for o, n in zip(begin, entry.shape))] = file._rows(name, entry, 0, None)
    return made


def _write_index(target: Path, numbers: dict[str, int]) -> None:
    from .hf_storage import write_index

    names, total = {}, 0
    for number in dict.fromkeys(numbers.values()):
        path = target / file_name(number, max(numbers.values()))
        with safe_open(path) as file:
            names.update({name: path.name for name in numbers if name in file._header.entries})
            total += sum(entry.end - entry.start for entry in file._header.entries.values())
    write_index(target, total, names)
