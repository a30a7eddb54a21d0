import torch
import torchopt
from harness import main, section, train


def problem():
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(16, 3)
    return model, lambda: (model(x) - x.sum(1, keepdim=True)).square().mean()


@section
def optimizers():
    found = []
    for kind in (torchopt.Adam, torchopt.AdamW, torchopt.SGD, torchopt.RMSProp, torchopt.Adagrad):
        model, loss_of = problem()
        train(kind(model.parameters(), lr=1e-2), loss_of, 3)
        found.append(loss_of().item())
    return found


@section
def functional():
    params, optimizer = {"w": torch.randn(3, requires_grad=True)}, torchopt.adam(lr=0.1)
    state, found = optimizer.init(params), []
    for _ in range(4):
        loss = (params["w"] - 1).square().sum()
        grads = {"w": torch.autograd.grad(loss, params["w"])[0]}
        updates, state = optimizer.update(grads, state, inplace=False)
        params = torchopt.apply_updates(params, updates, inplace=False)
        found.append(loss.item())
    return [found, params["w"]]


@section
def through_the_optimizer():
    model, loss_of = problem()
    scale = torch.tensor(1.0, requires_grad=True)
    optimizer = torchopt.MetaAdam(model, lr=1e-2)
    for _ in range(3):
        optimizer.step(loss_of() * scale)
    outer = loss_of()
    return [outer, torch.autograd.grad(outer, scale)]


@section
def clipped_and_scheduled():
    model, loss_of = problem()
    chain = torchopt.chain(
        torchopt.clip.clip_grad_norm(max_norm=0.5),
        torchopt.sgd(lr=torchopt.schedule.linear_schedule(0.1, 0.01, 4, 0), momentum=0.9),
    )
    return train(torchopt.Optimizer(model.parameters(), chain), loss_of, 4)


@section
def implicit():
    x, y = torch.randn(10, 3), torch.randn(10)

    def stationary(w, penalty):
        residual = x @ w - y
        return x.T @ residual / 10 + penalty * w

    @torchopt.diff.implicit.custom_root(stationary, argnums=1, solve=torchopt.linear_solve.solve_normal_cg())
    def ridge(start, penalty):
        return torch.linalg.solve(x.T @ x / 10 + penalty * torch.eye(3), x.T @ y / 10)

    penalty = torch.tensor(0.3, requires_grad=True)
    w = ridge(torch.zeros(3), penalty)
    w.sum().backward()
    return [w, penalty.grad]


@section
def state_saved():
    model, loss_of = problem()
    optimizer = torchopt.MetaSGD(model, lr=0.1, momentum=0.9)
    kept = torchopt.extract_state_dict(model), torchopt.extract_state_dict(optimizer)
    optimizer.step(loss_of())
    after = loss_of().item()
    torchopt.recover_state_dict(model, kept[0])
    torchopt.recover_state_dict(optimizer, kept[1])
    return [after, loss_of()]


main()
