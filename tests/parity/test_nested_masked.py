"""Nested and masked tensors beside PyTorch's: values, printing, errors, gradients."""

import re
import warnings

import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")


def both(function):
    """What ``function(module)`` gives here and there, as text; of an error its type."""
    results = []
    for module in (rushlight, torch):
        module.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results.append(plain(function(module)))
            except Exception as error:
                results.append(type(error))
    return results


def plain(value) -> str:
    """Text without what differs by intent: the names of nodes, the numbers of the ragged sizes."""
    text = re.sub(r",?\s*grad_fn=<[^>]*>", "", repr(value))
    return re.sub(r"\bj\d+", "j", text)


def nested(m, requires_grad=False):
    return m.nested.nested_tensor(
        [m.arange(8.0).reshape(2, 4).sin(), m.arange(12.0).reshape(3, 4).cos()],
        layout=m.jagged,
        requires_grad=requires_grad,
    )


def shown(nt):
    return nt, nt.shape, list(nt.unbind())


def strided(m, requires_grad=False):
    parts = [m.arange(12.0).reshape(2, 6).sin(), m.arange(18.0).reshape(3, 6).cos()]
    return m.nested.nested_tensor(parts, requires_grad=requires_grad)


def heads(nt):
    return nt.reshape(2, -1, 2, 3).transpose(1, 2)


def attended(m, nt):
    """As PyTorch's tutorial of nested tensors does it."""
    q = heads(nt)
    scores = m.matmul(q / 2, q.transpose(-2, -1))
    return m.matmul(m.nn.functional.dropout(m.softmax(scores, -1), 0.5), q).transpose(1, 2).reshape(2, -1, 6)


def gradients(m, nt):
    weight = m.ones(2, 6, requires_grad=True)
    m.nested.to_padded_tensor(m.nn.functional.linear(nt, weight).relu() * 2, 0.0).sum().backward()
    return nt.grad, weight.grad


def of_a_list(m):
    a, b = m.ones(2, 3, requires_grad=True), m.ones(1, 2, requires_grad=True)
    (m.nested.as_nested_tensor([a, b]) * 3).to_padded_tensor(0.0).sum().backward()
    return a.grad, b.grad


STRIDED = {
    "print": lambda m, n: (n, n.layout, n.is_nested, n.size(0), n.size(2), n.dim(), n.dtype, n.numel()),
    "irregular": lambda m, n: n.size(1),
    "no shape": lambda m, n: n.shape,
    "index": lambda m, n: (n[0], n[0, 0], n[-1, :, 1:3], n.select(0, 1), n.unbind()),
    "out of range": lambda m, n: n[5],
    "padded": lambda m, n: (n.to_padded_tensor(-1.0), m.nested.to_padded_tensor(n, 0.0, (2, 4, 7))),
    "cut": lambda m, n: n.to_padded_tensor(0.0, (2, 2, 7)),
    "arithmetic": lambda m, n: (n * 2 + n - 1) / m.tensor(3.0),
    "with a row": lambda m, n: n + m.ones(6),
    "transpose": lambda m, n: (n.transpose(1, 2), n.transpose(1, 2).is_contiguous(), n.transpose(1, 2).contiguous()),
    "transpose of examples": lambda m, n: n.transpose(0, 1),
    "reshape": lambda m, n: (heads(n), n.view(2, -1, 3, 2), n.unsqueeze(1), n.chunk(2, -1)),
    "other examples": lambda m, n: n.view(-1),
    "linear": lambda m, n: m.nn.Linear(6, 2)(n),
    "softmax": lambda m, n: (m.softmax(n, -1), n.softmax(1)),
    "products": lambda m, n: (m.matmul(n, n.transpose(1, 2)), m.bmm(n, n.transpose(1, 2))),
    "product with a matrix": lambda m, n: m.matmul(n, m.ones(6, 2)),
    "dropout": lambda m, n: m.nn.functional.dropout(n, 0.5),
    "activations": lambda m, n: (n.relu(), m.nn.functional.gelu(n), n.abs()),
    "layer_norm": lambda m, n: m.nn.LayerNorm(6)(n),
    "attention": attended,
    "fused attention": lambda m, n: m.nn.functional.scaled_dot_product_attention(*[heads(n).contiguous()] * 3),
    "sums": lambda m, n: n.sum(-1, keepdim=True),
    "sum of another": lambda m, n: n.sum(1, keepdim=True),
    "copies": lambda m, n: (n.clone(), n.detach(), n.to(m.float64), m.ones_like(n), m.cat([n, n])),
    "in place": lambda m, n: (n.add_(1), n.mul_(2), n.fill_(3.0)),
    "other lists": lambda m, n: m.nested.nested_tensor([[1.0, 2.0], [3.0]]),
    "none": lambda m, n: m.nested.nested_tensor([]),
    "of different dimensions": lambda m, n: m.nested.nested_tensor([m.ones(2), m.ones(2, 2)]),
    "of different sizes": lambda m, n: m.nested.nested_tensor([m.ones(2, 3), m.ones(3, 2)]),
    "leaf": lambda m, n: (strided(m, True), strided(m, True) * 2),
    "gradients": lambda m, n: gradients(m, strided(m, True)),
    "gradients of a list": lambda m, n: of_a_list(m),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided(name):
    ours, theirs = both(lambda m: STRIDED[name](m, strided(m)))
    assert ours == theirs


NESTED = {
    "print": lambda m, n: (n, n.shape, n.size(1), n.stride(), n.dim(), n.layout, n.numel(), len(n)),
    "parts": lambda m, n: (n.values(), n.offsets(), n.lengths(), n._min_seqlen, n._max_seqlen),
    "index": lambda m, n: (n[0], n[-1], n[1, 2], n.select(0, 1)),
    "out of range": lambda m, n: n[5],
    "slice of examples": lambda m, n: n[0:1],
    "last": lambda m, n: shown(n[..., 1]),
    "padded": lambda m, n: (n.to_padded_tensor(-1.0), m.nested.to_padded_tensor(n, 0.0, output_size=(2, 5, 4))),
    "cut": lambda m, n: n.to_padded_tensor(0.0, (2, 2, 4)),
    "arithmetic": lambda m, n: shown((n * 2 + n - 1) / 3),
    "reflected": lambda m, n: shown(2**n),
    "with a row": lambda m, n: shown(n + m.arange(4.0)),
    "with a row for each": lambda m, n: shown(n * m.arange(8.0).reshape(2, 1, 4)),
    "with padded": lambda m, n: shown(n * m.arange(24.0).reshape(2, 3, 4)),
    "other offsets": lambda m, n: n + nested(m),
    "compare": lambda m, n: shown(n > 0),
    "where": lambda m, n: shown(m.where(n > 0, n, 0.0)),
    "activations": lambda m, n: [shown(f(n)) for f in (m.relu, m.sigmoid, m.nn.functional.gelu, m.nn.functional.silu)],
    "in place": lambda m, n: shown(n.add_(1).mul_(2)),
    "set": lambda m, n: (n.__setitem__(0, 1.0), shown(n)),
    "sums": lambda m, n: (n.sum(), n.sum(1), n.sum(1, keepdim=True), n.sum((0, 1)), shown(n.sum(-1))),
    "means": lambda m, n: (n.mean(), n.mean(1), n.mean((0, 1)), shown(n.mean(-1, keepdim=True))),
    "extremes": lambda m, n: (n.amax(1), n.amin(1), n.max(1), n.min(1), n.argmax(1), n.max(), shown(n.amax(-1))),
    "products": lambda m, n: (n.prod(1), (n > 0).all(1), (n > 0).any(1)),
    "sum of examples": lambda m, n: n.sum(0),
    "sum of ragged and more": lambda m, n: n.sum((1, 2)),
    "softmax": lambda m, n: (shown(n.softmax(-1)), shown(n.softmax(1)), shown(n.log_softmax(-1))),
    "softmax of examples": lambda m, n: n.softmax(0),
    "shapes": lambda m, n: [shown(n.unflatten(-1, [2, 2]).transpose(1, 2)), shown(n.view(2, -1, 2, 2).flatten(-2))],
    "turned": lambda m, n: shown(n.transpose(1, 2).contiguous()),
    "turned examples": lambda m, n: n.transpose(0, 1),
    "permute": lambda m, n: shown(n.permute(0, 2, 1)),
    "flat": lambda m, n: n.view(-1),
    "flatten ragged": lambda m, n: n.flatten(1, 2),
    "unsqueeze": lambda m, n: (shown(n.unsqueeze(1)), shown(n.unsqueeze(-1).squeeze(-1))),
    "chunks": lambda m, n: [shown(c) for c in (*n.chunk(2, -1), *n.split([1, 3], -1), *n.chunk(2))],
    "chunk ragged": lambda m, n: n.chunk(2, 1),
    "join": lambda m, n: (shown(m.cat([n, n], -1)), shown(m.stack([n, n], -1))),
    "join examples": lambda m, n: m.cat([n, n]),
    "linear": lambda m, n: shown(m.nn.Linear(4, 2)(n)),
    "linear of turned": lambda m, n: m.nn.Linear(4, 2)(n.transpose(1, 2)),
    "norms": lambda m, n: (shown(m.nn.LayerNorm(4)(n)), shown(m.nn.functional.rms_norm(n, (4,)))),
    "matmul": lambda m, n: (shown(n @ m.ones(4, 3)), shown(n @ m.ones(2, 4, 3)), n.transpose(1, 2) @ n),
    "matmul twice ragged": lambda m, n: n @ n.transpose(1, 2),
    "dtypes": lambda m, n: (shown(n.double()), shown(n.to(m.float16)), n.is_floating_point()),
    "like": lambda m, n: (shown(m.ones_like(n)), m.rand_like(n).shape, shown(m.full_like(n, 2.0))),
    "numpy": lambda m, n: n.numpy(),
    "list": lambda m, n: n.tolist(),
    "truth": lambda m, n: bool(n),
    "cumsum": lambda m, n: n.cumsum(1),
    "sort": lambda m, n: n.sort(),
    "unbind ragged": lambda m, n: n.unbind(1),
    "layer of attention": lambda m, n: m.nn.MultiheadAttention(4, 2, batch_first=True)(n, n, n),
    "list of lists": lambda m, n: shown(m.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=m.jagged)),
    "another ragged": lambda m, n: shown(m.nested.nested_tensor([m.ones(2, 2), m.ones(2, 3)], layout=m.jagged)),
    "of a tensor": lambda m, n: shown(m.nested.as_nested_tensor(m.ones(2, 3), layout=m.jagged)),
    "other dims": lambda m, n: m.nested.nested_tensor([m.ones(2), m.ones(2, 3)], layout=m.jagged),
    "other dtypes": lambda m, n: m.nested.as_nested_tensor([m.ones(2), m.ones(2).int()], layout=m.jagged),
    "nothing": lambda m, n: m.nested.nested_tensor([], layout=m.jagged),
    "scalars": lambda m, n: m.nested.nested_tensor([m.tensor(1.0)], layout=m.jagged),
    "layout": lambda m, n: m.nested.nested_tensor([m.ones(2)], layout=m.sparse_coo),
    "lengths": lambda m, n: shown(m.nested.nested_tensor_from_jagged(m.arange(6.0), lengths=m.tensor([2, 4]))),
    "gaps": lambda m, n: [shown(g) for g in (gaps(m), gaps(m) + 1, gaps(m).contiguous())],
    "gaps padded": lambda m, n: gaps(m).to_padded_tensor(0.0),
    "no offsets": lambda m, n: m.nested.nested_tensor_from_jagged(m.arange(6.0)),
    "narrow": lambda m, n: shown(
        m.nested.narrow(m.arange(20.0).reshape(2, 10), 1, m.tensor([0, 1]), m.tensor([3, 4]), layout=m.jagged)
    ),
    "select": lambda m, n: shown(m.nested.masked_select(m.arange(6.0).reshape(2, 3), m.arange(6).reshape(2, 3) != 1)),
}  # fmt: skip


def gaps(m):
    return m.nested.nested_tensor_from_jagged(m.arange(6.0), m.tensor([0, 2, 6]), lengths=m.tensor([1, 2]))


@pytest.mark.parametrize("name", NESTED)
def test_nested(name):
    ours, theirs = both(lambda m: NESTED[name](m, nested(m)))
    assert ours == theirs


def test_gradients_of_nested_leaves():
    def run(m):
        n = nested(m, requires_grad=True)
        weight = m.nn.Linear(4, 3)
        loss = (weight(n).tanh() * 2).sum()
        (found,) = m.autograd.grad(loss, n, retain_graph=True)
        loss.backward()
        return n, n.is_leaf, n.grad, n.grad.values(), found.values(), weight.weight.grad

    ours, theirs = both(run)
    assert ours == theirs


def test_gradients_reach_what_a_nested_tensor_is_made_of():
    def run(m):
        x, y = m.arange(8.0).reshape(2, 4).requires_grad_(), m.ones(3, 4, requires_grad=True)
        n = m.nested.as_nested_tensor([x, y], layout=m.jagged)
        (n.to_padded_tensor(0.0) ** 2).sum().backward()
        return n.is_leaf, x.grad, y.grad

    ours, theirs = both(run)
    assert ours == theirs


def test_attention_of_nested_is_that_of_each_example():
    def heads(t):
        return t.unflatten(-1, [2, 2]).transpose(1, 2)

    def run(m):
        q, k = nested(m, requires_grad=True), nested(m)
        k = m.nested.nested_tensor_from_jagged(k.values() * 2, q.offsets())
        made = m.nn.functional.scaled_dot_product_attention(heads(q), heads(k), heads(k))
        flat = made.transpose(1, 2).flatten(-2)
        flat.sum().backward()
        return made.shape, flat, flat.values().detach(), q.grad.values()

    ours, theirs = both(run)
    assert ours == theirs


def test_attention_refuses_what_is_not_nested_and_masks():
    def run(attend):
        return both(lambda m: attend(m, nested(m).unflatten(-1, [2, 2]).transpose(1, 2), m.ones(2, 2, 3, 2)))

    call = lambda m, *args, **kwargs: m.nn.functional.scaled_dot_product_attention(*args, **kwargs)
    assert run(lambda m, n, d: call(m, n, d, d)) == [ValueError, ValueError]
    assert run(lambda m, n, d: call(m, n, n, n, attn_mask=m.ones(3, 3))) == [ValueError, ValueError]
    assert both(lambda m: call(m, nested(m), nested(m), nested(m))) == [RuntimeError, RuntimeError]


DATA, MASK = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[True, False, True], [False, False, True]]
MASKED = {
    "print": lambda m, a: (a, a.shape, a.dtype, a.requires_grad, m.masked.is_masked_tensor(a)),
    "parts": lambda m, a: (a.get_data(), a.get_mask(), a.to_tensor(-1.0)),
    "of numbers": lambda m, a: m.masked.masked_tensor(m.tensor([1, 20, 3]), m.tensor([True, False, True])),
    "of one": lambda m, a: (m.masked.masked_tensor(m.tensor(3.0), m.tensor(False)), a[0, 0]),
    "unary": lambda m, a: (a.sin(), m.exp(a), -a, abs(a), a.sqrt(), a.sigmoid(), a.round(), a.log(), a.isnan()),
    "binary": lambda m, a: (a + a, a * 2, a / 3, a - 1, a**2, a > 2, a == a, m.maximum(a, a), m.atan2(a, a)),
    "with a plain one": lambda m, a: (a + m.ones(2, 3), m.ones(2, 3) * a),
    "other mask": lambda m, a: a + m.masked.masked_tensor(m.ones(2, 3), m.ones(2, 3).bool()),
    "in place": lambda m, a: (a.add_(1), a.sin_()),
    "reductions": lambda m, a: (a.sum(), a.mean(), a.prod(), a.amax(), a.amin(), a.argmax(), a.argmin(), a.std()),
    "by dim": lambda m, a: (a.sum(0), a.mean(1), a.amax(0), a.argmin(1), a.var(1), a.sum(1, keepdim=True)),
    "dims": lambda m, a: a.sum((0, 1)),
    "all": lambda m, a: ((a > 0).all(), (a > 1).all(1)),
    "softmax": lambda m, a: (a.softmax(1), m.nn.functional.softmax(a, 0)),
    "moves": lambda m, a: (a[0], a[:, 1], a.view(3, 2), a.reshape(-1), a.t(), a.unsqueeze(0), a.flatten(), a.chunk(2)),
    "join": lambda m, a: (m.cat([a, a]), m.stack([a, a]), a[0].expand(2, 3)),
    "chosen": lambda m, a: a[m.tensor(MASK)],
    "copies": lambda m, a: (a.clone(), a.detach(), a.double(), m.ones_like(a), a.contiguous(), a.to(m.int64)),
    "where": lambda m, a: m.where(m.tensor(MASK), a, m.masked.masked_tensor(m.ones(2, 3), ~m.tensor(MASK))),
    "number": lambda m, a: a.sum().item(),
    "asked": lambda m, a: (len(a), a.size(), a.dim(), a.numel(), a.is_contiguous(), a.device),
    "shapes": lambda m, a: m.masked.masked_tensor(m.ones(3), m.ones(2).bool()),
    "mask of numbers": lambda m, a: m.masked.masked_tensor(m.ones(3), m.ones(3)),
    "lists": lambda m, a: m.masked.masked_tensor([1.0], m.ones(1).bool()),
    "twice": lambda m, a: m.masked.masked_tensor(a, m.tensor(MASK)),
    "complex": lambda m, a: m.masked.masked_tensor(m.ones(2) * 1j, m.ones(2).bool()),
    "refused": lambda m, a: m.nn.Linear(3, 2)(a),
    "product": lambda m, a: a @ a.t(),
    "numpy": lambda m, a: a.numpy(),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKED)
def test_masked(name):
    ours, theirs = both(lambda m: MASKED[name](m, m.masked.masked_tensor(m.tensor(DATA), m.tensor(MASK))))
    assert ours == theirs


def test_gradients_of_masked_tensors():
    """The two cases for which they were made: ``where`` before an overflow, and 0 divided by 0."""

    def run(m):
        x = m.tensor([-10.0, -5.0, 0.0, 5.0, 100.0])
        low = m.masked.masked_tensor(x, x < 0, requires_grad=True)
        one = m.masked.masked_tensor(m.ones_like(x), x >= 0, requires_grad=True)
        chosen = m.where(x < 0, m.exp(low), one)
        chosen.sum().backward()
        mask = m.tensor([True, False])
        top = m.masked.masked_tensor(m.tensor([2.0, 0.0]), mask, requires_grad=True)
        part = top / m.masked.as_masked_tensor(m.tensor([1.0, 0.0]), mask)
        (found,) = m.autograd.grad(part.sum(), top)
        return chosen, low.grad, one.grad, part, found

    ours, theirs = both(run)
    assert ours == theirs
