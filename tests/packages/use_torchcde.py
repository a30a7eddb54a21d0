import torch
import torchcde
from harness import main, section, train


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4 * 3)

    def forward(self, t, z):
        return self.layer(z).tanh().view(*z.shape[:-1], 4, 3)


def series():
    x = torch.randn(2, 6, 3)
    x[0, 2, 1] = x[1, 4, 2] = float("nan")
    return x


@section
def interpolated():
    x = series()
    cubic = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(x))
    natural = torchcde.CubicSpline(torchcde.natural_cubic_coeffs(x))
    straight = torchcde.LinearInterpolation(torchcde.linear_interpolation_coeffs(x, rectilinear=0))
    return [[path.evaluate(torch.tensor(1.5)), path.derivative(torch.tensor(2.5))]
            for path in (cubic, natural, straight)]  # fmt: skip


@section
def training():
    field, start = Field(), torch.nn.Linear(3, 4)
    path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(series()))

    def loss():
        z = start(path.evaluate(path.interval[0]))
        z = torchcde.cdeint(path, field, z, path.interval, method="rk4", options={"step_size": 0.5})
        return z[:, -1].square().mean()

    return train(torch.optim.Adam([*field.parameters(), *start.parameters()], lr=0.05), loss, 2)


main()
