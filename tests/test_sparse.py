"""Sparse tensors without an oracle: against their dense selves, on both engines, copied, compiled."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight

rng = np.random.default_rng(0)


def random_sparse(shape=(6, 5), count=12, **kwargs):
    index = np.stack([rng.integers(0, n, count) for n in shape])
    return rushlight.sparse_coo_tensor(index.tolist(), rng.normal(size=count).tolist(), shape, **kwargs)


def same(a, b):
    np.testing.assert_allclose(a.to_dense().tolist(), b.to_dense().tolist(), rtol=1e-5, atol=1e-6)


def test_repeated_places_add_up():
    s = rushlight.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 4.0], (3,))
    assert s.to_dense().tolist() == [3, 4, 0]
    assert s.coalesce().values().tolist() == [3, 4] and s.coalesce().is_coalesced() and not s.is_coalesced()


@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_arithmetic_is_that_of_dense_tensors(convert):
    s, d = getattr(random_sparse(), convert)(), rushlight.randn(5, 3)
    whole = s.to_dense()
    same(s @ d, whole @ d)
    same(s + s, 2 * whole)
    same(s * 2, whole * 2)
    same(s.t(), whole.t())
    same(s @ s.t(), whole @ whole.t())
    same(d.t() @ s.t(), d.t() @ whole.t())
    assert s.sum().item() == pytest.approx(whole.sum().item(), rel=1e-5)


def test_parts():
    s = random_sparse((4, 5, 3), 20)
    whole = s.to_dense()
    for index in (2, -1, (slice(None), 3), (slice(1, 3),), (1, slice(0, 2), 2), (..., 0), rushlight.tensor([3, 0, 3])):
        same(s[index], whole[index])
    with pytest.raises(IndexError, match="out of range"):
        s[4]
    same(rushlight.cat([s, s], 1), rushlight.cat([whole, whole], 1))
    same(s.permute(2, 0, 1), whole.permute(2, 0, 1))
    same(s.sum(1).to_dense(), whole.sum(1))


def test_rows_with_several_columns():
    s = rushlight.randn(4, 3).to_sparse(1)
    assert (s.sparse_dim(), s.dense_dim()) == (1, 1)
    same(s + s, 2 * s.to_dense())
    same(rushlight.sparse.sum(s, 1), s.to_dense().sum(1))


def test_gradients_by_finite_differences():
    index = rushlight.tensor([[0, 1, 1, 0], [1, 0, 2, 1]])

    def product(values, dense):
        return rushlight.sparse_coo_tensor(index, values, (2, 3)) @ dense

    inputs = [rushlight.randn(4, dtype=rushlight.float64), rushlight.randn(3, 2, dtype=rushlight.float64)]
    inputs = [t.requires_grad_() for t in inputs]
    assert rushlight.autograd.gradcheck(product, inputs) and rushlight.autograd.gradgradcheck(product, inputs)
    softmax = lambda v: rushlight.sparse.softmax(rushlight.sparse_coo_tensor(index, v, (2, 3)), 1).to_dense()
    assert rushlight.autograd.gradcheck(softmax, inputs[:1])


def test_a_sparse_leaf_has_a_sparse_gradient():
    a = random_sparse(requires_grad=True)
    rushlight.sparse.mm(a, rushlight.ones(5, 2)).sum().backward()
    assert a.is_leaf and a.grad.layout is rushlight.sparse_coo and a.grad._values().tolist() == [2.0] * 12
    a.grad = None
    assert a.grad is None
    with pytest.raises(RuntimeError, match="gradient of a Sparse tensor"):
        a.grad = rushlight.ones(6, 5)


def test_gradients_of_a_table_meet_dense_ones():
    table = rushlight.nn.Embedding(5, 2, sparse=True)
    read = rushlight.tensor([1, 1, 3])
    (table(read).sum() + (table.weight * 2).sum()).backward()
    assert table.weight.grad.layout is rushlight.strided
    assert table.weight.grad.tolist() == [[2, 2], [4, 4], [2, 2], [3, 3], [2, 2]]
    table.weight.grad = None
    table(read).sum().backward()
    table.weight.sum().backward()
    assert table.weight.grad.tolist() == [[1, 1], [3, 3], [1, 1], [2, 2], [1, 1]]
    scaled = rushlight.nn.functional.embedding(read, table.weight * 3, sparse=True)
    (g,) = rushlight.autograd.grad(scaled.sum(), table.weight)
    assert g.tolist() == [[0, 0], [6, 6], [0, 0], [3, 3], [0, 0]]


def test_hooks_see_the_gradient_of_a_table():
    table = rushlight.nn.Embedding(5, 2, sparse=True)
    seen = []
    table.weight.register_hook(lambda g: seen.append(g.is_sparse))
    table(rushlight.tensor([1])).sum().backward()
    assert seen == [True] and table.weight.grad.is_sparse


def test_clipping():
    table, dense = rushlight.nn.Embedding(5, 2, sparse=True), rushlight.nn.Embedding(5, 2)
    for t in (table, dense):
        (t(rushlight.tensor([[1, 1], [4, 0]])) * 3).sum().backward()
    norms = [rushlight.nn.utils.clip_grad_norm_(t.parameters(), 1.0).item() for t in (table, dense)]
    assert norms[0] == pytest.approx(norms[1])
    same(table.weight.grad, dense.weight.grad)


def test_updates_touch_only_rows_that_were_read():
    for make in (rushlight.optim.SGD, rushlight.optim.Adagrad, rushlight.optim.SparseAdam):
        table = rushlight.nn.Embedding(6, 2, sparse=True)
        before = table.weight.detach().clone()
        optimizer = make(table.parameters(), lr=0.1)
        table(rushlight.tensor([2, 2, 5])).sum().backward()
        optimizer.step()
        changed = (table.weight != before).any(1).tolist()
        assert changed == [False, False, True, False, False, True], make


def test_copies_and_files():
    for s in (random_sparse(), random_sparse().to_sparse_csr(), random_sparse(requires_grad=True)):
        file = io.BytesIO()
        rushlight.save(s, file)
        file.seek(0)
        for other in (copy.deepcopy(s), pickle.loads(pickle.dumps(s)), rushlight.load(file)):
            assert repr(other) == repr(s) and other._values() is not s._values()
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(random_sparse(requires_grad=True) * 2)


def test_a_bad_file():
    from rushlight.io.rebuild import rebuild_sparse_tensor
    from rushlight.io.unpickler import UnpicklingError

    index, values = rushlight.zeros(2, 3).long(), rushlight.zeros(3)
    for parts in ((index, values, (2,), True), (index, values[:2], (2, 2), True), (index.float(), values, (2, 2), True),
                  (index, values, (2, -2), True), (1, values, (2, 2), True), ()):  # fmt: skip
        with pytest.raises(UnpicklingError):
            rebuild_sparse_tensor(rushlight.sparse_coo, parts)
    with pytest.raises(UnpicklingError):
        rebuild_sparse_tensor(rushlight.strided, (index, values, (2, 2), True))


def test_bad_input():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 2"):
        rushlight.sparse_coo_tensor([[2]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="col_indices < 2"):
        rushlight.sparse_csr_tensor([0, 1], [5], [1.0], (1, 2))
    with pytest.raises(RuntimeError, match="crow_indices must rise"):
        rushlight.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2))
    with pytest.raises(NotImplementedError, match="block layouts"):
        rushlight.eye(4).to_sparse_bsr((2, 2))
    with pytest.raises(NotImplementedError, match=r"aten::cumsum.*to_dense\(\)"):
        random_sparse().cumsum(0)
    with pytest.raises(RuntimeError, match="not supported with sparse gradients"):
        rushlight.nn.Embedding(3, 2, sparse=True, scale_grad_by_freq=True)(rushlight.tensor([1]))


def test_a_product_can_be_compiled():
    pytest.importorskip("jax")
    s, d = random_sparse(), rushlight.randn(5, 3)
    step = rushlight.compile(lambda x: s @ x)
    for _ in range(3):
        same(step(d), s.to_dense() @ d)


def test_a_graph_network_learns():
    """Two graph convolutions by an adjacency matrix."""
    rushlight.manual_seed(0)
    index = rushlight.tensor([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
    degree = rushlight.bincount(index[0]).float()
    adjacency = rushlight.sparse_coo_tensor(index, 1 / degree[index[0]], (6, 6)).coalesce()
    first, second = rushlight.nn.Linear(6, 8), rushlight.nn.Linear(8, 2)
    optimizer = rushlight.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    target, losses = rushlight.tensor([0, 0, 0, 1, 1, 1]), []
    for _ in range(30):
        hidden = rushlight.relu(rushlight.sparse.mm(adjacency, first(rushlight.eye(6))))
        loss = rushlight.nn.functional.cross_entropy(adjacency @ second(hidden), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
