import torch
from harness import main, section, train
from performer_pytorch import FastAttention, Performer, PerformerLM, SelfAttention


@section
def language_model():
    model = PerformerLM(num_tokens=50, max_seq_len=32, dim=32, depth=2, heads=2, causal=False, nb_features=16)
    tokens, optimizer = torch.randint(50, (2, 32)), torch.optim.Adam(model.parameters(), lr=1e-3)
    cross = torch.nn.functional.cross_entropy
    return train(optimizer, lambda: cross(model(tokens).transpose(1, 2), tokens), 3)


@section
def reversible():
    model = Performer(dim=32, depth=2, heads=2, dim_head=16, reversible=True, nb_features=16)
    x = torch.randn(1, 16, 32, requires_grad=True)
    y = model(x)
    y.square().mean().backward()
    return [y[0, :2], x.grad[0, :2]]


@section
def attention():
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    return [FastAttention(16, nb_features=32)(q, k, v), FastAttention(16, generalized_attention=True)(q, k, v)]


@section
def masked():
    layer = SelfAttention(dim=32, heads=4, nb_features=16)
    return layer(torch.randn(2, 10, 32), mask=torch.arange(10) < torch.tensor([[10], [6]]))


main()
