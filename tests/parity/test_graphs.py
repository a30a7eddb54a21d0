"""What autograd's nodes show, beside PyTorch: names, the nodes they lead to, and each value that PyTorch's node saved.

Every call of ``CALLS`` must agree in all of it but for what ``DIFFER`` says, with the reason; a row there that agrees
is an error too.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import torch

import rushlight

CALLS = """
# elementwise
a.abs()
a.neg()
a.exp()
a.expm1()
a.exp2()
p.log()
p.log1p()
p.log2()
p.log10()
a.sin()
a.cos()
a.tan()
a.asin()
a.acos()
a.atan()
a.sinh()
a.cosh()
a.tanh()
a.asinh()
(p + 1).acosh()
a.atanh()
a.sigmoid()
p.sqrt()
p.rsqrt()
p.reciprocal()
a.square()
a.sign()
a.floor()
a.round()
a.trunc()
a.frac()
a.erf()
a.erfc()
a.erfinv()
p.lgamma()
p.digamma()
torch.sinc(a)
p.logit(0.1)
a + b
a + 1
a.add(b, alpha=2)
a - b
a - 1
1 - a
a * b
a * 2
a * b.detach()
b.detach() / a
a / b
a / 2
1 / a
a ** 2
p ** b
2 ** a
a.atan2(b)
torch.hypot(a, b)
a.maximum(b)
a.fmin(b)
a.fmod(2)
a.fmod(b)
a.remainder(b)
a.clamp(-1, 1)
a.clamp(b, c)
a.clamp_min(0)
a.lerp(b, 0.5)
a.lerp(b, c)
torch.addcmul(a, b, c, value=2)
torch.addcdiv(a, b, c)
torch.where(mask, a, b)
a.masked_fill(mask, 1)
a.copysign(b)
torch.xlogy(p, p)
torch.logaddexp(a, b)
torch.nan_to_num(a)
torch.polygamma(1, p)
a.deg2rad()
a.clone()
a.double()
a.angle()
torch.complex(a, b).abs()
torch.complex(a, b).real
torch.special.i0(a)
torch.special.entr(p)
torch.special.ndtri(p * 0.1)
torch.i0(a)
# reductions
a.sum()
a.sum(0)
a.sum((0, 1), True)
a.mean()
a.mean(1)
a.var()
a.var(1, unbiased=False)
a.std(0)
a.prod()
a.prod(1)
a.max()
a.max(1)[0]
a.min(0, True)[0]
a.amax(1)
a.amin()
a.aminmax(dim=0)[1]
a.median()
a.median(1)[0]
a.mode(1)[0]
a.kthvalue(2, 1)[0]
a.norm()
a.norm(dim=1)
a.norm(1, 0)
a.logsumexp(1)
a.cumsum(0)
a.cumprod(1)
a.cummax(0)[0]
a.logcumsumexp(0)
a.sort(1)[0]
a.topk(2)[0]
a.nansum()
a.nanmean()
torch.var_mean(a, 0)[0]
torch.trace(s)
torch.dist(a, b)
a.renorm(2, 0, 1)
a.quantile(0.5)
a.softmax(1)
a.log_softmax(0)
# views and shapes
a.view(6)
a.reshape(3, 2)
a.t()
a.T
a.transpose(0, 1)
a.permute(1, 0)
a.unsqueeze(1)
a[None].squeeze(0)
a[None].squeeze()
a.expand(4, 2, 3)
a[0]
a[:, 1]
a[:, ::2]
a[0, 1]
a[idx]
a[mask]
a[:, idx]
a.narrow(1, 0, 2)
a.select(0, 1)
a.split(2, 1)[0]
a.split([1, 2], 1)[1]
a.chunk(3, 1)[0]
a.unbind(0)[1]
torch.cat([a, b], 1)
torch.stack([a, b])
a.flatten()
a.diagonal()
a.diag()
s.tril()
s.triu(1)
a.flip(0)
a.roll(1, 0)
a.rot90()
a.repeat(2, 1)
torch.tile(a, (2, 1))
a.repeat_interleave(2, 0)
a.gather(1, long)
a.scatter(1, long, b)
a.scatter_add(1, long, b)
a.index_select(0, idx)
a.index_add(0, idx, b)
a.index_copy(0, idx, b)
a.index_fill(0, idx, 1)
a.take(idx)
a.masked_select(mask)
a.unfold(1, 2, 1)
a.as_strided((2, 2), (1, 1))
a.contiguous()
a.t().contiguous()
a.movedim(0, 1)
a.swapaxes(0, 1)
torch.broadcast_to(a, (2, 2, 3))
torch.meshgrid(a[0], a[1], indexing="ij")[0]
a.unflatten(1, (3, 1))
# products and linalg
a @ n
a @ n.detach()
torch.mm(a.detach(), n)
torch.mv(a, v)
torch.dot(v, v)
torch.bmm(a[None], n[None])
a[None] @ n
torch.addmm(s, s, s)
torch.baddbmm(s[None], s[None], s[None])
torch.outer(v, v)
torch.einsum("ij,jk->ik", a, n)
torch.kron(a, b)
torch.cross(a, b, dim=1)
torch.linalg.det(s)
torch.linalg.slogdet(s)[1]
torch.linalg.inv(s)
torch.linalg.solve(s, s)
torch.linalg.cholesky(spd)
torch.linalg.qr(s)[0]
torch.linalg.svd(s)[1]
torch.linalg.eigh(spd)[0]
torch.linalg.eigvalsh(spd)
torch.linalg.norm(s)
torch.linalg.vector_norm(a, 2, 1)
torch.linalg.matrix_exp(s)
torch.linalg.pinv(a)
torch.linalg.solve_triangular(spd, s, upper=False)
torch.cdist(a, b)
torch.matrix_power(s, 2)
torch.logdet(spd)
torch.linalg.lu(s)[1]
torch.fft.fft(a)
torch.fft.rfft(a)
# nn.functional
F.relu(a)
F.relu6(a)
F.leaky_relu(a)
F.elu(a)
F.selu(a)
F.celu(a)
F.gelu(a)
F.gelu(a, approximate="tanh")
F.silu(a)
F.mish(a)
F.softplus(a)
F.softsign(a)
F.softshrink(a)
F.hardshrink(a)
F.hardtanh(a)
F.hardsigmoid(a)
F.hardswish(a)
F.tanhshrink(a)
F.logsigmoid(a)
F.threshold(a, 0, 1)
F.prelu(a, v[:1])
F.rrelu(a)
F.glu(s4)
F.softmax(a, -1)
F.log_softmax(a, -1)
F.softmin(a, -1)
F.normalize(a)
F.linear(a, b)
F.linear(a, b, v[:2])
F.linear(a, b.detach(), v[:2])
F.linear(img, s4)
F.bilinear(a, b, s[None], v[:1])
F.embedding(idx, a)
F.embedding_bag(idx, a, idx[:1] * 0)
F.layer_norm(a, (3,))
F.layer_norm(a, (3,), v, v)
F.group_norm(img, 2)
F.batch_norm(a, None, None, training=True)
F.batch_norm(a, v.detach(), v.detach() ** 2)
F.instance_norm(img)
F.rms_norm(a, (3,))
F.local_response_norm(img, 2)
F.conv1d(img[0, :, 0][None], k[:, :, 0])
F.conv2d(img, k)
F.conv2d(img, k, v[:2], padding=1, stride=2)
F.conv_transpose2d(img, k)
F.max_pool2d(img, 2)
F.max_pool1d(img[0], 2)
F.avg_pool2d(img, 2)
F.avg_pool1d(img[0], 2)
F.adaptive_avg_pool2d(img, 1)
F.adaptive_avg_pool2d(img, 2)
F.adaptive_max_pool2d(img, 2)
F.lp_pool2d(img, 2, 2)
F.pad(a, (1, 1))
F.pad(img, (1, 1, 1, 1), mode="reflect")
F.pad(img, (1, 1, 1, 1), mode="replicate")
F.pad(img, (1, 1, 1, 1), mode="circular")
F.interpolate(img, scale_factor=2)
F.interpolate(img, scale_factor=2, mode="bilinear")
F.interpolate(img, size=3, mode="bicubic")
F.unfold(img, 2)
F.fold(F.unfold(img, 2), (4, 4), 2)
F.pixel_shuffle(img.repeat(1, 2, 1, 1), 2)
F.pixel_unshuffle(img, 2)
F.channel_shuffle(img, 2)
F.grid_sample(img, grid, align_corners=False)
F.affine_grid(theta, (1, 1, 2, 2), align_corners=False)
F.dropout(a, 0.5)
F.dropout(a, 0.5, False)
F.alpha_dropout(a, 0.5, True)
F.dropout2d(img, 0.5)
F.mse_loss(a, b)
F.mse_loss(a, b.detach(), reduction="none")
F.l1_loss(a, b)
F.smooth_l1_loss(a, b)
F.huber_loss(a, b)
F.cross_entropy(a, idx)
F.cross_entropy(a, b.softmax(1))
F.nll_loss(a, idx)
F.nll_loss(img, long2d)
F.binary_cross_entropy(a.sigmoid(), p / 10)
F.binary_cross_entropy_with_logits(a, p)
F.kl_div(a, p)
F.poisson_nll_loss(a, p)
F.gaussian_nll_loss(a, b, p)
F.hinge_embedding_loss(a, b.detach().sign())
F.margin_ranking_loss(a, b, b.detach().sign())
F.soft_margin_loss(a, b.detach().sign())
F.multi_margin_loss(a, idx)
F.multilabel_margin_loss(a, long - 1)
F.multilabel_soft_margin_loss(a, p.detach())
F.cosine_similarity(a, b)
F.cosine_embedding_loss(a, b, idx * 2 - 1)
F.pairwise_distance(a, b)
F.pdist(a)
F.triplet_margin_loss(a, b, c)
F.ctc_loss(ctc, idx[None] + 1, (5,), (2,))
F.scaled_dot_product_attention(a[None], b[None], c[None])
# in place
a.clone().add_(b)
a.clone().mul_(b)
a.clone().relu_()
a.clone().clamp_(0)
a.clone().zero_()
a.clone().fill_(2)
a.clone().copy_(b)
a.clone().exp_()
a.clone().index_add_(0, idx, b)
a.clone().masked_fill_(mask, 0)
a.clone().t_()
set_(a.clone(), 0, b[0])
set_(a.clone(), idx, b)
"""

# Reason -> call -> the words that differ; "next" is name or inputs.
DIFFER = {
    "several nodes there, one rule here": {
        "torch.complex(a, b).real": "next",
        "a.quantile(0.5)": "next",
        "a[None] @ n": "next",
        'torch.einsum("ij,jk->ik", a, n)': "next",
        "F.linear(img, s4)": "self_sym_sizes",
        "F.instance_norm(img)": "self_sym_sizes",
        "F.rms_norm(a, (3,))": "next",
        'F.pad(img, (1, 1, 1, 1), mode="circular")': "next",
        "F.cross_entropy(a, b.softmax(1))": "next",
        "F.scaled_dot_product_attention(a[None], b[None], c[None])": "next",
    },
    "a number or a copy takes another overload inside PyTorch": {
        "F.pairwise_distance(a, b)": "next",
        "set_(a.clone(), 0, b[0])": "next",
    },
    "axes are kept counted from the front; PyTorch shows a negative one as unsigned": {
        "a.topk(2)[0]": "dim",
        "F.glu(s4)": "dim",
        "F.softmax(a, -1)": "dim",
        "F.log_softmax(a, -1)": "dim",
        "F.softmin(a, -1)": "dim",
        "F.max_pool1d(img[0], 2)": "dim",
        "F.avg_pool1d(img[0], 2)": "dim",
        "F.adaptive_avg_pool2d(img, 1)": "dim",
    },
    "arguments are kept as the rule needs them, not as they were given": {
        "a.var()": "correction",
        "a[:, ::2]": "end",
        "a.narrow(1, 0, 2)": "end",
        "a[mask]": "indices",
        "a[:, idx]": "indices",
        "a.as_strided((2, 2), (1, 1))": "storage_offset",
        "torch.linalg.norm(s)": "dim",
        "torch.linalg.svd(s)[1]": "S_sym_argsize_minus_1",
        "torch.linalg.lu(s)[1]": "P pivot",
        "F.rrelu(a)": "lower noise training upper",
        "F.pad(a, (1, 1))": "pad",
        "F.unfold(img, 2)": "dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2",
        "F.fold(F.unfold(img, 2), (4, 4), 2)": "dilation kernel_size padding",
        "F.grid_sample(img, grid, align_corners=False)": "interpolation_mode padding_mode",
        "F.affine_grid(theta, (1, 1, 2, 2), align_corners=False)": "size",
        "F.interpolate(img, scale_factor=2)": "output_size scales_h scales_w self_sym_sizes",
        'F.interpolate(img, scale_factor=2, mode="bilinear")': (
            "align_corners output_size scales_h scales_w self_sym_sizes"
        ),
        'F.interpolate(img, size=3, mode="bicubic")': "align_corners output_size scales_h scales_w self_sym_sizes",
        "F.dropout(a, 0.5)": "other self",
        "F.dropout2d(img, 0.5)": "other self",
    },
    "strides of an input, or the size of a bias, are not kept": {
        "a @ n": "mat2_sym_strides self_sym_strides",
        "a @ n.detach()": "mat2_sym_strides self_sym_strides",
        "torch.mm(a.detach(), n)": "mat2_sym_strides self_sym_strides",
        "F.linear(a, b.detach(), v[:2])": "mat1_sym_strides mat2_sym_strides",
        "torch.addmm(s, s, s)": "mat1_sym_strides mat2_sym_strides",
        "torch.matrix_power(s, 2)": "mat2_sym_strides self_sym_strides",
        "F.linear(a, b)": "mat2_sym_strides self_sym_strides",
        "F.linear(a, b, v[:2])": "mat1_sym_strides mat2_sym_strides",
        "F.conv1d(img[0, :, 0][None], k[:, :, 0])": "bias_sym_sizes_opt",
        "F.conv2d(img, k)": "bias_sym_sizes_opt",
        "F.conv2d(img, k, v[:2], padding=1, stride=2)": "bias_sym_sizes_opt",
        "F.conv_transpose2d(img, k)": "bias_sym_sizes_opt input output_padding",
    },
    "the rule here needs less, or something else": {
        "a.gather(1, long)": "sparse_grad",
        "a.index_add(0, idx, b)": "source_dim",
        "a.clone().index_add_(0, idx, b)": "source_dim",
        "a.index_copy(0, idx, b)": "source_dim",
        "set_(a.clone(), idx, b)": "accumulate",
        "torch.linalg.det(s)": "LU pivots",
        "torch.linalg.slogdet(s)[1]": "LU pivots",
        "torch.linalg.solve(s, s)": "LU pivots",
        "torch.fft.fft(a)": "normalization",
        "torch.fft.rfft(a)": "normalization",
        "F.logsigmoid(a)": "buffer",
        "F.embedding(idx, a)": "sparse",
        "F.embedding_bag(idx, a, idx[:1] * 0)": (
            "mode offsets padding_idx per_sample_weights result1 result2 result3 sparse weight weight_sym_argsize_0"
        ),
        "F.layer_norm(a, (3,))": "bias normalized_shape result1 result2",
        "F.layer_norm(a, (3,), v, v)": "bias normalized_shape result1 result2",
        "F.group_norm(img, 2)": "C HxW N group result1 result2",
        "F.batch_norm(a, None, None, training=True)": "result1 result2 running_mean running_var training",
        "F.batch_norm(a, v.detach(), v.detach() ** 2)": "result1 result2 running_mean running_var training",
        "F.max_pool2d(img, 2)": "ceil_mode dilation kernel_size padding result1 stride",
        "F.avg_pool2d(img, 2)": "ceil_mode count_include_pad divisor_override kernel_size padding stride",
        "F.adaptive_max_pool2d(img, 2)": "result1",
        'F.pad(img, (1, 1, 1, 1), mode="reflect")': "padding",
        'F.pad(img, (1, 1, 1, 1), mode="replicate")': "padding",
        "F.cross_entropy(a, idx)": "total_weight weight",
        "F.nll_loss(a, idx)": "total_weight weight",
        "F.nll_loss(img, long2d)": "total_weight weight",
        "F.multilabel_margin_loss(a, long - 1)": "is_target",
    },
}
KNOWN = {call: set(words.split()) for rows in DIFFER.values() for call, words in rows.items()}
ROWS = [line for line in CALLS.splitlines() if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def worlds():
    return names(torch), names(rushlight)


@pytest.mark.parametrize("call", ROWS)
def test_nodes_show_what_pytorchs_show(worlds, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (eval(call, dict(world)).grad_fn for world in worlds)
    assert differences(theirs, ours) == KNOWN.get(call, set())


def test_every_exception_is_a_row():
    assert set(KNOWN) <= set(ROWS)


def attending(nn, **options):
    class Attending(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.MultiheadAttention(8, 2, batch_first=True, **options)

        def forward(self, x):
            return self.inner(x, x, x)[0]

    return Attending()


# Layers of which the gradients' order is looked at, and the shape of an input.
LAYERS = {
    "linear": (lambda nn: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)), (4, 8)),
    "linear without bias": (lambda nn: nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 4)), (4, 8)),
    "linear of many": (lambda nn: nn.Sequential(nn.Linear(8, 8), nn.PReLU(), nn.Linear(8, 4)), (2, 3, 8)),
    "conv1d": (lambda nn: nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.Conv1d(4, 4, 3)), (2, 3, 8)),
    "conv2d": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)), (2, 3, 8, 8)),
    "conv_transpose2d": (lambda nn: nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.ReLU()), (2, 3, 8, 8)),
    "layer_norm": (lambda nn: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)), (4, 8)),
    "rms_norm": (lambda nn: nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8), nn.Linear(8, 8)), (4, 8)),
    "batch_norm": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (2, 3, 8, 8)),
    "group_norm": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), (2, 3, 8, 8)),
    "instance_norm": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True)), (2, 3, 8, 8)),
    "embedding": (lambda nn: nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8), nn.Linear(8, 8)), None),
    "attention": (attending, (2, 5, 8)),
    "attention to more": (lambda nn: attending(nn, add_bias_kv=True), (2, 5, 8)),
    "encoder": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
    "encoder, norms first": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=True), (2, 5, 8)),
    "decoder": (lambda nn: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("of_input", [False, True])
@pytest.mark.parametrize("layers", LAYERS)
def test_gradients_come_in_pytorchs_order(layers, of_input):
    """Which decides what a bucket of ``DistributedDataParallel`` holds."""
    assert arrivals(rushlight, *LAYERS[layers], of_input) == arrivals(torch, *LAYERS[layers], of_input)


def arrivals(library, make, shape, of_input) -> list[str]:
    """The names of parameters, and of the input, as hooks after their gradients are called."""
    model, came = make(library.nn), []
    x = library.tensor([1, 2, 3]) if shape is None else library.ones(shape, requires_grad=of_input)
    leaves = {"input": x, **dict(model.named_parameters())} if x.requires_grad else dict(model.named_parameters())
    for name, leaf in leaves.items():
        leaf.register_post_accumulate_grad_hook(lambda _, name=name: came.append(name))
    given = (x, x) if isinstance(model, library.nn.Transformer) else (x,)
    model(*given).square().sum().backward()
    assert sorted(came) == sorted(leaves)
    return came


# Writes before backward that end otherwise than in PyTorch: of which name in the call, ``y`` its result.
WRITES_DIFFER = {
    "indices are kept as they were": {
        "a[idx]": "idx",
        "a[mask]": "mask",
        "a[:, idx]": "idx",
        "set_(a.clone(), idx, b)": "idx",
    },
    "PyTorch's gradient would be of the written values": {"torch.kron(a, b)": "a b"},
    "one rule here, that of several nodes there": {
        "F.embedding_bag(idx, a, idx[:1] * 0)": "a",
        "F.scaled_dot_product_attention(a[None], b[None], c[None])": "a b",
    },
}
WRITES_KNOWN = {call: set(words.split()) for rows in WRITES_DIFFER.values() for call, words in rows.items()}


@pytest.mark.parametrize("call", ROWS)
def test_what_was_kept_may_not_be_written(call):
    used = [name for name in names(torch) if len(name) < 7 and re.search(rf"(?<![\w.]){name}\b(?!\()", call)]
    ends = {name: [after_write(library, call, name) for library in (torch, rushlight)] for name in ["y", *used]}
    assert {name for name, (theirs, ours) in ends.items() if theirs != ours} == WRITES_KNOWN.get(call, set())


def after_write(library, call: str, written: str) -> str:
    """How a backward pass ends if what ``written`` names in the call was changed in place after it."""
    world = {k: v.clone() if isinstance(v, library.Tensor) else v for k, v in names(library).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = eval(call, dict(world))
    y = y if isinstance(y, library.Tensor) else y[0]
    t = y if written == "y" else world.get(written)
    if not isinstance(t, library.Tensor):
        return "no tensor"
    try:
        t.zero_() if not t.is_floating_point() else t.mul_(1)
        y.backward(library.ones_like(y))
    except RuntimeError as error:
        return str(error).partition(":")[0]
    return "done"


def differences(theirs, ours) -> set:
    if top(theirs) != top(ours):
        return {"next"}
    words = [name for name in dir(theirs) if name.startswith("_saved_")]
    return {name.removeprefix("_saved_") for name in words if value(theirs, name) != value(ours, name)}


def top(node):
    """The name of a node and of those it leads to."""
    return node and (short(node), [f and short(f) for f, _ in node.next_functions])


def short(node) -> str:
    return node.name().split("::")[-1]


def value(node, name: str):
    try:
        return plain(getattr(node, name))
    except AttributeError:
        return "missing"


def plain(v):
    """A tensor as its dtype and shape; any other value as it is."""
    if isinstance(v, (tuple, list)):
        return tuple(map(plain, v))
    if isinstance(v, float):
        return round(v, 6)
    if hasattr(v, "shape"):
        return str(v.dtype).split(".")[-1], tuple(v.shape)
    return str(v).split(".")[-1] if hasattr(v, "itemsize") else v


def names(torch) -> dict:
    """What a call may use, with the same values in each library."""

    def leaf(*shape, low=-0.9, high=0.9):
        values = (np.arange(1, np.prod(shape) + 1) * 0.618) % 1 * (high - low) + low
        return torch.tensor(values.reshape(shape).tolist()).requires_grad_()

    def set_(x, where, value):
        x[where] = value
        return x

    s = leaf(3, 3)
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "set_": set_,
        "a": leaf(2, 3),
        "b": leaf(2, 3, low=-0.8),
        "c": leaf(2, 3, low=0.85),
        "p": leaf(2, 3, low=0.1),
        "n": leaf(3, 2),
        "v": leaf(3),
        "s": s,
        "s4": leaf(2, 4),
        "spd": (s.detach() @ s.detach().t() + 3 * torch.eye(3)).requires_grad_(),
        "img": leaf(1, 2, 4, 4),
        "k": leaf(2, 2, 3, 3),
        "grid": leaf(1, 2, 2, 2),
        "theta": leaf(1, 2, 3),
        "ctc": leaf(5, 1, 4),
        "mask": torch.tensor([[True, False, True], [False, True, True]]),
        "idx": torch.tensor([0, 1]),
        "long": torch.tensor([[0, 2, 1], [1, 1, 0]]),
        "long2d": torch.zeros(1, 4, 4, dtype=torch.int64),
    }
