import torch
from harness import main, section
from pytorch_optimizer import load_optimizer


def trained(name, **options):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer, x, losses = load_optimizer(name)(model.parameters(), **options), torch.randn(16, 4), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def adaptive():
    return {name: trained(name, lr=1e-2) for name in ("adabelief", "adan", "adamp", "radam", "lamb")}


@section
def signs_and_matrices():
    return {name: trained(name, lr=1e-2) for name in ("lion", "tiger", "shampoo", "adafactor", "came")}


@section
def without_a_rate():
    return {name: trained(name) for name in ("prodigy", "dadaptadam", "schedulefreeadamw")}


main()
