import torch
from harness import main, section, train
from reformer_pytorch import LSHSelfAttention, Reformer, ReformerLM


@section
def language_model():
    model = ReformerLM(num_tokens=40, dim=32, depth=2, max_seq_len=64, heads=2, bucket_size=8, n_hashes=2, causal=True)
    tokens, optimizer = torch.randint(40, (1, 64)), torch.optim.Adam(model.parameters(), lr=1e-3)
    cross = torch.nn.functional.cross_entropy
    return train(optimizer, lambda: cross(model(tokens).transpose(1, 2), tokens), 3)


@section
def attention():
    layer = LSHSelfAttention(dim=32, heads=2, bucket_size=8, n_hashes=2)
    x = torch.randn(2, 32, 32, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    return [y[0, :3], x.grad[0, :3]]


@section
def chunked():
    model = Reformer(dim=32, depth=1, heads=2, bucket_size=8, ff_chunks=4, use_full_attn=True)
    return model(torch.randn(1, 16, 32))[0, :4]


main()
