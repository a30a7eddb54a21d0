"""Sentences of different lengths without padding: attention and a training loop on nested tensors."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
nt = torch.nested.nested_tensor([torch.arange(12).reshape(2, 6), torch.arange(18).reshape(3, 6)],
                                dtype=torch.float, layout=torch.jagged)  # fmt: skip
print(f"{nt=}")
print("shape", nt.shape, "dim", nt.dim(), "size(0)", nt.size(0), "size(-1)", nt.size(-1), "numel", nt.numel())
for component in nt.unbind():
    print(component)
print(torch.nested.to_padded_tensor(nt, padding=0.0))
print(nt.offsets(), nt.values().shape, nt.is_nested, nt.layout)
print([part.tolist() for part in (nt * 2 + 1).unbind()])
print(nt.unflatten(-1, [2, 3]).transpose(1, 2).shape)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        query, key, value = (
            t.unflatten(-1, [self.heads, t.size(-1) // self.heads]).transpose(1, 2) for t in (query, key, value)
        )
        attended = F.scaled_dot_product_attention(query, key, value)
        return self.out(attended.transpose(1, 2).flatten(-2))


class Reader(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.feed = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + self.attention(self.norm(x))
        x = x + self.feed(x)
        return self.head(x.to_padded_tensor(0.0).sum(dim=1))


lengths = [3, 7, 1, 5, 4, 6]
sentences = [torch.randint(0, 20, (n,)) for n in lengths]
labels = torch.tensor([int(s.sum()) % 3 for s in sentences])
tokens = torch.nested.nested_tensor(sentences, layout=torch.jagged)
model = Reader(20, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(16):
    loss = F.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, f"{loss.item():.4f}")
with torch.no_grad():
    alone = torch.cat([model(torch.nested.nested_tensor([s], layout=torch.jagged)) for s in sentences])
    print(torch.allclose(alone, model(tokens), atol=1e-5), model(tokens).argmax(-1).tolist())

values = torch.randn(9, 4, requires_grad=True)
packed = torch.nested.nested_tensor_from_jagged(values, offsets=torch.tensor([0, 2, 5, 9]))
print([w.tolist() for w in packed.detach().sum(-1).softmax(1).mul(1000).round().unbind()])
pooled = (packed * packed.softmax(-1)).to_padded_tensor(0.0).sum(1)
pooled.square().sum().backward()
print(pooled.detach(), values.grad.norm())
leaf = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged, requires_grad=True)
(leaf * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
print(leaf.grad.values(), leaf.is_leaf)
