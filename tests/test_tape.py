"""The loop of the backward pass in C does what the one in Python does."""

import gc
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import tape
from rushlight.engine.native import library
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(library is None, reason="there are no kernels")
LOOPS = {"C": tape._run_ready, "Python": None}


@pytest.fixture(params=LOOPS)
def loop(request, monkeypatch):
    monkeypatch.setattr(tape, "_run_ready", LOOPS[request.param])
    if request.param == "Python":
        monkeypatch.setattr(tape, "count_waiting", tape._count_waiting)


def leaves(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def a_network(x, w, b, v):
    h = torch.sigmoid(F.linear(x, w, b))
    return F.mse_loss(F.linear(h * h + h, v), torch.ones(4, 2, dtype=x.dtype))


def one_that_broadcasts(x, w, b, v):
    return ((x[:, :1] * w.sum(0) - b.mean()) / (v.exp() + 1).prod()).sum() + x.std()


def one_of_several_outputs(x, w, b, v):
    top, bottom = x.split(2)
    values, _ = w.sort(dim=1)
    return (top * bottom).sum() + values[0].max() + torch.cat([b, v[0]]).logsumexp(0)


def one_of_fused_ones(x, w, b, v):
    """Whose forwards leave something for backward; with several outputs, of which some, or all, are used."""
    scores = F.layer_norm(F.rms_norm(x, (2,)), (2,), b[:2])
    y, mean, scale = torch.native_layer_norm(w, (2,), None, None, 1e-5)
    largest, _ = F.max_pool1d(v, 2, return_indices=True)
    return F.cross_entropy(scores, torch.tensor([0, 1, 1, 0])) + (y * mean + scale).sum() + largest.sum()


def one_without_elements(x, w, b, v):
    return F.layer_norm(x[:0], (2,), v[0, :2], b[:2]).sum() + (w * w).sum()


def one_that_meets_itself(x, w, b, v):
    y = x
    for _ in range(4):
        y = y + y * x - y
    return (y + w[0]).sum() + b.sum() + (v * v).sum()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        a_network,
        one_that_broadcasts,
        one_of_several_outputs,
        one_of_fused_ones,
        one_without_elements,
        one_that_meets_itself,
    ],
)
def test_both_find_the_same(function, dtype, monkeypatch):
    found = []
    for loop in LOOPS.values():
        monkeypatch.setattr(tape, "_run_ready", loop)
        given = leaves((4, 2), (3, 2), (3,), (2, 3), dtype=dtype)
        for _ in range(2):  # the second time into what is there
            function(*given).backward()
        found.append([t.grad.double().numpy() for t in given])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("create_graph", [False, True])
def test_only_gradients_that_are_asked_for_are_computed(create_graph, loop):
    """A node's hooks see which: None is for an edge that this pass does not go along."""
    x, w, b = leaves((2,), (2,), (2,))
    y, seen = x * w + b, []
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):
        node.register_hook(lambda found, given: seen.append([g is None for g in found]))
    torch.autograd.grad(y.sum(), x, retain_graph=True, create_graph=create_graph)
    assert seen == [[False, True], [False, True]]
    seen.clear()
    torch.autograd.grad(y.sum(), [b, w], create_graph=create_graph)
    assert seen == [[False, False], [True, False]]


@pytest.mark.parametrize("wanted", [[0], [1], [2, 0], [3], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("function", [a_network, one_that_broadcasts, one_of_several_outputs, one_that_meets_itself])
def test_both_find_the_same_of_some(function, wanted, monkeypatch):
    found = []
    for loop in LOOPS.values():
        monkeypatch.setattr(tape, "_run_ready", loop)
        given = leaves((4, 2), (3, 2), (3,), (2, 3))
        inner = given[0] * 2  # wanted, and on the way to another
        loss = function(inner, *given[1:])
        some = torch.autograd.grad(loss, [inner, *[given[i] for i in wanted]], allow_unused=True, retain_graph=True)
        loss.backward(inputs=[given[i] for i in wanted], retain_graph=True)
        found.append([t if t is None else t.numpy() for t in (*some, *[t.grad for t in given])])
        full = torch.autograd.grad(loss, given, allow_unused=True)
        for i, t in zip(wanted, some[1:]):
            np.testing.assert_array_equal(t, full[i])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("network", [a_network, one_of_fused_ones])
def test_the_loop_in_c_does_all_of_a_network(network, monkeypatch):
    """Else it would be tested nowhere: what it does not know is left to Python."""
    left = []

    def counting(ready, *rest):
        turn = LOOPS["C"](ready, *rest)
        left.append(len(ready))
        return turn

    monkeypatch.setattr(tape, "_run_ready", counting)
    network(*leaves((4, 2), (3, 2), (3,), (2, 3))).backward()
    assert left == [0]


def test_two_leaves_do_not_share_a_gradient(loop):
    x, y = leaves((3,), (3,))
    (x + y).backward(torch.ones(3))
    x.grad.add_(1)
    assert y.grad.tolist() == [1, 1, 1]


def test_a_gradient_that_was_given_is_not_taken_over(loop):
    (x,) = leaves((3,))
    given = torch.ones(3)
    (x + 0).backward(given)
    x.grad.add_(1)
    assert given.tolist() == [1, 1, 1]


def test_gradients_lie_as_their_leaves(loop):
    x = torch.randn(3, 4).t().requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride()


def test_a_second_pass_is_refused(loop):
    (x,) = leaves((3,))
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    z = (x * x).sum()
    z.backward(retain_graph=True)
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * x.detach().numpy(), rtol=1e-6)


def test_a_second_pass_through_a_fused_operator_is_refused(loop):
    (x,) = leaves((3, 4))
    y = F.layer_norm(x, (4,)).square().sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert torch.equal(x.grad, first + first)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_what_was_written_since_is_noticed(loop):
    x, w = leaves((3,), (3,))
    a = x * 1
    y = (a * w).sum()
    a.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.backward()
    b = x * 1
    b.add_(1)
    (b * w).sum().backward()  # written before: that is fine
    np.testing.assert_allclose(w.grad.numpy(), x.detach().numpy() + 1, rtol=1e-6)


def test_what_was_detached_since_is_noticed(loop):
    x, w = leaves((3,), (3,))
    a = x * 1
    y = (a * w).sum()
    a.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.backward()


def test_hooks_in_the_middle_are_called(loop):
    x, w = leaves((3,), (3,))
    seen = []
    a = x * w
    a.register_hook(lambda g: seen.append("tensor") or g * 2)
    a.grad_fn.register_prehook(lambda g: seen.append("pre"))
    b = torch.sigmoid(a)
    b.retain_grad()
    x.register_post_accumulate_grad_hook(lambda t: seen.append("leaf"))
    w.register_hook(lambda g: seen.append("w"))
    b.sum().backward()
    assert seen == ["tensor", "pre", "leaf", "w"] and b.grad.tolist() == [1, 1, 1]
    s = torch.sigmoid((x * w).detach())
    np.testing.assert_allclose(x.grad.numpy(), (2 * s * (1 - s) * w.detach()).numpy(), rtol=1e-5)


def test_leaves_that_are_gone_or_frozen_get_nothing(loop):
    x, w = leaves((3,), (3,))
    y = (torch.randn(3).requires_grad_() * x * w).sum()
    gc.collect()
    w.requires_grad_(False)
    y.backward()
    assert x.grad is not None and w.grad is None


def test_an_error_in_a_rule_comes_through(loop):
    x, w = leaves((2, 3), (4, 3))
    y = F.linear(x, w).sum()
    x.data = torch.randn(5, 3)
    with pytest.raises((RuntimeError, ValueError)):
        y.backward()
    assert torch.is_grad_enabled()


def test_threads_bring_all_gradients_to_a_leaf(loop):
    (x,) = leaves((5,))
    threads = [threading.Thread(target=lambda: [(x * 1).sum().backward() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [200] * 5


def test_arrays_that_kernels_must_not_write_or_read_are_refused():
    x, out = np.ones(4, np.float32), np.empty(4, np.float32)
    out.flags.writeable = False
    with pytest.raises(TypeError, match="no writable array in C order"):
        library.relu(x, out)
    out.flags.writeable = True
    with pytest.raises(TypeError, match="no array in C order"):
        library.relu(np.ones(8, np.float32)[::2], out)
    with pytest.raises(TypeError, match="not of dtype"):
        library.relu(x.astype(np.float16), out)
    with pytest.raises(TypeError, match="not of the others"):
        library.relu(x.astype(np.float64), out)
    with pytest.raises(TypeError, match="not of dtype"):
        library.relu(x.astype(">f4"), out)
    library.relu(memoryview(x), out)  # other exporters of buffers are read too
    assert out.tolist() == [1, 1, 1, 1]
