"""complex32 beside PyTorch: what its CPU code computes in it, what it refuses, texts, files and gradients."""

from __future__ import annotations

import io
import re

import pytest
import torch

import rushlight

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:Casting complex", "ignore:TypedStorage")

# Expressions of ``h``, two numbers of complex32, ``x``, the same in complex64, and ``T``, either library.
CALLS = """
T.complex32 | T.chalf | x.chalf() | h.to(T.complex64) | h.half() | h.double() | h.long() | h.bool() | h.tolist() |
h[0].item() | h.real | h.imag | h.conj() | h.conj().resolve_conj() | T.view_as_real(h) | h.view(T.float16) | -h |
T.view_as_complex(T.ones(2, 2).half()) | T.complex(T.ones(2).half(), T.ones(2).half()) | h.view(T.float32) |
T.zeros(2, dtype=T.chalf) | T.ones(2, dtype=T.chalf) | T.full((2,), 1.5j, dtype=T.chalf) | h.new_zeros(2) |
T.tensor([1, 2j], dtype=T.chalf) | T.ones_like(h) | T.linspace(0, 1, 3, dtype=T.chalf) | T.eye(2, dtype=T.chalf) |
T.arange(3, dtype=T.chalf) | T.manual_seed(0) and T.randn(3, dtype=T.chalf) | T.manual_seed(0) and T.rand_like(h) |
h + h | h - 1 | 2 - h | h * h | h * 2.5 | h * x | h * T.ones(2) | T.ones(2).half() * 1j |
T.ones(2).half() + T.tensor(1j) | h / h | h ** 2 | h @ h | h.exp() | h.sqrt() | h.sin() | h.tanh() | h.sigmoid() |
h.reciprocal() | h.angle() | h.sum() | h.mean() | h.prod() | h.cumsum(0) | h.abs() | h.sgn() | h.norm() | h.var() |
h.std() | h.addcmul(h, h) | h.lerp(h, 0.5) | h == h | h != x | h > h | h.isnan() | h.isfinite() | h.isreal() |
h.any() | h.all() | h.nonzero() | T.allclose(h, h) | T.where(h.real > 1, h, 0) | h.masked_fill(h.real > 1, 1j) |
h[h.real > 1] | h[[0]] | h[::2].imag | h.index_fill(0, T.tensor([0]), 1j) | h.index_add(0, T.tensor([0, 0]), h) |
T.cat([h, h]) | T.stack([h, x.chalf()]) | h.repeat(2) | h.roll(1) | h.unfold(0, 1, 1) | h.diag() | h[None].tril() |
h.expand(2, 2) | T.nn.functional.pad(h, (1, 1)) | h.clone().zero_() | h.clone().mul_(2) | h.clone().copy_(x) |
x.clone().copy_(h) | T.promote_types(T.chalf, T.bfloat16) | T.promote_types(T.chalf, T.int64) |
T.promote_types(T.half, T.chalf) | T.result_type(T.ones(2).half(), 1j) | T.promote_types(T.chalf, T.double) |
T.half.to_complex() | T.chalf.to_real() | T.finfo(T.chalf) | h.type() | h.element_size() | h.dtype.is_complex |
h.numpy() | h.storage_type() | T.nn.functional.conv1d(h[None], h[None, None]) | h.to("meta") + 1 |
T.testing.assert_close(h, h) | T.testing.assert_close(h, h + 1)
"""
# Only elements are moved, or compared: these are answered, PyTorch has no kernel.
ANSWERED = "h.flip(0) | h.gather(0, T.tensor([0])) | h.take(T.tensor([0])) | T.equal(h, h)"


def names(library):
    x = library.tensor([1 + 2j, 3 - 1j])
    return {"T": library, "x": x, "h": x.to(library.complex32)}


def outcome(expression, library):
    try:
        return repr(eval(expression, names(library)))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("expression", [e.strip() for e in CALLS.split("|")])
def test_values_and_refusals(expression):
    assert outcome(expression, rushlight) == outcome(expression, torch)


@pytest.mark.parametrize("expression", [e.strip() for e in ANSWERED.split("|")])
def test_what_is_answered_all_the_same(expression):
    assert outcome(expression, torch) == "NotImplementedError"
    assert outcome(expression, rushlight) == outcome(re.sub(r"\bh\b", "x", expression), torch).replace(
        "])", "], dtype=torch.complex32)"
    )


@pytest.mark.parametrize(
    "of",
    ["(z * z).real.sum()", "z.abs().sum()", "T.view_as_real(z * 2j).sum()", "z.imag.sum()", "z[1:].abs().sum()"],
)
def test_gradients(of):
    found = []
    for library in (torch, rushlight):
        z = names(library)["h"].requires_grad_()
        eval(of, {"T": library, "z": z}).backward()
        found.append(repr(z.grad))
    assert found[0] == found[1]


def test_gradients_reach_the_parts():
    for library in (torch, rushlight):
        parts = library.ones(2, 2, dtype=library.half, requires_grad=True)
        (library.view_as_complex(parts) * (1 + 2j)).real.sum().backward()
        assert parts.grad.tolist() == [[1, -2], [1, -2]] and parts.grad.dtype is library.half


def test_files_go_both_ways():
    for writer, reader in ((torch, rushlight), (rushlight, torch)):
        file = io.BytesIO()
        writer.save({"h": names(writer)["h"]}, file)
        file.seek(0)
        assert repr(reader.load(file)["h"]) == repr(names(torch)["h"])
