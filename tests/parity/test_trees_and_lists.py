"""What packages use of PyTorch's inner modules: trees of containers, lists of tensors, storages, float8."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
import torch.utils.flop_counter

import rushlight

Pair = namedtuple("Pair", "a b")
TREE = {
    "a": 1, "b": (2, [3, Pair(1, 2)]), "c": None, "d": OrderedDict(x=1), "e": deque([1, 2], maxlen=3),
    "f": defaultdict(list, {"q": 1}),
}  # fmt: skip


class Box:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"Box({self.x})"


for _library in (torch, rushlight):
    _library.utils._pytree.register_pytree_node(Box, lambda b: ([b.x], "context"), lambda c, _: Box(*c))

TREES = [
    "p.tree_flatten(TREE)",
    "p.tree_unflatten(p.tree_leaves(TREE), p.tree_structure(TREE))",
    "[p.tree_flatten(t)[1] for t in (1, (1,), [], {}, Box((1, 2)))]",
    "p.tree_flatten_with_path({'a': 1, 'b': (2, [3, Pair(1, 2)])})[0]",
    "[p.keystr(k) for k, _ in p.tree_leaves_with_path({'a': 1, 'b': (2, [3, Pair(1, 2)])})]",
    "p.treespec_dumps(p.tree_structure({'a': 1, 'b': (2, [3])}))",
    "p.treespec_loads(p.treespec_dumps(p.tree_structure({'a': 1, 'b': (2, [3])})))",
    "p.tree_map(lambda a, b: a, (1, 2), (1,))",
    "p.tree_map(lambda a, b: a, (1, 2), [1, 2])",
    "p.tree_map(lambda a, b: a, {'a': 1}, {'b': 1})",
    "p.tree_map(lambda a, b: (a, b), [1, 2], [(1, 2), {'a': 3}])",
    "p.tree_map(lambda a: a + 1, {'box': Box([1, 2])})",
    "p.tree_unflatten([1], p.tree_structure((1, 2)))",
    "p.register_pytree_node(list, None, None)",
    "p.tree_map_only(int, lambda x: x + 1, [1, 'a', 2.0])",
    "p.tree_map_only(lambda x: x == 1, lambda x: x + 1, [1, 'a', 2.0])",
    "p.tree_map_with_path(lambda k, x, y: (p.keystr(k), x, y), {'a': [1, 2]}, {'a': [3, 4]})",
    "p.tree_flatten(T.zeros(3).shape)",
    "p.tree_flatten(T.max(T.tensor([[1, 2]]), 1))",
    "p.tree_flatten([1, [2]], is_leaf=lambda x: x == [2])",
    "p.tree_flatten_with_path(Box(1))",
    "p.tree_all(lambda x: x > 0, [1, 2]), p.tree_any(lambda x: x > 3, [1, 2])",
    "p._broadcast_to_and_flatten((1, 2), p.tree_structure((1, [2, 3])))",
    "p.treespec_pprint(p.tree_structure({'a': [1, 2]}))",
]
LISTS = [
    "T._foreach_add(a(), 1.0)", "T._foreach_add(a(), a(), alpha=2)", "T._foreach_mul(a(), [2.0, 3.0])",
    "T._foreach_addcmul(a(), a(), a(), 0.5)", "T._foreach_addcmul(a(), a(), a(), [0.5, 2.0])",
    "T._foreach_addcdiv(a(), a(), a(), value=0.5)", "T._foreach_norm(a())", "T._foreach_norm(a(), 1)",
    "T._foreach_lerp(a(), a(), 0.5)", "T._foreach_sqrt(a())", "T._foreach_max(a())", "T._foreach_zero_(a())",
    "T._foreach_clamp_min(a(), 1.5)", "T._foreach_maximum(a(), [1.5, 4.0])", "T._foreach_pow(a(), 2)",
    "T._foreach_pow(2.0, a())", "T._foreach_sub(a(), T.tensor(1.0))", "T._foreach_copy_(a(), a())",
    "T._foreach_sub(a(), a(), alpha=2)", "T._foreach_lerp_(a(), a(), 0.1)", "T._foreach_sign(a())",
    "T._foreach_addcdiv_(a(), a(), a(), [1.0, 2.0])", "T._foreach_norm(a(), ord=1, dtype=T.float64)",
    "T._foreach_add(a(), other=a(), alpha=2)", "T._foreach_mul(a(), scalars=[2.0, 3.0])",
    "T._foreach_lerp(a(), tensors1=a(), weight=0.5)", "T._foreach_pow(a(), exponent=[2.0, 3.0])",
    "T._foreach_addcmul(a(), tensor2=a(), tensor1=a(), scalars=[0.5, 2.0])", "T._foreach_copy_(a(), src=a())",
]  # fmt: skip
GROUPS = [
    "group([a(), a()], with_indices=True)", "group([a(), [None, a()[0]], []])", "group([[None]])",
    "sorted(map(str, group([[T.ones(2), T.ones(1).double(), T.zeros(1)]], True).items()))",
]  # fmt: skip
STORAGES = [
    "T.UntypedStorage(4).nbytes()", "T.UntypedStorage([1, 2, 3])", "T.FloatStorage([1.0, 2.0])",
    "T.TypedStorage([1, 2], dtype=T.int32)", "isinstance(T.zeros(2)._typed_storage(), T.FloatStorage)",
    "T.zeros(3).untyped_storage().fill_(1).tolist()", "T.tensor([1.5, 2.5])._typed_storage().double().tolist()",
    "T.zeros(2).set_(T.FloatStorage([3.0, 4.0]))", "T.LongStorage(2).size()", "T.UntypedStorage(4).resize_(6).size()",
    "T.zeros(2).untyped_storage().copy_(T.ones(2).untyped_storage()).tolist()",
]  # fmt: skip
FLOAT8 = [
    "T.tensor([1.3, -500.0, 0.1, 440.0, float('inf')]).to(T.float8_e4m3fn)",
    "T.tensor([1.3, -500.0, 0.1, 440.0, float('inf')]).to(T.float8_e5m2).float()",
    "T.promote_types(T.float8_e4m3fn, T.float32)",
    "T.finfo(T.float8_e4m3fn)",
    "T.finfo(T.float8_e5m2)",
    "T.ones(2).to(T.float8_e4m3fn).view(T.uint8)",
    "T.ones(2).to(T.float8_e5m2).type()",
    "T.zeros(2, dtype=T.float8_e5m2)",
    "(T.float8_e8m0fnu.is_signed, T.float8_e4m3fn.is_floating_point, T.qint8, T.complex32.is_complex)",
]

OF_FLOAT8 = [  # moved and compared, but hardly computed with
    "x.clone()", "x.t()", "x[0]", "x[i, i]", "x.half()", "x.bool()", "x == x", "x.ne(1)", "T.cat([x, x])", "x.fill_(2)",
    "T.where(x.float() > 2, x, x)", "x.index_select(0, i[0])", "x.masked_select(x.float() > 2)", "x.flip(0)",
    "x.roll(1)", "x.repeat(2, 2)", "x.tolist()", "x[0, 0].item()", "x.abs()", "x.isnan()", "x.any()", "x @ x", "x * x",
    "x.numpy()", "T.full_like(x, 2)", "T.nn.functional.pad(x, (1, 1))", "T.nn.functional.embedding(i, x)",
    "x.unbind()", "x + x", "x - x", "x / x", "x < x", "-x", "x.sum()", "x.mean()", "x.max()", "x.argmax()", "x.sort()",
    "x.cumsum(0)", "x.exp()", "x.sqrt()", "x.relu()", "x.sigmoid()", "x.softmax(0)", "x.clamp(0, 1)", "x.tril()",
    "x.gather(0, i)", "x.scatter(0, i, x)", "x.masked_fill(x.float() > 2, 0)", "x.norm()", "x.unique()",
    "x.logical_not()", "T.rand(2, dtype=x.dtype)", "T.randn(2, dtype=x.dtype)", "x.uniform_()", "x.normal_()",
    "T.isclose(x, x)",
]  # fmt: skip


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_what_serves_float8(name):
    """Kernels are named differently, so of what is refused only the exception counts."""

    def outcome(call, library):
        x = library.tensor([[1.0, 2.0], [4.0, 8.0]]).to(getattr(library, name))
        try:
            return repr(eval(call, {"T": library, "x": x, "i": library.tensor([[0, 1], [1, 0]])}))
        except (RuntimeError, TypeError) as error:
            return type(error).__name__

    different = [call for call in OF_FLOAT8 if outcome(call, rushlight) != outcome(call, torch)]
    assert not different


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("call", TREES + LISTS + GROUPS + STORAGES + FLOAT8)
def test_same_text(call):
    assert outcome(call, rushlight) == outcome(call, torch)


def outcome(call, library):
    def a():
        return [library.tensor([1.0, 2.0]), library.tensor([[3.0]])]

    group = library.utils._foreach_utils._group_tensors_by_device_and_dtype
    names = {"T": library, "group": group, "p": library.utils._pytree, "a": a, "TREE": TREE, "Pair": Pair, "Box": Box}
    try:
        return repr(eval(call, names)).replace("rushlight.", "torch.")
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error).replace("rushlight.", "torch.")


@pytest.mark.parametrize("grads", [True, False])
def test_flop_counts(grads):
    totals = []
    for library in (torch, rushlight):
        nn = library.nn
        model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Flatten(), nn.Linear(4 * 16, 5), nn.ReLU(), nn.Linear(5, 2))
        with library.utils.flop_counter.FlopCounterMode(display=False) as counter:
            y = model(library.ones(2, 3, 5, 5)).sum()
            if grads:
                y.backward()
        totals.append(counter.get_total_flops())
    assert totals[0] == totals[1]
