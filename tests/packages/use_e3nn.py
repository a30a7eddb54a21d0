import torch
from e3nn import o3
from e3nn.nn import BatchNorm, FullyConnectedNet, Gate
from harness import main, section


@section
def irreps():
    both = o3.Irreps("2x0e + 1x1o") * 2
    return [str(both), str(both.simplify()), both.dim, o3.wigner_3j(1, 1, 2)[:, :, 0]]


@section
def harmonics():
    x = torch.randn(4, 3)
    alpha, beta = o3.xyz_to_angles(x)
    return [o3.spherical_harmonics([0, 1, 2, 3], x, normalize=True)[0], alpha, beta, o3.rand_matrix(1)]


@section
def turned():
    product = o3.FullyConnectedTensorProduct("2x0e + 1x1o", "0e + 1o", "2x0e + 2x1o")
    turn = o3.rand_matrix()
    a, b = torch.randn(3, 5), torch.randn(3, 4)
    left = product(a @ o3.Irreps("2x0e + 1x1o").D_from_matrix(turn).T, b @ o3.Irreps("0e + 1o").D_from_matrix(turn).T)
    right = product(a, b) @ o3.Irreps("2x0e + 2x1o").D_from_matrix(turn).T
    return [right, (left - right).abs().max() < 1e-4]


@section
def training():
    gate = Gate("4x0e", [torch.relu], "2x0e", [torch.sigmoid], "2x1o")
    layers = torch.nn.ModuleList([o3.Linear("1x0e + 2x1o", gate.irreps_in), gate, BatchNorm(gate.irreps_out)])
    radial = FullyConnectedNet([3, 8, 1], torch.nn.functional.silu)
    optimizer, losses = torch.optim.Adam([*layers.parameters(), *radial.parameters()], lr=0.01), []
    x, r = torch.randn(6, 7), torch.rand(6, 3)
    for _ in range(3):
        y = x
        for layer in layers:
            y = layer(y)
        loss = (y * radial(r) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


main()
