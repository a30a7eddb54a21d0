import torch
from harness import main, section
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cct import CCT


def steps(model, call, count=2):
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(count):
        loss = call()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


SIZES = {"image_size": 16, "patch_size": 4, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2, "mlp_dim": 48}
X, Y = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0)), torch.tensor([1, 3])


@section
def vit():
    model = ViT(**SIZES, dropout=0.1, emb_dropout=0.1)
    return steps(model, lambda: torch.nn.functional.cross_entropy(model(X), Y))


@section
def simple_vit():
    model = SimpleViT(**SIZES)
    return steps(model, lambda: torch.nn.functional.cross_entropy(model(X), Y))


@section
def cct():
    model = CCT(
        img_size=16, embedding_dim=24, n_conv_layers=1, kernel_size=3, stride=1, padding=1, num_layers=1, num_heads=2,
        mlp_ratio=1.0, num_classes=5,
    )  # fmt: skip
    return steps(model, lambda: torch.nn.functional.cross_entropy(model(X), Y))


main()
