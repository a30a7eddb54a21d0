"""Collectives of Python objects: pickled, and sent as bytes."""

from __future__ import annotations

import io
import pickle

import numpy as np

from ..tensor import wrap
from .collectives import _start
from .point_to_point import recv, send
from .world import checked_root, is_outside, number_in, rank_in, refuse_outside, the

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip


def all_gather_object(object_list, obj, group=None) -> None:
    """``object_list`` becomes the objects of all processes."""
    if is_outside(group, "all_gather_object"):
        return
    for rank, found in enumerate(_gathered(obj, the(group), "all_gather_object")):
        object_list[rank] = found  # an IndexError where there is no place for it


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """``object_gather_list`` of process ``dst`` becomes the objects of all."""
    if is_outside(group, "gather_object"):
        return
    group = the(group)
    target = number_in(group, 0 if dst is None and group_dst is None else dst, group_dst)
    here = target == group.rank()
    if here and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    checked_root(group, target, "gather")
    found = _gathered(obj, group, "gather_object")
    if here:
        for rank, one in enumerate(found):
            object_gather_list[rank] = one


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """The objects of process ``src`` for all, written into ``object_list``."""
    if is_outside(group, "broadcast_object_list"):
        return
    group = the(group)
    source = rank_in(group, 0 if src is None and group_src is None else src, group_src)
    data = _pickled(list(object_list)) if group.rank() == source else np.zeros(0, np.uint8)
    found: list = []

    def run(ring):
        size = int(ring.broadcast(np.array([data.size], np.int64), source)[0])
        return ring.broadcast(data if group.rank() == source else np.zeros(size, np.uint8), source)

    _start(group, "broadcast_object_list", None, run, found, _keep, False)
    object_list[:] = _unpickled(found[0])


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
) -> None:
    """The first entry of the outputs becomes this process's entry of the inputs of process ``src``."""
    if is_outside(group, "scatter_object_list"):
        return
    group = the(group)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    source = rank_in(group, 0 if src is None and group_src is None else src, group_src)
    here = group.rank() == source
    if here and (scatter_object_input_list is None or len(scatter_object_input_list) != group.size()):
        raise ValueError(
            f"Expected argument scatter_object_input_list to be a list of {group.size()} objects on source rank."
        )
    parts = [_pickled(o) for o in scatter_object_input_list] if here else [np.zeros(0, np.uint8)] * group.size()
    found: list = []

    def run(ring):
        sizes = ring.broadcast(np.array([p.size for p in parts], np.int64), source)
        rows = np.zeros((group.size(), int(sizes.max())), np.uint8)
        for row, part in zip(rows, parts):
            row[: part.size] = part
        return ring.all_to_all(rows)[source][: int(sizes[group.rank()])]

    _start(group, "scatter_object_list", None, run, found, _keep, False)
    scatter_object_output_list[0] = _unpickled(found[0])


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False) -> None:
    """Objects to one other process, which calls ``recv_object_list``."""
    send_objects(object_list, dst, group, 0, group_dst)


def send_objects(object_list, dst, group, tag: int, group_dst) -> None:
    data = _pickled(list(object_list))
    send(wrap(np.array([data.size], np.int64)), dst, group, tag, group_dst)
    send(wrap(data), dst, group, tag, group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False) -> int:
    """``object_list`` becomes what ``send_object_list`` sent; from whom it came."""
    return recv_objects(object_list, src, group, 0, group_src)


def recv_objects(object_list, src, group, tag: int, group_src) -> int:
    refuse_outside(group)
    size = wrap(np.zeros(1, np.int64))
    sender = recv(size, src, group, tag, group_src)
    data = wrap(np.zeros(int(size.item()), np.uint8))
    recv(data, sender, group, tag)
    object_list[:] = _unpickled(data._array)
    return sender


def _gathered(obj, group, what: str) -> list:
    data, found = _pickled(obj), []

    def run(ring):
        sizes = ring.all_gather(np.array([data.size], np.int64)).reshape(-1)
        row = np.zeros(int(sizes.max()), np.uint8)
        row[: data.size] = data
        return [part[: int(n)] for part, n in zip(ring.all_gather(row), sizes)]

    _start(group, what, None, run, found, _keep, False)
    return [_unpickled(part) for part in found[0]]


def _keep(outputs: list, found) -> None:
    outputs.append(found)


def _pickled(obj) -> np.ndarray:
    file = io.BytesIO()
    pickle.Pickler(file).dump(obj)
    return np.frombuffer(file.getvalue(), np.uint8)


def _unpickled(data):
    return pickle.loads(np.asarray(data).tobytes())  # noqa: S301 - what another process of this program sent
