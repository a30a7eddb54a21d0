"""What is let go of is freed at once, by reference counting, as in PyTorch: the collector is off in these tests."""

from __future__ import annotations

import copy
import gc
import io
import os
import platform
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight import inspect, nn
from rushlight.engine import native
from rushlight.io import safetensors
from rushlight.nn.utils import parametrizations, parametrize, prune
from rushlight.utils.checkpoint import checkpoint
from rushlight.utils.data import DataLoader, TensorDataset


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


class Exponential(torch.autograd.Function):
    """Keeps its own output: the shortest way to a cycle."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Apart(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.inputs = inputs

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def trained(net, x=None, optimizer=None):
    output = net(torch.randn(5, 3) if x is None else x)
    (output[0] if isinstance(output, tuple) else output).sum().backward()
    if optimizer is not None:
        optimizer.step()
        optimizer.zero_grad()


def saved(obj, **arguments) -> bytes:
    file = io.BytesIO()
    torch.save(obj, file, **arguments)
    return file.getvalue()


def stepped(kind):
    net = nn.Linear(3, 2)
    return lambda: trained(net, None, kind(net.parameters(), lr=0.1))


X = torch.ones(4, requires_grad=True)
NET = model()
CHECKPOINT, LEGACY = saved(NET.state_dict()), saved(NET.state_dict(), _use_new_zipfile_serialization=False)
WHOLE, LARGE = saved(NET), saved({"w": torch.ones(1 << 19)})


def hooked():
    net = nn.Linear(3, 2)
    net.register_full_backward_hook(lambda *_: None)
    net.register_forward_hook(lambda *_: None)
    trained(net, torch.ones(1, 3, requires_grad=True))


def written():
    y = X * 2
    y[1:3] = 0
    y.register_hook(lambda g: g)
    y.retain_grad()
    y.add_(1).view(2, 2).sum().backward()


def refused():
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(CHECKPOINT[:-10]))


def unparametrized():
    net = parametrizations.weight_norm(nn.Linear(3, 3))
    trained(net)
    parametrize.remove_parametrizations(net, "weight")


CASES = {
    "load": lambda: torch.load(io.BytesIO(CHECKPOINT)),
    "load a large file": lambda: torch.load(io.BytesIO(LARGE)),
    "load the older format": lambda: torch.load(io.BytesIO(LEGACY)),
    "load trustingly": lambda: torch.load(io.BytesIO(WHOLE), weights_only=False),
    "load what is refused": refused,
    "save": lambda: saved(NET),
    "safetensors": lambda: safetensors.load(safetensors.save(NET.state_dict())),
    "state_dict": lambda: NET.state_dict(),
    "load_state_dict": lambda: NET.load_state_dict(NET.state_dict()),
    "a layer": lambda: nn.Linear(2, 2),
    "a copy": lambda: copy.deepcopy(NET),
    "a step": lambda: trained(NET),
    "a graph nobody runs": lambda: NET(torch.randn(5, 3)).sum(),
    "LSTM": lambda: trained(nn.LSTM(3, 2), torch.ones(2, 1, 3)),
    "transformer": lambda: trained(nn.TransformerEncoderLayer(4, 2, 8), torch.ones(2, 1, 4)),
    "Function, inputs": lambda: Product.apply(X, X).sum().backward(),
    "Function, inputs, never run": lambda: Product.apply(X, X).sum(),
    "Function, output": lambda: Exponential.apply(X).sum().backward(),
    "Function, output, never run": lambda: Exponential.apply(X).sum(),
    "Function, setup_context": lambda: Apart.apply(X).sum().backward(),
    "Function, setup_context, never run": lambda: Apart.apply(X).sum(),
    "SGD": stepped(torch.optim.SGD),
    "Adam": stepped(torch.optim.Adam),
    "hooks": hooked,
    "written in place": written,
    "second order": lambda: torch.autograd.grad(torch.autograd.grad((X**3).sum(), X, create_graph=True)[0].sum(), X),
    "checkpoint": lambda: checkpoint(NET, torch.randn(5, 3), use_reentrant=False).sum().backward(),
    "weight_norm": lambda: trained(parametrizations.weight_norm(nn.Linear(3, 3))),
    "spectral_norm": lambda: trained(parametrizations.spectral_norm(nn.Linear(3, 3))),
    "orthogonal": lambda: trained(parametrizations.orthogonal(nn.Linear(3, 3))),
    "parametrized no longer": unparametrized,
    "pruned": lambda: trained(prune.l1_unstructured(nn.Linear(3, 3), "weight", amount=0.5)),
    "DataLoader": lambda: list(DataLoader(TensorDataset(torch.ones(9, 2)), 4, shuffle=True)),
    "scheduler": lambda: torch.optim.lr_scheduler.StepLR(torch.optim.SGD([X], lr=0.1), 1),
    "summary": lambda: inspect.summary(NET, torch.ones(5, 3)),
    "func.grad": lambda: torch.func.grad(lambda x: (x**2).sum())(X),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_for_the_collector(name):
    call = CASES[name]
    call()  # what is made once, and imports
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            call()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [type(thing).__name__ for thing in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


def test_parametrized_modules_share_a_class_by_what_they_compute():
    first, second = (parametrizations.weight_norm(nn.Linear(3, 3)) for _ in range(2))
    assert type(first) is type(second) and type(first).__name__ == "ParametrizedLinear"
    parametrize.register_parametrization(first, "bias", nn.Identity())
    assert isinstance(type(first).__dict__["bias"], property) and "bias" not in type(second).__dict__
    assert isinstance(second.bias, nn.Parameter)
    other = copy.deepcopy(first)
    parametrize.remove_parametrizations(first, "bias")
    parametrize.remove_parametrizations(first, "weight")
    assert type(first) is nn.Linear and parametrize.is_parametrized(other, "bias")
    assert other(torch.ones(1, 3)).shape == (1, 3)


FAULTS = """
import resource, numpy, rushlight

def step(size):
    for array in [numpy.empty(size, numpy.uint8) for _ in range(20)]:
        array[::4096] = 1

def faults(size):
    step(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    step(size)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / (20 * size / 4096)

print(faults(1 << 20) < 0.2, rushlight.engine.numpy.memory.keep())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are left alone")
@pytest.mark.parametrize(("variables", "printed"), [({}, "True True"), ({"MALLOC_TOP_PAD_": "0"}, "False False")])
def test_freed_memory_is_kept_for_the_next_step(variables, printed):
    """Unless the user has told glibc something else."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run([sys.executable, "-c", FAULTS], env={**ours, **variables}, capture_output=True, text=True)
    assert done.stdout.strip() == printed, done.stderr


ALIGNED = """
import numpy, rushlight

def begins(array):
    return array.__array_interface__["data"][0] % (4096 if array.nbytes >= 1 << 16 else 64)

sizes = (1, 15, 64, 1000, 4097, (1 << 16) - 1, 1 << 16, 1 << 22)
made = [make(size, numpy.uint8) for make in (numpy.empty, numpy.zeros, numpy.ones) for size in sizes]
grown = numpy.arange(10.0)
for size in (1000, 3, 10_000, 1 << 20, 7):
    grown.resize(size, refcheck=False)
    made.append(grown.copy())
    assert begins(grown) == 0 and (grown[:3] == [0, 1, 2]).all() and not grown[10:1000].any()
print(set(map(begins, made)), numpy.fromiter(range(100_000), float).sum(), numpy.zeros((0, 4)).shape)
try:
    numpy.empty(1 << 62, numpy.uint8)
except MemoryError:
    print(rushlight.engine.numpy.memory.align())
"""


@pytest.mark.skipif(native.library is None, reason=f"the kernels in C are not there: {native.reason}")
def test_arrays_begin_at_cache_lines():
    """Large ones at pages; zeroed, grown, shrunk. The last word: who asks again finds a handler that is not NumPy's."""
    done = subprocess.run([sys.executable, "-c", ALIGNED], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["{0} 4999950000.0 (0, 4)", "False"], done.stderr
