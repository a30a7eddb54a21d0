"""The meta device beside PyTorch: the operator database, modules, printed lines and errors by table."""

from __future__ import annotations

import io
import os
import warnings

import metadb
import opdb
import pytest
import torch

import rushlight

FULL = os.environ.get("RUSHLIGHT_PARITY") == "all"
# With JAX or without, a call whose result needs values; PyTorch has rules of its own for some of these.
NEED_VALUES = {
    "linspace|tensor_overload", "logspace|tensor_overload", "narrow", "index_put", "nonzero_static",
    "repeat_interleave",
}  # fmt: skip
DIFFER = {
    "as_strided|partial_views": "a view is given as a tensor of its own, without the memory around it",
    "linalg.ldl_solve": "pivots that are all zero are out of range",
}
NAMES = list(opdb.SCORED) if FULL else list(opdb.SCORED)[::5]


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_dtypes_of_the_operator_database(name, request):
    if name in DIFFER:
        request.applymarker(pytest.mark.xfail(strict=True, reason=DIFFER[name]))
    answer = metadb.check(opdb.ENTRIES[name])
    if answer == "values" and name not in NEED_VALUES:
        assert not on_meta_in_pytorch(opdb.ENTRIES[name]), "PyTorch needs no values"


@pytest.mark.parametrize("name", NAMES)
def test_strides_of_the_operator_database(name):
    if not metadb.keeps_other_strides(name):
        assert metadb.other_strides(opdb.ENTRIES[name]) == []


def on_meta_in_pytorch(op) -> bool:
    """Does PyTorch give a result for every sample on the meta device?"""
    import convert

    for _, sample in opdb.samples_of(op, opdb.Options(samples=2)):
        given = (sample.input, tuple(sample.args), dict(sample.kwargs))
        try:
            metadb.call(op.op, convert.like(given, lambda t: t.detach().to("meta")))
        except Exception:
            return False
    return True


LINES = """
m | torch.empty(2, device='meta', requires_grad=True) | m.sum() | m * 2 | m.long() | m.item() | m.sum().item() |
m.numpy() | m.tolist() | m.to('cpu') | m.cpu() | torch.ones(2, 3).copy_(m) | m.copy_(torch.ones(2, 3)) |
m + torch.ones(2, 3) | m + torch.tensor(1.) | bool(m.sum()) | m == m | m.device | m.is_meta | m.data_ptr() |
m.stride() | m.t().stride() | m.view(6).add_(1) | nn.Linear(2, 3, device='meta').to('cpu') |
nn.Linear(2, 3, device='meta').to_empty(device='cpu').weight.shape | nn.Linear(2, 3).to('meta').weight |
torch.tensor([1, 2], device='meta') | torch.randn(2, device='meta') | nn.Parameter(m) |
torch.arange(5, device='meta') | m.untyped_storage().nbytes() | list(m)[0] | m.get_device() |
torch.empty(0, device='meta') | torch.empty(0, 3, device='meta') |
torch.empty(2, dtype=torch.int64, device='meta') | m.clone().requires_grad_() * 2 | m[0] | m.normal_() |
m[0].fill_(3) | float(m.sum()) | len(m) | m.is_cpu | m.float().type() | torch.device('meta') |
torch.empty(2, device='meta:0').device | nn.functional.dropout(m) | torch.bernoulli(m) | torch.normal(m, m) |
m.uniform_() | torch.multinomial(m, 2) | m.new_ones(3) | torch.zeros_like(m) |
torch.ones_like(m, device='cpu') | m.expand(4, 2, 3) | torch.linalg.inv(m @ m.T) | torch.stack([m, m]) |
m.unbind() | m.max(0).values | m.max(0).indices | m.T.contiguous()
"""


def said(library, expression):
    names = {"torch": library, "nn": library.nn, "m": library.empty(2, 3, device="meta")}
    try:
        return repr(eval(expression, names))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("expression", [e.strip() for e in LINES.split("|")])
def test_lines_and_errors(expression):
    assert said(rushlight, expression) == said(torch, expression)


def test_files_of_either_library():
    for writer, reader in ((rushlight, torch), (torch, rushlight)):
        file = io.BytesIO()
        writer.save({"w": writer.empty(2, 3, device="meta")}, file)
        file.seek(0)
        assert repr(reader.load(file)) == "{'w': tensor(..., device='meta', size=(2, 3))}"


def program(library):
    """Build on meta, look at shapes, train on meta, fill by a state dict, run: what is seen on the way."""
    library.manual_seed(0)
    nn, seen = library.nn, []
    real = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4, 2))
    with library.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 4, 2))
    loss = nn.functional.cross_entropy(
        model(library.empty(5, 3, 4, 4, device="meta")), library.empty(5, 2, device="meta")
    )
    loss.backward()
    optimizer = library.optim.Adam(model.parameters())
    optimizer.step()
    seen += [repr(loss), *[(n, repr(p), tuple(p.grad.shape)) for n, p in model.named_parameters()]]
    model.load_state_dict(real.state_dict(), assign=True)
    x = library.ones(5, 3, 4, 4)
    seen += [library.equal(model(x), real(x)), next(model.parameters()).device]
    skipped = nn.utils.skip_init(nn.Linear, 3, 4)
    seen += [skipped.weight.device, tuple(skipped.weight.shape)]
    transformer = nn.TransformerEncoderLayer(8, 2, 16, device="meta", batch_first=True)
    seen += [repr(transformer(library.empty(2, 5, 8, device="meta")).shape)]
    lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True, device="meta")
    out, (h, c) = lstm(library.empty(7, 3, 4, device="meta"))
    return [str(s) for s in (*seen, out.shape, h.shape, c.shape)]


def test_deferred_initialization():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(rushlight) == program(torch)


_LAST = "torch.empty(2, 3, 4, 5, device='meta').to(memory_format=torch.channels_last)"


@pytest.mark.parametrize(
    "seen",
    [
        ".view(2, 60)", ".reshape(2, 60)", ".reshape(2, 3, 20)", "[0].view(60)", "[0].reshape(60)",
        "[:, :2].reshape(2, 40)",
        ".permute(0, 2, 3, 1).view(2, 60)", "[0].permute(1, 2, 0).view(60)", ".transpose(1, 3).reshape(2, 60)",
    ],
)  # fmt: skip
def test_other_shapes_of_what_lies_in_another_order(seen):
    found = []
    for library in (torch, rushlight):
        try:
            result = eval(_LAST + seen, {"torch": library})
            found.append((tuple(result.shape), result.stride()))
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == found[1]
