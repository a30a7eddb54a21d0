import torch
from harness import main, section
from torch_ema import ExponentialMovingAverage


def averaged():
    model = torch.nn.Linear(3, 2)
    ema, optimizer = (
        ExponentialMovingAverage(model.parameters(), decay=0.9),
        torch.optim.SGD(model.parameters(), lr=0.1),
    )
    for _ in range(4):
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        ema.update()
    return model, ema


@section
def averages():
    model, ema = averaged()
    with ema.average_parameters():
        inside = model.weight.clone()
    return [inside, model.weight]


@section
def saved():
    model, ema = averaged()
    other = ExponentialMovingAverage(torch.nn.Linear(3, 2).parameters(), decay=0.5)
    other.load_state_dict(ema.state_dict())
    other.copy_to(model.parameters())
    return [other.decay, other.num_updates, model.weight]


main()
