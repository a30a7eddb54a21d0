"""A custom autograd function, nn.Transformer, positions, distributions, autocast."""

import math

import torch
import torch.nn as nn

torch.manual_seed(0)


class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


dtype = torch.float
x = torch.linspace(-math.pi, math.pi, 2000, dtype=dtype)
y = torch.sin(x)
a, b, c, d = [torch.full((), v, dtype=dtype, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3)]
for t in range(400):
    P3 = LegendrePolynomial3.apply
    yp = a + b * P3(c + d * x)
    loss = (yp - y).pow(2).sum()
    if t % 100 == 99:
        print(t, loss.item())
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(f"Result: y = {b.item():.4f} * P3({d.item():.4f} x)")
model = nn.Transformer(
    d_model=16, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32, dropout=0.0, batch_first=True
)
s, t = torch.rand(2, 5, 16), torch.rand(2, 4, 16)
mask = nn.Transformer.generate_square_subsequent_mask(4)
out = model(s, t, tgt_mask=mask)
print(out.shape, out[0, 0, :4])


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=50):
        super().__init__()
        p = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, 1, d)
        pe[:, 0, 0::2] = torch.sin(p * div)
        pe[:, 0, 1::2] = torch.cos(p * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


print(PositionalEncoding(8)(torch.zeros(3, 1, 8))[:, 0])
from torch.distributions import Normal, kl_divergence

mu = torch.zeros(3, requires_grad=True)
n = Normal(mu, torch.ones(3))
z = n.rsample()
print(n, z, n.log_prob(z), kl_divergence(n, Normal(1.0, 2.0)))
scaler = torch.amp.GradScaler("cpu", enabled=False)
with torch.autocast("cpu", dtype=torch.bfloat16):
    print(nn.Linear(3, 2)(torch.ones(1, 3)).dtype)
print(torch.get_default_dtype(), torch.is_grad_enabled(), torch.finfo(torch.float32).eps, torch.iinfo(torch.int8))
ts = torch.jit.is_scripting()
print(ts)
