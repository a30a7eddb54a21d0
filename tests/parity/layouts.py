"""Strides of results and of gradients beside PyTorch: operators, memory formats, shapes.

python tests/parity/layouts.py               rows that differ, then how many were compared
python tests/parity/layouts.py conv relu     only expressions that contain one of these
"""

from __future__ import annotations

import functools
import math
import sys
import warnings

import torch

import rushlight

# How a tensor of a shape is made: an expression of ``torch`` and ``shape``.
FORMS = {
    "contiguous": "torch.rand(shape)",
    "channels last": "torch.rand(shape).contiguous(memory_format=torch.channels_last)",
    "reversed": "torch.rand(shape[::-1]).permute(3, 2, 1, 0)",
    "swapped": "torch.rand(shape[1], shape[0], *shape[2:]).transpose(0, 1)",
    "sliced": "torch.rand(*shape[:-1], 2 * shape[-1])[..., ::2]",
    "sliced channels last": "torch.rand(shape[0], 2 * shape[1], *shape[2:])"
    ".contiguous(memory_format=torch.channels_last)[:, ::2]",
    "expanded": "torch.rand(1, *shape[1:]).expand(shape)",
    "strided": "torch.empty_strided(shape, (math.prod(shape[1:]), 1, shape[1] * shape[3], shape[1])).fill_(0.5)",
}
SHAPES = [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 4, 4), (1, 1, 1, 1), (2, 4, 2, 1)]
FOURIER = [  # of no dimension of size 1, which PyTorch sorts in among the others by chance
    "torch.fft.fft(x, dim=0)",
    "torch.fft.ifft(x, dim=-1)",
    "torch.fft.fftn(x, dim=(2, 0))",
    "torch.fft.rfft(x, dim=1)",
    "torch.fft.rfftn(x, dim=(2, 1)).real",
    "torch.fft.irfft(x, dim=2)",
    "torch.fft.irfftn(x, dim=(3, 0, 2))",
    "torch.fft.hfftn(x, dim=(0, 3))",
    "torch.fft.ihfftn(x, dim=(0, 3)).imag",
]
UNARY = [
    "x + 1",
    "x.neg()",
    "x.exp()",
    "x.relu()",
    "x.sigmoid()",
    "x * 2.0",
    "2 / (x + 1)",
    "x.double()",
    "x > 0.5",
    "x.clone()",
    "torch.empty_like(x)",
    "torch.zeros_like(x)",
    "torch.rand_like(x)",
    "torch.ones_like(x, dtype=torch.int64)",
    "x.clamp(0.1, 0.9)",
    "x.pow(2)",
    "F.gelu(x)",
    "F.silu(x)",
    "F.leaky_relu(x)",
    "F.elu(x)",
    "F.hardtanh(x)",
    "F.softplus(x)",
    "F.dropout(x, 0.5, True)",
    "F.dropout(x, 0.0, True)",
    "F.dropout2d(x, 0.5)",
    "F.prelu(x, torch.full((1,), 0.25))",
    "F.threshold(x, 0.5, 1.)",
    "F.hardswish(x)",
    "F.logsigmoid(x)",
    "x.detach()",
    "x.contiguous()",
    "x.contiguous(memory_format=torch.channels_last)",
    "x.to(memory_format=torch.channels_last)",
    "x.to(torch.float64, memory_format=torch.channels_last)",
    "x.clone(memory_format=torch.contiguous_format)",
    "x.to(torch.float64)",
    "x.half()",
    "x.softmax(1)",
    "x.log_softmax(1)",
    "x.softmax(-1)",
    "x.cumsum(1)",
    "x.flip(1)",
    "x.roll(1, 1)",
    "x.tril()",
    "x.sum(1)",
    "x.sum(1, keepdim=True)",
    "x.sum((2, 3))",
    "x.mean((2, 3), keepdim=True)",
    "x.mean(0)",
    "x.amax(1)",
    "x.max(1).values",
    "x.var((0, 2, 3))",
    "x.argmax(1)",
    "x.sort(1).values",
    "x.topk(1, 1).values",
    "x[0:1]",
    "x.view(x.shape)",
    "x.nan_to_num()",
    "x.isnan()",
    "x.logical_not()",
    "x.masked_fill(x > 0.5, 0.)",
    "torch.where(x > 0.5, x, 0.)",
    "torch.cat([x, x], 1)",
    "torch.cat([x, x])",
    "torch.stack([x, x])",
    "x.repeat(1, 2, 1, 1)",
    "F.pad(x, (1, 1))",
    "F.pad(x, (1, 1, 1, 1), mode='replicate')",
    "F.pad(x, (0, 0), value=1.)",
    "F.pad(x, (-1, 1, 1, 0))",
    "x.index_select(1, torch.tensor([0]))",
    "x[:, [0]]",
    "x.gather(1, torch.zeros(x.shape, dtype=torch.int64))",
    "x.take_along_dim(torch.zeros((1, 1, 1, 1), dtype=torch.int64), 1)",
    "x.abs()",
    "x.sqrt()",
    "x.rsqrt()",
    "x.reciprocal()",
    "x.sign()",
    "x.round()",
    "x.erf()",
    "x.lgamma()",
    "x.tanh()",
    "x.log()",
    "x.sin()",
    "x.atan()",
    "F.normalize(x)",
    "F.mish(x)",
    "F.celu(x)",
    "F.selu(x)",
    "F.relu6(x)",
    "F.hardsigmoid(x)",
    "F.hardshrink(x)",
    "F.softshrink(x)",
    "F.tanhshrink(x)",
    "F.softsign(x)",
    "x.square()",
    "x.float()",
    "x.bool()",
    "x.bfloat16()",
    "torch.complex(x, x)",
    "x.diff(dim=1)",
    "x.T.clone()",
    "torch.bernoulli(x)",
    "x.fmod(0.3)",
    "x % 0.3",
    "x // 0.3",
    "x.reshape(x.shape)",
    "x.flatten(1)",
    "x.unsqueeze(0) + 1",
    "x.new_empty(x.shape)",
    "x.new_zeros(x.shape)",
    "F.glu(x.repeat(1, 2, 1, 1), 1)",
    "F.one_hot(x.long(), 2)",
    "torch.polar(x, x)",
    "x.lerp(x.flip(1), 0.5)",
]
BINARY = [
    "x + y",
    "x * y",
    "x - y",
    "x / y",
    "torch.maximum(x, y)",
    "torch.where(x > 0.5, x, y)",
    "torch.where(y > 0.5, x, 1.)",
    "x.lerp(y, 0.5)",
    "torch.addcmul(x, y, y)",
    "x > y",
    "x.pow(y)",
    "torch.atan2(x, y)",
    "F.mse_loss(x, y, reduction='none')",
    "F.l1_loss(x, y, reduction='none')",
    "F.smooth_l1_loss(x, y, reduction='none')",
    "F.binary_cross_entropy(x, y, reduction='none')",
    "F.binary_cross_entropy_with_logits(x, y, reduction='none')",
    "torch.cat([x, y], 1)",
    "torch.cat([x, y])",
    "torch.stack([x, y])",
    "x.copy_(y)",
    "x.masked_fill(y > 0.5, 0.)",
    "x.lerp(y, x)",
    "x.clamp(max=y)",
    "torch.hypot(x, y)",
    "x.add(y, alpha=2)",
    "x + y.double()",
    "x.fmod(y)",
    "torch.logical_and(x, y)",
    "torch.addcdiv(x, y, y)",
    "x.clone().add_(y)",
    "torch.empty_like(x).copy_(y)",
    "x.eq(y)",
    "x.masked_scatter(y > 0.5, y)",
    "F.kl_div(x, y, reduction='none')",
]
BROADCAST = [
    "x + b",
    "b + x",
    "x * b",
    "x + v",
    "v + x",
    "x.sum(1, keepdim=True) + x",
    "x[0] + x",
    "x + x[0]",
    "torch.where(x > 0.5, x, b)",
    "x.mean((2, 3), keepdim=True) * x",
    "x[:, :1] + x",
    "x + 1.5 + x.sum()",
]
CHANNELS = [
    "F.conv2d(x, w)",
    "F.conv2d(x, w, c, padding=1)",
    "F.conv2d(x, wl)",
    "F.conv2d(x, w, stride=2, padding=1)",
    "F.conv2d(x, w1)",
    "F.conv2d(x, wd, groups=3, padding=1)",
    "F.conv_transpose2d(x, wt)",
    "F.conv_transpose2d(x, wt, stride=2)",
    "F.max_pool2d(x, 2)",
    "F.max_pool2d(x, 2, return_indices=True)[1]",
    "F.avg_pool2d(x, 2)",
    "F.adaptive_avg_pool2d(x, 1)",
    "F.adaptive_avg_pool2d(x, 2)",
    "F.adaptive_max_pool2d(x, 2)",
    "F.lp_pool2d(x, 2, 2)",
    "F.fractional_max_pool2d(x, 2, output_size=2)",
    "F.batch_norm(x, None, None, training=True)",
    "F.batch_norm(x, torch.zeros(3), torch.ones(3), torch.ones(3), torch.zeros(3))",
    "F.group_norm(x, 3)",
    "F.group_norm(x, 1, torch.ones(3), torch.zeros(3))",
    "F.instance_norm(x)",
    "F.layer_norm(x, x.shape[1:])",
    "F.layer_norm(x, x.shape[-1:])",
    "F.local_response_norm(x, 2)",
    "F.rms_norm(x, x.shape[-1:])",
    "F.interpolate(x, scale_factor=2)",
    "F.interpolate(x, scale_factor=2, mode='bilinear')",
    "F.interpolate(x, size=(3, 3), mode='bilinear', align_corners=True)",
    "F.interpolate(x, scale_factor=2, mode='bicubic')",
    "F.interpolate(x, scale_factor=2, mode='nearest-exact')",
    "F.interpolate(x, size=(2, 2), mode='area')",
    "F.interpolate(x, size=(2, 2), mode='bilinear', antialias=True)",
    "F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2)",
    "F.pixel_unshuffle(F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2)), 2)",
    "F.channel_shuffle(x, 3)",
    "F.unfold(x, 2, padding=1)",
    "F.grid_sample(x, torch.zeros(x.shape[0], 2, 2, 2), align_corners=False)",
    "F.pad(x, (1, 1, 1, 1), mode='reflect')",
    "F.pad(x, (1, 1, 1, 1), mode='circular')",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)",
]
EXTRA = dict(
    b="torch.rand(1, shape[1], 1, 1)",
    v="torch.rand(shape[-1])",
    w="torch.rand(4, 3, 2, 2)",
    c="torch.rand(4)",
    wl="torch.rand(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)",
    w1="torch.rand(4, 3, 1, 1)",
    wd="torch.rand(3, 1, 3, 3)",
    wt="torch.rand(3, 4, 2, 2)",
)

# What stays different, and why: (part of the expression, part of the form, reason).
KEPT = [
    ("", "expanded", "a view by NumPy has stride 0 in all broadcast dimensions, of size 1 too"),
    ("x.view(", "", "NumPy gives a dimension of size 1 another stride, which means nothing"),
    ("x.reshape(", "", "the same"),
    ("x.unsqueeze(", "", "the same"),
    ("x.flatten(", "", "the same"),
    ("adaptive_avg_pool2d(x, 1)", "", "the same"),
    ("roll", "", "the same"),
    ("F.pad(x, (-1", "", "the same"),
    ("torch.stack(", "", "PyTorch joins, then splits the dimension where it can"),
    ("x[:, [0]]", "", "an index keeps the order of dimensions in PyTorch"),
    ("F.rms_norm", "", "computed as one operator here"),
    ("with_logits", "", "one element, of any stride"),
    ("y.double()", "", "a cast and a sum: the strides of a dimension of size 1"),
    ("x.diff(dim=1)", "", "a result without elements"),
]
# The same of what ``autograd.grad`` returns.
KEPT_GRADIENTS = {
    "F.pad(x, (-1, 1, 1, 0))": "cut and filled up in one step here",
    "F.pixel_unshuffle(F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2)), 2)": "the same",
    "F.kl_div(x, y, reduction='none')": "computed as other operators here",
    "x.lerp(y, x)": "two gradients of x meet in another order",
    **dict.fromkeys(FOURIER, "the real part of complex numbers in PyTorch, as a view of them"),
}
GIVEN = {
    "expanded": "torch.ones(()).expand(y.shape)",
    "contiguous": "torch.ones(y.shape)",
    "channels last": "torch.ones(y.shape).contiguous(memory_format=torch.channels_last)",
}


def rows(shapes):
    for shape in shapes:
        for name in FORMS:
            for text in (*UNARY, *BROADCAST):
                yield text, shape, name, None
            for text in FOURIER if min(shape) > 1 else ():
                yield text, shape, name, None
            if shape[1] == 3 and min(shape[2:]) > 1:
                for text in CHANNELS:
                    yield text, shape, name, None
            for other in FORMS:
                for text in BINARY:
                    yield text, shape, name, other


@functools.cache
def extra(text) -> list[str]:
    """The names of ``EXTRA`` that an expression has."""
    return [name for name in compile(text, "", "eval").co_names if name in EXTRA]


def outcome(library, text, shape, form, other):
    """Strides of the result, its formats, and the strides of its gradients; or the name of an error."""
    names = dict(torch=library, math=math, F=library.nn.functional, shape=shape)
    library.manual_seed(0)
    try:
        x = eval(FORMS[form], names)
        names["x"] = x.requires_grad_() if "_(" not in text else x
        if other:
            names["y"] = eval(FORMS[other], names).requires_grad_()
        names |= {name: eval(EXTRA[name], names) for name in extra(text)}
        result = eval(text, names)
        found = [result.stride(), result.is_contiguous()]
        if result.ndim == 4:
            found.append(result.is_contiguous(memory_format=library.channels_last))
        if result.requires_grad and result.dtype in (library.float32, library.float64):
            result.sum().backward()
            found += [_steps(names[n]) for n in "xy" if n in names and names[n].grad is not None]
    except Exception as error:
        return type(error).__name__
    return found


def _steps(leaf):
    return steps(leaf.grad)


def steps(t):
    """Strides; those of dimensions of size 1 are anybody's."""
    return [s for n, s in zip(t.shape, t.stride()) if n > 1]


def gradient_rows(shape, forms=("contiguous", "channels last")):
    """Rows of ``rows`` with a layout for the gradient of the result."""
    for text, _, form, other in rows([shape]):
        if form in forms and other in (None, *forms) and "_(" not in text and text not in KEPT_GRADIENTS:
            for given in GIVEN:
                yield text, shape, form, other, given


def gradients(library, text, shape, form, other, given, create_graph=False):
    """Strides of what ``autograd.grad`` returns for the inputs and weights of an expression; None where nothing."""
    names = dict(torch=library, math=math, F=library.nn.functional, shape=shape)
    library.manual_seed(0)
    try:
        inputs = {"x": eval(FORMS[form], names).requires_grad_()}
        if other:
            inputs["y"] = eval(FORMS[other], names).requires_grad_()
        inputs |= {name: eval(EXTRA[name], names).requires_grad_() for name in extra(text)}
        result = eval(text, names | inputs)
        if result.grad_fn is None or (given == "channels last" and result.ndim != 4):
            return None
        g = eval(GIVEN[given], dict(torch=library, y=result)).to(result.dtype)
        found = library.autograd.grad(result, list(inputs.values()), g, create_graph=create_graph, allow_unused=True)
    except Exception as error:
        return type(error).__name__
    return {name: steps(t) for name, t in zip(inputs, found) if t is not None}


def compare(row):
    """None where both libraries agree; else what each has."""
    theirs = outcome(torch, *row)
    ours = outcome(rushlight, *row)
    return None if theirs == ours or isinstance(theirs, str) else (theirs, ours)


def kept(row) -> bool:
    text, _, form, other = row
    return any(part in text and where in f"{form} {other}" for part, where, _ in KEPT)


def main(only) -> int:
    warnings.simplefilter("ignore")
    count = new = known = 0
    for row in rows(SHAPES):
        if only and not any(word in row[0] for word in only):
            continue
        count += 1
        found = compare(row)
        if found and kept(row):
            known += 1
        elif found:
            new += 1
            print(row, "\n    torch    ", found[0], "\n    rushlight", found[1])
    print(f"{count} rows, {new} differ, {known} kept")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
