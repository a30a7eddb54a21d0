"""Sequences that are cut over processes, on PyTorch and on rushlight.

PyTorch's attention over parts needs a GPU: there the whole sequence is attended to, and this process's part is printed,
as a process would have.
"""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import _attention as inner
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import context_parallel_unshard, set_rotate_method
from torch.distributed.tensor.parallel import parallelize_module

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=RANK, world_size=SIZE)
mesh = init_device_mesh("cpu", (SIZE,), mesh_dim_names=("cp",))
CUT = torch.__name__ == "rushlight"


def shown(label, t):
    print(label, tuple(t.shape), [round(x, 4) for x in t.flatten().tolist()[:6]], f"{t.double().norm():.4f}")


def attempt(label, call):
    try:
        print(label, call())
    except Exception as error:
        print(label, type(error).__name__, error)


def inside(**options):
    with context_parallel(mesh, **options):
        return "went in"


# -- buffers -----------------------------------------------------------------------------------------------------------

length = 4 * SIZE
for balanced in (True, False):
    inner._cp_options.enable_load_balance = balanced
    rows, columns = torch.arange(2.0 * length).view(2, length), torch.arange(3.0 * length).view(length, 3)
    kept = torch.arange(float(length))
    with context_parallel(mesh, buffers=[rows, columns, kept], buffer_seq_dims=[1, 0, 0], no_restore_buffers={kept}):
        print("inside", rows.tolist(), columns.tolist(), kept.tolist())
        again = context_parallel_unshard(mesh, [rows * 2], [1])[0]
        print("again", again.tolist())
    print("after", rows.tolist(), columns.tolist(), kept.tolist())
inner._cp_options.enable_load_balance = True
balancer = inner._HeadTailLoadBalancer(length, SIZE, "cpu")
print("order", balancer._generate_indices().tolist(), balancer._generate_indices(restore=True).tolist())
parts = inner._context_parallel_shard(mesh, {"x": rows, "y": columns}, {"x": 1, "y": 0}, balancer)
print("parts", sorted(parts), parts["x"].tolist(), parts["y"].tolist())
parts = inner._context_parallel_shard(mesh, [rows], [1])
print("parts", parts[0].tolist(), inner._cp_options.enable_load_balance)
inner._dispatch_mode = getattr(getattr(inner, "_DispatchMode", None), "MONKEY_PATCH", None)
inner._cp_options.enable_load_balance = True
attempt("dims", lambda: inside(buffers=[rows], buffer_seq_dims=[1, 0]))
attempt("others", lambda: inside(buffers=[rows], buffer_seq_dims=[1], no_restore_buffers={columns}))
attempt("method", lambda: set_rotate_method("ring"))
set_rotate_method("alltoall")
print(inner._cp_options.rotate_method)
set_rotate_method("allgather")
leaf = torch.zeros(2, length, requires_grad=True)
attempt("leaf", lambda: inside(buffers=[leaf], buffer_seq_dims=[1]))

# -- attention ---------------------------------------------------------------------------------------------------------


def cut(t, dim=2):
    balancer = inner._HeadTailLoadBalancer(t.shape[dim], SIZE, "cpu") if inner._cp_options.enable_load_balance else None
    order = torch.arange(t.shape[dim]) if balancer is None else balancer._generate_indices()[0]
    return t.index_select(dim, order).chunk(SIZE, dim)[RANK]


def attention(q, k, v, weight, **options):
    """The part of the result and of the gradients that this process has."""
    if not CUT:
        whole = [t.clone().requires_grad_() for t in (q, k, v)]
        out = F.scaled_dot_product_attention(*whole, **options)
        (out * weight).sum().backward()
        return [cut(t) for t in (out.detach(), *(t.grad for t in whole))]
    mine, weight = [t.clone() for t in (q, k, v)], weight.clone()
    with context_parallel(mesh, buffers=[*mine, weight], buffer_seq_dims=[2] * 4, no_restore_buffers=set(mine)):
        for t in mine:
            t.requires_grad_()
        out = F.scaled_dot_product_attention(*mine, **options)
        (out * weight).sum().backward()
    return [out.detach(), *(t.grad for t in mine)]


torch.manual_seed(0)
cases = [
    (method, *case)
    for method in ("allgather", "alltoall")
    for case in [
        ("causal", 3, 4, True, {"is_causal": True}),
        ("in a row", 3, 4, False, {"is_causal": True}),
        ("all", 3, 4, False, {}),
        ("scaled", 1, 8, True, {"is_causal": True, "scale": 0.3}),
        ("grouped", 1, 4, True, {"is_causal": True, "enable_gqa": True}),
    ]
]
for method, label, heads, width, balanced, options in cases:
    set_rotate_method(method)
    inner._cp_options.enable_load_balance = balanced
    q, weight = torch.randn(2, 3, 6 * SIZE, width), torch.randn(2, 3, 6 * SIZE, width)
    k, v = torch.randn(2, heads, 6 * SIZE, width), torch.randn(2, heads, 6 * SIZE, width)
    if heads == 1 and "enable_gqa" not in options:
        q, weight = q[:, :1], weight[:, :1]
    for name, t in zip(("out", "dq", "dk", "dv"), attention(q, k, v, weight, **options)):
        shown(f"{method} {label} {name}", t)
inner._cp_options.enable_load_balance = True


# -- a model -----------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm, self.inner = nn.LayerNorm(16), Attention()

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        return x + self.out(self.inner(q, k, v).transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(11, 16), nn.Embedding(8 * SIZE, 16)
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(16, 11)

    def forward(self, x, places):
        return self.head(self.blocks(self.token(x) + self.place(places)))


def loss_of(model, x, y, places):
    return F.cross_entropy(model(x, places).flatten(0, 1), y.flatten())


def train(way):
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if CUT and way == "style":
        style = inner._ContextParallel(2, inner._ContextParallel.AttentionType.SDPA)
        inner._enable_context_parallel_dispatcher()
        for block in model.blocks:
            parallelize_module(block.inner, mesh, style)
    for step in range(3):
        x, y = torch.randint(0, 11, (2, 8 * SIZE)), torch.randint(0, 11, (2, 8 * SIZE))
        places = torch.arange(8 * SIZE)
        optimizer.zero_grad()
        if not CUT:
            loss = loss_of(model, x, y, places)
            loss.backward()
        elif way == "style":
            balancer = inner._HeadTailLoadBalancer(8 * SIZE, SIZE, "cpu")
            x, y, places = inner._context_parallel_shard(mesh, [x, y, places], [1, 1, 0], balancer)
            loss = loss_of(model, x, y, places)
            loss.backward()
        else:
            with context_parallel(mesh, buffers=[x, y, places], buffer_seq_dims=[1, 1, 0]):
                loss = loss_of(model, x, y, places)
                loss.backward()
        if CUT:
            for p in model.parameters():
                dist.all_reduce(p.grad, dist.ReduceOp.SUM)
                p.grad /= SIZE
            dist.all_reduce(loss.detach(), dist.ReduceOp.SUM)
            loss = loss.detach() / SIZE
        optimizer.step()
        print(way, step, f"{loss.item():.5f}", f"{model.blocks[0].qkv.weight.grad.norm():.5f}")


for method in ("allgather", "alltoall"):
    set_rotate_method(method)
    train("context")
    train("style")
dist.destroy_process_group()
