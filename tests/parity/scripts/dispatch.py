"""``__torch_dispatch__``: wrappers that log, a quantized weight, modes that count, nest and change results."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map, tree_map_only

torch.manual_seed(0)


def log(func, args, kwargs):
    f = lambda a: f"{type(a).__name__}{list(a.shape)}" if isinstance(a, torch.Tensor) else repr(a)
    print(
        "   ",
        func,
        [f(a) if not isinstance(a, (list, tuple)) else [f(b) for b in a] for a in args],
        dict(kwargs or {}),
    )


class Logging(torch.Tensor):
    @staticmethod
    def __new__(cls, elem):
        r = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )
        r.elem = elem.detach() if r.requires_grad else elem
        return r

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"Logging({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        unwrap = lambda e: e.elem if isinstance(e, cls) else e
        wrap = lambda e: cls(e) if isinstance(e, torch.Tensor) else e
        log(func, args, kwargs)
        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))


print("# wrapper, forward and backward")
x = Logging(torch.arange(6.0).view(2, 3))
x.requires_grad_(True)
w = Logging(torch.ones(4, 3, requires_grad=True))
print(x.shape, x.dtype, x.device, x.requires_grad, x.is_leaf, type(x).__name__)
y = (x @ w.t()).relu().sum()
print(type(y).__name__, y)
y.backward()
print(x.grad, type(x.grad).__name__)
print(w.grad)
print("# in place and views")
a = Logging(torch.zeros(3))
a.add_(1)
a *= 2
print(a)
b = a.view(3, 1)
print(b, b.shape)
print(a[0], a[1:])
print(torch.cat([a, a]), torch.stack([a, a]).shape)
print("# mixed with plain")
print(torch.ones(3) + a, a + torch.ones(3), 2 * a, a > 1)
print("# functions")
print(F.softmax(a, -1))
print(torch.zeros_like(a))
print(a.clone(), a.detach(), a.to(torch.float64))
print(a.sum().item() if False else a.mean())
print("# a module with wrapped parameters")
m = nn.Linear(3, 2)
with torch.no_grad():
    m.weight = nn.Parameter(Logging(torch.ones(2, 3)))
    m.bias = nn.Parameter(Logging(torch.zeros(2)))
print(type(m.weight).__name__, isinstance(m.weight, nn.Parameter), m.weight.requires_grad)
m(torch.ones(1, 3)).sum().backward()
print(m.weight.grad)


class Scaled(torch.Tensor):
    """quantized: values in int8 and a scale"""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=scale.dtype, device=data.device)

    def __init__(self, data, scale):
        self.data_, self.scale = data, scale

    __torch_function__ = torch._C._disabled_torch_function_impl

    def dequantize(self):
        return self.data_.to(self.scale.dtype) * self.scale

    def __repr__(self):
        return f"Scaled({self.data_.tolist()}, {self.scale.item():.3f})"

    def __tensor_flatten__(self):
        return ["data_", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["data_"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        kwargs = kwargs or {}
        aten = torch.ops.aten
        if func in (aten.detach.default, aten.clone.default):
            return return_and_correct_aliasing(func, args, kwargs, cls(func(args[0].data_), args[0].scale))
        if func is aten.t.default:
            return cls(args[0].data_.t(), args[0].scale)
        if func in (aten.mm.default, aten.addmm.default):
            return func(*[a.dequantize() if isinstance(a, cls) else a for a in args], **kwargs)
        raise NotImplementedError(f"{func} is not there")


print("# quantized weight")
q = Scaled(torch.tensor([[1, -2, 3], [4, 5, -6]], dtype=torch.int8), torch.tensor(0.5))
print(q.shape, q.dtype, q)
print(F.linear(torch.ones(2, 3), q, torch.ones(2)))
xx = torch.ones(1, 3, requires_grad=True)
F.linear(xx, q).sum().backward()
print(xx.grad)
lin = nn.Linear(3, 2)
lin.weight = nn.Parameter(q, requires_grad=False)
print(lin(torch.ones(1, 3)).shape, type(lin.weight).__name__)
try:
    q + 1
except NotImplementedError as e:
    print("refused:", e)


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        key = func.overloadpacket
        self.counts[str(key)] = self.counts.get(str(key), 0) + 1
        return func(*args, **(kwargs or {}))


print("# counting mode")
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
with Counting() as c:
    loss = F.cross_entropy(net(torch.ones(2, 3)), torch.tensor([0, 1]))
    loss.backward()
print({k: v for k, v in sorted(c.counts.items()) if "lift" not in k and "empty" not in k and "copy" not in k})
print("# nested modes")


class Named(TorchDispatchMode):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(
            "   ", self.name, func, func.__name__, func.namespace, func.overloadpacket, func.name(), repr(func), types
        )
        return func(*args, **(kwargs or {}))


with Named("outer"), Named("inner"):
    torch.ones(2).add(1)
print("# a mode that changes results")


class Doubling(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func is torch.ops.aten.mul.Tensor else out


with Doubling():
    z = torch.ones(2, requires_grad=True)
    (z * 3).sum().backward()
print(z.grad, z * 3)
print("# over a wrapper")
with Named("mode"):
    Logging(torch.ones(2)) + 1


class Same(torch.Tensor):
    @staticmethod
    def __new__(cls, t):
        return torch.Tensor._make_subclass(cls, t)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print("    same", func)
        return super().__torch_dispatch__(func, types, args, kwargs or {})


print("# a subclass with values")
s = Same(torch.ones(2))
print(type(s * 2).__name__, (s * 2).sum())


class Refusing(torch.Tensor):
    @staticmethod
    def __new__(cls, t):
        return torch.Tensor._make_wrapper_subclass(cls, t.shape)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


try:
    Refusing(torch.ones(2)) + 1
except TypeError as e:
    print(str(e).splitlines()[0])
