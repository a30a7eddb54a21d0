import torch
from harness import main, section, train
from linformer import Linformer, LinformerLM, LinformerSelfAttention


@section
def language_model():
    model = LinformerLM(num_tokens=40, dim=32, seq_len=24, depth=2, k=8, heads=2, one_kv_head=True, share_kv=True)
    tokens, optimizer = torch.randint(40, (2, 24)), torch.optim.Adam(model.parameters(), lr=1e-3)
    cross = torch.nn.functional.cross_entropy
    return train(optimizer, lambda: cross(model(tokens).transpose(1, 2), tokens), 3)


@section
def reversible():
    model = Linformer(dim=32, seq_len=16, depth=2, k=8, heads=2, reversible=True)
    x = torch.randn(1, 16, 32, requires_grad=True)
    y = model(x)
    y.square().mean().backward()
    return [y[0, :2], x.grad[0, :2]]


@section
def attention():
    layer = LinformerSelfAttention(dim=32, seq_len=16, k=8, heads=4)
    return layer(torch.randn(1, 16, 32), torch.randn(1, 16, 32))[0, :3]


main()
