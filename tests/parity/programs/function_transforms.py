"""Per-sample gradients, ensembles, Jacobians, Hessians and their products, forward mode, as tutorials do them."""

import torch
import torch.autograd.forward_ad as fwAD
import torch.nn as nn
import torch.nn.functional as F
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, 3, 1)
        self.fc1 = nn.Linear(8 * 5 * 5, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(x), dim=1)


print("-- per-sample gradients")
model = SmallCNN()
data, targets = torch.randn(6, 1, 14, 14), torch.randint(10, (6,))
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return F.nll_loss(predictions, target.unsqueeze(0))


ft_compute_sample_grad = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
per_sample = ft_compute_sample_grad(params, buffers, data, targets)
for name, g in per_sample.items():
    print(name, tuple(g.shape), f"{g.norm():.4f}", f"{g[2].abs().max():.4f}")
values = vmap(grad_and_value(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)[1]
print([f"{v:.4f}" for v in values.tolist()])
alone = grad(compute_loss)(params, buffers, data[3], targets[3])
print(all(torch.allclose(alone[k], per_sample[k][3], atol=1e-5) for k in params))

print("-- ensembles")


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(20, 12), nn.Linear(12, 4)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


models = [SimpleMLP() for _ in range(5)]
params, buffers = stack_module_state(models)


def fmodel(params, buffers, x):
    return functional_call(models[0], (params, buffers), (x,))


minibatches = torch.randn(5, 8, 4, 5)
first = vmap(fmodel)(params, buffers, minibatches)
second = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, minibatches[0])
print(first.shape, second.shape, f"{first.sum():.4f}", f"{second.std():.4f}")
print(torch.allclose(first, torch.stack([m(x) for m, x in zip(models, minibatches)]), atol=1e-5))
second.square().mean().backward()
print({k: f"{v.grad.norm():.5f}" for k, v in params.items()})

print("-- jacobians")
D = 6
weight, bias, x = torch.randn(D, D), torch.randn(D), torch.randn(D)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


unit_vectors = torch.eye(D)
_, vjp_fn = vjp(lambda x: predict(weight, bias, x), x)
(by_vjp,) = vmap(vjp_fn)(unit_vectors)
by_rows = jacrev(predict, argnums=2)(weight, bias, x)
by_columns = jacfwd(predict, argnums=2)(weight, bias, x)
print(torch.allclose(by_vjp, by_rows), torch.allclose(by_rows, by_columns, atol=1e-6))
print(by_rows)
of_weight, of_bias = jacrev(predict, argnums=(0, 1))(weight, bias, x)
print(of_weight.shape, of_bias.diagonal())
print(jacrev(predict, argnums=0, chunk_size=2)(weight, bias, x).sum())
batch = torch.randn(4, D)
print(vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)[3])
hess = hessian(predict, argnums=2)(weight, bias, x)
print(hess.shape, f"{hess.abs().sum():.4f}")
print(torch.allclose(hess, jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x), atol=1e-5))
print(vmap(hessian(lambda x: x.sin().prod()))(torch.rand(2, 3)))


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


f = lambda x: x.sin().sum()
print(hvp(f, (x,), (torch.ones(D),)))
print(torch.autograd.functional.hvp(f, x, torch.ones(D))[1])
print(torch.autograd.functional.vhp(f, x, torch.ones(D))[1])
print(torch.autograd.functional.jacobian(lambda x: x.exp() * x.sum(), x[:3], vectorize=True))
print(torch.autograd.functional.jacobian(torch.sin, x[:2], vectorize=True, strategy="forward-mode"))
print(torch.autograd.functional.hessian(f, x[:3], vectorize=True))

print("-- forward mode")
primal, tangent = torch.randn(3, 3), torch.randn(3, 3)
with fwAD.dual_level():
    dual_input = fwAD.make_dual(primal, tangent)
    print(dual_input)
    dual_output = torch.matmul(dual_input, dual_input).tanh()
    print(fwAD.unpack_dual(dual_output).tangent)
    assert fwAD.unpack_dual(dual_input).tangent is tangent
    summed = dual_output.sum()
    print(fwAD.unpack_dual(summed))
assert fwAD.unpack_dual(dual_output).tangent is None
layer = nn.Linear(5, 5)
inputs = torch.randn(4, 5)
directions = {name: torch.rand_like(p) for name, p in layer.named_parameters()}
with fwAD.dual_level():
    for name, p in list(layer.named_parameters()):
        delattr(layer, name)
        setattr(layer, name, fwAD.make_dual(p, directions[name]))
    out = layer(inputs)
    print(fwAD.unpack_dual(out).tangent.detach())


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, foo):
        result = torch.exp(foo)
        ctx.result = result
        return result

    @staticmethod
    def jvp(ctx, gI):
        gO = gI * ctx.result
        del ctx.result
        return gO


with fwAD.dual_level():
    dual_output = Fn.apply(fwAD.make_dual(primal.double(), tangent.double()))
    print(fwAD.unpack_dual(dual_output).tangent)
Fn.apply(torch.zeros(1, dtype=torch.double, requires_grad=True))
print(torch.autograd.gradcheck(torch.tanh, (torch.rand(3, dtype=torch.double, requires_grad=True),),
                               check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False,
                               check_batched_grad=False))  # fmt: skip
value, push = linearize(lambda x: x.sin() * x, x)
print(value, push(torch.ones(D)))
print(jvp(lambda a, b: {"sum": a + b, "dot": a @ b}, (x, bias), (bias, x)))

print("-- dimensions, randomness, refusals")
matrix = torch.arange(12.0).view(3, 4)
print(vmap(torch.dot, in_dims=(0, 0))(matrix, matrix), vmap(torch.sum, in_dims=1)(matrix))
print(vmap(lambda t, k: {"y": t * k}, in_dims=(1, None), out_dims=1)(matrix, 2.0))
print(vmap(vmap(torch.mul, (0, None)), (None, 0))(torch.arange(3.0), torch.arange(2.0)))
print(vmap(lambda r, i: r[i], in_dims=(0, 0))(matrix, torch.tensor([0, 3, 1])))
print(vmap(lambda r: r.cumsum(0), chunk_size=2)(matrix))
print(vmap(lambda r: r + torch.rand(()), randomness="same")(torch.zeros(3)))
print(vmap(lambda r: r + torch.rand(()), randomness="different")(torch.zeros(3)))
for refused in (
    lambda: vmap(lambda r: r.sum().item())(matrix),
    lambda: vmap(lambda r: r if r.sum() > 0 else -r)(matrix),
    lambda: vmap(lambda r: r[r > 0])(matrix),
    lambda: vmap(lambda r: r + torch.rand(()))(matrix),
    lambda: vmap(torch.zeros(4).mul_)(matrix),
    lambda: vmap(torch.add)(matrix, torch.ones(2)),
    lambda: vmap(torch.sum, in_dims=3)(matrix),
    lambda: vmap(lambda r: 3)(matrix),
    lambda: jvp(torch.sin, (x,), (x, x)),
    lambda: grad(torch.sin)(x),
):
    try:
        print(refused())
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
