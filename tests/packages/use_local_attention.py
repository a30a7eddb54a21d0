import torch
from harness import main, section, train
from local_attention import LocalAttention
from local_attention.transformer import LocalTransformer


@section
def windows():
    q, k, v = torch.randn(3, 1, 2, 12, 8)
    mask = torch.ones(1, 12).bool()
    mask[0, 9:] = False
    causal = LocalAttention(dim=8, window_size=4, causal=True)
    around = LocalAttention(dim=8, window_size=4, look_forward=1, autopad=True, exact_windowsize=False)
    return [causal(q, k, v, mask=mask)[0, 0, :9], around(q, k, v)[0, 1]]


@section
def training():
    options = {"num_tokens": 20, "dim": 16, "depth": 2, "max_seq_len": 16, "local_attn_window_size": 4, "heads": 2}
    model, x = LocalTransformer(causal=True, dim_head=8, **options), torch.randint(0, 20, (2, 13))
    return train(torch.optim.AdamW(model.parameters(), lr=1e-3), lambda: model(x, return_loss=True), 2)


main()
