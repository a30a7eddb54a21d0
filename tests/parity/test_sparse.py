"""Sparse tensors beside PyTorch's: values, printing, errors, gradients, optimizers, files."""

import io
import warnings

import numpy as np
import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")
INDEX, VALUES = [[0, 1, 1, 3], [2, 0, 2, 1]], [3.0, 4.0, -5.0, 0.5]
DENSE = np.arange(12, dtype=np.float32).reshape(4, 3) / 3


def both(function):
    """What ``function(module, sparse, dense)`` gives here and there; an error counts by its type."""
    results = []
    for module in (rushlight, torch):
        s = module.sparse_coo_tensor(module.tensor(INDEX), module.tensor(VALUES), (4, 3))
        d = module.tensor(DENSE.tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                results.append(function(module, s, d))
            except Exception as error:
                results.append(error)
    return results


CALLS = {
    "print": lambda m, s, d: repr(s),
    "print coalesced": lambda m, s, d: repr(s.coalesce()),
    "print csr": lambda m, s, d: repr(s.to_sparse_csr()),
    "print csc": lambda m, s, d: repr(s.to_sparse_csr().t()),
    "print double": lambda m, s, d: repr(s.double()),
    "print empty": lambda m, s, d: repr(m.sparse_coo_tensor(size=(2, 3))),
    "print hybrid": lambda m, s, d: repr(d.to_sparse(1)),
    "print grad": lambda m, s, d: repr(s.coalesce().requires_grad_()),
    "print made": lambda m, s, d: repr(m.sparse_coo_tensor([[0]], m.tensor([1.0], requires_grad=True), (2,))),
    "print cut": lambda m, s, d: repr(m.eye(1200).to_sparse()),
    "repeated": lambda m, s, d: repr(m.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0], (3,)).coalesce()),
    "add": lambda m, s, d: repr(s + s),
    "add dense": lambda m, s, d: repr(d + s),
    "add method": lambda m, s, d: repr(d.add(s, alpha=2)),
    "add in place": lambda m, s, d: repr(d.add_(s)),
    "add to sparse": lambda m, s, d: repr(s + d),
    "sub": lambda m, s, d: repr(s.coalesce() - 2 * s.coalesce()),
    "mul": lambda m, s, d: repr(s * s),
    "mul number": lambda m, s, d: repr(s * 2),
    "rmul number": lambda m, s, d: repr(2 * s),
    "mul dense": lambda m, s, d: repr(d * s),
    "div": lambda m, s, d: repr(s / 4),
    "div dense": lambda m, s, d: repr(s / d),
    "neg": lambda m, s, d: repr(-s),
    "abs": lambda m, s, d: repr(abs(s)),
    "power": lambda m, s, d: repr(s**2),
    "exp": lambda m, s, d: repr(s.exp()),
    "tanh": lambda m, s, d: repr(m.tanh(s)),
    "sum": lambda m, s, d: repr(s.sum()),
    "sum of rows": lambda m, s, d: repr(m.sparse.sum(s, 0)),
    "sum of all": lambda m, s, d: repr(m.sparse.sum(s, (0, 1))),
    "softmax": lambda m, s, d: repr(m.sparse.softmax(s, 1)),
    "log_softmax": lambda m, s, d: repr(m.sparse.log_softmax(s * 0.1, 1)),
    "matmul": lambda m, s, d: repr(s @ d.t()),
    "matmul of dense": lambda m, s, d: repr(d.t() @ s),
    "mm": lambda m, s, d: repr(m.mm(s, d.t())),
    "spmm": lambda m, s, d: repr(m.spmm(s, d.t())),
    "sparse mm": lambda m, s, d: repr(m.sparse.mm(s, s.t())),
    "sparse mm mean": lambda m, s, d: repr(m.sparse.mm(s.to_sparse_csr(), d.t(), "mean")),
    "sparse mm of columns": lambda m, s, d: repr(m.sparse.mm(s.to_sparse_csc(), d.t(), "mean")),
    "sparse mm prod": lambda m, s, d: repr(m.sparse.mm(s.to_sparse_csr(), d.t(), "prod")),
    "sparse mm by another word": lambda m, s, d: repr(m.sparse.mm(s.to_sparse_csr(), d.t(), "most")),
    "starts of rows": lambda m, s, d: repr(m._convert_indices_from_coo_to_csr(m.tensor([0, 0, 2, 3]), 5)),
    "rows from starts": lambda m, s, d: repr(
        m._convert_indices_from_csr_to_coo(m.tensor([0, 2, 2, 3]), m.tensor([1, 2, 0]), transpose=True, out_int32=True)
    ),
    "mv": lambda m, s, d: repr(m.mv(s, d[0])),
    "addmm": lambda m, s, d: repr(m.sparse.addmm(m.ones(4, 4), s, d.t(), beta=0.5, alpha=2)),
    "bmm": lambda m, s, d: repr(m.bmm(m.stack([s, s * 2]), d.t().expand(2, 3, 4))),
    "shapes": lambda m, s, d: repr(s @ d),
    "csr matmul": lambda m, s, d: repr(s.to_sparse_csr() @ d.t()),
    "transpose": lambda m, s, d: repr(s.t()),
    "transposed and ordered": lambda m, s, d: repr(s.transpose(0, 1).coalesce()),
    "row": lambda m, s, d: repr(s[1]),
    "element": lambda m, s, d: repr(s[3, 1]),
    "column": lambda m, s, d: repr(s[:, 2]),
    "index_select": lambda m, s, d: repr(s.index_select(0, m.tensor([1, 1, 3]))),
    "narrow_copy": lambda m, s, d: repr(s.narrow_copy(0, 1, 2)),
    "cat": lambda m, s, d: repr(m.cat([s, s], 1)),
    "stack": lambda m, s, d: repr(m.stack([s, s])),
    "unsqueeze": lambda m, s, d: repr(s.unsqueeze(0)),
    "to_dense": lambda m, s, d: repr(s.to_dense()),
    "to_sparse": lambda m, s, d: repr(d.to_sparse()),
    "sparse_mask": lambda m, s, d: repr(d.sparse_mask(s.coalesce())),
    "zeros_like": lambda m, s, d: repr(m.zeros_like(s)),
    "numbers": lambda m, s, d: (s._nnz(), s.sparse_dim(), s.dense_dim(), s.is_coalesced(), s.dim(), len(s), s.numel()),
    "kind": lambda m, s, d: (s.is_sparse, s.to_sparse_csr().is_sparse_csr, repr(s.layout), s.type(), d.is_sparse),
    "indices": lambda m, s, d: repr(s.indices()),
    "_indices": lambda m, s, d: repr(s._indices()),
    "values": lambda m, s, d: repr(s.coalesce().values()),
    "crow": lambda m, s, d: repr(s.crow_indices()),
    "csr indices": lambda m, s, d: repr(s.to_sparse_csr().indices()),
    "crow_indices": lambda m, s, d: repr(s.to_sparse_csr().crow_indices()),
    "col_indices": lambda m, s, d: repr(s.to_sparse_csr().col_indices()),
    "dense indices": lambda m, s, d: d.indices(),
    "dense coalesce": lambda m, s, d: d.coalesce(),
    "dense values": lambda m, s, d: d.values(),
    "numpy": lambda m, s, d: s.numpy(),
    "assign": lambda m, s, d: s.__setitem__(0, 1.0),
    "negative index": lambda m, s, d: m.sparse_coo_tensor([[-1]], [1.0]),
    "counts differ": lambda m, s, d: m.sparse_coo_tensor([[0, 1]], [1.0]),
    "reshape": lambda m, s, d: s.reshape(3, 4),
    "integers": lambda m, s, d: repr(m.sparse_coo_tensor([[0, 1, 0]], [1, 2, 3], (2,)).coalesce()),
    "spdiags": lambda m, s, d: repr(m.sparse.spdiags(d[:2], m.tensor([0, 1]), (3, 3)).to_dense()),
    "sampled_addmm": lambda m, s, d: repr(m.sparse.sampled_addmm(s.to_sparse_csr(), d, d[:3]).to_dense()),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    ours, theirs = both(CALLS[name])
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
        first = str(theirs).split(". ")[0].split("\n")[0]
        if "Could not run" in first:
            assert "Could not run 'aten::" in str(ours)
        else:
            assert first[:40] in str(ours)
    else:
        assert ours == theirs


GRADIENTS = {
    "to_dense": lambda m, s, d: s.to_dense().pow(2).sum(),
    "matmul": lambda m, s, d: (s @ d.t()).pow(2).sum(),
    "sparse mm": lambda m, s, d: m.sparse.mm(s, d.t()).pow(2).sum(),
    **{
        f"sparse mm {how}": lambda m, s, d, how=how: m.sparse.mm(s.coalesce().to_sparse_csr(), d.t(), how).pow(2).sum()
        for how in ("mean", "amax", "amin")
    },
    "addmm": lambda m, s, d: m.sparse.addmm(d @ d.t(), s, d.t()).pow(2).sum(),
    "scaled": lambda m, s, d: (s * 3).to_dense().mul(d).sum(),
    "sum": lambda m, s, d: m.sparse.sum(s) * 2,
    "rows": lambda m, s, d: m.sparse.sum(s, 1).to_dense().pow(3).sum(),
    "softmax": lambda m, s, d: m.sparse.softmax(s, 1).to_dense().mul(d).sum(),
    "coalesced": lambda m, s, d: s.coalesce().values().pow(2).sum(),
    "added": lambda m, s, d: (d + s).pow(2).sum(),
    "transposed": lambda m, s, d: (s.t() @ d).pow(2).sum(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_values_and_dense_operands(name):
    found = []
    for m in (rushlight, torch):
        v = m.tensor(VALUES, requires_grad=True)
        d = m.tensor(DENSE.tolist(), requires_grad=True)
        loss = GRADIENTS[name](m, m.sparse_coo_tensor(m.tensor(INDEX), v, (4, 3)), d)
        loss.backward()
        found.append((loss.tolist(), v.grad.tolist(), None if d.grad is None else d.grad.tolist()))
    ours, theirs = found
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5, atol=1e-6)
    if theirs[2] is not None:
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5, atol=1e-6)


def test_a_sparse_leaf():
    found = []
    for m in (rushlight, torch):
        a = m.sparse_coo_tensor(INDEX, VALUES, (4, 3), requires_grad=True)
        m.sparse.mm(a, m.tensor(DENSE.tolist()).t()).pow(2).sum().backward()
        found.append((a.is_leaf, repr(a.grad.coalesce())))
    assert found[0] == found[1]


OPTIMIZERS = {
    "SGD": lambda m, p: m.optim.SGD(p, lr=0.1),
    "momentum": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "Nesterov": lambda m, p: m.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "maximize": lambda m, p: m.optim.SGD(p, lr=0.1, maximize=True),
    "Adagrad": lambda m, p: m.optim.Adagrad(p, lr=0.1, lr_decay=0.01),
    "SparseAdam": lambda m, p: m.optim.SparseAdam(p, lr=0.1),
    "Adam": lambda m, p: m.optim.Adam(p),
    "AdamW": lambda m, p: m.optim.AdamW(p),
    "RMSprop": lambda m, p: m.optim.RMSprop(p),
    "decay": lambda m, p: m.optim.Adagrad(p, weight_decay=0.1),
    "SGD decay": lambda m, p: m.optim.SGD(p, 0.1, weight_decay=0.1),
}


@pytest.mark.parametrize("layer", ["Embedding", "EmbeddingBag"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_a_table(name, layer):
    found = []
    for m in (rushlight, torch):
        m.manual_seed(0)
        table = getattr(m.nn, layer)(6, 3, sparse=True)
        try:
            optimizer = OPTIMIZERS[name](m, table.parameters())
            for step in range(3):
                optimizer.zero_grad()
                for batch in ([[1, 2], [1, 4]], [[step, 5]]):  # gradients add up
                    table(m.tensor(batch)).pow(2).sum().backward()
                assert table.weight.grad.is_sparse
                optimizer.step()
            found.append(table.weight.detach().tolist())
        except RuntimeError as error:
            found.append(str(error))
    ours, theirs = found
    if isinstance(theirs, str):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_printed_gradients_of_tables():
    found = []
    for m in (rushlight, torch):
        m.manual_seed(0)
        for table in (
            m.nn.Embedding(5, 2, sparse=True),
            m.nn.Embedding(5, 2, sparse=True, padding_idx=1),
            m.nn.EmbeddingBag(5, 2, sparse=True, mode="mean"),
        ):
            (table(m.tensor([[1, 2], [1, 4]])) * 2).sum().backward()
            found.append((m, repr(table.weight.grad), repr(table.weight.grad.coalesce())))
            table.zero_grad(set_to_none=False)
            found.append((m, repr(table.weight.grad)))
        found.append((m, repr(m.autograd.grad(table(m.tensor([[1, 1]])).sum(), table.weight)[0])))
    ours, theirs = ([f[1:] for f in found if f[0] is m] for m in (rushlight, torch))
    assert ours == theirs


@pytest.mark.parametrize("convert", [lambda s: s, lambda s: s.coalesce(), lambda s: s.to_sparse_csr()])
def test_files_both_ways(convert):
    ours, theirs = both(lambda m, s, d: convert(s))
    file = io.BytesIO()
    rushlight.save({"a": ours}, file)
    file.seek(0)
    assert repr(torch.load(file)["a"]) == repr(theirs)
    file = io.BytesIO()
    torch.save({"a": theirs}, file)
    file.seek(0)
    assert repr(rushlight.load(file)["a"]) == repr(ours)


def test_a_module_with_a_sparse_buffer():
    """As whisper keeps its alignment heads, and graph networks their adjacency."""
    found = []
    for m in (rushlight, torch):
        module = m.nn.Linear(3, 2)
        module.register_buffer("adjacency", m.sparse_coo_tensor(INDEX, VALUES, (4, 3)).coalesce())
        state = module.state_dict()
        other = m.nn.Linear(3, 2)
        other.register_buffer("adjacency", m.sparse_coo_tensor(size=(4, 3)))
        other.load_state_dict(state)
        found.append((repr(other.adjacency), repr(module.double().adjacency), list(state)))
    assert found[0] == found[1]
