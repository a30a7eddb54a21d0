"""``ProcessGroup``'s own collectives: those of ``torch.distributed``, started on the group itself.

Each gives a ``Work``. PyTorch has them in two forms: lists of one tensor and an object with options, or plain values
(``group.allreduce([t], AllreduceOptions())``, ``group.allreduce(t, ReduceOp.SUM)``). One table says of each what it is
given and which function does it.
"""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import collectives as c
from .point_to_point import irecv, isend
from .reduce_op import ReduceOp
from .work import Work, several
from .world import ProcessGroup

__all__ = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
    "BroadcastOptions", "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip

_UNSET = datetime.timedelta(milliseconds=-1)


class _Options:
    """What a collective of a group is told: attributes that are set one by one. A negative timeout is the group's."""

    _starts: dict[str, Any] = {}  # attributes, and what they are before somebody sets them

    def __init__(self):
        self.timeout, self.asyncOp = _UNSET, True
        for name, start in self._starts.items():
            setattr(self, name, list(start) if isinstance(start, list) else start)


def _options(name: str, what: str, **starts) -> type[_Options]:
    doc = f"Options of {what}; the timeout counts, and {', '.join(starts) or 'nothing else'}."
    return type(
        name, (_Options,), {"__doc__": doc, "__module__": "torch.distributed.distributed_c10d", "_starts": starts}
    )


_SUM = ReduceOp.SUM
AllreduceOptions = _options("AllreduceOptions", "``ProcessGroup.allreduce``", reduceOp=_SUM)
AllreduceCoalescedOptions = _options("AllreduceCoalescedOptions", "``ProcessGroup.allreduce_coalesced``", reduceOp=_SUM)
BroadcastOptions = _options("BroadcastOptions", "``ProcessGroup.broadcast``", rootRank=0, rootTensor=0)
ReduceOptions = _options("ReduceOptions", "``ProcessGroup.reduce``", reduceOp=_SUM, rootRank=0, rootTensor=0)
AllgatherOptions = _options("AllgatherOptions", "``ProcessGroup.allgather``")
GatherOptions = _options("GatherOptions", "``ProcessGroup.gather``", rootRank=0)
ScatterOptions = _options("ScatterOptions", "``ProcessGroup.scatter``", rootRank=0)
ReduceScatterOptions = _options("ReduceScatterOptions", "``ProcessGroup.reduce_scatter``", reduceOp=_SUM)
BarrierOptions = _options("BarrierOptions", "``ProcessGroup.barrier``", device_ids=[], device=None)
AllToAllOptions = _options("AllToAllOptions", "``ProcessGroup.alltoall``")

_OF_OPTIONS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}  # a value -> where options have it


# -- the table ---------------------------------------------------------------------------------------------------------
# What a call is given, in order: names that PyTorch's two forms have for it, divided by "/". Then the call itself.


def _all_gather(group, outputs, input):
    return c.all_gather(_inner(outputs), _one(input), group, True)


def _gather(group, outputs, input, root):
    return c.gather(_one(input), _inner(outputs) or None, None, group, True, root)


def _scatter(group, output, inputs, root):
    return c.scatter(_one(output), _inner(inputs) or None, None, group, True, root)


def _reduce_scatter(group, output, inputs, op):
    return c.reduce_scatter(_one(output), _inner(inputs), op, group, True)


def _all_gather_coalesced(group, outputs, inputs):
    return several([c.all_gather(list(row), t, group, True) for row, t in zip(zip(*outputs), inputs, strict=True)])


def _each(function: Callable):
    """A call of several tensors, one after the other."""

    def call(group, outputs, inputs, *values):
        return several([function(o, i, *values, group, True) for o, i in zip(outputs, inputs, strict=True)])

    return call


def _all_to_all_single(group, output, input, output_sizes, input_sizes):
    return c.all_to_all_single(output, input, list(output_sizes) or None, list(input_sizes) or None, group, True)


_CALLS: dict[str, tuple[str, Callable]] = {
    "allreduce": ("tensors/tensor op timeout", lambda g, t, op: c.all_reduce(_one(t), op, g, True)),
    "allreduce_coalesced": ("tensors op timeout", lambda g, ts, op: c.all_reduce_coalesced(list(ts), op, g, True)),
    "broadcast": ("tensors/tensor root timeout", lambda g, t, root: c.broadcast(_one(t), None, g, True, root)),
    "reduce": ("tensors/tensor root op timeout", lambda g, t, root, op: c.reduce(_one(t), None, op, g, True, root)),
    "allgather": ("output_tensors input_tensors/input_tensor timeout", _all_gather),
    "allgather_coalesced": ("output_lists input_list timeout", _all_gather_coalesced),
    "all_gather_single": ("output input timeout", lambda g, o, i: c.all_gather_single(o, i, g, True)),
    "all_gather_single_coalesced": ("outputs inputs timeout", _each(c.all_gather_single)),
    "gather": ("output_tensors input_tensors/input_tensor root timeout", _gather),
    "scatter": ("output_tensors/output_tensor input_tensors root timeout", _scatter),
    "reduce_scatter": ("output_tensors/output input_tensors/input op timeout", _reduce_scatter),
    "reduce_scatter_single": (
        "outputTensor inputTensor op timeout",
        lambda g, o, i, op: c.reduce_scatter_single(o, i, op, g, True),
    ),
    "reduce_scatter_single_coalesced": ("outputs inputs op timeout", _each(c.reduce_scatter_single)),
    "alltoall": ("output_tensors input_tensors timeout", lambda g, o, i: c.all_to_all(list(o), list(i), g, True)),
    "all_to_all_single": ("output input output_split_sizes input_split_sizes timeout", _all_to_all_single),
    "barrier": ("timeout", lambda g: c.barrier(g, True)),
    "send": ("tensors dstRank tag", lambda g, t, to, tag: isend(_one(t), None, g, tag, to)),
    "recv": ("tensors srcRank tag", lambda g, t, source, tag: irecv(_one(t), None, g, tag, source)),
    "recv_anysource": ("tensors tag", lambda g, t, tag: irecv(_one(t), None, g, tag)),
}
_ALSO = {  # older names
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
_STARTS = {"op": _SUM, "timeout": None}  # what need not be given


def _method(name: str, given: str, call: Callable):
    names = [word.split("/") for word in given.split()]
    kinds = inspect.Parameter
    parameters = [kinds(word[-1], kinds.POSITIONAL_OR_KEYWORD) for word in names]

    def method(self, *args, **kwargs) -> Work:
        values = _bound(name, names, args, kwargs)
        timeout = values.pop("timeout", None)
        work = call(self, *values.values())
        if timeout is not None and timeout > datetime.timedelta():
            work._timeout = timeout.total_seconds()
        return work

    method.__name__, method.__qualname__ = name, f"ProcessGroup.{name}"
    method.__doc__ = f"Start it; ``{' '.join(word[-1] for word in names)}``, or options instead of the last ones."
    method.__signature__ = inspect.Signature([kinds("self", kinds.POSITIONAL_ONLY), *parameters])  # type: ignore[attr-defined]
    return method


def _bound(name: str, names: list[list[str]], args: tuple, kwargs: dict) -> dict[str, Any]:
    """The values of a call by the last of their names, with what options say in the place of those that are missing."""
    options = kwargs.pop("opts", None)
    if args and isinstance(args[-1], _Options):
        options, args = args[-1], args[:-1]
    if len(args) > len(names):
        raise TypeError(f"{name}(): takes {len(names)} arguments, or options as the last one, but got {len(args)}")
    values = {word[-1]: value for word, value in zip(names, args)}
    for key, value in kwargs.items():
        place = next((word[-1] for word in names if key in word), None)
        if place is None or place in values:
            raise TypeError(f"{name}(): unexpected argument {key!r}; it takes {[word[-1] for word in names]}")
        values[place] = value
    for word in (word[-1] for word in names):
        if word in values:
            continue
        if word in _OF_OPTIONS and (options is not None or (word == "root" and _is_listed(values))):
            values[word] = getattr(options, _OF_OPTIONS[word]) if options is not None else 0
        elif word in _STARTS:
            values[word] = _STARTS[word]
        else:
            raise TypeError(f"{name}(): missing argument {word!r}")
    return {word[-1]: values[word[-1]] for word in names}


def _is_listed(values: dict) -> bool:
    """Is it the form with lists, whose options have a start?"""
    return isinstance(next(iter(values.values()), None), (list, tuple))


def _one(given) -> Tensor:
    """A tensor, or the only one of a list: a process has one device here."""
    if isinstance(given, Tensor):
        return given
    given = list(given)
    if len(given) != 1:
        raise ValueError(f"a list of one tensor is expected, for a process has one device; got {len(given)}")
    return given[0]


def _inner(given) -> list:
    """A list of tensors, or the only one of a list of such lists."""
    given = list(given)
    return list(given[0]) if len(given) == 1 and not isinstance(given[0], Tensor) else given


def _monitored_barrier(self, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """``torch.distributed.monitored_barrier`` of this group."""
    c.monitored_barrier(self, timeout, wait_all_ranks)


for _name, (_given, _call) in _CALLS.items():
    setattr(ProcessGroup, _name, _method(_name, _given, _call))
for _old, _name in _ALSO.items():
    setattr(ProcessGroup, _old, getattr(ProcessGroup, _name))
ProcessGroup.monitored_barrier = _monitored_barrier  # type: ignore[attr-defined]
