"""Checkpointing, autograd.functional, torch.func, gradcheck."""

import warnings

import torch
from helpers import attempt, section
from torch import func
from torch.autograd import Function, functional, gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

section("checkpoint")
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor([0.5, 0.25, 0.125], requires_grad=True)


def block(x):
    return (x * w).exp().sin()


def noisy(x):
    return x * torch.rand(3)


for reentrant in (True, False):
    x.grad = w.grad = None
    y = checkpoint(block, x, use_reentrant=reentrant)
    y.sum().backward()
    print(y, x.grad, w.grad)
    x.grad = None
    torch.manual_seed(0)
    y = checkpoint(noisy, x, use_reentrant=reentrant)
    y.sum().backward()
    print(y, x.grad, torch.rand(1))
    x.grad = None
    checkpoint_sequential([torch.exp, torch.sin, torch.cos], 2, x, use_reentrant=reentrant).sum().backward()
    print(x.grad)
    attempt("keywords", checkpoint, lambda x, k=2: x * k, x, use_reentrant=reentrant, k=3)
attempt("grad through the reentrant one", torch.autograd.grad, checkpoint(block, x, use_reentrant=True).sum(), x)
(g,) = torch.autograd.grad(checkpoint(block, x, use_reentrant=False).sum(), x, create_graph=True)
print(g, torch.autograd.grad(g.sum(), x))
runs = []


def changing(x):
    runs.append(x)
    return x.exp() if len(runs) == 1 else x * 2 * x


try:
    checkpoint(changing, x, use_reentrant=False).sum().backward()
except RuntimeError as error:
    print(type(error).__name__, len(runs))
runs.clear()
y = checkpoint(lambda x: (runs.append(0), (x * x).exp())[1], x, use_reentrant=False)
y.sum().backward(retain_graph=True)
y.sum().backward()
print(len(runs), x.grad)

section("functional")
a, b = torch.tensor([0.1, 0.2]), torch.tensor([0.3, 0.4])


def product(a, b):
    return (a * b).exp()


def cubes(a):
    return (a**3).sum()


print(functional.jacobian(product, (a, b)))
print(functional.jacobian(lambda a: (a.sum(), a * 2), a))
print(functional.jacobian(lambda a: a.exp(), a, create_graph=True))
print(functional.jacobian(lambda a: a.exp(), a, vectorize=True))
print(functional.jacobian(lambda a: torch.ones(2), a))
print(functional.hessian(lambda a, b: product(a, b).sum(), (a, b)))
print(functional.hessian(cubes, a, create_graph=True).requires_grad)
print(functional.vjp(product, (a, b), torch.ones(2)))
print(functional.jvp(product, (a, b), (torch.ones(2), torch.ones(2))))
print(functional.vhp(cubes, a, torch.ones(2)))
print(functional.hvp(lambda a, b: product(a, b).sum(), (a, b), (torch.ones(2), torch.ones(2))))
attempt("independent", functional.jacobian, lambda a: torch.ones(2), a, strict=True)
attempt("independent", functional.jacobian, lambda a, b: a, (a, b), strict=True)
attempt("linear", functional.hessian, lambda a: a.sum(), a, strict=True)
attempt("linear", functional.vhp, lambda a: (a * 2).sum(), a, torch.ones(2))
attempt("not a scalar", functional.hessian, lambda a: a, a)
attempt("not a tensor", functional.hessian, lambda a: 3, a)
attempt("not a tensor", functional.jacobian, lambda a: 3, a)
attempt("not a tensor", functional.jacobian, lambda a: a, 3)
attempt("no vector", functional.vjp, lambda a: a, a)
attempt("no vector", functional.jvp, lambda a: a, a)
attempt("wrong size", functional.vjp, lambda a: a, a, torch.ones(3))
attempt("too many", functional.vjp, product, (a, b), (torch.ones(2), torch.ones(2)))
attempt("strategy", functional.jacobian, lambda a: a, a, strategy="x")

section("func")
print(func.grad(cubes)(a), func.grad(func.grad(lambda x: x**3))(torch.tensor(2.0)))
print(func.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(a, b), func.grad_and_value(cubes)(a))
print(func.grad(lambda x: ((x**2).sum(), x), has_aux=True)(a))
print(func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": a, "b": b}))
print(func.grad(lambda x: (x * x * w[:2]).sum())(a))
value, pull = func.vjp(lambda x: x**2, a)
print(value, pull(torch.ones(2)))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch's forward mode warns of its own machinery
    print(func.jvp(lambda x: x**2, (a,), (torch.ones(2),)), func.jacfwd(lambda x: x**2)(a))
    print(func.jacrev(lambda x: x**2)(a), func.hessian(cubes)(a))
attempt("not a scalar", func.grad(lambda x: x), a)

section("gradcheck")
d = torch.tensor([0.5, -1.5, 2.0], dtype=torch.double, requires_grad=True)
z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
for fast in (False, True):
    print(
        gradcheck(lambda x: (x * x).sin(), d, fast_mode=fast), gradgradcheck(lambda x: (x * x).sin(), d, fast_mode=fast)
    )
    print(
        gradcheck(lambda z: (z * z.conj()).real.sum(), z, fast_mode=fast),
        gradcheck(lambda z: z.exp(), z, fast_mode=fast),
    )
    print(gradgradcheck(lambda z: z.exp(), z, fast_mode=fast))


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


for fast in (False, True):
    print(gradcheck(Wrong.apply, d, raise_exception=False, fast_mode=fast))
    try:
        gradcheck(Wrong.apply, d, fast_mode=fast)
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])
attempt("nothing to check", gradcheck, lambda x: x, torch.ones(2))
