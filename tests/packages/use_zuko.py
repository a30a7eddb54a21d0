import torch
import zuko
from harness import main, section


def trained(flow, **options):
    x, context = torch.randn(16, 3).sigmoid(), torch.randn(16, 2)
    optimizer, losses = torch.optim.Adam(flow.parameters(), lr=5e-3), []
    for _ in range(3):
        loss = -flow(context).log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, flow(context[0])


@section
def splines():
    losses, given = trained(zuko.flows.NSF(3, 2, transforms=2, hidden_features=(16, 16)))
    return [losses, given.sample((3,))]


@section
def autoregressive():
    losses, given = trained(zuko.flows.MAF(3, 2, transforms=2, hidden_features=(16, 16)))
    return [losses, given.rsample_and_log_prob((2,))]


@section
def coupled():
    losses, given = trained(zuko.flows.NICE(3, 2, transforms=3, hidden_features=(16,)))
    return [losses, given.log_prob(torch.zeros(3))]


@section
def continuous():
    return trained(zuko.flows.CNF(3, 2, hidden_features=(16,)))[0]


@section
def transforms():
    turn = zuko.transforms.MonotonicRQSTransform(torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 3))
    x = torch.randn(3)
    y, jacobian = turn.call_and_ladj(x)
    return [y, jacobian, turn.inv(y) - x]


main()
