"""A character-level RNN by hand, updated by hand; print options."""

import random
import string

import torch
import torch.nn as nn

random.seed(1)
torch.manual_seed(1)
letters = string.ascii_letters + " .,;'"
n_letters = len(letters)
data = {
    "it": ["Abello", "Rossi", "Bianchi", "Ricci"],
    "de": ["Schmidt", "Weber", "Schulz", "Wagner"],
    "jp": ["Tanaka", "Suzuki", "Sato", "Ito"],
}
cats = list(data)


def line(l):
    t = torch.zeros(len(l), 1, n_letters)
    for i, c in enumerate(l):
        t[i][0][letters.find(c)] = 1
    return t


class RNN(nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.hidden_size = h
        self.i2h = nn.Linear(i, h)
        self.h2h = nn.Linear(h, h)
        self.h2o = nn.Linear(h, o)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, x, h):
        h = torch.tanh(self.i2h(x) + self.h2h(h))
        return self.softmax(self.h2o(h)), h

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, 32, 3)
crit = nn.NLLLoss()
lr = 0.05
cur = 0
for it in range(1, 301):
    c = random.choice(cats)
    l = random.choice(data[c])
    ct = torch.tensor([cats.index(c)], dtype=torch.long)
    h = rnn.initHidden()
    rnn.zero_grad()
    t = line(l)
    for i in range(t.size()[0]):
        out, h = rnn(t[i], h)
    loss = crit(out, ct)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-lr)
    cur += loss.item()
    if it % 100 == 0:
        v, i = out.topk(1)
        print("%d %.4f %s / %s" % (it, cur / 100, l, cats[i[0].item()]))
        cur = 0
conf = torch.zeros(3, 3)
with torch.no_grad():
    for ci, c in enumerate(cats):
        for l in data[c]:
            h = rnn.initHidden()
            t = line(l)
            for i in range(t.size(0)):
                out, h = rnn(t[i], h)
            conf[ci][out.topk(1)[1][0].item()] += 1
for i in range(3):
    conf[i] = conf[i] / conf[i].sum()
print(conf)
lstm = nn.LSTM(n_letters, 8, num_layers=2, dropout=0.0, bidirectional=True)
o, (h, c) = lstm(line("Hinton"))
print(o.shape, h.shape, o.sum())
print(rnn)
torch.set_printoptions(precision=2, sci_mode=False)
print(torch.randn(3, 3) * 1000)
print(torch.randn(1001))
