import torch
from harness import main, section
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper


def steps(model, call, count=2):
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(count):
        loss = call()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def decoder():
    model = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2))
    wrapper, x = AutoregressiveWrapper(model), torch.randint(0, 20, (2, 12))
    return [steps(wrapper, lambda: wrapper(x))]


@section
def generating():
    model = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Decoder(dim=32, depth=1, heads=2))
    return AutoregressiveWrapper(model).generate(torch.randint(0, 20, (1, 4)), 6, temperature=0.0)


@section
def encoder():
    layers = Encoder(dim=32, depth=2, heads=2, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True)
    model = TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers)
    return model(torch.randint(0, 20, (2, 10)))[0, 0, :6]


main()
