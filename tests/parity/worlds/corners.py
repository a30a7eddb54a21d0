"""Corners of collectives, groups and stores: run by two processes, on PyTorch (gloo) and on rushlight."""

# ruff: noqa: B023 (each function is called at once)

import datetime
import os
import threading
import time
import warnings

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import ProcessGroup

warnings.simplefilter("ignore")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SHORT = datetime.timedelta(milliseconds=60)
Op = dist.ReduceOp
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=size)
x = torch.ones(2)


def show(name, function):
    """What it gives; of an error the kind that code would catch."""
    try:
        value = function()
    except Exception as error:
        kinds = (
            dist.DistStoreError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
            AssertionError,
            IndexError,
        )
        value = next(k for k in kinds if isinstance(error, k)).__name__
    print(name, value)


def changed(function, tensors):
    work = function(tensors)
    if work is not None:
        work.wait()
    return [t.tolist() for t in tensors]


# -- reductions --------------------------------------------------------------------------------------------------------

for dtype in (torch.bool, torch.complex64, torch.complex128):
    values = [torch.full((n,), rank + 1).to(dtype) for n in (2, 3)]
    for later in (False, True):
        show(f"several {dtype}", lambda: changed(lambda v: dist.all_reduce_coalesced(v, async_op=later), values))
    show(f"one {dtype}", lambda: changed(dist.all_reduce_coalesced, values[:1]))
z = torch.ones(2, dtype=torch.complex64)
for op in (Op.MAX, Op.PRODUCT, Op.BAND):
    show(f"all_reduce {op}", lambda: dist.all_reduce(z, op))
    show(f"all_reduce_coalesced {op}", lambda: dist.all_reduce_coalesced([z], op))
    show(f"reduce {op}", lambda: dist.reduce(z, 0, op))
    show(f"reduce_scatter {op}", lambda: dist.reduce_scatter(z, [z] * size, op))
    show(f"reduce_scatter_single {op}", lambda: dist.reduce_scatter_single(z, torch.cat([z, z]), op))
show("nothing", lambda: dist.all_reduce_coalesced([]))
show("a factor that is not there", lambda: dist.all_reduce(x, Op.PREMUL_SUM))
show("a number as timeout", lambda: dist.monitored_barrier(timeout=3))
show("op", lambda: (Op(Op.SUM).op, Op(Op.SUM) == Op.SUM, Op.RedOpType.__members__["MAX"]))
show("a number waited", lambda: dist.all_reduce(x, async_op=True).wait(3))


parts = [torch.full((i + 1,), rank + 1.0) for i in range(size)]
show("parts of two sizes", lambda: changed(lambda v: dist.reduce_scatter(v[0], parts), [torch.zeros(rank + 1)]))
show("a part of no such size", lambda: dist.reduce_scatter(torch.zeros(5), parts))
for root in (torch.tensor(1), True, 1.0):
    show(f"from {root}", lambda: changed(lambda v: dist.broadcast(v[0], root), [torch.full((2,), rank + 1.0)]))
show("no place for objects", lambda: dist.all_gather_object([None], rank))
show("no place for gathered objects", lambda: dist.gather_object(rank, [None] if rank == 0 else None))

# -- waiting -----------------------------------------------------------------------------------------------------------


def polled():
    future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    both = torch.futures.collect_all([future, future.then(lambda f: f.value()[0] + 1)])
    for _ in range(3000):
        if both.done():
            break
        time.sleep(0.01)
    return [f.value() for f in both.value()]


def waited_for_again():
    """Time was up, but not that of the group."""
    value = torch.ones(2)
    if rank:
        time.sleep(0.3)
    work = dist.all_reduce(value, async_op=True)
    if rank == 0:
        show("too short", lambda: work.wait(SHORT))
        dist.all_reduce(torch.ones(1), async_op=True)
    work.wait()
    if rank:
        dist.all_reduce(torch.ones(1))
    return value, work.is_completed()


def waited_for_by_two():
    """The second thread goes on when the first one has written what it waits for."""
    value = torch.ones(1 << 23)
    first, last = dist.all_reduce(value, async_op=True), dist.all_reduce(torch.ones(1), async_op=True)
    beside = threading.Thread(target=last.wait)
    beside.start()
    first.wait()
    found = value[[0, -1]].tolist()
    beside.join()
    return found


show("polled", polled)
show("waited for again", waited_for_again)
show("waited for by two", lambda: [waited_for_by_two() for _ in range(5)])

# -- groups ------------------------------------------------------------------------------------------------------------

first, both, last = dist.new_group([0]), dist.new_group(), dist.new_group([1])
print("groups", dist.get_pg_count())
outside = last if rank == 0 else first
there = 1 - rank
show("send", lambda: dist.send(x, there, group=outside))
show("isend", lambda: dist.isend(x, there, group=outside))
show("recv", lambda: dist.recv(x, there, group=outside))
show("irecv", lambda: dist.irecv(x, there, group=outside))
show("send_object_list", lambda: dist.send_object_list([1], there, group=outside))
show("recv_object_list", lambda: dist.recv_object_list([None], there, group=outside))
show("several messages", lambda: dist.batch_isend_irecv([dist.P2POp(dist.isend, x, there, group=outside)]))
show(
    "a group's kinds",
    lambda: (ProcessGroup.BackendType.GLOO, both.BackendType.NCCL, dict(both.BackendType.__members__)),
)
show("a group's description", lambda: (both.group_desc, dist.new_group(group_desc="mine").group_desc))
dist.destroy_process_group(both)
show("rank in a group that was left", lambda: dist.get_rank(both))
show("left again", lambda: dist.destroy_process_group(both))
show("left, not a member", lambda: dist.destroy_process_group(outside))
print("groups", dist.get_pg_count())
after = dist.new_group()
show("a sum after it", lambda: changed(lambda v: dist.all_reduce(v[0], group=after), [torch.full((2,), rank + 1.0)]))
show("backend", lambda: (dist.Backend("GLOO"), dist.Backend("other"), dist.Backend.backend_capability["gloo"]))
show("no backend", lambda: dist.Backend(3))

# -- stores ------------------------------------------------------------------------------------------------------------


def asked(store):
    store.set_timeout(SHORT)
    store.set("a", "1")
    store.set("b", b"")
    show("keys as bytes", lambda: (store.set(b"c", b"\x00"), store.get("c"), store.check([b"c"])))
    show("a number as value", lambda: store.set("d", 3))
    show("a fraction added", lambda: store.add("n", 1.5))
    show("added", lambda: (store.add("n", 2), store.add("n", -5), store.get("n")))
    show("wait", lambda: store.wait(["a", "b"]))
    show("wait for a word", lambda: store.wait("a"))
    show("wait for a number of seconds", lambda: store.wait(["a"], 3))
    show("wait too long", lambda: store.wait(["a", "none"], SHORT))
    show("wait for nothing", lambda: store.wait([]))
    show("what is there", lambda: (sorted(store.list_keys()), store.check([])))
    show("none of several", lambda: (store.multi_set([], []), store.multi_get([])))
    show("a barrier", lambda: (store.barrier("one", 1), type(store.clone()).__name__))
    show("no barrier", lambda: store.barrier("two", 2, SHORT))


served = dist.TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=60))
for store in (dist.HashStore(), served, dist.PrefixStore("p", dist.HashStore())):
    asked(store)
print("kinds", [s.has_extended_api() for s in (store, served, dist.FileStore(f"store{rank}", 1))])
show("too many values", lambda: served.multi_set(["a"], ["1", "2"]))
print("libuv", served.libuvBackend)
dist.destroy_process_group()
for name, function in {
    "a rank": dist.get_rank, "a sum": lambda: dist.all_reduce(x), "a group": dist.new_group, "a barrier": dist.barrier,
}.items():  # fmt: skip
    show(f"{name} of no world", function)
