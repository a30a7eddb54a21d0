"""A vision transformer beside a text encoder; distillation, adversarial examples, Grad-CAM, a codebook."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Patch(nn.Module):
    def __init__(s, p=4, d=32):
        super().__init__()
        s.proj = nn.Conv2d(3, d, p, p)

    def forward(s, x):
        return s.proj(x).flatten(2).transpose(1, 2)


class ViT(nn.Module):
    def __init__(s, d=32, out=16):
        super().__init__()
        s.patch = Patch(d=d)
        s.cls = nn.Parameter(torch.zeros(1, 1, d))
        s.pos = nn.Parameter(torch.empty(1, 17, d))
        nn.init.trunc_normal_(s.pos, std=0.02)
        nn.init.trunc_normal_(s.cls, std=0.02)
        s.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
            2,
            norm=nn.LayerNorm(d),
            enable_nested_tensor=False,
        )
        s.head = nn.Linear(d, out, bias=False)

    def forward(s, x):
        x = s.patch(x)
        x = torch.cat([s.cls.expand(x.size(0), -1, -1), x], 1) + s.pos
        return s.head(s.enc(x)[:, 0])


class Text(nn.Module):
    def __init__(s, v=50, d=32, out=16):
        super().__init__()
        s.e = nn.Embedding(v, d)
        s.rnn = nn.GRU(d, d, batch_first=True)
        s.head = nn.Linear(d, out)

    def forward(s, x):
        return s.head(s.rnn(s.e(x))[1][-1])


img, txt, scale = ViT(), Text(), nn.Parameter(torch.tensor(2.659))
opt = torch.optim.AdamW(
    [{"params": [*img.parameters(), *txt.parameters()], "weight_decay": 0.1}, {"params": [scale], "weight_decay": 0.0}],
    lr=1e-3,
    betas=(0.9, 0.98),
    eps=1e-6,
)
sch = torch.optim.lr_scheduler.SequentialLR(
    opt,
    [torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=5), torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)],
    milestones=[5],
)
X, Y = torch.randn(8, 3, 16, 16), torch.randint(0, 50, (8, 6))
for i in range(20):
    a, b = F.normalize(img(X), dim=-1), F.normalize(txt(Y), dim=-1)
    logits = scale.exp() * a @ b.t()
    lab = torch.arange(8)
    loss = (F.cross_entropy(logits, lab) + F.cross_entropy(logits.t(), lab)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    sch.step()
    scale.data.clamp_(max=4.6)
    if i % 5 == 0:
        print(i, f"{loss:.4f}", [f"{x:.2e}" for x in sch.get_last_lr()], (logits.argmax(1) == lab).sum().item())
print(img.enc.layers[0], sum(p.numel() for p in img.parameters()))
tri = nn.TripletMarginLoss(margin=1.0)(a, b, b.roll(1, 0))
cos = F.cosine_similarity(a, b)
print(f"{tri:.4f}", cos.shape, F.pairwise_distance(a, b).mean().item().__round__(4))
# distillation, FGSM, Grad-CAM
teacher, student = nn.Linear(16, 4), nn.Linear(16, 4)
z = torch.randn(5, 16)
kd = F.kl_div(F.log_softmax(student(z) / 2, 1), F.softmax(teacher(z) / 2, 1), reduction="batchmean") * 4
print(f"{kd:.5f}")
x = X[:1].clone().requires_grad_()
l = F.cross_entropy(img(x), torch.tensor([3]))
img.zero_grad()
l.backward()
adv = torch.clamp(x + 0.1 * x.grad.sign(), 0, 1)
print(f"{(adv - x).abs().max():.4f}")
acts = {}
h1 = img.patch.proj.register_forward_hook(lambda m, i, o: acts.update(a=o))
h2 = img.patch.proj.register_full_backward_hook(lambda m, gi, go: acts.update(g=go[0]))
out = img(X[:1])
out[0, out.argmax()].backward()
cam = F.relu((acts["g"].mean((2, 3), keepdim=True) * acts["a"]).sum(1))
print(cam.shape, f"{cam.sum():.4f}")
h1.remove()
h2.remove()


class VQ(nn.Module):
    def __init__(s):
        super().__init__()
        s.cb = nn.Embedding(8, 4)
        s.cb.weight.data.uniform_(-1 / 8, 1 / 8)

    def forward(s, z):
        d = z.pow(2).sum(1, keepdim=True) + s.cb.weight.pow(2).sum(1) - 2 * z @ s.cb.weight.t()
        k = d.argmin(1)
        q = s.cb(k)
        return z + (q - z).detach(), F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach()), k


vq = VQ()
zz = torch.randn(6, 4, requires_grad=True)
q, l, k = vq(zz)
(q.sum() + l).backward()
print(k, f"{l:.4f}", zz.grad[0], torch.bincount(k, minlength=8))
