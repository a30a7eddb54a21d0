"""Random programs of views and in-place ops, run by PyTorch and both engines: values, versions, strides, gradients."""

from __future__ import annotations

import convert
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.engine.xla import namespace as xla

ENGINES = pytest.mark.parametrize("engine", ["numpy", "xla"])


def examples(count):
    return settings(max_examples=count, deadline=None, derandomize=True)


# Each entry is f(tensor, a, b) with small non-negative integers a and b, and works on either library's tensors.
VIEWS = {
    "select": lambda t, a, b: t.select(a % t.ndim, b % t.shape[a % t.ndim]),
    "index": lambda t, a, b: t[a % t.shape[0]],
    "slice": lambda t, a, b: t[a % 2 :: 1 + b % 2],
    "last": lambda t, a, b: t[..., a % 2 :],
    "new": lambda t, a, b: t[:, None],
    "narrow": lambda t, a, b: t.narrow(a % t.ndim, b % t.shape[a % t.ndim], 1),
    "transpose": lambda t, a, b: t.transpose(a % t.ndim, b % t.ndim),
    "t": lambda t, a, b: t.t(),
    "permute": lambda t, a, b: t.permute(tuple(range(t.ndim))[::-1]),
    "view": lambda t, a, b: t.view(-1),
    "reshape": lambda t, a, b: t.reshape(-1, t.shape[a % t.ndim]),
    "flatten": lambda t, a, b: t.flatten(),
    "unsqueeze": lambda t, a, b: t.unsqueeze(a % (t.ndim + 1)),
    "squeeze": lambda t, a, b: t.squeeze(),
    "expand": lambda t, a, b: t.expand(2, *t.shape),
    "diagonal": lambda t, a, b: t.diagonal(a - 1),
    "unfold": lambda t, a, b: t.unfold(0, 1 + a % t.shape[0], 1 + b % 2),
    "unbind": lambda t, a, b: t.unbind(a % t.ndim)[0],
    "split": lambda t, a, b: t.split(1 + a % 2)[-1],
    "chunk": lambda t, a, b: t.chunk(2)[0],
    "detach": lambda t, a, b: t.detach(),
    "alias": lambda t, a, b: t[...],
    "movedim": lambda t, a, b: t.movedim(0, -1),
}
WRITES = {
    "mul_": lambda t, a, b: t.mul_(1 + a),
    "add_": lambda t, a, b: t.add_(b - 1.5),
    "square_": lambda t, a, b: t.mul_(t),
    "sigmoid_": lambda t, a, b: t.sigmoid_(),
    "exp_of_itself": lambda t, a, b: t.copy_(t.exp().clamp(max=9.0)),
    "setitem": lambda t, a, b: t.__setitem__(a % t.shape[0], 0.5 * b),
    "setitem_row": lambda t, a, b: t.__setitem__(0, t[-1]),
    "setitem_mask": lambda t, a, b: t.__setitem__(t > 1, 0.25),
    "setitem_list": lambda t, a, b: t.__setitem__([a % t.shape[0], 0], 2.0),
    "t_": lambda t, a, b: t.t_(),
    "unsqueeze_": lambda t, a, b: t.unsqueeze_(a % (t.ndim + 1)),
    "squeeze_": lambda t, a, b: t.squeeze_(),
}
READS = {
    "times": lambda t, a, b: t * (a + 0.5),
    "product": lambda t, a, b: t * t,
    "clone": lambda t, a, b: t.clone(),
}
STEPS = VIEWS | WRITES | READS

steps = st.lists(
    st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 5), st.integers(0, 3), st.integers(0, 3)), max_size=9
)


programs = given(program=steps, shape=st.sampled_from([(2, 3), (3, 1), (4,), (2, 2, 3)]), grad=st.booleans())


@examples(200)
@programs
def test_random_programs(program, shape, grad):
    check_program("numpy", program, shape, grad)


@examples(12)
@programs
def test_random_programs_on_xla(program, shape, grad):
    check_program("xla", program, shape, grad)


def check_program(engine, program, shape, grad):
    expected = run(torch, torch.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 4, program, grad)
    ours = rushlight.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 4
    if engine == "xla":
        ours = convert.Converter(xla=True).tensor(torch.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 4)
    actual = run(rushlight, ours, program, grad)
    assert actual["errors"] == expected["errors"]
    for i, (a, e) in enumerate(zip(actual["pool"], expected["pool"], strict=True)):
        assert tuple(a.shape) == tuple(e.shape), i
        np.testing.assert_allclose(a.detach().cpu().numpy(), e.detach().numpy(), rtol=1e-5, err_msg=str(i))
        assert a.requires_grad == e.requires_grad, i
        assert a._version == e._version, i
        if engine == "numpy":
            assert significant_strides(a) == significant_strides(e), i
        if (
            not stale(e)
            and a.grad_fn is not None
            and not {"t_", "unsqueeze_", "squeeze_"} & {step[0] for step in program}
        ):
            assert a.grad_fn.name().split(":")[-1] == e.grad_fn.name().split(":")[-1], i
    assert actual["backward"] == expected["backward"]
    if expected["grad"] is not None:
        np.testing.assert_allclose(actual["grad"].cpu().numpy(), expected["grad"].numpy(), rtol=1e-4, atol=1e-5)


def stale(t) -> bool:
    """One of several views of a tensor that has been written since: PyTorch refuses to say where it came from."""
    try:
        return t.grad_fn is not None and False
    except RuntimeError:
        return True


def run(library, leaf, program, grad) -> dict:
    """Every step takes a tensor of the pool and adds its result; a step that raises leaves everything as it was."""
    leaf = leaf.requires_grad_(grad)
    pool, errors = [leaf * 1.0], []
    for name, which, a, b in program:
        t = pool[which % len(pool)]
        if stale(t):
            errors.append("stale")
            continue
        if name.startswith("setitem_") and 0 in t.stride():
            continue  # PyTorch warns that this is deprecated, and writes; rushlight refuses
        if name in WRITES and overlapping(t):
            continue  # written several times in PyTorch, once here
        if name in READS and not t.is_contiguous():
            continue  # how the result lies in memory would be a matter of taste
        before = [p.detach().clone() for p in pool]
        try:
            result = STEPS[name](t, a, b)
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError) as error:
            errors.append((name, type(error).__name__, str(error).split("\n")[0][:60]))
            for old, now in zip(before, pool, strict=True):
                assert bool((old == now.detach()).all()), f"{name} raised, but changed a value"
            continue
        if name in VIEWS or name in READS:
            pool.append(result)
    outcome = {"pool": pool, "errors": errors, "backward": None, "grad": None}
    wanted = [p for p in pool if p.requires_grad]
    if wanted:
        try:
            sum((p * p).sum() for p in wanted).backward()
            outcome["grad"] = leaf.grad
        except RuntimeError as error:
            outcome["backward"] = str(error).split(":")[0]
    return outcome


def overlapping(t) -> bool:
    """Do windows share elements?"""
    reach = 1
    for stride, n in sorted((s, n) for n, s in zip(t.shape, t.stride()) if n > 1 and s):
        if stride < reach:
            return True
        reach = stride * n
    return False


def significant_strides(t):
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if 0 not in t.shape else []


@ENGINES
@examples(40)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
    target=st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
def test_reshape_aliases_when_pytorch_does(engine, shape, order, target):
    axes = order.sample(range(len(shape)), len(shape))
    t = torch.arange(float(np.prod(shape))).reshape(shape)
    r = convert.Converter(xla=engine == "xla").tensor(t)
    t, r = t.permute(axes), r.permute(axes)
    target = [*target, -1]
    try:
        expected = t.reshape(target)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as caught:
            r.reshape(target)
        assert str(caught.value) == str(error)
        return
    actual = r.reshape(target)
    np.testing.assert_array_equal(actual.cpu().numpy(), expected.numpy())
    t.mul_(2)
    r.mul_(2)
    np.testing.assert_array_equal(actual.cpu().numpy(), expected.numpy())
    assert outcome(lambda: r.view(target)) == outcome(lambda: t.view(target))


def outcome(function):
    try:
        return tuple(function().shape)
    except RuntimeError as error:
        return str(error)


X = torch.arange(12.0).reshape(3, 4)

FAILURES = {
    "view": lambda t: t.view(5),
    "view two": lambda t: t.view(-1, -1),
    "view negative": lambda t: t.view(-3, 4),
    "reshape": lambda t: t.reshape(-1, 5),
    "permute few": lambda t: t.permute(0),
    "permute twice": lambda t: t.permute(0, 0),
    "expand": lambda t: t.expand(2, 4),
    "expand few": lambda t: t.expand(2),
    "expand new": lambda t: t.expand(-1, 3, 4),
    "narrow": lambda t: t.narrow(0, 2, 5),
    "narrow start": lambda t: t.narrow(0, 9, 1),
    "select": lambda t: t.select(0, 9),
    "transpose": lambda t: t.transpose(0, 5),
    "t": lambda t: t[None].t(),
    "mT": lambda t: t[0].mT,
    "H": lambda t: t[None].H,
    "movedim": lambda t: t.movedim((0, 1), (0,)),
    "unflatten": lambda t: t.unflatten(1, (3, 2)),
    "flatten": lambda t: t.flatten(1, 0),
    "squeeze": lambda t: t.squeeze(5),
    "split": lambda t: t.split(0),
    "split sizes": lambda t: t.split([1, 1]),
    "chunk": lambda t: t.chunk(0),
    "tensor_split": lambda t: t.tensor_split(0),
    "hsplit": lambda t: t.hsplit(3),
    "vsplit": lambda t: t[0].vsplit(2),
    "diagonal": lambda t: t.diagonal(0, 0, 0),
    "unfold": lambda t: t.unfold(0, 5, 1),
    "unfold step": lambda t: t.unfold(0, 2, 0),
    "repeat": lambda t: t.repeat(2),
    "flip": lambda t: t.flip(0, 0),
    "roll": lambda t: t.roll(1, (0, 1)),
    "rot90": lambda t: t.rot90(1, [0, 0]),
    "triu": lambda t: t[0].triu(),
    "as_strided": lambda t: t.as_strided((20,), (1,)),
    "select_scatter": lambda t: t.select_scatter(t[0], 1, 0),
    "write expanded": lambda t: t[0].expand(2, 4).mul_(2),
    "write expanded, detached": lambda t: t.expand(2, 3, 4).detach().neg_(),
    "0-dim unbind": lambda t: t.sum().unbind(),
    "view dtype": lambda t: t[:, :3].view(torch_or_ours(t).float64),
}


def torch_or_ours(t):
    return torch if isinstance(t, torch.Tensor) else rushlight


@ENGINES
@pytest.mark.parametrize("name", FAILURES)
def test_errors_are_pytorchs(engine, name):
    ours = convert.Converter(xla=engine == "xla").tensor(X)
    with pytest.raises(Exception) as expected:
        FAILURES[name](X.clone())
    with pytest.raises(type(expected.value)) as actual:
        FAILURES[name](ours)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]
    np.testing.assert_array_equal(ours.cpu().numpy(), X.numpy())


JOINING_FAILURES = {
    "empty": lambda lib, t: lib.cat([]),
    "rank": lambda lib, t: lib.cat([t, t[0]]),
    "size": lambda lib, t: lib.cat([t, t.t()]),
    "scalar": lambda lib, t: lib.cat([t, t.sum()]),
    "tensor": lambda lib, t: lib.cat(t),
    "number": lambda lib, t: lib.cat((t, 3)),
    "stack": lambda lib, t: lib.stack([t, t[0]]),
    "block_diag": lambda lib, t: lib.block_diag(t[None]),
    "shapes": lambda lib, t: lib.broadcast_shapes((2,), (3,)),
    "broadcast": lambda lib, t: lib.broadcast_tensors(t, t[:2]),
    "cartesian_prod": lambda lib, t: lib.cartesian_prod(t),
    "pad": lambda lib, t: lib.constant_pad_nd(t, (1,)),
}


@pytest.mark.parametrize("name", JOINING_FAILURES)
def test_joining_errors_are_pytorchs(name):
    with pytest.raises(Exception) as expected:
        JOINING_FAILURES[name](torch, X)
    with pytest.raises(type(expected.value)) as actual:
        JOINING_FAILURES[name](rushlight, convert.Converter().tensor(X))
    assert str(actual.value) == str(expected.value)


def test_xla_engine_is_there():
    assert convert.Converter(xla=True).tensor(X).device.type == "xla"
    assert xla.is_traced(np.zeros(1)) is False


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, x[0, :1]),
        lambda x: x.__setitem__(slice(None), x[1:2]),
        lambda x: x.__setitem__(0, x.as_strided((1,), (1,), 2)),
        lambda x: x.masked_fill_(x > 2, x[1, 1]),
        lambda x: x.copy_(x[1:2]),
        lambda x: x[1:].__setitem__(slice(None), x[:2]),
    ],
)
def test_a_part_of_what_is_written(write):
    outcomes = []
    for library in (rushlight, torch):
        x = library.arange(9.0).reshape(3, 3)
        try:
            write(x)
            outcomes.append(x.tolist())
        except RuntimeError as error:
            outcomes.append(str(error)[:80])
    assert outcomes[0] == outcomes[1]


EMPTY = [
    "zeros(3, 1)",
    "zeros(3, 4)",
    "zeros(0, 3)",
    "zeros(3, 0)",
    "zeros(2, 0, 3)",
    "zeros(2, 3, 4)",
    "zeros(4, 3).t()",
]
CUTS = [
    "[..., 2:]", "[5:]", "[1:]", "[1:, 1:]", "[1]", "[1:1]", "[2:1]", "[:, 1:1]", "[1, 2:]", "[None, ..., 2:]",
    "[..., ::2]", "[:, ::2][:, 2:]", ".narrow(0, 2, 0)", ".narrow(-1, 1, 0)", ".select(0, 1)", ".t()", ".mT",
    ".transpose(0, 1)", "[..., 2:].t()", "[..., 2:][1:]", "[..., 2:].unsqueeze(0)", ".split([2, 1])[1]",
    ".chunk(2)[-1]", ".tensor_split(5)[-1]", ".unbind(0)[1]", "[2:2].view(-1)", ".expand(2, 3, 4)",
    "[..., 2:].expand(2, 3, 0)", ".diagonal(1)", ".diagonal(-5)", ".unfold(-1, 0, 1)", ".squeeze()",
    ".as_strided((0, 3), (7, 2), 2)", "[..., 2:].detach()", ".flatten()[2:2]", "[..., 2:].reshape(-1)",
    ".permute(*range(x.ndim)[::-1])[4:]", "[2:2].contiguous()",
]  # fmt: skip


@pytest.mark.parametrize("base", EMPTY)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_empty_lies_where_it_does(device, base):
    """Shape, strides and offset, also of views without elements."""
    for cut in CUTS:
        assert _lies(rushlight, base, cut, device) == _lies(torch, base, cut, device), cut


def _lies(library, base, cut, device):
    with library.device(device):
        x = eval(f"torch.{base}", {"torch": library})
    try:
        y = eval(f"x{cut}", {"x": x})
    except (RuntimeError, IndexError) as error:
        return type(error).__name__
    return tuple(y.shape), y.stride(), y.storage_offset(), y.is_contiguous()


def test_memory_is_read_from_where_an_empty_part_begins():
    for library in (torch, rushlight):
        x = library.arange(3.0).reshape(3, 1)
        assert x[..., 2:].as_strided((1,), (1,)).tolist() == [1.0]
        assert x.narrow(0, 2, 0).as_strided((1,), (1,)).tolist() == [2.0]
        assert x.requires_grad_()[2:2].as_strided((1,), (1,)).tolist() == [2.0]
