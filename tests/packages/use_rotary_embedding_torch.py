import torch
from harness import main, section
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb


@section
def turning():
    rotary, q, k = RotaryEmbedding(dim=8), torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16)
    q, k = rotary.rotate_queries_or_keys(q), rotary.rotate_queries_or_keys(k)
    return [q[0, 0, 3], k[0, 1, 5], (q @ k.mT)[0, 0]]


@section
def cached():
    rotary = RotaryEmbedding(dim=8, use_xpos=True)
    q, k = rotary.rotate_queries_with_cached_keys(torch.randn(1, 2, 1, 16), torch.randn(1, 2, 6, 16))
    turned = rotary.rotate_queries_and_keys(torch.randn(1, 2, 6, 16), torch.randn(1, 2, 6, 16))
    return [q[0, 0, 0], k[0, 1, 4], turned[0][0, 0, 2], turned[1][0, 0, 2]]


@section
def pixels():
    rotary = RotaryEmbedding(dim=8, freqs_for="pixel", max_freq=32)
    return apply_rotary_emb(rotary.get_axial_freqs(3, 4), torch.randn(1, 3, 4, 16))[0, 1, 2]


@section
def learned():
    rotary = RotaryEmbedding(dim=8, learned_freq=True)
    optimizer, q, losses = torch.optim.SGD(rotary.parameters(), lr=0.1), torch.randn(1, 2, 6, 16), []
    for _ in range(3):
        loss = rotary.rotate_queries_or_keys(q).cumsum(-2).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, rotary.freqs]


main()
