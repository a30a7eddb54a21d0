"""Recurrent layers: fused bodies against the plain composition of cells, packing, double backward, compile."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.autograd.op import differentiable as xp
from rushlight.nn.utils import rnn as packing

KINDS = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}
CASES = [
    (kind, sizes, reverse, projected)
    for kind, sizes, reverse in itertools.product(KINDS, (None, (4, 4, 3, 1)), (False, True))
    for projected in ((False, True) if kind == "lstm" else (False,))
]


def arguments(kind, sizes, projected, device="cpu", bias=True):
    hidden, features, batch, steps = 3, 2, 4, 3
    rows, out = KINDS[kind] * hidden, 2 if projected else hidden
    shapes = [
        (steps, batch, features) if sizes is None else (sum(sizes), features),
        (batch, out),
        (batch, hidden) if kind == "lstm" else None,
        (rows, features),
        (rows, out),
        (rows,) if bias else None,
        (rows,) if bias else None,
        (out, hidden) if projected else None,
    ]
    made = [None if s is None else rushlight.randn(s, dtype=rushlight.float64) for s in shapes]
    return [None if t is None else t.to(device).requires_grad_() for t in made]


@pytest.mark.parametrize(
    ("kind", "sizes", "reverse", "projected", "device"),
    [(*c, "cpu") for c in CASES]
    + [(*c, "xla") for c in CASES if (c[1] is None) == c[2]],  # backwards in time, or packed: each takes XLA a while
)
def test_fused_layer_equals_the_composition_of_cells(kind, sizes, reverse, projected, device):
    for bias in (True, False) if device == "cpu" else (True,):
        args = arguments(kind, sizes, projected, device, bias)
        static = {"kind": kind, "sizes": sizes, "reverse": reverse}
        fused = xp.recurrent(*args, **static)
        plain = xp.recurrent.op.forward(xp, *args, **static)
        leaves = [a for a in args if a is not None]
        cotangents = [rushlight.randn(t.shape, dtype=t.dtype).to(device) for t in fused]
        expected = rushlight.autograd.grad(plain, leaves, cotangents)
        recorded = rushlight.autograd.grad(fused, leaves, cotangents, create_graph=True)
        found = rushlight.autograd.grad(fused, leaves, cotangents)
        for a, b in zip([*fused, *found, *recorded], [*plain, *expected, *expected], strict=True):
            np.testing.assert_allclose(array(a), array(b), rtol=1e-9, atol=1e-12)


def array(t):
    return t.detach().cpu().numpy()


@pytest.mark.parametrize(("kind", "sizes", "reverse", "projected"), [c for c in CASES if c[0] != "rnn_relu"])
def test_two_orders_of_gradients(kind, sizes, reverse, projected):
    args = arguments(kind, sizes, projected)
    places = [i for i, a in enumerate(args) if a is not None]

    def run(*leaves):
        filled = list(args)
        for i, leaf in zip(places, leaves):
            filled[i] = leaf
        return xp.recurrent(*filled, kind=kind, sizes=sizes, reverse=reverse)

    leaves = tuple(args[i] for i in places)
    assert gradcheck(run, leaves, fast_mode=True)
    assert gradgradcheck(run, leaves, fast_mode=True)


LAYERS = {
    "rnn": lambda **k: nn.RNN(3, 4, 2, "relu", **k),
    "lstm": lambda **k: nn.LSTM(3, 4, 2, **k),
    "projected": lambda **k: nn.LSTM(3, 4, 2, proj_size=2, **k),
    "gru": lambda **k: nn.GRU(3, 4, 2, **k),
}


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_packed_sequences_equal_each_sequence_alone(name, bidirectional):
    layer = LAYERS[name](bidirectional=bidirectional).double()
    sequences = [rushlight.randn(n, 3, dtype=rushlight.float64) for n in (2, 5, 1, 5)]
    packed = packing.pack_sequence(sequences, enforce_sorted=False)
    output, state = layer(packed)
    states = state if isinstance(state, tuple) else (state,)
    for i, (sequence, got) in enumerate(zip(sequences, packing.unpack_sequence(output), strict=True)):
        expected, alone = layer(sequence)
        np.testing.assert_allclose(array(got), array(expected), rtol=1e-10, atol=1e-12)
        for s, a in zip(states, alone if isinstance(alone, tuple) else (alone,), strict=True):
            np.testing.assert_allclose(array(s[:, i]), array(a), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_layer_is_its_cell_step_by_step(name):
    options = {"nonlinearity": "relu"} if name == "RNN" else {}
    layer, cell = getattr(nn, name)(3, 4, **options), getattr(nn, name + "Cell")(3, 4, **options)
    layer.load_state_dict({f"{k}_l0": v for k, v in cell.state_dict().items()})
    x, state = rushlight.randn(5, 2, 3), None
    output, _ = layer(x)
    for t in range(5):
        state = cell(x[t], state)
        h = state[0] if isinstance(state, tuple) else state
        np.testing.assert_allclose(array(output[t]), array(h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_other_dtypes(name, dtype):
    dtype = getattr(rushlight, dtype)
    layer = LAYERS[name]()
    x = rushlight.randn(3, 2, 3)
    expected, _ = layer(x)
    output, _ = layer.to(dtype)(x.to(dtype))
    assert output.dtype == dtype
    output.sum().backward()
    assert layer.weight_ih_l0.grad.dtype == dtype
    np.testing.assert_allclose(output.detach().float().numpy(), array(expected), atol=0.05)


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_training_step(name):
    losses = []
    for compiled in (False, True):
        rushlight.manual_seed(0)
        layer = LAYERS[name](bidirectional=True)
        x = rushlight.randn(4, 2, 3)
        optimizer = rushlight.optim.SGD(layer.parameters(), lr=0.1)

        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            packed = packing.pack_padded_sequence(x, [4, 2])
            output, _ = packing.pad_packed_sequence(layer(packed)[0])
            loss = (output * output).sum() + layer(x)[0].sum()
            loss.backward()
            optimizer.step()
            return loss

        step = rushlight.compile(step) if compiled else step
        losses.append([step(x).item() for _ in range(4)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_saved_tensor_hooks_and_retained_graphs():
    layer, x = nn.LSTM(3, 4), rushlight.randn(5, 2, 3)
    output, _ = layer(x)
    output.sum().backward(retain_graph=True)
    first = [p.grad.clone() for p in layer.parameters()]
    output.sum().backward()
    for p, g in zip(layer.parameters(), first):
        np.testing.assert_allclose(array(p.grad), 2 * array(g), rtol=1e-5)
    layer.zero_grad()
    with rushlight.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        output, _ = layer(x)
    output.sum().backward()
    for p, g in zip(layer.parameters(), first):
        np.testing.assert_allclose(array(p.grad), array(g), rtol=1e-5)


def test_without_gradients_nothing_is_kept():
    layer, x = nn.GRU(3, 4), rushlight.randn(5, 2, 3)
    with rushlight.no_grad():
        output, hn = layer(x)
    assert not output.requires_grad and not hn.requires_grad


def test_dropout_between_layers_only_in_training():
    layer, x = nn.GRU(3, 8, 2, dropout=0.5), rushlight.randn(5, 2, 3)
    assert (layer(x)[0] != layer(x)[0]).any()
    layer.eval()
    assert (layer(x)[0] == layer(x)[0]).all()


def test_weights_can_be_shared_and_replaced():
    layer = nn.LSTM(3, 3, 2)
    layer.weight_ih_l1 = layer.weight_ih_l0
    assert layer.all_weights[1][0] is layer._flat_weights[0]
    layer(rushlight.randn(2, 1, 3))[0].sum().backward()
    assert layer.weight_ih_l0.grad.abs().sum() > 0
    layer.flatten_parameters()


def test_packed_sequence_is_a_tuple_with_methods():
    packed = packing.pack_padded_sequence(rushlight.randn(3, 2, 1), [1, 3], enforce_sorted=False)
    data, batch_sizes, order, back = packed
    assert data is packed.data and batch_sizes.tolist() == [2, 1, 1]
    assert order.tolist() == [1, 0] and back.tolist() == [1, 0]
    assert packed.to(rushlight.float32) is packed
    assert packed.double().data.dtype == rushlight.float64
    assert packed.to("xla").sorted_indices.device.type == "xla"
    assert packed.to("xla").batch_sizes.device.type == "cpu"
    assert not packed.is_cuda
