"""autograd.Function: what forward and backward see, what is checked, what the graph looks like."""

import torch
from helpers import attempt, section
from torch.autograd import Function
from torch.autograd.function import once_differentiable

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor([0.5, 0.25, 0.125], requires_grad=True)


def function(forward, backward, **members):
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward), **members}
    return type("Mine", (Function,), members)


section("arguments")
Plain = function(lambda ctx, a, b=2: a * b, lambda ctx, g: (g, None))
attempt("default", Plain.apply, x)
attempt("keyword", Plain.apply, x, b=3)
attempt("backward", Plain.apply(x, 2.0).backward, torch.ones(3))


class Separate(Function):
    @staticmethod
    def forward(a, b=2):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.count = len(inputs)

    @staticmethod
    def backward(ctx, g):
        print("   inputs:", ctx.count)
        return g, None


attempt("separate", Separate.apply, x, b=3)
attempt("separate backward", Separate.apply(x).sum().backward)
attempt("instance", Plain)
attempt("call of an instance", lambda: Plain()(x))

section("results")
Same = function(lambda ctx, a, b: a, lambda ctx, g: (torch.ones(7), None))
same = Same.apply(x, w)
print(same, same is x, same._base is x, same.grad_fn.name())
attempt("wrong shape", same.sum().backward)
Mixed = function(lambda ctx, a: (a * 2, 5, a > 0, None), lambda ctx, *g: (print("   grads", g), g[0])[1])
mixed = Mixed.apply(x)
print(mixed)
mixed[0].sum().backward()
attempt("list", function(lambda ctx, a: [a * 2], lambda ctx, g: g).apply, x)
attempt("too many", function(lambda ctx, a, b: a * 2, lambda ctx, g: (g, g)).apply(x, 3).sum().backward)
attempt("too few", function(lambda ctx, a, b: a * 2, lambda ctx, g: g).apply(x, 3).sum().backward)
attempt(
    "no backward", type("Half", (Function,), {"forward": staticmethod(lambda ctx, a: a * 2)}).apply(x).sum().backward
)
attempt("no forward", type("Half", (Function,), {}).apply, x)

section("dirty and not differentiable")


def dirty(returned):
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        a.add_(1)
        return returned(a, b)

    return function(forward, lambda ctx, g: (g, g))


attempt("not returned", dirty(lambda a, b: b * 2).apply, x.clone(), w)
attempt("leaf", dirty(lambda a, b: a).apply, x.detach().requires_grad_(), w)
z = x.clone()
y = dirty(lambda a, b: a).apply(z, w)
print(y is z, y, z.grad_fn.name())


def several(ctx, a):
    ctx.set_materialize_grads(False)
    first, second = a * 1, a * 2
    ctx.mark_non_differentiable(second)
    return first, second, a * 3


Several = function(several, lambda ctx, *g: (print("   grads", g, ctx.needs_input_grad), g[0])[1])
first, second, third = Several.apply(x)
print(second.requires_grad, third.requires_grad, third.output_nr)
first.sum().backward()

section("saved tensors")


def save(*what):
    def forward(ctx, a):
        ctx.save_for_backward(*(a if w == "input" else w for w in what))
        return a * 2

    return function(forward, once_differentiable(lambda ctx, g: (print("   saved", ctx.saved_tensors), g * 2)[1]))


attempt("a number", save(3).apply, x)
y = save("input", None).apply(x).sum()
y.backward()
attempt("twice", y.backward)
y = save().apply(x).sum()
y.backward()
attempt("twice, nothing saved", y.backward)
(g,) = torch.autograd.grad((save().apply(x) * w).sum(), x, create_graph=True)
attempt("once differentiable", g.sum().backward)


class Exp(Function):
    @staticmethod
    def forward(ctx, a):
        result = a.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


(g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
print(g, h, torch.autograd.grad(h.sum(), x))
y = Exp.apply(x)
y.add_(1)
attempt("output written", y.sum().backward)


class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.shape, ctx.dtype = "the user's", "own attributes"
        return a * b, a + b

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        print("   ", g, h, ctx.shape, ctx.dtype)
        return g * b + h, g * a + h


p, q = Product.apply(x, w)
print(p, q, q.output_nr, p.grad_fn is q.grad_fn, p.grad_fn.next_functions[0][0].name(), p.grad_fn.saved_tensors)
print(torch.autograd.grad(p.sum(), (x, w), retain_graph=True))
(g,) = torch.autograd.grad((p * q).sum(), x, create_graph=True)
print(g, torch.autograd.grad(g.sum(), w))
a = (x * 1).detach().requires_grad_() * 1
p, q = Product.apply(a, w)
a.mul_(2)
attempt("input written", p.sum().backward)
with torch.no_grad():
    print(Exp.apply(x))
