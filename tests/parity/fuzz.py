"""Random programs, run by PyTorch and rushlight: results, dtypes, shapes, gradients and kinds of error must agree.

    python tests/parity/fuzz.py                        1,000 programs
    python tests/parity/fuzz.py --programs 20000 --seed 7
    python tests/parity/fuzz.py --family views -v      one family, with every program printed

A program is a list of lines, each of which makes or changes a tensor. One that differs is made shorter, line by line,
while it still differs, and printed; those that docs/differences.md explains are only counted (``-d`` prints them too).
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import sys
import time
import warnings

import numpy as np
import torch

import rushlight

SHAPES = [(), (1,), (3,), (2, 3), (3, 1), (1, 3), (2, 2), (2, 3, 2), (0,), (0, 3), (1, 2, 4, 4)]
DTYPES = ["float32"] * 6 + ["float64", "float64", "int64", "int32", "uint8", "bool", "float16", "bfloat16", "complex64"]

# Each entry is a line with {a}, {b} for tensors made before, {n}, {m} for small integers, {d} for a dimension and {f}
# for a number.
FAMILIES = {
    "pointwise": [
        "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} * {f}", "{f} - {a}", "{a} + {n}", "{a}.abs()",
        "{a}.exp().clamp(max=50)", "{a}.sigmoid()", "{a}.tanh()", "{a}.relu()", "{a}.clamp({f}, 2)",
        "torch.maximum({a}, {b})", "torch.where({a} > {f}, {a}, {b})", "{a}.square()", "{a}.neg()", "{a}.sin()",
        "F.gelu({a})", "F.silu({a})", "F.leaky_relu({a}, 0.1)", "F.elu({a})", "F.softplus({a})", "{a}.pow(2)",
        "{a} ** {n}", "{a}.float()", "{a}.double()", "{a}.long()", "{a} == {b}", "{a} > {f}",
        "torch.lerp({a}, {b}, 0.3)", "torch.addcmul({a}, {b}, {b}, value=0.5)", "{a}.add({b}, alpha={n})",
        "{a}.masked_fill({a} > {f}, {f})", "{a}.round()", "{a}.sign()", "{a}.fmod(2)", "{a} % 3", "{a} // 2",
        "torch.hypot({a}, {b})", "{a}.logical_not()", "{a}.nan_to_num()", "{a}.atan()", "{a}.erf()", "{a}.sqrt()",
        "{a}.log1p()", "{a}.reciprocal()", "{a}.cos()", "torch.minimum({a}, {b})", "{a} != {n}", "{a}.clone()",
    ],
    "reductions": [
        "{a}.sum()", "{a}.sum({d})", "{a}.mean({d})", "{a}.mean()", "{a}.max()", "{a}.max({d})[0]", "{a}.argmax({d})",
        "{a}.amin({d})", "{a}.prod({d})", "{a}.cumsum({d})", "{a}.softmax({d})", "{a}.log_softmax({d})",
        "{a}.logsumexp({d})", "{a}.var({d})", "{a}.std()", "{a}.norm()", "{a}.sort({d})[0]", "{a}.sort({d})[1]",
        "{a}.any({d})", "{a}.all()", "{a}.median()", "{a}.sum({d}, keepdim=True)", "F.normalize({a}, dim={d})",
        "{a}.cumprod({d})", "{a}.argmin()", "F.layer_norm({a}, {a}.shape[-1:])", "F.glu({a}, {d})",
        "{a}.count_nonzero()", "{a}.flip({d})", "{a}.diff(dim={d})",
    ],
    "views": [
        "{a}.view(-1)", "{a}.reshape(-1, 1)", "{a}.t()", "{a}.transpose(0, {d})", "{a}[0]", "{a}[..., {n}:]",
        "{a}[None]", "{a}.unsqueeze({d})", "{a}.squeeze()", "{a}.expand(2, *{a}.shape)", "{a}.flatten()",
        "{a}.unbind({d})[0]", "{a}.chunk(2, {d})[0]", "{a}.select({d}, {n})", "{a}.narrow({d}, 0, 1)",
        "{a}.diagonal()", "{a}.movedim(0, {d})", "{a}.detach()", "{a}[{n}:]", "{a}[::2]", "{a}.split(1, {d})[-1]",
        "{a}.unfold({d}, 1, 1)", "{a}.permute(*range({a}.ndim))", "{a}.contiguous()", "{a}.mT",
        "{a}.as_strided((1,), (1,))", "{a}[[0]]", "{a}[{a} > {f}]", "{a}.index_select({d}, torch.tensor([0]))",
        "torch.cat([{a}, {b}], {d})", "torch.stack([{a}, {a}])", "{a}.repeat(2, *[1] * {a}.ndim)", "{a}.roll(1, {d})",
        "{a}.tril()", "F.pad({a}, (1, {n}))", "{a}.gather({d}, {a}.argsort({d}))", "{a}.repeat_interleave(2, {d})",
        "torch.tril({a})", "{a}[range(1)]", "torch.atleast_2d({a})", "{a}.broadcast_to(2, *{a}.shape)",
    ],
    "writes": [
        "{a}.mul_({f})", "{a}.add_({b})", "{a}.zero_()", "{a}.copy_({b})", "{a}.relu_()", "{a}.clamp_(min={f})",
        "{a}.gt_({f})", "{a}.masked_fill_({a} > {f}, {n})", "{a}.sigmoid_()", "{a}.fill_({n})",
        "{a}.sub_({b}, alpha={n})", "{a}.t_()", "{a}.unsqueeze_({d})", "{a}.div_(2)", "{a}.pow_(2)", "{a}.neg_()",
        "{a}.detach_()", "{a}.requires_grad_()", "{a}.round_()", "{a}.transpose_(0, {d})", "{a}.__setitem__(0, {f})",
        "{a}.__setitem__(0, {b})", "{a}.__setitem__(slice({n}, None), {f})", "{a}.__setitem__({a} > {f}, {n})",
        "{a}.index_add_({d}, torch.tensor([0]), {b})", "{a}.__iadd__({b})", "{a}.__imul__({f})", "{a}.squeeze_()",
        "{a}.cumsum_({d})",
    ],
    "products": [
        "{a} @ {b}", "torch.matmul({a}, {b}.mT)", "F.linear({a}, {b})", "{a} @ {a}.mT",
        "torch.outer({a}.flatten(), {b}.flatten())", "torch.einsum('...i,...i->...', {a}, {a})",
        "F.mse_loss({a}, {b})", "F.cross_entropy({a}, {a}.argmax(1))", "F.l1_loss({a}, {b})",
        "F.conv1d({a}.reshape(1, 1, -1), torch.ones(1, 1, 1, dtype={a}.dtype))",
        "F.max_pool1d({a}.reshape(1, 1, -1), 1)", "F.dropout({a}, 0.5, False)", "F.cosine_similarity({a}, {b}, {d})",
        "torch.dot({a}.flatten(), {a}.flatten())", "torch.kron({a}, {b})", "F.smooth_l1_loss({a}, {b})",
        "torch.linalg.vector_norm({a}, dim={d})", "torch.trace({a})", "F.avg_pool1d({a}.reshape(1, 1, -1), 1)",
        "F.one_hot({a}.long().clamp(0, 3), 4)", "F.binary_cross_entropy_with_logits({a}, {a}.sigmoid().detach())",
        "F.interpolate({a}.reshape(1, 1, -1), scale_factor=2)",
    ],
    "places": [
        "{a}.scatter({d}, {a}.argsort({d}), {b})", "{a}.scatter_({d}, {a}.argsort({d}), {f})",
        "{a}.scatter_add({d}, {a}.argsort({d}), {b})", "{a}.scatter({d}, {a}.argsort({d}), {b}, reduce='multiply')",
        "{a}.scatter_reduce({d}, torch.zeros_like({b}).long(), {b}, 'amax')",
        "{a}.scatter_reduce({d}, torch.zeros_like({b}).long(), {b}, 'mean', include_self=False)",
        "{a}.scatter_reduce({d}, {a}.argsort({d}), {b}, 'prod')", "{a}.scatter_add_({d}, {b}.argsort({d}), {b})",
        "{a}.index_put((torch.tensor([0, 0]),), {b})", "{a}.index_put_((torch.tensor([0, 0]),), {b}, accumulate=True)",
        "{a}.index_put_(({a} > {f},), torch.tensor({f}, dtype={a}.dtype))",
        "{a}.index_fill({d}, torch.tensor([0]), {f})",
        "{a}.index_copy({d}, torch.tensor([0]), {b})", "{a}.index_add({d}, torch.tensor([0]), {b}, alpha={n})",
        "{a}.index_reduce({d}, torch.tensor([0]), {b}, 'amin')", "{a}.take(torch.tensor([0, -1]))",
        "{a}.take_along_dim({a}.argsort({d}), {d})", "{a}.put(torch.tensor([0]), {b})",
        "{a}.put_(torch.tensor([0, 0]), {b}, accumulate=True)", "{a}.masked_select({b} > {f})",
        "{a}.masked_scatter({a} > {f}, {b})", "{a}.masked_scatter_({b} > {f}, {b})", "{a}.select_scatter({b}, {d}, 0)",
        "{a}.slice_scatter({b}, {d}, 0, 1)", "{a}.diagonal_scatter({b})", "{a}.where({a} > {b}, {f})",
        "torch.searchsorted({a}.flatten().sort()[0], {b})", "{a}.topk(1, {d})[0]", "{a}.kthvalue(1, {d})[0]",
        "{a}.unique()", "{a}.nonzero()", "{a}[..., torch.tensor([0, -1])]", "{a}[torch.tensor([[0], [0]])]",
        "{a}[None, torch.tensor([0])]", "{a}[torch.tensor([0]), ..., {n}]", "{a}.__setitem__((Ellipsis, 0), {b})",
        "{a}.__setitem__(torch.tensor([0, 0]), {b})", "{a}.__setitem__((None, {n}), {f})", "{a}.fill_diagonal_({f})",
        "{a}.index_select({d}, {b}.long().flatten())", "torch.gather({a}, {d}, torch.zeros_like({b}).long())",
    ],
    "losses": [
        "F.nll_loss({a}.log_softmax(1), {a}.argmax(1))", "F.kl_div({a}, {b}.softmax(-1), reduction='batchmean')",
        "F.huber_loss({a}, {b}, delta=0.5)", "F.hinge_embedding_loss({a}, {b}.sign())", "F.soft_margin_loss({a}, {b})",
        "F.margin_ranking_loss({a}, {b}, {a}.sign())", "F.gaussian_nll_loss({a}, {b}, {a}.square())",
        "F.poisson_nll_loss({a}, {b})", "F.triplet_margin_loss({a}, {b}, {a} * 2)",
        "F.cross_entropy({a}, {b}.softmax(1))",
        "F.cross_entropy({a}, {a}.argmax(1), label_smoothing=0.1)",
        "F.cross_entropy({a}, {a}.argmax(1), ignore_index=0)",
        "F.mse_loss({a}, {b}, reduction='none')", "F.l1_loss({a}, {b}, reduction='sum')",
        "F.batch_norm({a}, None, None, training=True)", "F.group_norm({a}, 1)", "F.instance_norm({a})",
        "F.rms_norm({a}, {a}.shape[-1:])", "F.layer_norm({a}, {a}.shape, eps=0.1)", "F.softmin({a}, {d})",
        "F.logsigmoid({a})", "F.hardswish({a})", "F.mish({a})", "F.selu({a})", "F.celu({a})", "F.softsign({a})",
        "F.prelu({a}, torch.tensor([0.25]))", "F.tanhshrink({a})", "F.hardtanh({a})", "F.threshold({a}, {f}, {n})",
        "F.relu6({a})", "F.softshrink({a})", "F.hardsigmoid({a})", "F.pairwise_distance({a}, {b})",
        "F.embedding({a}.long().clamp(0, 0), {b})", "F.scaled_dot_product_attention({a}, {b}, {b})",
        "F.adaptive_avg_pool1d({a}.reshape(1, 1, -1), 2)", "F.pad({a}, (1, 1), mode='reflect')",
        "F.pad({a}, (1, {n}), value={f})", "F.max_pool2d({a}, 2)", "F.avg_pool2d({a}, 2, 1)",
        "F.interpolate({a}, size=(3, 3), mode='bilinear')", "F.unfold({a}, 2)", "F.pixel_shuffle({a}, 1)",
        "F.conv2d({a}, torch.ones(1, 2, 2, 2, dtype={a}.dtype))", "F.channel_shuffle({a}, 1)",
    ],
    "steps": [
        "step('SGD', {a}, lr=0.1)", "step('SGD', {a}, lr=0.1, momentum=0.9, nesterov=True)", "step('Adam', {a})",
        "step('AdamW', {a}, lr=0.1, weight_decay={f})", "step('RMSprop', {a}, momentum=0.9)", "step('Adagrad', {a})",
        "step('Adadelta', {a})", "step('NAdam', {a})", "step('RAdam', {a})", "step('Adamax', {a})",
        "step('Rprop', {a})",
        "step('ASGD', {a})", "step('Adam', {a}, amsgrad=True, maximize=True)", "step('SGD', {a}, lr={f})",
        "{a} * 2", "{a} - {b}", "{a}.detach()", "{a}.mul_({f})",
    ],
    "conversions": [
        "{a}.half()", "{a}.bfloat16()", "{a}.int()", "{a}.bool()", "{a}.short()", "{a}.to({b})", "{a}.type_as({b})",
        "{a}.to(torch.float64, copy=True)", "{a}.cfloat()", "torch.tensor({a}.tolist())", "torch.as_tensor({a})",
        "torch.full_like({a}, {n})", "torch.arange({n} + 1).to({a})", "{a}.new_tensor([{f}])",
        "{a}.new_full((2,), {n})",
        "{a}.real", "torch.view_as_real({a})", "torch.complex({a}, {b})", "torch.polar({a}, {b})",
        "{a}.type(torch.float32)",
        "{a}.sum(dtype=torch.float64)", "{a}.mean(dtype=torch.float32)", "{a}.cumsum({d}, dtype=torch.float32)",
        "{a}.softmax({d}, dtype=torch.float64)", "{a}.prod({d}, dtype=torch.int64)", "{a} + True", "{a} * 1j",
        "{a} & {b}",
        "{a} | {n}", "~{a}", "{a} << {n}", "{a} ^ {b}", "-{a}", "{f} // {a}", "{n} ** {a}", "{n} / {a}", "{n} % {a}",
        "torch.div({a}, {b}, rounding_mode='floor')", "torch.div({a}, 2, rounding_mode='trunc')",
        "{a}.to(dtype={b}.dtype)",
        "torch.ones_like({a}, dtype=torch.float64)", "{a}.float_power(2)", "torch.stack([{a}, {b}])", "{a}.conj()",
        "{a}.imag",
        "torch.isclose({a}, {b})", "torch.cat([{a}.flatten(), {b}.flatten()])", "torch.where({a} > 0, {n}, {b})",
    ],
    "more writes": [
        "{a}.addcmul_({b}, {b}, value={f})", "{a}.addcdiv_({b}, {b}, value={f})", "{a}.lerp_({b}, 0.3)", "{a}.exp_()",
        "{a}.tanh_()", "{a}.sqrt_()", "{a}.clip_({f}, 2)", "{a}.floor_()", "{a}.abs_()", "{a}.sign_()", "{a}.cos_()",
        "{a}.logical_not_()", "{a}.eq_({b})", "{a}.remainder_(2)", "{a}.index_fill_({d}, torch.tensor([0]), {f})",
        "{a}.tril_()", "{a}.triu_()", "{a}.copy_({b}.detach())", "{a}.add_({f}, alpha={n})", "{a}.mul_({b})",
        "{a}.div_({b})", "{a}.__isub__({b})", "{a}.__itruediv__(2)", "{a}.__ipow__(2)", "{a}.nan_to_num_()",
        "{a}.cumprod_({d})", "{a}.renorm_(2, {d}, 1.0)", "{a}.swapaxes_(0, {d})", "{a}[0].add_({b})",
        "{a}.view(-1)[0].mul_({f})",
        "{a}.detach().zero_()", "{a}.data.mul_({f})", "{a}.floor_divide_(2)", "{a}.fmod_({b})", "{a}.erf_()",
        "{a}.trunc_()",
        "{a}.clone().add_({b})", "F.relu({a}, inplace=True)", "F.elu({a} * 1, inplace=True)", "F.leaky_relu_({a})",
        "{a}.index_copy_({d}, torch.tensor([0]), {b})", "{a}.clamp_min_({f})", "{a}.unsqueeze({d}).sub_({b})",
        "{a}.expand(2, *{a}.shape).add_({f})", "{a}.diagonal().fill_({n})", "{a}.t().mul_({f})",
        "{a}.logical_and_({b})",
    ],
    "algebra": [
        "torch.einsum('ij,jk->ik', {a}, {b})", "torch.einsum('ij->ji', {a})", "torch.einsum('ii->i', {a})",
        "torch.einsum('ij,ij->', {a}, {b})", "torch.einsum('...ij,...jk->...ik', {a}, {b})",
        "torch.einsum('i,j->ij', {a}, {b})",
        "torch.einsum('bij->b', {a})", "torch.einsum('ij,j', {a}, {b})", "torch.tensordot({a}, {b}, 1)",
        "torch.addmm({a}, {b}, {b}, alpha={n})", "torch.addmv({a}, {b}, {a})", "torch.bmm({a}, {b}.mT)",
        "torch.mv({a}, {b})",
        "torch.baddbmm({a}, {b}, {b}.mT, beta={n})", "torch.cdist({a}, {b})", "torch.linalg.norm({a})",
        "torch.cov({a})",
        "torch.linalg.matrix_norm({a})", "torch.linalg.det({a})", "torch.linalg.inv({a} @ {a}.mT + torch.eye(2))",
        "torch.linalg.solve({a}, {b})", "torch.matrix_power({a}, {n})", "torch.vander({a}.flatten())",
        "torch.diag({a})",
        "torch.diag_embed({a})", "torch.inner({a}, {b})", "torch.cross({a}, {b}, dim={d})",
        "torch.block_diag({a}, {b})",
        "torch.cartesian_prod({a}.flatten(), {b}.flatten())",
        "torch.meshgrid({a}.flatten(), {b}.flatten(), indexing='ij')[1]",
        "torch.rot90({a})", "torch.cummax({a}, {d})[0]", "torch.logcumsumexp({a}, {d})",
        "torch.trapezoid({a}, dim={d})",
        "torch.std_mean({a}, {d})[1]", "torch.aminmax({a})[0]", "torch.nansum({a}, {d})", "torch.quantile({a}, 0.5)",
        "torch.mode({a}, {d})[0]", "torch.dist({a}, {b})", "torch.renorm({a}, 2, {d}, 1.0)", "torch.nanmedian({a})",
        "torch.bucketize({a}, torch.tensor([-1.0, 0.0, 1.0]))", "torch.histc({a}, 4, -2, 2)", "torch.triu({a}, {n})",
    ],
}  # fmt: skip


class Program:
    """The lines of a program; ``text()`` is what both libraries run."""

    def __init__(self, lines):
        self.lines = lines

    def text(self) -> str:
        return "\n".join(self.lines)

    @classmethod
    def random(cls, rng: random.Random, family: str | None = None) -> Program:
        lines, names = [], []
        for i in range(rng.randint(1, 3)):
            lines.append(_leaf(rng, i))
            names.append(f"t{i}")
        for i in range(len(names), len(names) + rng.randint(1, 6)):
            template = rng.choice(FAMILIES[family or rng.choice(list(FAMILIES))])
            values = dict(a=rng.choice(names), b=rng.choice(names), n=rng.randint(0, 2), d=rng.choice([0, 0, 1, -1]))
            line = f"t{i} = " + template.format(f=rng.choice([0.5, -1.0, 2.0, 0.0]), m=rng.randint(1, 3), **values)
            lines.append(f"with torch.no_grad(): {line}" if rng.random() < 0.06 else line)
            if "__setitem__" not in line:  # which makes nothing
                names.append(f"t{i}")
        return cls(lines)


def _leaf(rng: random.Random, index: int) -> str:
    shape, dtype = rng.choice(SHAPES), rng.choice(DTYPES)
    size = int(np.prod(shape))
    values = [round(rng.uniform(-2, 2), 2) for _ in range(size)]
    if dtype in ("int64", "int32", "uint8", "bool"):
        values = [abs(int(2 * v)) for v in values]
    # Not ``.reshape(shape)``: a view that requires grad hides its base, which PyTorch's gradients may go to.
    nested = np.reshape(np.array(values, dtype=object), shape).tolist() if size else None
    made = f"t{index} = torch.tensor({nested}, dtype=torch.{dtype})"
    if not size:
        made = f"t{index} = torch.zeros({shape}, dtype=torch.{dtype})"
    return made + (".requires_grad_()" if dtype[0] in "fbc" and dtype != "bool" and rng.random() < 0.6 else "")


def run(library, program: Program):
    """What a program leaves: the state of its tensors, or the kind of its error and the line it came from."""
    names: dict = dict(torch=library, F=library.nn.functional, step=functools.partial(_step, library))
    for number, line in enumerate(program.lines):
        try:
            exec(line, names)
        except Exception as error:
            return [("error", number, type(error).__name__, _line(error))]
    tensors = {k: v for k, v in sorted(names.items()) if k[0] == "t" and k != "torch" and isinstance(v, library.Tensor)}
    found = [("values", k, *_seen(t)) for k, t in tensors.items()]
    loss = [t for t in tensors.values() if t.requires_grad and _is_leaf(t) is False]
    if loss:
        try:
            last = loss[-1]
            last.backward(library.ones_like(last))
        except Exception as error:
            return [*found, ("backward", type(error).__name__, _line(error))]
        found += [("grad", k, *_seen(t.grad)) for k, t in tensors.items() if _is_leaf(t) is True and t.grad is not None]
    return found


def _line(error) -> str:
    return str(error).partition("\n")[0]


def _step(library, method: str, start, **options):
    """What two steps of an optimizer towards zero make of a copy of a tensor."""
    parameter = start.detach().clone().requires_grad_()
    optimizer = getattr(library.optim, method)([parameter], **options)
    for _ in range(2):
        optimizer.zero_grad()
        (parameter * parameter).abs().sum().backward()
        optimizer.step()
    return parameter.detach()


def _seen(t):
    try:
        return _read(t) if hasattr(t, "dtype") else (t,)
    except Exception as error:  # no value at all: a bug, and a row
        return "unreadable", type(error).__name__


def _read(t):
    values = t.detach().resolve_conj()
    array = np.asarray(values.float().tolist() if t.dtype.itemsize == 2 and t.is_floating_point() else values.tolist())
    return str(t.dtype), tuple(t.shape), t.requires_grad, _is_leaf(t), array


def _is_leaf(t):
    """Is it a leaf? Of one of several views whose base was written, asking raises."""
    try:
        return t.is_leaf
    except RuntimeError:
        return None


def differ(program: Program, half: bool = False, finite: bool = False) -> str | None:
    """How the two libraries disagree about a program; None if they do not.

    ``half``: all of it is in half precision. ``finite``: infinities and nan are the same.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs, ours = run(torch, program), run(rushlight, program)
    if len(theirs) != len(ours) or [e[:1] for e in theirs] != [e[:1] for e in ours]:
        return f"torch {_brief(theirs)}\nrushlight {_brief(ours)}"
    # In half precision what cancels out is as coarse as what it is made of.
    largest = max(_largest(e[-1]) for e in theirs) if half else 1.0
    for a, b in zip(theirs, ours):
        if not _same(a, b, half, finite, largest):
            return f"torch {a}\nrushlight {b}"
    return None


def _largest(values) -> float:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fc":
        return 1.0
    return max(1.0, float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0)))


def _brief(result) -> str:
    return str([e[:2] if e[0] in ("values", "grad") else e for e in result])


def _same(a, b, half=False, finite=False, largest=1.0) -> bool:
    if a[0] not in ("values", "grad"):
        return a[:-1] == b[:-1]  # texts are compared elsewhere
    if a[:-1] != b[:-1]:
        return False
    x, y = a[-1], b[-1]
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc":
        return np.array_equal(x, y)
    if finite and x.shape == y.shape:
        x, y = [np.where(np.isfinite(values), values, np.nan) for values in (x, y)]
    tolerance = 6e-2 if half else {"torch.float16": 1e-2, "torch.bfloat16": 6e-2}.get(a[2] if len(a) > 2 else "", 1e-4)
    scale = max(largest, _largest(x))
    return x.shape == y.shape and np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def shrunk(program: Program) -> Program:
    """The program with every line taken out without which it still differs."""
    smaller = True
    while smaller:
        smaller = False
        for i in reversed(range(len(program.lines))):
            candidate = Program(program.lines[:i] + program.lines[i + 1 :])
            if candidate.lines and _still(candidate):
                program, smaller = candidate, True
                break
    return program


def _still(program) -> bool:
    found = differ(program)
    return found is not None and "NameError" not in found


# What docs/differences.md says: a pattern of the program's text, one of how it ends in PyTorch ("error", "backward"
# with the error's name and text; "values" or "grad" of what differs and what it is; "names" if there are others), and
# one of how it ends here.
DOCUMENTED = [
    # Gradients that PyTorch has not
    (r"= \d % t", r"backward RuntimeError: 'derivative for aten::remainder", "names"),
    (r"reduce='multiply'", r"backward RuntimeError: 'derivative for aten::scatter", "names"),
    (
        r"scatter(_add|_reduce)?_?\(",
        r"backward RuntimeError: 'Function Scatter\w+ returned an invalid gradient",
        "names",
    ),
    (r"channel_shuffle\(", r"backward RuntimeError: 'Number of groups", "names"),  # of nothing
    (r"scatter_reduce\(.*'prod'", r"backward RuntimeError: 'The size of tensor a", "names"),  # of a larger source
    (r"vander\(", r"backward RuntimeError: 'one of the variables", "names"),
    (r"huber_loss\(", r"backward RuntimeError: 'Found dtype", "names"),
    (r"complex64|1j|cfloat\(|polar\(|complex\(", r"backward RuntimeError: 'Expected isFloatingType\(grad", "names"),
    # Gradients that are wrong there
    (r"scatter_reduce\(.*'prod'", "grad", "grad"),  # of a larger source, in one dimension more
    (r"uint8(.|\n)*soft_margin_loss\(", "grad", "grad"),  # minus the target is 255
    (r"kron\(", "names", "backward RuntimeError: 'one of the variables"),  # of what was written since
    # Calls that PyTorch refuses
    (r"kron\(", r"error RuntimeError: .view size is not compatible", "names"),
    (r"\* 1j|torch\.complex\(", r"backward NotImplementedError: .*ComplexHalf", "names"),
    (r"(einsum|instance_norm)\((.|\n)*detach_\(\)", r"error RuntimeError: .Can't detach views", "names"),
    (r"no_grad|split|unbind|chunk", r"error RuntimeError: .(A view was created|Output \d of \w+ is a view)", "error"),
    (r"\.data\.mul_\(", r"error RuntimeError: 'unsupported operation: some elements of the input", "names|backward"),
    (r"\* 1j|torch\.complex\(", r"error NotImplementedError: .*ComplexHalf", "names"),  # what only moves elements
    (r"isclose\(", r"error RuntimeError: .A view was created in no_grad", "names"),  # which looks at values only
    # What PyTorch answers
    (
        r"zeros\(\(0(.|\n)*index_add_\(0, torch.tensor\(\[0\]\)",
        "names|backward",
        "error RuntimeError: 'index 0 is out of",
    ),
    (r"index_put_\(.*accumulate=True", "names", "error RuntimeError: 'unsupported operation: more than one element"),
    # The graph
    (
        r"no_grad\(\): .*\.(t|squeeze|unsqueeze|transpose|swapaxes)_\(",
        "grad|names|backward RuntimeError: '(Function|invalid gradient|output with shape|The size of tensor a)",
        "grad|names",
    ),
    (
        r"(?m)^t\d = (t\d)[.\[].*\n(.|\n)*\bt\d = \1\.requires_grad_\(\)$",
        "values.*True, False|names",
        "values.*False, True|names",
    ),
    # Writes that PyTorch's result depends on the order of
    (r"(t\d)\.masked_scatter_\(.*, \1\)", "values.*True, False", "values"),  # of itself, with a gradient
    (r"\.data\.mul_\(", "grad", "grad"),  # to what was kept, and nobody is told
    (r"(@|matmul\()(.|\n)*_\(", "names", "backward RuntimeError: 'one of the variables"),  # which PyTorch copied
    (r"include_self=False", "backward RuntimeError: 'one of the variables", "names"),  # of which self takes no part
    # Numbers
    (r"float16(.|\n)*layer_norm\((.|\n)*unique\(", "values", "values"),  # how many differ in their last digits
    (r"mode\(", r"values(.|\n)*nan", "values"),  # among nan
    (r"quantile\(", "grad", "grad"),  # which of equal elements
    (r"(float16|half\(\))(.|\n)*step\(", r"values(.|\n)*nan", "values"),  # an eps of zero
    (r"\.sort\(.*\)\[1\]$", r"values 't\d+', 'torch.int64'", "values"),  # which of equal elements
]

# Where numbers are infinite, which sums are and which are nan depends on the order of additions; and gelu(inf).
UNITS = {"bfloat16": 2**-7, "float16": 2**-10, "half()": 2**-10}
SUMS = r"@|matmul|linear|outer|dot|kron|einsum|conv1d|norm|mean|var|std|gelu"
ROUNDED = r"dtype=torch\.(float32|float16|bfloat16)\)|\.(float|half|bfloat16)\(\)|torch\.float32"


def documented(text: str, how: str) -> bool:
    """Is it one of the differences that docs/differences.md explains?"""
    theirs, ours = map(_ending, how.removeprefix("torch ").split("\nrushlight ", 1))
    if theirs.startswith(("values", "grad", "error _LinAlgError")):
        program = Program(text.splitlines())
        if re.search(SUMS, text) and differ(program, finite=True) is None:
            return True
        if nearer(program) or shaky(program):
            return True
    return any(re.search(p, text) and re.match(t, theirs) and re.match(o, ours) for p, t, o in DOCUMENTED)


def _ending(outcome: str) -> str:
    found = re.search(r"\('(error|backward)',.*?'(\w+)', (.*)\)", outcome)
    if found:
        return f"{found[1]} {found[2]}: {found[3]}"
    return re.sub(r"^\('(\w+)', ", r"\1 ", outcome) if outcome.startswith("(") else "names"


def nearer(program: Program) -> bool:
    """Is all that differs a rounding: no farther here than in PyTorch from what PyTorch finds in float64?

    A few units of the last digit of the coarsest dtype in the program are as near as can be asked for.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs, ours = run(torch, program), run(rushlight, program)
        truth = run(torch, Program([re.sub(ROUNDED, _in_double, line) for line in program.lines]))
    unit = next((unit for name, unit in UNITS.items() if name in program.text()), 2**-23)
    rows = [(a, b, c) for a, b, c in zip(theirs, ours, truth) if not _same(a, b)]
    return len(theirs) == len(ours) == len(truth) and all(_is_nearer(*row, unit) for row in rows)


def shaky(program: Program, trials: int = 32) -> bool:
    """Does PyTorch's own result change as much when its inputs do in their last digits?"""
    unit = next((unit for name, unit in UNITS.items() if name in program.text()), None)
    unit = unit or (2**-23 if re.search("float32|complex64", program.text()) else 2**-52)
    rng = random.Random(0)

    def moved(found) -> str:
        return repr(float(found[0]) * (1 + rng.choice([-2, -1, 1, 2]) * unit))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs, ours = run(torch, program), run(rushlight, program)
        others = []
        for _ in range(trials):
            lines = [re.sub(r"-?\d+\.\d+", moved, x) if LEAF.match(x) else x for x in program.lines]
            others.append(run(torch, Program(lines)))
    places = [i for i, (a, b) in enumerate(zip(theirs, ours)) if not _same(a, b)]
    return all(any(len(o) > i and not _same(theirs[i], o[i]) for o in others) for i in places)


LEAF = re.compile(r"t\d+ = torch\.tensor\(.*dtype=torch\.(float|bfloat|complex)")


def _in_double(found) -> str:
    """What is made in another precision is rounded to it, and then goes on in float64."""
    return "torch.float64" if found[0] == "torch.float32" else found[0] + ".double()"


def _is_nearer(theirs, ours, truth, unit) -> bool:
    if theirs[:-1] != ours[:-1] or theirs[0] not in ("values", "grad") or truth[:2] != theirs[:2]:
        return False
    values = [row[-1] for row in (theirs, ours, truth)]
    if any(np.shape(v) != np.shape(values[0]) or not np.isfinite(v).all() for v in values):
        return False
    there, here = [np.max(np.abs(np.asarray(v, dtype=complex) - values[2]), initial=0.0) for v in values[:2]]
    return bool(here <= max(there, 4 * unit * _largest(values[2])))


def search(programs: int, seed: int, family: str | None = None, seconds: float = float("inf"), show=None):
    """(how many programs were run, the shrunk ones that differ with what they print)."""
    rng, found, end = random.Random(seed), {}, time.monotonic() + seconds
    for count in range(programs):
        if time.monotonic() > end:
            return count, found
        program = Program.random(rng, family)
        if show:
            show(program.text())
        if differ(program) is not None:
            small = shrunk(program)
            found[small.text()] = differ(small)
    return programs, found


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("-v", action="store_true", help="print every program")
    parser.add_argument("-d", action="store_true", help="print documented differences too")
    args = parser.parse_args(argv)
    count, found = search(args.programs, args.seed, args.family, show=print if args.v else None)
    new = {text: how for text, how in found.items() if not documented(text, how)}
    for text, how in (found if args.d else new).items():
        print(f"{text}\n    " + (how or "").replace("\n", "\n    ") + "\n")
    print(f"{count} programs, {len(found)} differ, {len(found) - len(new)} of them documented")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
