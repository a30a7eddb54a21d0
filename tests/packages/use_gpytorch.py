import gpytorch
import torch
from harness import main, section

X = torch.linspace(0, 1, 12)
Y = torch.sin(6 * X)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@section
def exact():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(X, Y, likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective, losses = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(X), Y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval(), likelihood.eval()
    with torch.no_grad():
        predicted = likelihood(model(torch.tensor([0.25, 0.6])))
    return [losses, predicted.mean, predicted.variance]


@section
def variational():
    class Approximate(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            q = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
            super().__init__(gpytorch.variational.VariationalStrategy(self, points, q, learn_inducing_locations=True))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Approximate(X[:4].clone().unsqueeze(-1)), gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=12)
    optimizer, losses = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = -objective(model(X.unsqueeze(-1)), Y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@section
def kernels():
    k = gpytorch.kernels
    return [
        kernel(X[:3].unsqueeze(-1)).to_dense()
        for kernel in (k.PeriodicKernel(), k.LinearKernel(), k.RQKernel(), k.MaternKernel(nu=1.5))
    ]


main()
