import torch
from harness import main, section, train
from nflows import distributions, flows, nn, transforms
from nflows.transforms.splines import rational_quadratic


def fitted(transform, features=4):
    flow = flows.Flow(transform, distributions.StandardNormal([features]))
    x, optimizer = torch.randn(16, features) * 2 + 1, torch.optim.Adam(flow.parameters(), lr=1e-2)
    losses = train(optimizer, lambda: -flow.log_prob(x).mean(), 4)
    return [losses, flow.sample(2), flow.transform_to_noise(x[:2])]


@section
def masked_autoregressive():
    parts = [transforms.MaskedAffineAutoregressiveTransform(4, 16), transforms.ReversePermutation(4)]
    return fitted(transforms.CompositeTransform(parts * 2))


@section
def spline_coupling():
    def network(i, o):
        return nn.nets.ResidualNet(i, o, hidden_features=16, num_blocks=1)

    mask = torch.tensor([1, 0, 1, 0])
    return fitted(transforms.PiecewiseRationalQuadraticCouplingTransform(mask, network, tails="linear", num_bins=5))


@section
def linear():
    parts = transforms.CompositeTransform([transforms.LULinear(4), transforms.BatchNorm(4)])
    y, det = parts(torch.randn(6, 4))
    return [y, det, parts.eval().inverse(y)]


@section
def svd():
    turn, x = transforms.SVDLinear(4, num_householder=2), torch.randn(5, 4)
    for weight in turn.parameters():
        torch.nn.init.normal_(weight)
    y, det = turn(x)
    (y.square().sum() + det.sum()).backward()
    return [y, det, turn.inverse(y)[0] - x, [weight.grad for weight in turn.parameters()]]


@section
def splines():
    x = torch.rand(5, 2)
    y, det = rational_quadratic.rational_quadratic_spline(
        x, torch.randn(5, 2, 6), torch.randn(5, 2, 6), torch.randn(5, 2, 7)
    )
    return [y, det]


main()
