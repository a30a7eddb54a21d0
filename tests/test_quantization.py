"""Quantization: codes that stand for numbers, whole-number products, files, and models made of them."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ops.quantize import integer_product


def quantized(dtype=torch.qint8, zero=3):
    return torch.quantize_per_tensor(torch.linspace(-1, 1, 12).reshape(3, 4), 0.1, zero, dtype)


def per_channel():
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return torch.quantize_per_channel(x, torch.tensor([0.1, 0.01, 0.02]), torch.tensor([1, 2, 3]), 0, torch.quint8)


def test_codes_and_what_they_stand_for():
    q = torch.quantize_per_tensor(torch.tensor([0.0, 0.14, 0.16, 99.0]), 0.1, 10, torch.quint8)
    assert q.int_repr().tolist() == [10, 11, 12, 255] and q.int_repr().dtype is torch.uint8
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.1, 10, torch.per_tensor_affine)
    assert torch.allclose(q.dequantize(), torch.tensor([0.0, 0.1, 0.2, 24.5]))
    assert q.is_quantized and q.dtype is torch.quint8 and not q.requires_grad and not torch.ones(1).is_quantized


@pytest.mark.parametrize("make", [quantized, per_channel])
def test_copies_and_files(make):
    q, file = make(), io.BytesIO()
    torch.save({"q": q}, file)
    file.seek(0)
    for other in (copy.deepcopy(q), pickle.loads(pickle.dumps(q)), torch.load(file)["q"]):
        assert torch.equal(other, q) and repr(other) == repr(q) and other is not q


def test_what_moves_elements_moves_codes():
    q = quantized()
    for moved in (q.t(), q.reshape(4, 3), q[1:], q.flatten(), q.unsqueeze(0), torch.cat([q, q])):
        assert moved.is_quantized and moved.q_scale() == 0.1
    assert torch.equal(q.t().dequantize(), q.dequantize().t())
    assert q.relu().int_repr().min().item() == 3 and q.max().item() == q.dequantize().max().item()
    with pytest.raises(NotImplementedError, match="QuantizedCPU"):
        q.exp()
    with pytest.raises(RuntimeError, match="scale for each channel"):
        per_channel().t()


def test_bad_arguments():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="zero_point 300 is above upper bound"):
        torch.quantize_per_tensor(x, 0.1, 300, torch.quint8)
    with pytest.raises(RuntimeError, match="ScalarType Char is not supported"):
        torch.quantize_per_tensor(x, 0.1, 3, torch.int8)
    with pytest.raises(RuntimeError, match="only works on Float Tensor, got Long"):
        torch.quantize_per_tensor(torch.arange(2), 0.1, 3, torch.qint8)
    with pytest.raises(NotImplementedError, match="aten::q_scale"):
        x.q_scale()
    with pytest.raises(ValueError, match="with default settings"):
        quantization.quantize_dynamic(nn.Sequential(), dtype=torch.int8)
    with pytest.raises(NotImplementedError, match="not here"):
        quantization.quantize_dynamic(nn.Sequential(), dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="prepare_fx is only a name here"):
        torch.ao.quantization.quantize_fx.prepare_fx(nn.Linear(1, 1), {}, ())


@pytest.mark.parametrize("width", [7, 513, 2000])
def test_products_of_codes_are_exact(width):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-255, 256, (5, width)), rng.integers(-128, 128, (4, width))
    x[0], w[0] = 255, -128  # the largest sum there can be
    y = integer_product(torch.tensor(x, dtype=torch.int32), torch.tensor(w, dtype=torch.int8))
    assert y.dtype is torch.int32 and (y.numpy() == x @ w.T).all()


def test_the_gradient_of_fake_quantization_stops_where_codes_are_cut_off():
    x = torch.tensor([-5.0, 0.3, 0.8, 9.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, 0, 4)
    y.sum().backward()
    assert y.tolist() == [0.0, 0.5, 1.0, 2.0] and x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_dynamic_layers_are_close_to_their_own_and_much_smaller():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    small, x = quantization.quantize_dynamic(model, {nn.Linear}), torch.randn(5, 64)
    assert (small(x) - model(x)).abs().max() < 0.05 and small[0].weight().int_repr().dtype is torch.int8
    again = quantization.quantize_dynamic(model, {nn.Linear})
    again.load_state_dict(small.state_dict())
    assert torch.equal(again(x), small(x))
    lstm = nn.Sequential(nn.LSTM(6, 8, 2, bidirectional=True))
    x = torch.randn(4, 3, 6)
    for one, other in zip(lstm(x)[1], quantization.quantize_dynamic(lstm)(x)[1]):
        assert (one - other).abs().max() < 0.05


def test_dynamic_layers_compile():
    pytest.importorskip("jax")
    torch.manual_seed(0)
    small = quantization.quantize_dynamic(nn.Sequential(nn.Linear(16, 4)))
    x, fast = torch.randn(3, 16), torch.compile(lambda x: small(x))
    for _ in range(3):
        assert torch.allclose(fast(x), small(x), atol=1e-6)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU()
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.relu(self.bn(self.conv(self.quant(x)))), 2)
        return self.dequant(self.fc(torch.flatten(x, 1)))


def fused():
    torch.manual_seed(0)
    return quantization.fuse_modules(Small().eval(), [["conv", "bn", "relu"]])


def test_a_calibrated_model_computes_with_codes():
    model, x = fused(), torch.randn(16, 1, 6, 6)
    model.qconfig = quantization.get_default_qconfig("x86")
    with pytest.warns(UserWarning, match="quant_min and quant_max"):
        ready = quantization.prepare(model)
    ready(x)
    small = quantization.convert(ready)
    assert type(small.conv).__name__ == "ConvReLU2d" and small.conv(small.quant(x)).dtype is torch.quint8
    assert (small(x) - model(x)).abs().max() < 0.1


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_a_model_trained_with_rounded_weights_keeps_its_answers():
    model = fused().train()
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    model = quantization.prepare_qat(model)
    x = torch.randn(32, 1, 6, 6)
    target = (x.mean((1, 2, 3)) > 0).long()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    model.apply(quantization.disable_observer)
    model.eval()
    small = quantization.convert(model)
    assert (small(x).argmax(1) == model(x).argmax(1)).float().mean() > 0.9


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_what_has_no_quantized_form_is_refused_by_name():
    model = nn.Sequential(quantization.QuantStub(), nn.LayerNorm(4))
    model.qconfig = quantization.default_qconfig
    ready = quantization.prepare(model)
    ready(torch.randn(2, 4))
    with pytest.raises(NotImplementedError, match="LayerNorm"):
        quantization.convert(ready)
    with pytest.raises(NotImplementedError, match="batch norm"):
        quantization.fuse_modules_qat(Small().train(), [["conv", "bn", "relu"]])
