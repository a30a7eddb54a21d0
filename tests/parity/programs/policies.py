"""Proximal policy optimization, squashed and categorical policies, a normalizing flow."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import (
    Beta,
    Categorical,
    Independent,
    MultivariateNormal,
    Normal,
    TanhTransform,
    TransformedDistribution,
    kl_divergence,
)

torch.manual_seed(0)
random.seed(0)


class ActorCritic(nn.Module):
    def __init__(s, o=4, a=2):
        super().__init__()
        s.body = nn.Sequential(nn.Linear(o, 32), nn.Tanh())
        s.mu = nn.Linear(32, a)
        s.log_std = nn.Parameter(torch.zeros(a))
        s.v = nn.Linear(32, 1)
        for m in s.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, gain=2**0.5)
                nn.init.zeros_(m.bias)

    def forward(s, x):
        h = s.body(x)
        return Independent(Normal(s.mu(h), s.log_std.exp()), 1), s.v(h).squeeze(-1)


net = ActorCritic()
opt = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
obs = torch.randn(64, 4)
with torch.no_grad():
    dist, val = net(obs)
    act = dist.sample()
    old = dist.log_prob(act)
    rew = -(act - obs[:, :2]).pow(2).sum(1)
    adv = rew - val
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
print(dist, act.shape, old.shape)
for ep in range(6):
    for idx in torch.randperm(64).split(16):
        d, v = net(obs[idx])
        lp = d.log_prob(act[idx])
        ratio = (lp - old[idx]).exp()
        pg = -torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx]).mean()
        loss = pg + 0.5 * F.mse_loss(v, rew[idx]) - 0.01 * d.entropy().mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
    with torch.no_grad():
        d2, _ = net(obs)
        print(
            ep,
            f"{loss.item():.4f}",
            f"{kl_divergence(dist, d2).mean():.5f}",
            f"{((ratio - 1).abs() > 0.2).float().mean():.3f}",
        )


class Squashed(nn.Module):
    def __init__(s):
        super().__init__()
        s.n = nn.Linear(4, 4)

    def forward(s, x):
        mu, ls = s.n(x).chunk(2, -1)
        d = TransformedDistribution(Normal(mu, ls.clamp(-5, 2).exp()), TanhTransform(cache_size=1))
        a = d.rsample()
        return a, d.log_prob(a).sum(-1)


p = Squashed()
a, lp = p(obs[:4])
(0.2 * lp - a.sum(1)).mean().backward()
print(a, lp, p.n.weight.grad.norm())
c = Categorical(logits=torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))
print(c.sample((3,)), c.entropy(), c.probs, c.log_prob(torch.tensor([2, 0])))
q = nn.Linear(4, 3)
q_target = nn.Linear(4, 3)
q_target.load_state_dict(q.state_dict())
for pt, pp in zip(q_target.parameters(), q.parameters()):
    pt.data.mul_(0.995).add_(0.005 * pp.data)
returns, R = [], 0
for r in reversed([1.0, 0.0, 2.0]):
    R = r + 0.9 * R
    returns.insert(0, R)
print(
    torch.tensor(returns),
    MultivariateNormal(torch.zeros(2), torch.tensor([[2.0, 0.5], [0.5, 1.0]])).log_prob(torch.ones(2)),
    Beta(2.0, 3.0).sample((2,)),
    Beta(torch.tensor([2.0]), torch.tensor([3.0])),
)


# flow
class Coupling(nn.Module):
    def __init__(s, flip):
        super().__init__()
        s.flip = flip
        s.net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(s, x):
        a, b = (x[:, 1:], x[:, :1]) if s.flip else (x[:, :1], x[:, 1:])
        sc, t = s.net(a).chunk(2, 1)
        sc = torch.tanh(sc)
        y = b * sc.exp() + t
        return (torch.cat([y, a], 1) if s.flip else torch.cat([a, y], 1)), sc.sum(1)


flow = nn.ModuleList([Coupling(i % 2 == 1) for i in range(4)])
base = Independent(Normal(torch.zeros(2), torch.ones(2)), 1)
o = torch.optim.Adam(flow.parameters(), 5e-3)
D = torch.randn(128, 2) @ torch.tensor([[1.0, 0.8], [0.0, 0.3]]) + 1
for i in range(40):
    x, ld = D, 0
    for f in flow:
        x, l = f(x)
        ld = ld + l
    nll = -(base.log_prob(x) + ld).mean()
    o.zero_grad()
    nll.backward()
    o.step()
    if i % 13 == 0:
        print(i, f"{nll:.4f}")
