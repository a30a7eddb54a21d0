"""Nested tensors without PyTorch: compiled programs, gradients that PyTorch lacks, files, refusals."""

import copy
import io

import pytest

import rushlight
from rushlight import nn

F = nn.functional


def attended(values, offsets, causal=False):
    nt = rushlight.nested.nested_tensor_from_jagged(values, offsets).unflatten(-1, [2, 2]).transpose(1, 2)
    made = F.scaled_dot_product_attention(nt, nt, nt, is_causal=causal).transpose(1, 2).flatten(-2)
    return made + made.sum(1, keepdim=True) * made.softmax(1)


@pytest.mark.parametrize("causal", [False, True])
def test_a_compiled_program_gives_what_each_example_gives_alone(causal):
    pytest.importorskip("jax")
    rushlight.manual_seed(0)
    values = rushlight.randn(9, 4)
    compiled = rushlight.compile(lambda v, o: attended(v, o, causal).values(), fullgraph=True)
    for ends in ([0, 2, 9], [0, 5, 9]):
        alone = [
            attended(v, rushlight.tensor([0, len(v)]), causal).values() for v in values.split([ends[1], 9 - ends[1]])
        ]
        for _ in range(2):
            assert rushlight.allclose(compiled(values, rushlight.tensor(ends)), rushlight.cat(alone), atol=1e-6)
    assert compiled.compilations == 1


def test_gradients_over_segments():
    values = rushlight.randn(5, 3, dtype=rushlight.float64, requires_grad=True)
    offsets = rushlight.tensor([0, 2, 5])

    def reduced(v):
        nt = rushlight.nested.nested_tensor_from_jagged(v, offsets)
        return nt.sum(1), nt.mean(1), nt.softmax(1).values(), nt.amax(1), attended_rows(nt)

    def attended_rows(nt):
        return (nt * nt.mean(1, keepdim=True)).values()

    assert rushlight.autograd.gradcheck(reduced, (values,))


def test_copies_and_files():
    nt = rushlight.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=rushlight.jagged)
    file = io.BytesIO()
    rushlight.save(nt, file)
    file.seek(0)
    for other in (copy.deepcopy(nt), copy.copy(nt), rushlight.load(file, weights_only=False)):
        assert [t.tolist() for t in other] == [[1.0, 2.0], [3.0]]


def test_the_strided_layout_goes_further_than_pytorchs():
    nt = rushlight.nested.nested_tensor([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], requires_grad=True)
    other = copy.deepcopy(nt)
    assert len(nt) == 2 and [t.shape for t in nt] == [(1, 2), (2, 2)] and other[1].tolist() == [[3.0, 4.0], [5.0, 6.0]]
    (nt.transpose(1, 2) * nt.transpose(1, 2).contiguous()).tanh().sum().backward()  # one laid out in another order
    expected = 2 * other.detach() * (1 - (other.detach() ** 2).tanh() ** 2)
    for found, wanted in zip(nt.grad, expected):
        rushlight.testing.assert_close(found, wanted)
    q = nt.detach().unsqueeze(1)
    causal = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    rushlight.testing.assert_close(causal[1], F.scaled_dot_product_attention(*[q[1][None]] * 3, is_causal=True)[0])


def test_what_is_not_there_says_so():
    nt = rushlight.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=rushlight.jagged)
    with pytest.raises(NotImplementedError, match="no such function of nested tensors of the strided layout"):
        rushlight.nested.nested_tensor([[1.0]]).cumsum(1)
    with pytest.raises(NotImplementedError, match="cumsum: there is no such function of nested tensors"):
        nt.cumsum(1)
    with pytest.raises(RuntimeError, match="cannot be mapped over"):
        rushlight.func.vmap(lambda t: t)(nt)
    with pytest.raises(TypeError, match="differs from example to example"):
        int(nt.size(1))
    with pytest.raises(AssertionError, match="to_padded_tensor"):
        nn.MultiheadAttention(2, 1)(nt, nt, nt)
