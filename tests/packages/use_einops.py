import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from harness import main, section


@section
def shapes():
    x = torch.randn(2, 3, 4, 4)
    return [
        rearrange(x, "b c (h i) (w j) -> b (h w) (c i j)", i=2, j=2),
        reduce(x, "b c h w -> b c", "max"),
        repeat(x[:, 0], "b h w -> b (h 2) w")[0, :3],
        einsum(x, x, "b c h w, b d h w -> b c d"),
    ]


@section
def layers_train():
    net = torch.nn.Sequential(
        Rearrange("b c (h i) (w j) -> b (h w) (c i j)", i=2, j=2),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=12, d=5),
        Reduce("b t d -> b d", "mean"),
    )
    x = torch.randn(2, 3, 4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def packing():
    packed, shapes = pack([torch.randn(2, 3), torch.randn(2, 4, 2)], "b *")
    return [packed, [list(s) for s in shapes], unpack(packed, shapes, "b *")[1]]


main()
