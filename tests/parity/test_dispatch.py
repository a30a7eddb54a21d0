"""``__torch_dispatch__`` beside PyTorch: the calls that a mode is shown, by table; gradients as without a mode.

Wrappers, quantized weights and nested modes are in ``scripts/dispatch.py``.
"""

import warnings

import pytest
import torch
import torch.utils.flop_counter

import rushlight

FORWARD = """
x+y | x+1 | 1+x | x-y | 1-x | x*2 | x/y | 2/x | x**2 | x**y | -x | abs(x) | x==y | x>0 | x@w.t() | m3@torch.randn(2,
4, 5) | x.t() | x.T | x.transpose(0, 1) | m3.permute(2, 0, 1) | x.view(6) | x.reshape(3, 2) | x.t().reshape(6) |
x.unsqueeze(0) | x.unsqueeze(0).squeeze(0) | x.flatten() | x.expand(2, 2, 3) | x.contiguous() | x.clone() | x.detach()
| x[0] | x[:, 1] | x[0, 1] | x[:, None] | x[i] | x[..., :2] | x.sum() | x.sum(1) | x.sum(dim=(0, 1), keepdim=True) |
x.mean() | x.mean(0) | x.max() | x.max(1) | x.min() | x.argmax(1) | x.argmax() | x.var() | x.std(0) | x.prod() |
x.norm() | x.amax(1) | x.any() | (x>0).all() | x.cumsum(1) | x.sort() | x.topk(2) | x.logsumexp(1) | x.exp() | x.log()
| x.sqrt() | x.rsqrt() | x.sin() | x.cos() | x.tanh() | x.sigmoid() | x.relu() | F.relu(x) | F.gelu(x) | F.silu(x) |
F.softmax(x, -1) | F.log_softmax(x, 1) | F.leaky_relu(x) | F.elu(x) | F.softplus(x) | x.clamp(0, 1) | x.clamp(min=0) |
F.hardtanh(x) | x.erf() | x.reciprocal() | x.pow(3) | x.square() | F.linear(x, w, b) | F.linear(x, w) |
F.linear(m3.transpose(1, 2), w, b) | F.linear(m3.transpose(1, 2), w) | torch.mm(x, w.t()) | torch.bmm(m3,
m3.transpose(1, 2)) | torch.addmm(b, x, w.t()) | torch.matmul(m3, torch.ones(4)) | torch.dot(b, b) | torch.mv(w, x[0])
| torch.outer(b, b) | torch.cat([x, y]) | torch.stack([x, y]) | x.split(1) | x.chunk(3, 1) | x.unbind() |
torch.where(x>0, x, y) | x.masked_fill(x>0, 0.) | x.gather(1, i[:, None]) | torch.tril(x) | x.repeat(2, 1) | x.flip(0)
| x.roll(1, 0) | F.pad(x, (1, 1)) | x.narrow(1, 0, 2) | x.select(0, 1) | F.embedding(i, w) | F.layer_norm(x, (3, )) |
F.layer_norm(x, (3, ), torch.ones(3), torch.ones(3)) | F.dropout(x, 0.5, False) | F.cross_entropy(x, i) |
F.mse_loss(x, y) | F.nll_loss(x, i) | F.l1_loss(x, y) | F.binary_cross_entropy_with_logits(x, y.sigmoid()) |
F.normalize(x) | F.conv2d(img, k) | F.conv2d(img, k, padding=1, stride=2) | x.double() | x.to(torch.float16) |
x.float() | x.long() | x.bool() | torch.zeros_like(x) | torch.ones_like(x) | x.new_zeros(2) | torch.zeros(2) |
torch.ones(2, 3) | torch.randn(2) | torch.rand(2) | torch.arange(5) | torch.full((2, ), 3.) | torch.empty(2).shape |
torch.eye(2) | torch.linspace(0, 1, 3) | torch.randn_like(x) | x.clone().add_(1) | x.clone().mul_(y) |
x.clone().zero_() | x.clone().fill_(2) | x.clone().copy_(y) | x.clone().relu_() | x.clone().clamp_(0, 1) |
x.clone().sub_(y) | x.clone().div_(2) | torch.add(x, y, alpha=2) | torch.lerp(x, y, .5) | torch.addcmul(x, y, y) |
torch.maximum(x, y) | torch.isnan(x) | x.sign() | x.round() | x.floor() | torch.equal(x, y) | torch.allclose(x, y)
"""
BACKWARD = """
x+y | x+v | x-y | x*y | x*2 | x*v | x/y | x/2 | x**2 | x**3 | -x | x@w.t() | m3@m3.transpose(1, 2) | x.t() |
x.transpose(0, 1) | m3.permute(2, 0, 1) | x.view(6) | x.t().reshape(6) | x.unsqueeze(0) | x.expand(2, 2, 3) |
x.clone() | x[0] | x[:, 1] | x[..., :2] | x.sum() | x.sum(1) | x.mean() | x.mean(0) | x.exp() | x.log() | x.sqrt() |
x.sin() | x.cos() | x.tanh() | x.sigmoid() | x.relu() | F.gelu(x) | F.silu(x) | F.softmax(x, -1) | F.log_softmax(x, 1)
| F.leaky_relu(x) | x.abs() | x.reciprocal() | x.rsqrt() | F.linear(x, w, b) | F.linear(x, w) |
F.linear(m3.transpose(1, 2), w, b) | torch.cat([x, y]) | torch.stack([x, y]) | x.masked_fill(x>0, 0.) | F.embedding(i,
w) | F.layer_norm(x, (3, ), v, v) | F.cross_entropy(x, i) | F.mse_loss(x, y) | x.double() | x.flatten()
"""
# Shown as other calls than PyTorch's, ``rushlight.max_pool`` say; what they compute is compared all the same.
SHOWN_OTHERWISE = """
x[x > 0] | x.index_select(0, i) | F.cosine_similarity(x, y) | F.avg_pool2d(img, 2) | F.group_norm(img, 2) |
F.interpolate(img, scale_factor=2) | F.scaled_dot_product_attention(m3, m3, m3) | F.rms_norm(x, (3,)) | x[i] | x.max() |
x.max(1)[0] | x.norm() | x.clamp(0, 1) | x.split(1)[0] | torch.where(x > 0, x, y) | F.conv2d(img, k) |
F.max_pool2d(img, 2) | F.batch_norm(img, torch.zeros(2), torch.ones(2), training=True) | x.unbind()[0] |
F.max_pool2d(img, 3, 1, 1) | torch.einsum('ij,kj->ik', x, w) | x.cumsum(0) |
F.conv_transpose2d(img, k.transpose(0, 1)) |
torch.linalg.inv(x @ x.T + torch.eye(2)) | F.gelu(x, approximate='tanh') | x.prod() | x.var(1) | x.sort()[0]
"""


def expressions(table: str) -> list[str]:
    return [e.strip() for e in table.split("|") if e.strip()]


def world(library) -> dict:
    library.manual_seed(0)
    make = lambda *shape: library.randn(*shape).requires_grad_()
    names = dict(x=make(2, 3), y=make(2, 3), w=make(4, 3), b=make(4), v=make(3), m3=make(2, 3, 4), img=make(1, 2, 4, 4))
    return dict(names, k=make(3, 2, 3, 3), i=library.tensor([0, 1]), torch=library, F=library.nn.functional)


def shown(library, expression: str, backward: bool) -> list[str]:
    """The calls as lines: operator, arguments and results, tensors by their shapes."""
    lines: list[str] = []

    class Log(library.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            options = ", ".join(f"{k}={text(library, v)}" for k, v in (kwargs or {}).items())
            lines.append(f"{func}{text(library, list(args))} {options} -> {text(library, out)}")
            return out

    names = world(library)
    with Log(), warnings.catch_warnings(), library.set_grad_enabled(backward):
        warnings.simplefilter("ignore")
        result = eval(expression, names)
        if backward:
            result.backward(library.ones_like(result))
    return lines


def text(library, value) -> str:
    if isinstance(value, library.Tensor):
        return f"T{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text(library, part) for part in value) + "]"
    return repr(value).replace("rushlight.", "torch.")


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_a_mode_is_shown_the_same_calls(backward):
    table = expressions(BACKWARD if backward else FORWARD)
    wrong = [(e, *pair) for e in table if (pair := differs(e, backward))]
    assert len(table) > 50
    assert not wrong, "\n\n".join(f"{e}\n  torch     {a}\n  rushlight {b}" for e, a, b in wrong)


def differs(expression: str, backward: bool):
    theirs, ours = shown(torch, expression, backward), shown(rushlight, expression, backward)
    return None if theirs == ours else (theirs, ours)


class Pass(rushlight.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("expression", expressions(SHOWN_OTHERWISE) + expressions(BACKWARD)[::3])
def test_a_mode_that_passes_calls_on_changes_nothing(expression):
    names, plain = world(rushlight), world(rushlight)
    expected = eval(expression, plain)
    expected.backward(rushlight.ones_like(expected))
    with Pass():
        result = eval(expression, names)
        result.backward(rushlight.ones_like(result))
    rushlight.testing.assert_close(result, expected, equal_nan=True)
    for name in ("x", "y", "w", "b", "v", "m3", "img", "k"):
        theirs, ours = plain[name].grad, names[name].grad
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            rushlight.testing.assert_close(ours, theirs, equal_nan=True)


def test_flops_are_counted_by_module():
    assert flops(rushlight) == flops(torch)


def flops(library):
    nn = library.nn
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(2), nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4, bias=False)))
    with library.utils.flop_counter.FlopCounterMode(display=False) as counter:
        y = net(library.ones(2, 1, 4, 4))
        (y @ y.transpose(1, 2)).sum().backward()
    counts = counter.get_flop_counts()
    return counter.get_total_flops(), {n: {str(op): c for op, c in found.items()} for n, found in counts.items()}


def test_a_wrapper_whose_class_does_not_answer_says_so():
    class Silent(rushlight.Tensor):
        @staticmethod
        def __new__(cls, t):
            return rushlight.Tensor._make_wrapper_subclass(cls, t.shape, dtype=t.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    with pytest.raises(NotImplementedError, match="must answer for the operator in __torch_dispatch__"):
        Silent(rushlight.ones(2)) + 1
    with pytest.raises(NotImplementedError, match="no values of its own"):
        Silent(rushlight.ones(2)).tolist()
