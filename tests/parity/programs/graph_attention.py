"""Graph attention by scatter and gather; spectra and statistics."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


class GAT(nn.Module):
    def __init__(self, i, o, heads=2):
        super().__init__()
        self.W = nn.Parameter(torch.empty(i, heads * o))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        self.a = nn.Parameter(torch.empty(heads, 2 * o))
        nn.init.xavier_uniform_(self.a, gain=nn.init.calculate_gain("leaky_relu", 0.2))
        self.h, self.o = heads, o
        self.leaky = nn.LeakyReLU(0.2)

    def forward(self, x, edge):
        n = x.size(0)
        h = (x @ self.W).view(n, self.h, self.o)
        s, d = edge
        e = self.leaky(torch.einsum("ehk,hk->eh", torch.cat([h[s], h[d]], -1), self.a))
        e = torch.exp(e - e.max())
        z = torch.zeros(n, self.h).index_add(0, d, e)
        al = e / (z[d] + 1e-16)
        out = torch.zeros(n, self.h, self.o).scatter_add(
            0, d[:, None, None].expand(-1, self.h, self.o), al.unsqueeze(-1) * h[s]
        )
        return out.flatten(1)


n = 60
lab = torch.arange(n) % 3
x = F.one_hot(lab, 3).float() + 0.8 * torch.randn(n, 3)
adj = (torch.rand(n, n) < torch.where(lab[:, None] == lab[None], 0.3, 0.02)).float()
adj = (adj + adj.t() + torch.eye(n)) > 0
edge = adj.nonzero(as_tuple=True)
print(edge[0].shape, adj.sum().item(), torch.unique(lab, return_counts=True))
deg = torch.bincount(edge[1], minlength=n).float()
print(deg[:5], deg.mean(), deg.std(unbiased=False))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = GAT(3, 8), GAT(16, 3, 1)
        self.ln = nn.LayerNorm(16)

    def forward(self, x, e):
        return F.log_softmax(self.c2(F.elu(self.ln(self.c1(x, e))), e), dim=1)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
tr = torch.randperm(n)[:20]
for ep in range(40):
    net.train()
    opt.zero_grad()
    out = net(x, edge)
    loss = F.nll_loss(out[tr], lab[tr])
    loss.backward()
    opt.step()
    if ep % 13 == 0:
        print(f"Epoch {ep:03d}, Loss: {loss:.4f}, Acc {(out.argmax(1) == lab).float().mean():.3f}")
print(out.exp().mean(0), torch.std_mean(out), torch.quantile(out.detach(), 0.5), torch.histc(out, 5))
h = out.view(20, 3, 3).permute(2, 0, 1).contiguous().reshape(3, -1)
print(h.shape, h.stride(), h.norm(dim=1).round(decimals=2), torch.cdist(out[:2], out[2:4]))
A = adj.float()
L = torch.diag(A.sum(1)) - A
ev, U = torch.linalg.eigh(L)
print(ev[:3].abs() < 1e-3, torch.trace(L), torch.linalg.matrix_rank(L))
