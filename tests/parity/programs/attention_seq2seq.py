"""Sequence to sequence with attention: packed sequences, masks, greedy decoding."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(0)
torch.manual_seed(0)


class EncoderRNN(nn.Module):
    def __init__(self, n, h):
        super().__init__()
        self.hidden_size = h
        self.embedding = nn.Embedding(n, h, padding_idx=0)
        self.gru = nn.GRU(h, h, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        e = self.embedding(x)
        p = pack_padded_sequence(e, lengths, batch_first=True, enforce_sorted=False)
        o, h = self.gru(p)
        o, _ = pad_packed_sequence(o, batch_first=True)
        return o[:, :, : self.hidden_size] + o[:, :, self.hidden_size :], h[:1] + h[1:]


class BahdanauAttention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.Wa = nn.Linear(h, h)
        self.Ua = nn.Linear(h, h)
        self.Va = nn.Linear(h, 1)

    def forward(self, q, k, mask):
        s = self.Va(torch.tanh(self.Wa(q) + self.Ua(k))).squeeze(2).unsqueeze(1)
        s = s.masked_fill(mask.unsqueeze(1), float("-inf"))
        w = F.softmax(s, dim=-1)
        return torch.bmm(w, k), w


class AttnDecoder(nn.Module):
    def __init__(self, h, n):
        super().__init__()
        self.embedding = nn.Embedding(n, h)
        self.attention = BahdanauAttention(h)
        self.gru = nn.GRU(2 * h, h, batch_first=True)
        self.out = nn.Linear(h, n)

    def forward(self, enc, hid, mask, target=None, steps=6):
        inp = torch.empty(enc.size(0), 1, dtype=torch.long).fill_(1)
        outs, ws = [], []
        for i in range(steps):
            q = hid.permute(1, 0, 2)
            c, w = self.attention(q, enc, mask)
            o, hid = self.gru(torch.cat((self.embedding(inp), c), dim=2), hid)
            o = self.out(o)
            outs.append(o)
            ws.append(w)
            if target is not None:
                inp = target[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                inp = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outs, 1), -1), torch.cat(ws, 1)


data = [torch.randint(2, 20, (random.randint(3, 6),)) for _ in range(32)]
src = pad_sequence(data, batch_first=True)
lengths = torch.tensor([len(d) for d in data])
tgt = pad_sequence([d.flip(0) for d in data], batch_first=True, padding_value=0)
enc, dec = EncoderRNN(20, 24), AttnDecoder(24, 20)
eo, do = optim.Adam(enc.parameters(), 5e-3), optim.Adam(dec.parameters(), 5e-3)
crit = nn.NLLLoss(ignore_index=0)
for step in range(61):
    eo.zero_grad()
    do.zero_grad()
    o, h = enc(src, lengths)
    mask = torch.arange(src.size(1))[None] >= lengths[:, None]
    logp, w = dec(o, h, mask, tgt, tgt.size(1))
    loss = crit(logp.view(-1, logp.size(-1)), tgt.view(-1))
    loss.backward()
    eo.step()
    do.step()
    if step % 20 == 0:
        print(f"{step} {loss.item():.4f}")
enc.eval()
dec.eval()
with torch.no_grad():
    o, h = enc(src[:2], lengths[:2])
    mask = torch.arange(o.size(1))[None] >= lengths[:2][:, None]
    logp, w = dec(o, h, mask, None, 6)
    print(logp.argmax(-1))
    print(w[0].round(decimals=2))
    print(w.shape)
