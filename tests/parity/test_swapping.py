"""``utils.swap_tensors``, and conditions and sizes as functions, beside PyTorch."""

import weakref

import pytest

torch = pytest.importorskip("torch")

import rushlight  # noqa: E402


def values_and_attributes(m):
    a, b = m.ones(2), m.zeros(3, dtype=m.int64)
    a.tag, kept = "a", a
    m.utils.swap_tensors(a, b)
    return [a.tolist(), b.tolist(), hasattr(a, "tag"), b.tag, kept is a, str(a.dtype)]


def classes_and_gradients(m):
    p, b = m.nn.Parameter(m.ones(2)), m.zeros(3)
    (p * 3).sum().backward()
    m.utils.swap_tensors(p, b)
    return [type(b).__name__, type(p).__name__, b.requires_grad, p.requires_grad, b.grad.tolist(), p.grad]


def optimizers_keep_their_parameter(m):
    layer = m.nn.Linear(2, 1, bias=False)
    optimizer = m.optim.SGD(layer.parameters(), lr=0.5)
    m.utils.swap_tensors(layer.weight, m.nn.Parameter(m.ones(3, 2)))
    layer(m.ones(1, 2)).sum().backward()
    optimizer.step()
    return [optimizer.param_groups[0]["params"][0] is layer.weight, layer.weight.tolist()]


def hooks_go_along(m):
    a, b = m.ones(2, requires_grad=True), m.zeros(2, requires_grad=True)
    a.register_hook(lambda g: g * 10)
    m.utils.swap_tensors(a, b)
    (a.sum() + b.sum()).backward()
    return [a.grad.tolist(), b.grad.tolist()]


def results_go_along(m):
    a = m.ones(2, requires_grad=True)
    y, b = a * 2, m.zeros(2)
    m.utils.swap_tensors(y, b)
    b.sum().backward()
    return [y.tolist(), y.requires_grad, a.grad.tolist()]


def a_graph_from_before(m):
    a, b = m.ones(2, requires_grad=True), m.zeros(2)
    y = (a * 2).sum()
    m.utils.swap_tensors(a, b)
    y.backward()


def watched(m):
    a, b = m.ones(2), m.zeros(3)
    held = weakref.ref(b)
    m.utils.swap_tensors(a, b)
    return held


def with_itself(m):
    a = m.ones(2)
    m.utils.swap_tensors(a, a)
    return a.tolist()


CASES = [
    values_and_attributes, classes_and_gradients, optimizers_keep_their_parameter, hooks_go_along, results_go_along,
    a_graph_from_before, watched, with_itself,
]  # fmt: skip
CHECKS = {
    "holds": lambda m: m._check(True),
    "fails": lambda m: m._check(False, lambda: "no"),
    "fails plainly": lambda m: m._check(False),
    "value": lambda m: m._check_value(False, lambda: "v"),
    "index": lambda m: m._check_index(False, lambda: "v"),
    "type": lambda m: m._check_type(False, lambda: "v"),
    "not implemented": lambda m: m._check_not_implemented(False, lambda: "v"),
    "with": lambda m: m._check_with(KeyError, False, lambda: "v"),
    "all": lambda m: m._check_tensor_all(m.tensor([True, False]), lambda: "v"),
    "all with": lambda m: m._check_tensor_all_with(ValueError, m.tensor([True, False]), lambda: "v"),
    "a tensor": lambda m: m._check(m.tensor(True)),
    "numbers": lambda m: m._check_tensor_all(m.tensor([1])),
    "text": lambda m: m._check(False, "text"),
    "sizes": lambda m: [m.sym_int(2.7), m.sym_int(-2.7), m.sym_float(2), m.sym_max(1, 2.0), m.sym_min(3, 2)],
    "more sizes": lambda m: [m.sym_sum([1, 2]), m.sym_not(True), m.sym_ite(True, 1, 2), m.sym_max(3, 1.0)],
    "shape": lambda m: m._shape_as_tensor(m.ones(2, 3)).tolist(),
}


def outcome(function, m):
    try:
        return function(m)
    except Exception as error:
        return type(error), str(error).split(".")[0][:60]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_swapping(case):
    assert outcome(case, rushlight) == outcome(case, torch)


@pytest.mark.parametrize("name", CHECKS)
def test_checks(name):
    assert outcome(CHECKS[name], rushlight) == outcome(CHECKS[name], torch)


def test_a_saved_tensor_that_was_swapped_is_noticed():
    a, x = rushlight.ones(2, requires_grad=True), rushlight.full((2,), 5.0)
    z = (a * x).sum()
    rushlight.utils.swap_tensors(x, rushlight.zeros(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
