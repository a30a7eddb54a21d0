"""Functions with gradients of their own, and hooks."""

from typing import Any

import rushlight as torch
from rushlight import nn
from rushlight.autograd import Function
from rushlight.autograd.function import FunctionCtx


class Clamped(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, bound: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.bound = bound
        return x.clamp(-bound, bound)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= ctx.bound), None


class Doubled(Function):
    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
        return 2 * grad


x = torch.linspace(-2, 2, 5, requires_grad=True)
y: torch.Tensor = Clamped.apply(x, 1.0)
Doubled.apply(y).sum().backward()
assert x.grad is not None
print(x.grad.tolist())

shapes: dict[str, torch.Size] = {}


def remember(name: str) -> Any:
    def hook(module: nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        shapes[name] = output.shape

    return hook


model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
handles = [child.register_forward_hook(remember(name)) for name, child in model.named_children()]
out: torch.Tensor = model(torch.zeros(2, 3))
out.register_hook(lambda grad: grad * 0)
out.sum().backward()
for handle in handles:
    handle.remove()


def cubes(v: torch.Tensor) -> torch.Tensor:
    return v.pow(3).sum()


grads = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
hessian = torch.autograd.functional.hessian(cubes, x.detach())
print(shapes, grads[0].shape, torch.autograd.gradcheck(cubes, x.detach().double().requires_grad_()))
