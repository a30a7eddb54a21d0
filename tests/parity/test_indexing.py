"""``x[index]`` and ``x[index] = value`` with random indices, and the gather and scatter families, against PyTorch."""

from __future__ import annotations

import warnings

import convert
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight


# XLA, eagerly, takes its time: a few examples there, many on NumPy.
def examples(count):
    return settings(max_examples=count, deadline=None, derandomize=True)


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def indices(draw, shape, wrong=False):
    """An index for a tensor of ``shape``, in PyTorch's terms; with ``wrong``, sometimes one that does not fit."""
    parts, dim, ellipsis = [], 0, False
    lengths = draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    while dim < len(shape) + wrong * 1 and len(parts) < 5 and draw(st.integers(0, 5)):
        size = shape[dim] if dim < len(shape) else 3
        kinds = ["int", "slice", "None", "list", "tensor", "mask", "bool", "numpy", "full"] + ["ellipsis"] * (
            not ellipsis
        )
        kind = draw(st.sampled_from(kinds))
        low, high = (-size, size - 1) if not wrong else (-size - 1, size)
        if kind == "int":
            parts.append(draw(st.integers(low, high)))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(-wrong, 3).filter(bool))))
        elif kind == "full":
            parts.append(slice(None))
        elif kind == "None":
            parts.append(None)
        elif kind == "bool":
            parts.append(draw(st.booleans()))
        elif kind == "ellipsis":
            parts.append(Ellipsis)
            ellipsis = True
        elif kind == "mask":
            parts.append(torch.tensor(draw(st.lists(st.booleans(), min_size=size, max_size=size))))
        else:
            # One common length, so that several index tensors broadcast; or a column, for two dimensions.
            values = draw(st.lists(st.integers(low, high), min_size=lengths[0], max_size=lengths[0]))
            if kind == "list":
                parts.append(values)
            elif kind == "numpy":
                parts.append(np.array(values))
            else:
                t = torch.tensor(values)
                parts.append(t[:, None] if draw(st.booleans()) else t)
        dim += kind not in ("None", "bool", "ellipsis")
    return tuple(parts) if len(parts) != 1 or draw(st.booleans()) else parts[0]


@st.composite
def cases(draw, wrong=False):
    shape = draw(SHAPES)
    return shape, draw(indices(shape, wrong))


def converted(index, engine):
    return convert.Converter(xla=engine == "xla")(index) if not isinstance(index, np.ndarray) else index


def attempt(function):
    """The result, or the error that PyTorch's users would see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(), None
        except (IndexError, RuntimeError, ValueError, TypeError) as error:
            return None, error


getitem_cases = given(case=cases())


@examples(200)
@getitem_cases
def test_getitem(case):
    check_getitem("numpy", case)


@examples(15)
@getitem_cases
def test_getitem_on_xla(case):
    check_getitem("xla", case)


def check_getitem(engine, case):
    shape, index = case
    t = torch.arange(float(np.prod(shape))).reshape(shape).requires_grad_()
    r = convert.Converter(xla=engine == "xla").tensor(t)
    expected, error = attempt(lambda: t[index])
    if engine == "xla" and "out of bounds" in str(error):  # XLA keeps index tensors inside silently
        return
    actual, ours = attempt(lambda: r[converted(index, engine)])
    assert type(ours) is type(error), ours
    if error is not None:
        assert without_which(ours) == without_which(error)
        return
    assert tuple(actual.shape) == tuple(expected.shape)
    np.testing.assert_array_equal(actual.detach().cpu().numpy(), expected.detach().numpy())
    assert actual._is_view() == expected._is_view() or actual.numel() == 0
    assert actual.grad_fn.name() == expected.grad_fn.name()
    (expected * expected).sum().backward()
    (actual * actual).sum().backward()
    np.testing.assert_allclose(r.grad.cpu().numpy(), t.grad.numpy())


@examples(200)
@given(case=cases(wrong=True))
def test_getitem_errors(case):
    shape, index = case
    t = torch.arange(float(np.prod(shape))).reshape(shape)
    part, error = attempt(lambda: t[index])
    if part is not None and part.numel() == 0:  # PyTorch does not look at indices then
        return
    _, ours = attempt(lambda: convert.Converter().tensor(t)[converted(index, "numpy")])
    assert type(ours) is type(error), (error, ours)
    assert without_which(ours) == without_which(error)


def without_which(error) -> str:
    """The message, but not which index is out of bounds: of several, each library finds another one first."""
    return "out of bounds" if "is out of bounds" in str(error) else str(error)


setitem_cases = given(
    case=cases(), kind=st.sampled_from(["number", "whole", "ones", "mismatch", "double"]), in_graph=st.booleans()
)


@examples(200)
@setitem_cases
def test_setitem(case, kind, in_graph):
    check_setitem("numpy", case, kind, in_graph)


@examples(15)
@setitem_cases
def test_setitem_on_xla(case, kind, in_graph):
    check_setitem("xla", case, kind, in_graph)


def check_setitem(engine, case, kind, in_graph):
    shape, index = case
    t = torch.arange(float(np.prod(shape))).reshape(shape).requires_grad_(in_graph)
    make = convert.Converter(xla=engine == "xla")
    r = make.tensor(t)
    part, error = attempt(lambda: t[index])
    if error is not None or has_repeats(part):  # which of several values for one place wins is not defined
        return
    value = {
        "number": lambda: 2.5,
        "whole": lambda: torch.full(part.shape, 3.0).mul_(torch.rand(())).requires_grad_(),
        "ones": lambda: torch.full((1, *part.shape[-1:]), 0.5),
        "mismatch": lambda: torch.ones(7, 5),
        "double": lambda: torch.ones(part.shape, dtype=torch.float64),
    }[kind]()
    target, target_r = t * 1.0, r * 1.0
    value_r = make(value)
    _, error = attempt(lambda: target.__setitem__(index, value))
    _, ours = attempt(lambda: target_r.__setitem__(converted(index, engine), value_r))
    assert type(ours) is type(error), (error, ours)
    np.testing.assert_array_equal(target_r.detach().cpu().numpy(), target.detach().numpy())
    assert target_r._version == target._version
    if error is not None:
        assert str(ours).split("Target")[0] == str(error).split("Target")[0]
        return
    assert target_r.requires_grad == target.requires_grad
    if target.requires_grad:
        (target * target).sum().backward()
        (target_r * target_r).sum().backward()
        for a, e in ((r, t), (value_r, value)):
            if isinstance(e, torch.Tensor) and e.grad is not None:
                np.testing.assert_allclose(a.grad.cpu().numpy(), e.grad.numpy(), rtol=1e-6)


def has_repeats(part) -> bool:
    return len(set(part.detach().reshape(-1).tolist())) < part.numel()


@st.composite
def along(draw):
    """A tensor's shape, a dimension, and an index tensor for gather and scatter."""
    shape = draw(SHAPES)
    dim = draw(st.integers(0, len(shape) - 1))
    size = [draw(st.integers(1, 5)) if d == dim else draw(st.integers(1, n)) for d, n in enumerate(shape)]
    flat = draw(st.lists(st.integers(0, shape[dim] - 1), min_size=int(np.prod(size)), max_size=int(np.prod(size))))
    return shape, dim, torch.tensor(flat).reshape(size)


FAMILY = {
    "gather": lambda t, dim, index, src: t.gather(dim, index),
    "scatter_add": lambda t, dim, index, src: t.scatter_add(dim, index, src),
    "sum": lambda t, dim, index, src: t.scatter_reduce(dim, index, src, "sum", include_self=False),
    "mean": lambda t, dim, index, src: t.scatter_reduce(dim, index, src, "mean"),
    "prod": lambda t, dim, index, src: t.scatter_reduce(dim, index, src, "prod"),
    "amax": lambda t, dim, index, src: t.scatter_reduce(dim, index, src, "amax", include_self=False),
    "amin_": lambda t, dim, index, src: (t * 1.0).scatter_reduce_(dim, index, src, "amin"),
    "scatter_": lambda t, dim, index, src: (t * 1.0).scatter_(dim, index, 0.5),
}


gather_and_scatter_cases = given(case=along(), name=st.sampled_from(sorted(FAMILY)))


@examples(80)
@gather_and_scatter_cases
def test_gather_and_scatter(case, name):
    check_gather_and_scatter("numpy", case, name)


@examples(10)
@gather_and_scatter_cases
def test_gather_and_scatter_on_xla(case, name):
    check_gather_and_scatter("xla", case, name)


def check_gather_and_scatter(engine, case, name):
    shape, dim, index = case
    generator = torch.Generator().manual_seed(0)
    t = torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
    src = torch.randn(index.shape, generator=generator, dtype=torch.float64).requires_grad_()
    make = convert.Converter(xla=engine == "xla")
    ours = [make(v) for v in (t, index, src)]
    expected, actual = FAMILY[name](t, dim, index, src), FAMILY[name](ours[0], dim, *ours[1:])
    np.testing.assert_allclose(actual.detach().cpu().numpy(), expected.detach().numpy())
    assert actual.grad_fn.name() == expected.grad_fn.name()
    (expected * expected).sum().backward()
    (actual * actual).sum().backward()
    for a, e in ((ours[0], t), (ours[2], src)):
        assert (a.grad is None) == (e.grad is None)
        if e.grad is not None:
            np.testing.assert_allclose(a.grad.cpu().numpy(), e.grad.numpy(), atol=1e-12)


X, L = torch.arange(12.0).reshape(3, 4), torch.tensor
FAILURES = {
    "gather": lambda t, c: t.gather(0, c(L([[5]]))),
    "gather negative": lambda t, c: t.gather(0, c(L([[-1]]))),
    "gather rank": lambda t, c: t.gather(0, c(L([0]))),
    "gather dtype": lambda t, c: t.gather(0, c(L([[0.0]]))),
    "gather size": lambda t, c: t.gather(0, c(torch.zeros(1, 5, dtype=torch.int64))),
    "scatter": lambda t, c: t.scatter(0, c(L([[5]])), 1.0),
    "scatter dtype": lambda t, c: t.scatter(0, c(L([[1]])), c(torch.ones(1, 1).double())),
    "scatter size": lambda t, c: t.scatter(0, c(torch.zeros(2, 2, dtype=torch.int64)), c(torch.ones(1, 1))),
    "scatter value size": lambda t, c: t.scatter(0, c(torch.zeros(1, 5, dtype=torch.int64)), 1.0),
    "scatter_reduce": lambda t, c: t.scatter_reduce(0, c(L([[0]])), t, "foo"),
    "index_select": lambda t, c: t.index_select(0, c(L([5]))),
    "index_select rank": lambda t, c: t.index_select(0, c(L([[1]]))),
    "index_select dtype": lambda t, c: t.index_select(0, c(L([1.0]))),
    "index_add": lambda t, c: t.index_add(0, c(L([5])), t[:1]),
    "index_add count": lambda t, c: t.index_add(0, c(L([0, 1])), t[:1]),
    "index_add dtype": lambda t, c: t.index_add(0, c(L([0])), t[:1].double()),
    "index_fill": lambda t, c: t.index_fill(0, c(L([5])), 1.0),
    "take": lambda t, c: t.take(c(L([20]))),
    "take dtype": lambda t, c: t.take(c(L([1.0]))),
    "put": lambda t, c: t.put(c(L([1])), c(L([1.0, 2.0]))),
    "masked_select": lambda t, c: t.masked_select(c(L([1, 0, 1, 1]))),
    "masked_scatter": lambda t, c: t.masked_scatter(t > 2, c(torch.ones(2))),
    "repeat_interleave": lambda t, c: t.repeat_interleave(c(L([1, 2])), 0),
    "take_along_dim": lambda t, c: t.take_along_dim(c(L([0])), 0),
    "index_put": lambda t, c: t.index_put((c(L([0])),), c(L(1.0).double())),
    "float index": lambda t, c: t[1.5],
    "dict index": lambda t, c: t[{}],
    "string index": lambda t, c: t["a"],
    "backwards": lambda t, c: t[::-1],
    "zero step": lambda t, c: t[::0],
    "0-dim": lambda t, c: t.sum()[0],
    "assign list": lambda t, c: t.__setitem__(0, [1, 2, 3, 4]),
    "assign text": lambda t, c: t.__setitem__(0, "a"),
    "assign complex": lambda t, c: t.__setitem__(0, 1j),
    "assign None": lambda t, c: t.__setitem__(0, None),
}


@pytest.mark.parametrize("name", FAILURES)
def test_errors_are_pytorchs(name):
    make = convert.Converter()
    ours = make.tensor(X)
    with pytest.raises(Exception) as expected:
        FAILURES[name](X.clone(), lambda v: v)
    with pytest.raises(type(expected.value)) as actual:
        FAILURES[name](ours, make)
    assert str(actual.value) == str(expected.value)
    np.testing.assert_array_equal(ours.numpy(), X.numpy())


def test_where_with_one_argument_is_nonzero():
    t = torch.tensor([[0, 1], [2, 0]])
    for a, e in zip(rushlight.where(convert.Converter().tensor(t)), torch.where(t), strict=True):
        assert a.tolist() == e.tolist()


@pytest.mark.parametrize(
    "boundaries", [[2.0, 1.0, 3.0], [float("nan")], [0.0, float("nan"), 1.0], [3.0, 2.0, 1.0, 0.0]]
)
@pytest.mark.parametrize("right", [False, True])
def test_boundaries_in_no_order_are_halved_as_in_pytorch(boundaries, right):
    values = [-1.0, 0.0, 1.0, 1.5, 2.0, 4.0, float("nan")]
    theirs, ours = (
        library.searchsorted(library.tensor(boundaries), library.tensor(values), right=right).tolist()
        for library in (torch, rushlight)
    )
    assert ours == theirs
