"""Packed sequences, tied weights, resuming, word vectors, samplers, beam search, top-p."""

import collections
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    WeightedRandomSampler,
    default_collate,
)

torch.manual_seed(0)
text = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "the",
    "lazy",
    "dog",
    "and",
    "the",
    "quick",
    "red",
    "fox",
    "runs",
    "past",
    "the",
    "slow",
    "brown",
    "dog",
    "again",
    "and",
    "again",
]
cnt = collections.Counter(text)
itos = ["<pad>", "<unk>"] + [w for w, _ in cnt.most_common()]
stoi = {w: i for i, w in enumerate(itos)}
ids = torch.tensor([stoi[w] for w in text])


class DS(Dataset):
    def __init__(s, ids, n):
        s.ids, s.n = ids, n

    def __len__(s):
        return len(s.ids) - s.n

    def __getitem__(s, i):
        return {"x": s.ids[i : i + s.n - i % 2], "y": s.ids[i + s.n].item()}


def collate(b):
    x = [d["x"] for d in b]
    L = torch.tensor([len(t) for t in x])
    return nn.utils.rnn.pad_sequence(x, batch_first=True), L, torch.tensor([d["y"] for d in b])


dl = DataLoader(DS(ids, 5), batch_size=6, shuffle=True, collate_fn=collate, generator=torch.Generator().manual_seed(1))


class LM(nn.Module):
    def __init__(s, v, d=24):
        super().__init__()
        s.emb = nn.Embedding(v, d, padding_idx=0)
        s.lstm = nn.LSTM(d, d, 2, batch_first=True, dropout=0.0)
        s.attn = nn.MultiheadAttention(d, 4, batch_first=True)
        s.norm = nn.RMSNorm(d) if hasattr(nn, "RMSNorm") else nn.LayerNorm(d)
        s.out = nn.Linear(d, v, bias=False)
        s.out.weight = s.emb.weight

    def forward(s, x, L):
        p = nn.utils.rnn.pack_padded_sequence(s.emb(x), L, batch_first=True, enforce_sorted=False)
        o, (h, c) = s.lstm(p)
        o, _ = nn.utils.rnn.pad_packed_sequence(o, batch_first=True, total_length=x.size(1))
        a, w = s.attn(o, o, o, key_padding_mask=x == 0, average_attn_weights=True)
        return s.out(s.norm(o + a))[torch.arange(len(x)), L - 1], w


m = LM(len(itos))
print(sum(p.numel() for p in m.parameters()), len(list(m.parameters())), [n for n, _ in m.named_parameters()][-3:])
opt = torch.optim.NAdam(m.parameters(), 5e-3)
sc = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=4 * len(dl))
for ep in range(4):
    tot = 0
    for x, L, y in dl:
        lo, w = m(x, L)
        loss = F.cross_entropy(lo, y, label_smoothing=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sc.step()
        tot += loss.item() * len(y)
    print(ep, f"{tot / len(dl.dataset):.4f} ppl {math.exp(tot / len(dl.dataset)):.4g} {sc.get_last_lr()[0]:.5f}")
print(w.shape, w[0, 0])
torch.save({"m": m.state_dict(), "o": opt.state_dict(), "s": sc.state_dict(), "rng": torch.get_rng_state()}, "c.pt")
a = torch.rand(2)
c = torch.load("c.pt")
torch.set_rng_state(c["rng"])
print(torch.equal(a, torch.rand(2)), m.load_state_dict(c["m"]), m.out.weight is m.emb.weight)
# skip-gram with negative sampling
E = nn.Embedding(len(itos), 8, sparse=False)
C = nn.Embedding(len(itos), 8)
o2 = torch.optim.Adagrad([*E.parameters(), *C.parameters()], 0.1)
pr = (torch.bincount(ids, minlength=len(itos)).float() + 1e-3) ** 0.75
for i in range(30):
    k = torch.randint(1, len(ids) - 1, (16,))
    ce, cx = ids[k], ids[k + 1]
    ng = torch.multinomial(pr, 16 * 5, replacement=True).view(16, 5)
    pos = F.logsigmoid((E(ce) * C(cx)).sum(1))
    neg = F.logsigmoid(-torch.bmm(C(ng), E(ce).unsqueeze(2)).squeeze(2)).sum(1)
    l = -(pos + neg).mean()
    o2.zero_grad()
    l.backward()
    o2.step()
print(f"{l:.4f}")
sim = F.cosine_similarity(E.weight[stoi["fox"]].unsqueeze(0), E.weight, dim=1)
print(sim.topk(3).indices.shape)
for b in DataLoader(
    range(10),
    sampler=WeightedRandomSampler([1.0] * 5 + [9.0] * 5, 6, generator=torch.Generator().manual_seed(0)),
    batch_size=3,
):
    print(b)
for b in DataLoader(range(5), batch_sampler=BatchSampler(SequentialSampler(range(5)), 2, True)):
    print(b)


class It(IterableDataset):
    def __iter__(s):
        return iter(torch.arange(4).float())


print(list(DataLoader(It(), batch_size=3)), default_collate([{"a": 1, "b": (2.0, [3])}] * 2))


def beam(step, k=2, n=3):
    seqs = [([2], 0.0)]
    for _ in range(n):
        cand = [
            (s + [i.item()], sc_ + v.item()) for s, sc_ in seqs for v, i in zip(*F.log_softmax(step(s), -1).topk(k))
        ]
        seqs = sorted(cand, key=lambda t: -t[1])[:k]
    return seqs


with torch.no_grad():
    m.eval()
    r = beam(lambda s: m(torch.tensor([s[-5:]]), torch.tensor([len(s[-5:])]))[0][0])
    print([s for s, _ in r], [round(x, 3) for _, x in r])


def topp(l, p=0.9, k=5):
    v, i = l.topk(k)
    l = torch.full_like(l, -float("inf")).scatter(-1, i, v)
    sv, si = l.sort(descending=True)
    cp = sv.softmax(-1).cumsum(-1)
    rm = cp - sv.softmax(-1) > p
    sv[rm] = -float("inf")
    return torch.gather(si, -1, torch.multinomial(sv.softmax(-1), 1))


torch.manual_seed(3)
print(topp(torch.randn(2, 20)))
