import normflows as nf
import torch
from harness import main, section, train


def fitted(flows, base=None, features=2):
    model = nf.NormalizingFlow(base or nf.distributions.DiagGaussian(features), flows)
    x, optimizer = torch.randn(16, features).cumsum(1), torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = train(optimizer, lambda: model.forward_kld(x), 4)
    samples, log_prob = model.sample(3)
    return [losses, samples, log_prob]


@section
def real_nvp():
    flows = []
    for _ in range(3):
        flows.append(nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=True)))
        flows.append(nf.flows.Permute(2, mode="swap"))
    return fitted(flows)


@section
def splines():
    flows = [nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 16), nf.flows.LULinearPermute(2)]
    return fitted(flows)


@section
def residual():
    net = nf.nets.LipschitzMLP([2, 16, 2], init_zeros=True, lipschitz_const=0.9)
    return fitted([nf.flows.Residual(net, reduce_memory=False)])[0]


@section
def planar():
    target = nf.distributions.TwoMoons()
    model = nf.NormalizingFlow(nf.distributions.DiagGaussian(2), [nf.flows.Planar((2,)) for _ in range(3)], target)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return train(optimizer, lambda: model.reverse_kld(8), 3)


@section
def circular():
    base = nf.distributions.UniformGaussian(2, [1], torch.tensor([1.0, 3.14]))
    flows = [nf.flows.CircularAutoregressiveRationalQuadraticSpline(2, 1, 16, [1], num_bins=4)]
    return fitted(flows, base)


@section
def mixture():
    base = nf.distributions.GaussianMixture(3, 2).float()
    x = torch.randn(5, 2)
    return [base.log_prob(x), base.sample(3)]


main()
