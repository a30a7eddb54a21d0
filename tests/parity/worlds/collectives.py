"""Every collective, dtype and shape of group: run by 2 and 4 processes, on PyTorch (gloo) and on rushlight."""

import datetime
import os
import warnings

import torch
import torch.distributed as dist

warnings.simplefilter("ignore")
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]
OTHERS = [torch.bool, torch.complex64]
Op = dist.ReduceOp


def show(label, *values):
    print(label, *[v.tolist() if isinstance(v, torch.Tensor) else v for v in values])


def mine(dtype, *shape, seed=0):
    """Values of this process; small integers, so that the order of a sum does not matter."""
    n = 1
    for s in shape:
        n *= s
    return ((torch.arange(n) * 3 + RANK * 5 + seed) % 7 + 1).reshape(shape).to(dtype)


def reductions(group, label):
    for dtype in FLOATS + INTEGERS + OTHERS:
        ops = [Op.SUM]
        if dtype != torch.complex64:
            ops += [Op.PRODUCT, Op.MIN, Op.MAX]
        if dtype.is_floating_point:
            ops += [Op.AVG]
        elif dtype != torch.complex64:
            ops += [Op.BAND, Op.BOR, Op.BXOR]
        for op in ops:
            x = mine(dtype, 2, 3) if dtype != torch.int8 and dtype != torch.uint8 else mine(dtype, 2, 3) % 3
            dist.all_reduce(x, op, group=group)
            show(f"{label} all_reduce {dtype} {op}", x)


def moves(group, label):
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    n, me = len(ranks), dist.get_rank(group)
    for dtype in FLOATS + INTEGERS + OTHERS:
        x = mine(dtype, 3)
        dist.broadcast(x, ranks[-1], group=group)
        show(f"{label} broadcast {dtype}", x)
        found = [torch.zeros(2, dtype=dtype) for _ in range(n)]
        dist.all_gather(found, mine(dtype, 2), group=group)
        show(f"{label} all_gather {dtype}", *found)
        into = torch.zeros(2 * n, dtype=dtype)
        dist.all_gather_into_tensor(into, mine(dtype, 2), group=group)
        show(f"{label} all_gather_into_tensor {dtype}", into)
        if dtype != torch.complex64:  # gloo has neither for these
            rooted(group, label, dtype, ranks, me)
        out = torch.zeros(n, dtype=dtype)
        dist.all_to_all_single(out, mine(dtype, n), group=group)
        show(f"{label} all_to_all_single {dtype}", out)
    for dtype in [torch.float32, torch.int64, torch.float16, torch.complex64]:
        x = mine(dtype, 3)
        dist.reduce(x, ranks[0], group=group)
        show(f"{label} reduce {dtype}", x if me == 0 else "-")
        for op in [Op.SUM] if dtype == torch.complex64 else [Op.SUM, Op.MAX]:
            out = torch.zeros(2, dtype=dtype)
            dist.reduce_scatter(out, [mine(dtype, 2, seed=i) for i in range(n)], op, group=group)
            show(f"{label} reduce_scatter {dtype} {op}", out)
            dist.reduce_scatter_tensor(out, mine(dtype, 2 * n), op, group=group)
            show(f"{label} reduce_scatter_tensor {dtype} {op}", out)


def rooted(group, label, dtype, ranks, me):
    n = len(ranks)
    found = [torch.zeros(2, dtype=dtype) for _ in range(n)] if me == 0 else None
    dist.gather(mine(dtype, 2), found, dst=ranks[0], group=group)
    show(f"{label} gather {dtype}", *(found or ["-"]))
    x = torch.zeros(2, dtype=dtype)
    given = [mine(dtype, 2, seed=i) for i in range(n)] if me == n - 1 else None
    dist.scatter(x, given, src=ranks[-1], group=group)
    show(f"{label} scatter {dtype}", x)


def uneven():
    sent = [(RANK + i) % 3 for i in range(SIZE)]
    got = [(RANK + i) % 3 for i in range(SIZE)]
    out = torch.zeros(sum(got), 2)
    dist.all_to_all_single(out, mine(torch.float32, sum(sent), 2), got, sent)
    show("all_to_all_single uneven", out)
    outs = [torch.zeros(2) for _ in range(SIZE)]
    dist.all_to_all(outs, [mine(torch.float32, 2, seed=i) for i in range(SIZE)])
    show("all_to_all", *outs)
    bits = torch.tensor([-0.0, float("nan"), float("inf")]) if RANK == 0 else torch.zeros(3)
    dist.broadcast(bits, 0)
    show("signs", torch.signbit(bits), bits.isnan(), bits.isinf())
    for n in (1, 5, 1000, 4097):  # sums of which the order shows
        torch.manual_seed(RANK)
        x = torch.randn(n)
        dist.all_reduce(x)
        show(f"random {n}", [v.hex() for v in x[:5].tolist()], x.double().sum().item().hex())


def shapes():
    for shape in [(), (1,), (0,), (2, 0, 3), (3, 1, 2)]:
        x = mine(torch.float32, *shape)
        dist.all_reduce(x)
        show(f"shape {shape}", x, tuple(x.shape))
    base = torch.zeros(4, 4)
    view = base[1:3]  # gloo sums only some of the values of a view that is not contiguous
    view.copy_(mine(torch.float32, 2, 4))
    dist.all_reduce(view)
    show("a view", base)
    leaf = torch.full((2,), float(RANK + 1), requires_grad=True)
    dist.all_reduce(leaf)
    show("a leaf", leaf.detach(), leaf.requires_grad, leaf.grad_fn)
    several = [mine(torch.float32, 2), mine(torch.float32, 3)]
    dist.all_reduce_coalesced(several)
    show("coalesced", *several)


def later():
    x, y = mine(torch.float32, 3), mine(torch.float32, 2, seed=1)
    first = dist.all_reduce(x, async_op=True)
    second = dist.broadcast(y, 0, async_op=True)
    print("second", second.wait(), y.tolist(), "first", first.wait(), x.tolist(), first.is_completed())
    twice = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    show("future", twice.wait())
    print("barrier", dist.barrier(), dist.barrier(async_op=True).wait())
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=60))


def one_to_one():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for dtype in FLOATS + INTEGERS + OTHERS:
        got = torch.zeros(3, dtype=dtype)
        works = [dist.isend(mine(dtype, 3), right), dist.irecv(got, left)]
        for work in works:
            work.wait()
        show(f"ring {dtype}", got)
    got = [torch.zeros(2), torch.zeros(2)]
    ops = [
        dist.P2POp(dist.isend, mine(torch.float32, 2, seed=1), right),
        dist.P2POp(dist.irecv, got[0], left),
        dist.P2POp(dist.isend, mine(torch.float32, 2, seed=2), left),
        dist.P2POp(dist.irecv, got[1], right),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    show("batch", *got)
    if RANK == 0:
        for work in [dist.isend(torch.full((2,), float(tag)), 1, tag=tag) for tag in (7, 3)]:
            work.wait()
        dist.send(torch.arange(4).reshape(2, 2), 1)
    elif RANK == 1:
        x, y, z = torch.zeros(2), torch.zeros(2), torch.zeros(2, 2, dtype=torch.int64)
        print(
            "from",
            dist.recv(x, 0, tag=3),
            dist.recv(y, 0, tag=7),
            dist.recv(z, src=0),
            x.tolist(),
            y.tolist(),
            z.tolist(),
        )
    dist.barrier()
    if RANK == 0:
        seen = []
        for _ in range(SIZE - 1):
            x = torch.zeros(1)
            seen.append((dist.recv(x), x.item()))
        print("anyone", sorted(seen))
    else:
        dist.send(torch.full((1,), float(RANK)), 0)
    dist.barrier()


def objects():
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK, "list": list(range(RANK))})
    print("objects", found)
    found = [None] * SIZE if RANK == 1 else None
    dist.gather_object("x" * RANK, found, dst=1)
    print("gathered", found)
    things = [RANK, {"a": RANK}, "z" * 50] if RANK == 0 else [None] * 3
    dist.broadcast_object_list(things, src=0)
    print("broadcast", things)
    out = [None]
    dist.scatter_object_list(out, [(i, "s" * i) for i in range(SIZE)] if RANK == 0 else None, src=0)
    print("scattered", out)
    if RANK == 0:
        dist.send_object_list(["hello", 1], 1)
    elif RANK == 1:
        got = [None, None]
        print("received", dist.recv_object_list(got, 0), got)


def refused():
    def attempt(label, call):
        try:
            call()
        except Exception as error:
            print(label, type(error).__name__, str(error).splitlines()[0][:70])

    x = torch.ones(2)
    attempt("not a tensor", lambda: dist.all_reduce(3))
    attempt("not a list", lambda: dist.all_gather(x, x))
    attempt("twice", lambda: dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore()))
    attempt("short list", lambda: dist.all_gather([x], x))
    attempt("other dtype", lambda: dist.all_gather([x.double()] * SIZE, x))
    attempt("no source", lambda: dist.broadcast(x))
    attempt("two sources", lambda: dist.broadcast(x, 0, group_src=0))
    attempt("strange source", lambda: dist.broadcast(x, 99))
    attempt("myself", lambda: dist.send(x, RANK))
    attempt("bits", lambda: dist.all_reduce(x, Op.BAND))
    attempt("complex", lambda: dist.all_reduce(x.to(torch.complex64), Op.MAX))
    attempt("average", lambda: dist.all_reduce(x.long(), Op.AVG))
    attempt("ranks", lambda: dist.new_group([0, 99]))
    attempt("ranks", lambda: dist.new_group([0, 0]))
    attempt("no P2POp", lambda: dist.batch_isend_irecv([1]))
    attempt("no list", lambda: dist.gather(x) if RANK == 0 else dist.gather(x, [x]))
    attempt("splits", lambda: dist.all_to_all_single(x, x, [1], [1]))


def main():
    dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
    print(dist.is_initialized(), dist.get_rank(), dist.get_world_size(), dist.get_backend(), dist.group.WORLD.size())
    reductions(None, "world")
    moves(None, "world")
    uneven()
    shapes()
    later()
    one_to_one()
    objects()
    refused()
    groups = [[0, 1], [SIZE - 1], list(range(0, SIZE, 2)), list(reversed(range(SIZE)))]
    for ranks in groups:
        group = dist.new_group(ranks)
        print(ranks, dist.get_rank(group), dist.get_world_size(group))
        if RANK in ranks:
            print(dist.get_process_group_ranks(group), [dist.get_group_rank(group, r) for r in ranks])
            moves(group, str(ranks))
        else:
            print("outside", dist.all_reduce(torch.ones(1), group=group), group == dist.GroupMember.NON_GROUP_MEMBER)
    as_given = dist.new_group(list(reversed(range(SIZE))), sort_ranks=False)
    print("as given", dist.get_rank(as_given), dist.get_process_group_ranks(as_given))
    moves(as_given, "as given")
    dist.barrier(as_given, timeout=datetime.timedelta(seconds=100))
    reductions(dist.new_group(), "all")
    mine_of, every = dist.new_subgroups(SIZE // 2)
    print("subgroups", len(every), dist.get_process_group_ranks(mine_of))
    x = mine(torch.float32, 2)
    dist.all_reduce(x, group=mine_of)
    show("subgroup", x)
    dist.barrier()
    dist.destroy_process_group()
    print(dist.is_initialized())


main()
