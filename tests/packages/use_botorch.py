"""botorch: a Gaussian process fitted by its likelihood, expected improvement, and candidates found by it."""

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.acquisition.monte_carlo import qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from harness import main, section

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def target(x):
    return -((x - 0.3) ** 2).sum(-1, keepdim=True) + 0.1 * torch.sin(9 * x).sum(-1, keepdim=True)


def model():
    x = draw_sobol_samples(BOUNDS, 8, 1, seed=3).squeeze(1)
    return SingleTaskGP(x, target(x))


@section
def sobol_samples():
    engine = torch.quasirandom.SobolEngine(5, scramble=True, seed=11)
    return engine.draw(6), draw_sobol_samples(BOUNDS, 4, 2, seed=1)


@section
def posterior():
    gp = model()
    x = torch.tensor([[0.2, 0.4], [0.9, 0.1]], dtype=torch.float64)
    known = gp.posterior(x)
    drawn = SobolQMCNormalSampler(torch.Size([4]), seed=5)(known)
    return known.mean, known.variance, drawn


@section
def acquisition():
    gp = model()
    x = torch.tensor([[[0.2, 0.4]], [[0.9, 0.1]]], dtype=torch.float64, requires_grad=True)
    best = gp.train_targets.max()
    sampler = SobolQMCNormalSampler(torch.Size([16]), seed=5)
    values = [
        LogExpectedImprovement(gp, best)(x),
        UpperConfidenceBound(gp, beta=0.2)(x),
        qExpectedImprovement(gp, best, sampler=sampler)(x),
    ]
    gradient = torch.autograd.grad(values[0].sum(), x)[0]
    return values, gradient


@section
def fitted():
    gp = model()
    mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 12}})
    return [round(float(p.sum()), 3) for p in gp.parameters()]


@section
def candidate():
    gp = model()
    found, value = optimize_acqf(
        UpperConfidenceBound(gp, beta=0.2),
        BOUNDS,
        q=1,
        num_restarts=2,
        raw_samples=8,
        options={"seed": 0, "maxiter": 20},
    )
    return [round(v, 3) for v in found.flatten().tolist()], round(float(value), 4)


if __name__ == "__main__":
    main()
