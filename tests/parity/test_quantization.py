"""Quantization beside PyTorch: codes, products and observers bit for bit."""

from __future__ import annotations

import io
import re

import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore")

# Each program is run on both; what it prints is compared.
PROGRAMS = {
    "codes": """
x = torch.cat([torch.randn(1000) * 3, (torch.arange(-2000, 2000) + 0.5) * 0.037])
for scale, zero in [(0.037, 7), (0.1, 0), (1 / 3, 100)]:
    for dtype in (torch.quint8, torch.qint8, torch.qint32):
        q = torch.quantize_per_tensor(x, scale, zero, dtype)
        show(q, q.int_repr().long().sum(), q.dequantize().double().sum().item())
parts = x[:1000].reshape(4, -1)
scales, zeros = torch.tensor([0.037, 0.1, 1 / 3, 0.02]), torch.tensor([7, 0, 128, 3], dtype=torch.int32)
q = torch.quantize_per_channel(parts, scales, zeros, 0, torch.quint8)
show(q, q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.int_repr().long().sum())
show(torch.quantize_per_tensor_dynamic(x, torch.quint8, True), torch._choose_qparams_per_tensor(x[:1000] * 1e-4))
""",
    "fake": """
x = torch.cat([torch.randn(1000) * 3, (torch.arange(-2000, 2000) + 0.5) * 0.037]).requires_grad_()
y = torch.fake_quantize_per_tensor_affine(x, 0.037, 7, 0, 255)
y.pow(2).sum().backward()
show(y, y.double().sum().item(), x.grad.double().sum().item())
w = torch.randn(4, 5, requires_grad=True)
y = torch.fake_quantize_per_channel_affine(w, torch.rand(5), torch.arange(5, dtype=torch.int32), 1, -8, 7)
y.pow(2).sum().backward()
show(y, w.grad)
""",
    "dynamic": """
model = nn.Sequential(nn.Linear(300, 64), nn.ReLU(), nn.Linear(64, 20, bias=False))
small = Q.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
for scale in (1.0, 1e-6, 100.0):
    y = small(scale * torch.randn(16, 300))
    show(y, y.double().sum().item(), y.requires_grad)
show(small, list(small.state_dict()), small[2].weight(), small[2](torch.zeros(2, 64)))
per_channel = {nn.Linear: Q.per_channel_dynamic_qconfig}
y = Q.quantize_dynamic(model, per_channel)(torch.randn(16, 300))
show(y, y.double().sum().item())
show(Q.quantize_dynamic(nn.Sequential(nn.LSTM(5, 4, 2, bidirectional=True), nn.GRU(4, 4), nn.LSTMCell(2, 3))))
""",
    "observers": """
tensor = (torch.per_tensor_affine, torch.per_tensor_symmetric)
channel = (torch.per_channel_affine, torch.per_channel_symmetric)
for kind, schemes in [(Q.MinMaxObserver, tensor), (Q.MovingAverageMinMaxObserver, tensor),
                      (Q.PerChannelMinMaxObserver, channel), (Q.MovingAveragePerChannelMinMaxObserver, channel)]:
    for scheme in schemes:
        for dtype in (torch.quint8, torch.qint8):
            o = kind(dtype=dtype, qscheme=scheme)
            for i in range(3):
                o(torch.randn(4, 3) + i)
            show(o, o.state_dict(), o.calculate_qparams(), o.quant_min, o.quant_max)
for i in range(4):
    o = Q.HistogramObserver()
    x = torch.randn(1000)
    x[0] = 10.0 * i
    o(x)
    show(o, o.calculate_qparams(), o.histogram.sum())
o = Q.HistogramObserver(bins=300)
for i in range(4):
    o(torch.full((3,), 2.0) if i == 0 else torch.randn(500) * i + i)
    show(o, o.calculate_qparams(), o.histogram.sum(), o.histogram[::29])
f = Q.FakeQuantize()
f(torch.randn(5))
f.disable_observer()
show(f, f(torch.randn(5) * 9), Q.MinMaxObserver().calculate_qparams())
show(Q.get_default_qconfig("x86"), Q.get_default_qat_qconfig("x86"), Q.default_dynamic_qconfig)
""",
    "training": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.conv2, self.fc = nn.Conv2d(4, 6, 3, 2), nn.Linear(54, 20)
        self.relu2, self.fc2 = nn.ReLU(), nn.Linear(20, 3)
    def forward(self, x):
        x = self.conv2(self.relu(self.bn(self.conv(self.quant(x)))))
        return self.dequant(self.fc2(self.relu2(self.fc(torch.flatten(x, 1)))))
model = Net().eval()
model.qconfig = Q.get_default_qat_qconfig("fbgemm")
model = Q.fuse_modules(model, [["conv", "bn", "relu"], ["fc", "relu2"]])
model = Q.prepare_qat(model.train())
show(model, list(model.state_dict()))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for _ in range(3):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 1, 8, 8)), torch.randint(0, 3, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(round(loss.item(), 4))
small = Q.convert(model.eval())
show(re.sub(r"scale=[\\d.]+", "", str(small)), list(small.state_dict()))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_lines(name):
    lines = []
    for module in (rushlight, torch):
        module.manual_seed(0)
        said = []
        show = lambda *values, said=said: said.extend(
            re.sub(r"(rushlight|torch)\.ao[\w.]*\.", "", str(v)) for v in values
        )
        exec(PROGRAMS[name], {"torch": module, "nn": module.nn, "Q": module.ao.quantization, "show": show, "re": re})
        lines.append(said)
    assert lines[0] == lines[1]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "LSTMCell", "GRUCell", "RNNCell"])
def test_recurrent_layers(kind):
    """Products are the same whole numbers; only sigmoid and tanh may differ in their last bit."""
    results = []
    for module in (rushlight, torch):
        module.manual_seed(0)
        layer = module.nn.Sequential(getattr(module.nn, kind)(5, 7))
        small = module.ao.quantization.quantize_dynamic(layer)
        module.manual_seed(1)
        made = small(module.randn(4, 3, 5) if "Cell" not in kind else module.randn(3, 5))
        made = made[0] if isinstance(made, tuple) else made
        results.append(torch.tensor(made.tolist()))
    torch.testing.assert_close(results[0], results[1], atol=2e-6, rtol=0)


def test_static_layers_give_the_same_codes():
    codes = []
    for module in (rushlight, torch):
        module.manual_seed(0)
        q = module.ao.nn.quantized
        x = module.quantize_per_tensor(module.randn(9, 4, 6, 6), 0.05, 60, module.quint8)
        conv = q.Conv2d(4, 8, 3, stride=2, padding=1)
        weight = module.randn(8, 4, 3, 3) * 0.2
        scales = weight.abs().amax((1, 2, 3)).double() / 127
        conv.set_weight_bias(
            module.quantize_per_channel(weight, scales, module.zeros(8, dtype=module.long), 0, module.qint8),
            module.randn(8),
        )
        conv.scale, conv.zero_point = 0.03, 40
        linear = q.Linear(6, 5)
        linear.set_weight_bias(module.quantize_per_tensor(module.randn(5, 6), 0.02, 0, module.qint8), module.randn(5))
        linear.scale, linear.zero_point = 0.07, 100
        codes.append([conv(x).int_repr().tolist(), linear(x).int_repr().tolist()])
    assert codes[0] == codes[1]


def test_files_go_both_ways():
    for a, b in ((rushlight, torch), (torch, rushlight)):
        a.manual_seed(0)
        q = a.quantize_per_tensor(a.randn(3, 2), 0.1, 2, a.quint8).t()
        channels = a.quantize_per_channel(a.randn(2, 2), a.tensor([0.1, 0.2]), a.tensor([1, 2]), 1, a.qint8)
        file = io.BytesIO()
        a.save([q, channels, a.per_tensor_affine], file)
        file.seek(0)
        read = b.load(file)
        assert repr(read) == repr([q, channels, a.per_tensor_affine]) and read[0].stride() == q.stride()
