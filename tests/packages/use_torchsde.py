import torch
import torchsde
from harness import main, section, train


class Walk(torch.nn.Module):
    def __init__(self, noise="diagonal", kind="ito"):
        super().__init__()
        self.noise_type, self.sde_type = noise, kind
        self.drift = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
        self.spread = torch.nn.Parameter(torch.tensor([0.2, 0.3]))

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.spread.expand_as(y) * torch.sigmoid(y)


TIMES = torch.linspace(0, 1, 4)


def noise(**options):
    return torchsde.BrownianInterval(0.0, 1.0, size=(3, 2), entropy=7, **options)


@section
def motion():
    path = noise(levy_area_approximation="space-time")
    w, u = path(0.2, 0.7, return_U=True)
    return [w, u, path(0.2, 0.4) + path(0.4, 0.7) - w]


@section
def solvers():
    walk, y = Walk(), torch.ones(3, 2)
    return [torchsde.sdeint(walk, y, TIMES, bm=noise(), dt=0.1, method=m)[-1] for m in ("euler", "milstein")]


@section
def stratonovich():
    walk, y = Walk(kind="stratonovich"), torch.ones(3, 2)
    methods = ("midpoint", "heun", "reversible_heun")
    return [torchsde.sdeint(walk, y, TIMES, bm=noise(), dt=0.1, method=m)[-1] for m in methods]


@section
def adjoint():
    walk = Walk(kind="stratonovich")

    def loss():
        out = torchsde.sdeint_adjoint(walk, torch.ones(3, 2), TIMES, bm=noise(), dt=0.1, method="midpoint")
        return out[-1].square().mean()

    return train(torch.optim.Adam(walk.parameters(), lr=0.05), loss, 2)


main()
