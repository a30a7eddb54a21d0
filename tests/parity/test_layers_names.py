"""No public name of ``torch.nn`` and what is below it is missing, and arguments are called and ordered as there."""

from __future__ import annotations

import importlib
import inspect
import types

import numpy as np
import pytest
import torch

import rushlight
from rushlight import absent

PLACES = [
    "nn", "nn.functional", "nn.init", "nn.grad", "nn.common_types", "nn.parameter", "nn.utils", "nn.utils.clip_grad",
    "nn.utils.convert_parameters", "nn.utils.fusion", "nn.utils.memory_format", "nn.utils.parametrizations",
    "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "nn.utils.stateless",
]  # fmt: skip

for _place in PLACES:  # submodules become attributes when they are imported
    importlib.import_module(f"rushlight.{_place}")

_CUDA = "matrix products in float8, by kernels of CUDA"
_QUANTIZED = "old paths of torch.ao.quantization"
MISSING = {
    "nn.functional": {
        **dict.fromkeys(["ScalingType", "SwizzleType", "scaled_grouped_mm", "scaled_mm"], _CUDA),
    },
    "nn": dict.fromkeys(["intrinsic", "qat", "quantizable", "quantized"], _QUANTIZED),
}


@pytest.mark.parametrize("place", PLACES)
def test_no_public_name_is_missing(place):
    theirs, ours = importlib.import_module(f"torch.{place}"), importlib.import_module(f"rushlight.{place}")
    missing = {name for name in public_names(theirs) if not is_here(ours, place, name)}
    assert missing == set(MISSING.get(place, ()))


def is_here(module, place: str, name: str) -> bool:
    """What only stands in the table of absent names is missing."""
    return hasattr(module, name) and not absent.is_absent(getattr(module, name), place, name)


def public_names(module) -> list[str]:
    """``__all__``, and what was made there: not what a file happens to import, nor the texts of its docstrings."""
    found = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        inside = getattr(value, "__module__", None) or ""
        if name.startswith("_") or name in INTERNAL:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith(module.__name__ + "."):
                found.add(name)
        elif isinstance(value, types.BuiltinFunctionType) or (callable(value) and inside.startswith("torch.nn")):
            found.add(name)
    return sorted(found)


INTERNAL = {
    "assert_int_or_pair", "boolean_dispatch",  # of TorchScript
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "PackedSequence_", "OpaqueBase", "bind", "NamedMemberAccessor", "T", "ConvT", "LinearT",
}  # fmt: skip


CALLABLES = [
    (place, name)
    for place in PLACES
    for name in public_names(importlib.import_module(f"torch.{place}"))
    if name not in MISSING.get(place, ())
]


@pytest.mark.parametrize(("place", "name"), CALLABLES, ids=lambda v: v)
def test_the_same_arguments(place, name):
    """Names, order, kinds and defaults, wherever PyTorch's can be read."""
    theirs, ours = (getattr(importlib.import_module(f"{p}.{place}"), name) for p in ("torch", "rushlight"))
    if not callable(theirs) or (isinstance(theirs, type) and theirs.__init__ is object.__init__):
        return
    expected = arguments(theirs)
    if name.startswith("LazyConv"):  # what follows is handed on
        assert arguments(ours)[:2] == expected[:2]
    elif expected is not None:
        assert arguments(ours) == expected


def arguments(f):
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None  # a function of C++'s
    if [p.kind for p in parameters][:2] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return None  # whatever it dispatches to
    return [(p.name, p.kind, plain(p.default)) for p in parameters]


def plain(value):
    """A default as something both libraries have."""
    if callable(value):
        return getattr(value, "__name__", "?")
    return repr(value).replace("rushlight.", "torch.")


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims):
    x, w = torch.randn(2, 4, *[9] * dims), torch.randn(6, 2, *[3] * dims)
    options = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    y = getattr(torch.nn.functional, f"conv{dims}d")(x, w, **options)
    for what, size, other in (("input", x.shape, w), ("weight", w.shape, x)):
        results = []
        for library, make in ((torch, torch.clone), (rushlight, lambda t: rushlight.tensor(t.numpy()))):
            f = getattr(library.nn.grad, f"conv{dims}d_{what}")
            first = (tuple(size), make(other)) if what == "input" else (make(other), tuple(size))
            results.append(f(*first, make(torch.ones_like(y)), **options).numpy())
        np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


GROUPED = [
    "F.grouped_mm(r(3, 4, 8), r(3, 8, 16))",
    "F.grouped_mm(r(12, 8), r(3, 8, 16), offs=at(2, 5, 12))",
    "F.grouped_mm(r(12, 8), r(3, 8, 16), offs=at(0, 5, 12))",
    "F.grouped_mm(r(3, 4, 8), r(8, 24), offs=at(8, 16, 24))",
    "F.grouped_mm(r(4, 24), r(24, 8), offs=at(8, 16, 24))",
    "F.grouped_mm(r(12, 8), r(3, 8, 16))",
    "F.grouped_mm(r(3, 4, 8), r(3, 8, 16), offs=at(2, 5, 12))",
    "F.grouped_mm(r(3, 4, 8), r(3, 8, 16), bias=r(3, 16))",
    "F.grouped_mm(r(3, 4, 8).double(), r(3, 8, 16))",
    "F.grouped_mm(r(12, 8), r(3, 8, 16), offs=at(2, 5, 12).long())",
]


@pytest.mark.parametrize("call", GROUPED)
def test_grouped_products(call):
    results = []
    for library in (torch, rushlight):

        def r(*shape, library=library):
            return library.tensor(np.cos(np.arange(np.prod(shape)) * 1.7).astype(np.float32).reshape(shape))

        def at(*ends, library=library):
            return library.tensor(ends, dtype=library.int32)

        try:
            results.append(eval(call, {"F": library.nn.functional, "r": r, "at": at}).numpy())
        except RuntimeError as error:
            results.append(str(error))
    if isinstance(results[0], str):
        assert results[1] == results[0]
    else:
        np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        "T.batch_norm(x, None, None, T.zeros(3), T.ones(3), True, 0.1, 1e-5, False)",
        "T.instance_norm(x, T.ones(3), None, None, None, True, 0.1, 1e-5, True)",
        "T.layer_norm(x, (4,), None, None, 1e-5, True)",
        "T.group_norm(x, 3, None, None, 1e-5, True)",
        "T.nn.factory_kwargs({'device': 'cpu', 'factory_kwargs': {'dtype': None}})",
        "T.nn.factory_kwargs({'a': 1})",
        "T.nn.factory_kwargs({'device': 1, 'factory_kwargs': {'device': 2}})",
    ],
)
def test_the_same_in_both(call):
    results = []
    for library in (torch, rushlight):
        x = library.arange(24.0).reshape(2, 3, 4).sin()
        try:
            results.append(eval(call, {"T": library, "x": x}))
        except TypeError as error:
            results.append(str(error))
    if isinstance(results[0], torch.Tensor):
        np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert results[1] == results[0]
