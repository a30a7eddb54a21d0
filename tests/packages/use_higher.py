import higher
import torch
from harness import main, section


@section
def learned_start():
    model, losses = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)), []
    inner, outer = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(8, 2)
    for _ in range(2):
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (copy, step):
            for _ in range(3):
                step.step((copy(x) - x.sum(1, keepdim=True)).square().mean())
            loss = (copy(x + 0.1) - x.sum(1, keepdim=True)).square().mean()
        outer.zero_grad()
        loss.backward()
        outer.step()
        losses.append(loss.item())
    return [losses, model[0].weight]


@section
def learned_rate():
    model, x = torch.nn.Linear(2, 1), torch.randn(8, 2)
    rate = torch.tensor(0.1, requires_grad=True)
    inner = torch.optim.Adam(model.parameters(), lr=0.1)
    with higher.innerloop_ctx(model, inner, override={"lr": [rate]}) as (copy, step):
        for _ in range(2):
            step.step((copy(x) - x.sum(1, keepdim=True)).square().mean())
        loss = copy(x).square().mean()
    return [loss, torch.autograd.grad(loss, rate)[0]]


main()
