"""A small U-Net as a denoising diffusion model, with an average of its weights."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def timestep_embedding(t, dim):
    half = dim // 2
    f = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    a = t[:, None].float() * f[None]
    return torch.cat([torch.cos(a), torch.sin(a)], dim=-1)


class Res(nn.Module):
    def __init__(s, i, o, e):
        super().__init__()
        s.n1, s.c1 = nn.GroupNorm(4, i), nn.Conv2d(i, o, 3, padding=1)
        s.emb = nn.Linear(e, o)
        s.n2, s.c2 = nn.GroupNorm(4, o), nn.Conv2d(o, o, 3, padding=1)
        s.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(s, x, e):
        h = s.c1(F.silu(s.n1(x))) + s.emb(F.silu(e))[:, :, None, None]
        return s.c2(F.silu(s.n2(h))) + s.skip(x)


class UNet(nn.Module):
    def __init__(s):
        super().__init__()
        s.t = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        s.i = nn.Conv2d(1, 8, 3, padding=1)
        s.d1 = Res(8, 8, 32)
        s.down = nn.Conv2d(8, 16, 3, 2, 1)
        s.d2 = Res(16, 16, 32)
        s.u = nn.ConvTranspose2d(16, 8, 4, 2, 1)
        s.u1 = Res(16, 8, 32)
        s.o = nn.Conv2d(8, 1, 1)
        nn.init.zeros_(s.o.weight)

    def forward(s, x, t):
        e = s.t(timestep_embedding(t, 16))
        h1 = s.d1(s.i(x), e)
        h2 = s.d2(s.down(h1), e)
        return s.o(s.u1(torch.cat([s.u(h2), h1], 1), e))


T = 20
beta = torch.linspace(1e-4, 0.2, T)
alpha = 1 - beta
abar = torch.cumprod(alpha, 0)
net = UNet()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
data = torch.zeros(16, 1, 8, 8)
data[:, :, 2:6, 2:6] = 1.0
data = data * 2 - 1
ema = {k: v.clone() for k, v in net.state_dict().items()}
for step in range(20):
    x0 = data[torch.randint(0, 16, (8,))]
    t = torch.randint(0, T, (8,))
    eps = torch.randn_like(x0)
    xt = abar[t].sqrt().view(-1, 1, 1, 1) * x0 + (1 - abar[t]).sqrt().view(-1, 1, 1, 1) * eps
    loss = F.mse_loss(net(xt, t), eps)
    opt.zero_grad()
    loss.backward()
    g = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].lerp_(v, 0.1)
    if step % 5 == 0:
        print(f"{step} {loss.item():.4f} {g:.3f}")


@torch.inference_mode()
def sample(n):
    x = torch.randn(n, 1, 8, 8)
    for i in reversed(range(T)):
        t = torch.full((n,), i, dtype=torch.long)
        e = net(x, t)
        x = (x - beta[i] / (1 - abar[i]).sqrt() * e) / alpha[i].sqrt()
        if i > 0:
            x = x + beta[i].sqrt() * torch.randn_like(x)
    return x.clamp(-1, 1)


net.load_state_dict(ema)
s = sample(2)
print(s.shape, f"{s.mean():.3f} {s.std():.3f}", sum(v.numel() for v in ema.values()))
