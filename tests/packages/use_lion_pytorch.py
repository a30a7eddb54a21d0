import io

import torch
from harness import main, section
from lion_pytorch import Lion


def fitted(**options):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer, x, losses = Lion(model.parameters(), lr=1e-2, **options), torch.randn(16, 4), []
    for _ in range(4):
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, optimizer, losses


@section
def steps():
    model, _, losses = fitted(weight_decay=0.1)
    return [losses, model[0].weight[0]]


@section
def decoupled():
    model, _, losses = fitted(weight_decay=0.1, decoupled_weight_decay=True, betas=(0.95, 0.98))
    return [losses, model[2].weight[0]]


@section
def saved_and_loaded():
    model, optimizer, _ = fitted()
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file)
    model.load_state_dict(weights)
    again = Lion(model.parameters())
    again.load_state_dict(state)
    return [again.param_groups[0]["lr"], next(iter(again.state.values()))["exp_avg"][0]]


main()
