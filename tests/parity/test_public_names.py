"""What a user sees is PyTorch's, or named here: no helper of ours is visible in a public namespace."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
import sys

import pytest
import torch

import rushlight
from rushlight import absent

NAMESPACES = [
    "torch", "torch.nn", "torch.nn.attention", "torch.nn.functional", "torch.nn.grad", "torch.nn.init",
    "torch.nn.modules", "torch.nn.parallel", "torch.nn.parameter", "torch.nn.utils", "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize", "torch.nn.utils.prune", "torch.nn.utils.rnn", "torch.nn.utils.stateless",
    "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.linalg", "torch.fft", "torch.special",
    "torch.func", "torch.signal", "torch.signal.windows", "torch.random", "torch.autograd",
    "torch.autograd.functional", "torch.autograd.graph", "torch.utils", "torch.utils.checkpoint", "torch.utils.data",
    "torch.utils.dlpack", "torch.utils.hooks", "torch.distributions", "torch.distributions.constraints",
    "torch.distributions.kl", "torch.distributions.transforms", "torch.distributions.utils", "torch.amp", "torch.cuda",
    "torch.cuda.amp", "torch.accelerator", "torch.backends", "torch.compiler", "torch.export", "torch.hub",
    "torch.fx", "torch.jit", "torch.multiprocessing", "torch.serialization", "torch.sparse", "torch.storage",
    "torch.nested",
    "torch.testing", "torch.onnx", "torch.profiler",
    "torch.autograd.profiler", "torch.types", "torch.version", "torch.masked", "torch.quantization",
    "torch.ao.nn.intrinsic", "torch.ao.nn.quantized", "torch.ao.nn.quantized.dynamic", "torch.ao.quantization",
    "torch.ao.quantization.fake_quantize", "torch.ao.quantization.observer", "torch.ao.quantization.qconfig",
    "torch.autograd.forward_ad", "torch.autograd.function", "torch.autograd.gradcheck", "torch.autograd.variable",
    "torch.cuda.nvtx", "torch.cuda.profiler", "torch.distributed",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks", "torch.distributed.algorithms.join",
    "torch.distributed.checkpoint", "torch.distributed.checkpoint.state_dict", "torch.distributed.device_mesh",
    "torch.distributed.fsdp", "torch.distributed.nn.functional", "torch.distributed.pipelining",
    "torch.distributed.tensor", "torch.distributed.tensor.parallel", "torch.futures", "torch.library",
    "torch.nn.attention.bias", "torch.nn.attention.flex_attention", "torch.overrides", "torch.torch_version",
    "torch.utils.benchmark", "torch.utils.collect_env", "torch.utils.flop_counter",
]  # fmt: skip

# Ours alone, and meant to be used.
OWN = {
    "torch": {"install", "vision"},
    "torch.autograd": {"GradcheckError", "differentiable", "op"},  # op: docs/reference/op.md
    "torch.nn.parameter": {"factory_kwargs"},  # PyTorch has it in torch.nn
    "torch.compiler": {"explain"},
    "torch.version": {"rushlight"},
}
# Files whose helpers other files use: they have no underscore, but neither dir nor * shows them.
WITH_HELPERS = {
    "torch.ao.nn.quantized",
    "torch.autograd.forward_ad",
    "torch.autograd.function",
    "torch.autograd.graph",
    "torch.cuda.profiler",
    "torch.distributed.device_mesh",
    "torch.distributions.utils",
    "torch.hub",
    "torch.library",
    "torch.multiprocessing",
    "torch.storage",
    "torch.nn.utils.parametrizations",
    "torch.utils.hooks",
}
TOOLS = pathlib.Path(__file__).parents[2] / "tools"


def ours_of(name):
    return importlib.import_module("rushlight" + name.removeprefix("torch"))


def is_theirs(space, name):
    return hasattr(importlib.import_module(space), name) or (
        hasattr(importlib.import_module(space), "__path__") and importlib.util.find_spec(f"{space}.{name}") is not None
    )


def strange(space, names):
    return [n for n in names if n[0] != "_" and n not in OWN.get(space, ()) and not is_theirs(space, n)]


@pytest.mark.parametrize("space", NAMESPACES)
def test_what_is_listed(space):
    """What ``dir``, completion and ``import *`` show."""
    ours = ours_of(space)
    shown = dir(ours)
    assert shown and strange(space, shown) == []
    assert strange(space, getattr(ours, "__all__", ())) == []
    if space != "torch.utils":  # tensorboard needs a package that may not be there
        assert [n for n in shown if not hasattr(ours, n)] == []


@pytest.mark.parametrize("space", [s for s in NAMESPACES if s not in WITH_HELPERS])
def test_what_is_defined(space):
    """A helper that is written in a public namespace has a leading underscore."""
    ours = ours_of(space)
    own = [n for n, value in vars(ours).items() if getattr(value, "__module__", None) == ours.__name__]
    assert strange(space, own) == []


@pytest.mark.parametrize("space", NAMESPACES)
def test_nothing_public_is_hidden(space):
    """What is defined here under a public name of PyTorch's is listed; what is only a name need not be."""
    ours, theirs = ours_of(space), importlib.import_module(space)
    path = space.removeprefix("torch").lstrip(".")
    public = [
        n
        for n in getattr(theirs, "__all__", ())
        if n in vars(ours) and n not in dir(ours) and not absent.is_absent(vars(ours)[n], path, n)
    ]
    # A file of ours that has the name of a function of PyTorch's is not that function.
    assert [n for n in public if inspect.ismodule(vars(ours)[n]) <= inspect.ismodule(getattr(theirs, n))] == []


def test_importing_all_names_of_nn():
    names: dict = {}
    exec("from rushlight.nn import *", names)
    assert names["Linear"] is rushlight.nn.Linear and names["functional"] is rushlight.nn.functional
    assert names["attention"].SDPBackend.MATH.name == torch.nn.attention.SDPBackend.MATH.name
    assert "activation" not in names and "layers" not in names


def test_every_name_is_in_the_reference():
    """There ``tools/reference.py`` sees to it that it has its arguments and a line, and the page is in step."""
    sys.path.insert(0, str(TOOLS))
    try:
        reference = importlib.import_module("reference")
    finally:
        sys.path.remove(str(TOOLS))
    spaces = [space for several in reference.NAMESPACES.values() for space in several]
    shown = {id(value) for space in spaces for value in reference.public(space).values()}
    names = [(space, name, value) for space in NAMESPACES for name, value in reference.public(space).items()]
    assert len(names) > 2000
    assert [f"{space}.{name}" for space, name, value in names if id(value) not in shown] == []
