"""Collectives over processes, by XLA: gloo between CPUs, NCCL between GPUs, the interconnect between TPUs.

A ``Ring`` is one device from each member process. A collective is a small XLA program over that mesh, which all
members run. Arrays are flat. Sums go in at their own length, because where gloo cuts decides in which order numbers
are added; what only moves is bytes, padded to one of few lengths. So there are few programs, however many shapes.
Two processes swap what they have and add: there is one order only, and half the messages of a ring.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lib import _jax  # batched_device_put has no public name: it is what device_put calls
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..numpy.alignment import aligned, is_aligned
from .world import in_time, quiet

AXIS = "ranks"
PIECE = 12 << 20  # bytes: what XLA allocates for larger ones is fresh memory every time, and its page faults cost more
SWAPPED = 4 << 20  # bytes that two processes send each other at a time: what comes is added while it is in the cache
STAGED = 1 << 14  # bytes: what is smaller XLA may copy
EXACT = 256  # lengths that a ring sums as they are; those that come later are padded


class Ring:
    """One device of each member process, and the programs that run over them."""

    def __init__(self, processes: list[int], platform: str = "cpu"):
        devices: dict = {}
        for d in jax.devices(platform):
            devices.setdefault(d.process_index, d)
        self.size, self.here = len(processes), devices[jax.process_index()]
        self.mesh = Mesh(np.array([devices[p] for p in processes]), (AXIS,))
        self._number, self._gloo = processes.index(jax.process_index()), platform == "cpu"
        self.swaps = self.size == 2 and self._gloo  # one message each way; gloo's ring would take two
        self._rows = NamedSharding(self.mesh, PartitionSpec(AXIS))
        self._lengths: set = set()
        self._shapes: dict = {}
        self._stage = aligned(STAGED, np.uint8)
        self._stages: dict = {}  # {(length, dtype): (the beginning of it, as an array of all members, if XLA has it)}
        self._used = False

    def all_reduce(self, x, op: str, into=None):
        """The sum (or what ``op`` says) of all members' ``x``; piece by piece ``into`` an array, if one is given."""
        if op == "avg":
            return self._mean(self.all_reduce(x, "sum", into), into)
        if into is None:
            return self._pieces("all_reduce", x[None], self._exact(x), lambda y, n: y[None], op=op, swaps=self.swaps)[0]
        if self.swaps and op == "sum" and x.dtype.kind in "fiu":
            return self._swapped(x, into)
        step, length = PIECE // x.dtype.itemsize, self._exact(x)
        for i in range(0, x.shape[0], step):  # a piece's memory is free for the next when it was copied
            part = x[i : i + step]
            count = part.shape[0]
            if (n := length(count)) != count:
                part = np.pad(part, (0, n - count))
            into[i : i + count] = self._run("all_reduce", part, op=op, swaps=self.swaps)[:count]
        return into

    def _mean(self, total, into=None):
        """Outside of XLA's programs, which multiply by what one divided by the size is."""
        if into is None:
            return (total / self.size).astype(total.dtype)
        return np.divide(total, total.dtype.type(self.size), out=into)

    def _swapped(self, x, into):
        """A sum of two members: each adds to what it has what the other sends."""
        step, length = SWAPPED // x.dtype.itemsize, self._exact(x)
        for i in range(0, x.shape[0], step):
            part = x[i : i + step]
            count = part.shape[0]
            sent = part if (n := length(count)) == count else np.pad(part, (0, n - count))
            np.add(part, self._run("swap", sent)[:count], out=into[i : i + count])
        return into

    def swap(self, x):
        """The other member's ``x``, of two; as JAX's array, and read-only."""
        n = self._exact(x)(x.shape[0])
        made = self._made("swap", x if n == x.shape[0] else np.pad(x, (0, n - x.shape[0])))
        return made if n == x.shape[0] else made[: x.shape[0]]

    def broadcast(self, x, source: int):
        """``x`` of member number ``source``."""
        words, back = _words(x)
        return back(self._pieces("broadcast", words[None], _padded, lambda y, n: y[None], source=source)[0])

    def all_gather(self, x):
        """(members, n): the ``x`` of all."""
        words, back = _words(x)
        found = self._pieces("all_gather", words[None], _padded, lambda y, n: y.reshape(self.size, n), self.size)
        return back(found)

    def reduce_scatter(self, rows, op: str, lengths: tuple[int, ...] | None = None):
        """This member's row of the sum of all members' ``rows``, (members, n).

        With ``lengths`` each row is an array of its own, which gloo would cut where the row does not end.
        """
        if op == "avg":
            return self._mean(self.reduce_scatter(rows, "sum", lengths))
        if self._gloo and self.swaps and op == "sum":  # after gloo's own reduce_scatter of little, others may hang
            row = rows[1 - self._number]
            other = self._pieces("permute", row[None], self._exact(row), lambda y, n: y[None], targets=(1, 0))[0]
            return rows[self._number] + other
        if self._gloo and lengths is not None:
            return [self.all_reduce(row[:n], op) for row, n in zip(rows, lengths)][self._number]
        if self._gloo:
            return self.all_reduce(rows.reshape(-1), op).reshape(rows.shape)[self._number]
        return self._pieces("reduce_scatter", rows, self._exact(rows), lambda y, n: y[None], self.size, op=op)[0]

    def all_to_all(self, rows):
        """(members, n): what each has for this member, where ``rows`` is what this one has for each."""
        words, back = _words(rows)
        return back(self._pieces("all_to_all", words, _padded, lambda y, n: y.reshape(self.size, n), self.size))

    def permute(self, x, targets: tuple[int, ...]):
        """The ``x`` of the member whose target this one is: member i sends to member ``targets[i]``."""
        words, back = _words(x)
        return back(self._pieces("permute", words[None], _padded, lambda y, n: y[None], targets=targets)[0])

    def _pieces(self, name: str, rows, length, shaped, times: int = 1, **static):
        """Run ``name`` over the columns of ``rows``, so many at a time that a piece is not too large."""
        step = max(PIECE // (rows.dtype.itemsize * times), 1)
        columns, found = rows.shape[1], []
        xp = np if rows.__class__ is np.ndarray else jnp
        for i in range(0, columns, step):
            part = rows[:, i : i + step]
            n = length(part.shape[1])
            if n != part.shape[1]:
                part = xp.pad(part, ((0, 0), (0, n - part.shape[1])))
            found.append(shaped(self._run(name, part.reshape(-1), **static), n)[:, : min(step, columns - i)])
        if not found:
            return shaped(rows[:0].reshape(-1), 0) if name != "all_gather" else xp.zeros((self.size, 0), rows.dtype)
        return found[0] if len(found) == 1 else xp.concatenate(found, axis=1)

    def _run(self, name: str, x, **static):
        mine = self._made(name, x, **static)
        return np.asarray(mine) if x.__class__ is np.ndarray else mine

    def _made(self, name: str, x, **static):
        whole = self._joined(x)
        program = _program(self.mesh, name, tuple(sorted(static.items())))
        if self._used:
            made = program(whole)
        else:
            with quiet():
                run = lambda: jax.block_until_ready(program(whole))
                made = in_time("connecting", run, connects=True, seconds=math.inf)  # who waits for this has a timeout
            self._used = True
        return made._arrays[0]  # what ``addressable_data(0)`` returns in 13 µs

    def _joined(self, x):
        """The array of all members of which this one has ``x``."""
        if x.__class__ is not np.ndarray:
            shape = (x.shape[0] * self.size,)
            return jax.make_array_from_single_device_arrays(shape, self._rows, [jax.device_put(x, self.here)])
        return self._lent(x) if x.nbytes >= STAGED and is_aligned(x) else self._staged(x)

    def _lent(self, x):
        """``_joined`` of memory that XLA takes as it is."""
        key = x.shape[0] * self.size, x.dtype
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = jax.core.ShapedArray(key[:1], x.dtype)
        return _jax.batched_device_put(shape, self._rows, [x], [self.here])  # 4 µs; what it is made of is 40

    def _staged(self, x):
        """``_joined`` of a copy. XLA's own would be fresh memory every time, page by page; this one is lent once."""
        key = x.shape[0], x.dtype
        if key not in self._stages:
            if self._stage.nbytes < x.nbytes or len(self._stages) == EXACT:
                self._stage = aligned(max(x.nbytes, self._stage.nbytes), np.uint8)
                self._stages.clear()
            copy = self._stage[: x.nbytes].view(x.dtype)
            whole = self._lent(copy)
            is_lent = whole.addressable_data(0).unsafe_buffer_pointer() == copy.ctypes.data
            self._stages[key] = copy, whole if is_lent else None
        copy, whole = self._stages[key]
        np.copyto(copy, x)
        return self._lent(copy) if whole is None else whole

    def _exact(self, x):
        """The length of a sum is its own, for the first few: members do the same, so they agree."""

        def length(n: int) -> int:
            if (n, x.dtype) in self._lengths or len(self._lengths) < EXACT:
                self._lengths.add((n, x.dtype))
                return n
            return _padded(n)

        return length


def _padded(n: int) -> int:
    """The program's length for ``n`` elements: the next of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, …"""
    if n <= 8:
        return max(n, 1)
    step = 1 << (n - 1).bit_length() - 3
    return -(-n // step) * step


def _words(x):
    """``x`` as unsigned integers, whatever it holds, and the way back: -0.0 and NaN come through as they are."""
    if x.__class__ is not np.ndarray:
        return x, lambda y: y
    dtype, n = x.dtype, x.shape[-1]
    data = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape[:-1], n * dtype.itemsize)
    spare = -data.shape[-1] % 4
    if spare:
        data = np.pad(data, [(0, 0)] * (data.ndim - 1) + [(0, spare)])

    def back(y):
        whole = np.ascontiguousarray(y).view(np.uint8)
        return np.ascontiguousarray(whole[..., : n * dtype.itemsize]).view(dtype)

    return data.view(np.uint32), back


@functools.cache
def _program(mesh: Mesh, name: str, static: tuple):
    body = functools.partial(BODIES[name], **dict(static))
    spec = PartitionSpec(AXIS)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))


# -- what each member does ---------------------------------------------------------------------------------------------


def _swap(x):
    return lax.ppermute(x, AXIS, [(0, 1), (1, 0)])


def _all_reduce(x, op, swaps=False):
    if op == "sum":
        return x + _swap(x) if swaps else lax.psum(x, AXIS)
    if op == "max":
        return lax.pmax(x, AXIS)
    if op == "min":
        return lax.pmin(x, AXIS)
    every = lax.all_gather(x, AXIS)
    return functools.reduce(_OF_TWO[op], [every[i] for i in range(every.shape[0])])


_OF_TWO = {"product": jnp.multiply, "band": jnp.bitwise_and, "bor": jnp.bitwise_or, "bxor": jnp.bitwise_xor}


def _broadcast(x, source):
    if not jnp.issubdtype(x.dtype, jnp.integer):  # a sum with zeros would lose the sign of -0.0
        return lax.all_gather(x, AXIS)[source]
    return lax.psum(jnp.where(lax.axis_index(AXIS) == source, x, jnp.zeros((), x.dtype)), AXIS)


def _all_gather(x):
    return lax.all_gather(x, AXIS, tiled=True)


def _reduce_scatter(x, op):
    if op == "sum":
        return lax.psum_scatter(x, AXIS, tiled=True)
    n = x.shape[0] // lax.axis_size(AXIS)
    return lax.dynamic_slice(_all_reduce(x, op), (lax.axis_index(AXIS) * n,), (n,))


def _all_to_all(x):
    return lax.all_to_all(x, AXIS, 0, 0, tiled=True)


def _permute(x, targets):
    return lax.ppermute(x, AXIS, list(enumerate(targets)))


BODIES: dict[str, Callable] = {
    "all_reduce": _all_reduce, "broadcast": _broadcast, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all, "permute": _permute, "swap": _swap,
}  # fmt: skip


# -- from one to another -----------------------------------------------------------------------------------------------


class Mail:
    """JAX's transfer server: an array is laid out for one process to fetch, in no order that others must keep."""

    def __init__(self, host: str):
        from jax.experimental import transfer

        self._here = jax.local_devices(backend="cpu")[0]
        self._server = transfer.start_transfer_server(self._here.client, f"{host}:0", [f"{host}:0"] * 2)
        self.addresses: dict[int, str] = {}  # where other processes' servers are
        self._links: dict = {}
        self._closed = False
        self._place = jax.sharding.SingleDeviceSharding(self._here)

    def address(self) -> str:
        return self._server.address()

    def send(self, number: int, x: np.ndarray) -> None:
        """Lay ``x`` out under a number that is used once."""
        local = jax.device_put(np.array(x), self._here)
        self._server.await_pull(number, [local])

    def fetch(self, address: str, number: int, n: int, dtype) -> np.ndarray:
        """What the server at ``address`` has or will have under ``number``."""
        if address not in self._links:
            self._links[address] = self._server.connect(address)
        (got,) = self._links[address].pull(number, [jax.ShapeDtypeStruct((n,), dtype, sharding=self._place)])
        pause = 1e-5
        while not got.is_ready():  # a thread that waits inside XLA could not be ended with the process
            if self._closed:
                raise RuntimeError("this process has left the world")
            time.sleep(pause)
            pause = min(pause * 1.3, 1e-3)
        return np.asarray(got)

    def close(self) -> None:
        """Have those who still wait for something give up."""
        self._closed = True
