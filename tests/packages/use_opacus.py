import torch
from harness import main, section
from opacus import GradSampleModule, PrivacyEngine
from opacus.accountants import RDPAccountant
from opacus.layers import DPLSTM, DPMultiheadAttention
from opacus.validators import ModuleValidator


def data():
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(32, 6), torch.randint(3, (32,))), batch_size=8
    )


def private(**options):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=data(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        **options,
    )
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, next(model.parameters())[0], engine.get_epsilon(delta=1e-3)]


@section
def training():
    return private(poisson_sampling=False)


@section
def sampled():
    return private(poisson_sampling=True)


@section
def functorch_gradients():
    return private(poisson_sampling=False, grad_sample_mode="functorch")


def per_sample(module, *inputs):
    module = GradSampleModule(module)
    out = module(*inputs)
    out = out[0] if isinstance(out, tuple) else out
    (out * torch.randn_like(out)).sum().backward()
    return [p.grad_sample.flatten(1).norm(dim=1) for p in module.parameters() if p.requires_grad]


@section
def convolution():
    layers = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.GroupNorm(2, 4))
    return per_sample(layers, torch.randn(3, 2, 6, 6))


@section
def recurrent():
    return per_sample(DPLSTM(4, 5, batch_first=True), torch.randn(3, 6, 4))


@section
def attention():
    x = torch.randn(5, 2, 8)
    return DPMultiheadAttention(8, 2)(x, x, x)[0]


@section
def fixed():
    model = ModuleValidator.fix(torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.BatchNorm2d(32)))
    return [str(model[1]), [str(e) for e in ModuleValidator.validate(model, strict=False)]]


@section
def accounting():
    accountant = RDPAccountant()
    for _ in range(10):
        accountant.step(noise_multiplier=1.1, sample_rate=0.05)
    return accountant.get_epsilon(delta=1e-5)


main()
