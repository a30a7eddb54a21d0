import torch
from harness import main, section, train
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def forward(self, t, y):
        return self.layers(y)


@section
def solvers():
    field, y, t = Field(), torch.tensor([[1.0, 0.0]]), torch.linspace(0, 1, 4)
    return [odeint(field, y, t, method=m)[-1] for m in ("euler", "rk4", "dopri5")]


@section
def adjoint():
    field = Field()

    def loss():
        out = odeint_adjoint(field, torch.ones(3, 2), torch.tensor([0.0, 1.0]), rtol=1e-5, atol=1e-6)
        return out[-1].square().mean()

    return train(torch.optim.Adam(field.parameters(), lr=0.05), loss, 3)


main()
