"""Forward mode and vmap against PyTorch's own, on the samples of its operator database.

    python tests/parity/transformdb.py forward sin linalg.solve       some entries (all variants of a name)
    python tests/parity/transformdb.py forward --all                  everything, the score at the end
    python tests/parity/transformdb.py vmap --group linalg -v         one group, with tracebacks

forward: the tangents of the results, for random tangents of all inputs that can have gradients, in float64 or the first
dtype there is; entries that PyTorch supports forward mode for (``supports_forward_ad``).

batched: a batch of gradients and one of tangents, against the same one by one.

vmap: the operator mapped over two values of some of its tensors: of all, of the first, of all but the first, with the
mapped dimension first and last. What PyTorch's vmap refuses is left out. ``--slices`` lists what ran slice by slice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
import warnings
import zlib

import numpy as np
import torch
import torch.autograd.forward_ad

sys.path.insert(0, os.path.dirname(__file__))
import convert
import opdb
from opdb import Mismatch, Options

import rushlight
from rushlight.autograd import forward_ad, tangents

DTYPES = {
    "forward": (torch.float64, torch.float32, torch.complex64, torch.int64, torch.bool),
    "vmap": opdb.DTYPES,
    "batched": (torch.float64, torch.float32, torch.complex64, torch.int64, torch.bool),
}


class _Forward(opdb._Comparison):
    """The tangents of one sample's results."""

    def run(self) -> bool:
        seed = zlib.crc32(opdb.entry_name(self.op).encode()) + self.index
        tangents = {id(t): _random_like(t, seed + i) for i, t in enumerate(self._inputs())}
        try:
            with opdb._same_seed(), torch.autograd.forward_ad.dual_level():
                f = _valid(self.op, self.op.op, ours=False)
                expected = self._dual(torch.autograd.forward_ad, self.torch_args, f, tangents, self.process)
        except Exception:
            return False  # PyTorch itself refuses this sample
        if not expected:
            return False
        self.ours_args = self._at("convert", lambda: self.convert(self.torch_args))
        f = _valid(self.op, self._at("call", lambda: opdb.counterpart(self.op)), ours=True)
        ours = {id(self.convert(t)): self.convert(tangents[id(t)]) for t in self._inputs()}
        process = convert.rebound(self.process) if hasattr(self.process, "__code__") else self.process
        with opdb._same_seed(), forward_ad.dual_level():
            found = self._at("tangent", lambda: self._dual(forward_ad, self.ours_args, f, ours, process))
        if len(found) != len(expected):
            self._fail("tangent", f"{len(found)} results instead of {len(expected)}")
        for i, ((y, a), (_, b)) in enumerate(zip(found, expected)):
            self._pair(i, y, a, b)
        return True

    def without_tables(self):
        """Do the tables of ``autograd/linearity.py`` say of an operator what its gradient rules say?"""
        with _no_tables():
            return self.run()

    def _inputs(self):
        return [t for t in convert.tensors(self.torch_args) if t.requires_grad]

    def _dual(self, library, arguments, f, tangents, process):
        made: dict = {}

        def dual(t):
            if id(t) not in tangents:
                return t
            if id(t) not in made:
                made[id(t)] = library.make_dual(t.detach(), tangents[id(t)])
            return made[id(t)]

        x, args, kwargs = convert.like(arguments, dual)
        results = convert.tensors(process(f(x, *args, **kwargs)))
        return [library.unpack_dual(t) for t in results if t.dtype.is_floating_point or t.dtype.is_complex]

    def _pair(self, i, y, a, b):
        if b is None:
            if a is not None and convert.array_of(a).any():
                self._fail("tangent", f"output {i}: a tangent where PyTorch has none")
            return
        if a is None:
            if b.abs().sum() != 0:
                self._fail("tangent", f"output {i}: no tangent")
            return
        if tuple(a.shape) != tuple(y.shape) or a.dtype is not y.dtype:
            self._fail("tangent", f"output {i}: {a.dtype}{list(a.shape)} for a value {y.dtype}{list(y.shape)}")
        self._numbers("grad", a, b, f"output {i}: ")


class _Batched(opdb._Comparison):
    """A batch of gradients, and one of tangents, against the same one by one. PyTorch's gradients are opdb's matter."""

    def run(self) -> bool:
        self.ours_args = self._at("convert", lambda: self.convert(self.torch_args))
        inputs = [self.convert(t) for t in convert.tensors(self.torch_args) if t.requires_grad]
        f = self._at("call", lambda: opdb.counterpart(self.op))
        process = convert.rebound(self.process) if hasattr(self.process, "__code__") else self.process

        def of_inputs(*given):
            swapped = {id(t): g for t, g in zip(inputs, given)}
            x, args, kwargs = convert.like(self.ours_args, lambda t: swapped.get(id(t), t))
            with opdb._same_seed():
                return [t for t in convert.tensors(process(f(x, *args, **kwargs))) if t.requires_grad]

        try:
            with opdb._same_seed():
                x, args, kwargs = self.torch_args
                self.op.op(x, *args, **kwargs)
        except Exception:
            return False
        outputs = self._at("call", lambda: of_inputs(*inputs))
        if not outputs or not inputs:
            return False
        self._rows(outputs, inputs)
        self._columns(of_inputs, inputs)
        return True

    def _rows(self, outputs, inputs):
        starts = [_two_ways(t, i) for i, t in enumerate(outputs)]
        gradients = lambda v, **more: rushlight.autograd.grad(
            outputs, inputs, v, retain_graph=True, allow_unused=True, **more
        )
        together = self._at("rows", lambda: gradients(starts, is_grads_batched=True))
        for k in range(2):
            self._same("rows", k, together, gradients([s[k] for s in starts]))

    def _columns(self, f, inputs):
        ways = [_two_ways(t, 10 + i) for i, t in enumerate(inputs)]
        push = lambda *v: tuple(rushlight.func.jvp(lambda *p: tuple(f(*p)), tuple(inputs), v)[1])
        together = self._at("columns", lambda: rushlight.vmap(push, randomness="same")(*ways))
        for k in range(2):
            self._same("columns", k, together, push(*[w[k] for w in ways]))

    def _same(self, stage, k, together, alone):
        for i, (a, b) in enumerate(zip(together, alone)):
            if b is None or a is None:
                if b is not a:
                    self._fail(stage, f"{i}: {a} instead of {b}")
                continue
            found, expected = convert.array_of(a)[k], convert.array_of(b)
            if not np.allclose(found, expected, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(expected).max(initial=0)),
                               equal_nan=True):  # fmt: skip
                self._fail(stage, f"{i}: {opdb._worst(found, expected)}")


def _two_ways(t, seed):
    generator = np.random.default_rng(seed)
    values = generator.standard_normal((2, *t.shape))
    if t.dtype.is_complex:
        values = values + 1j * generator.standard_normal((2, *t.shape))
    return rushlight.tensor(values, dtype=t.dtype)


class _Mapped(opdb._Comparison):
    """One sample under vmap."""

    slices: dict = {}

    def run(self) -> bool:
        tensors = [t for t in convert.tensors(self.torch_args) if t.ndim < 6]
        compared = False
        for variant, (chosen, dim) in enumerate(_variants(tensors)):
            compared |= self._variant(chosen, dim, variant)
        return compared

    def _variant(self, chosen, dim, variant) -> bool:
        places = {id(t): k for k, t in enumerate(chosen)}
        batches = [_two_of(t.detach(), dim, opdb.entry_name(self.op)) for t in chosen]
        try:
            with opdb._same_seed():
                expected = torch.vmap(self._of(self.torch_args, self.op.op, places), dim, randomness="same")(*batches)
        except Exception:
            return False
        self.ours_args = self._at("convert", lambda: self.convert(self.torch_args))
        f = self._at("call", lambda: opdb.counterpart(self.op))
        ours = {id(self.convert(t)): k for k, t in enumerate(chosen)}
        given = [self.convert(b) for b in batches]
        before = rushlight.func.sliced()
        with opdb._same_seed():
            mapped = rushlight.func.vmap(self._of(self.ours_args, f, ours), dim, randomness="same")
            result = self._at(f"vmap {variant}", lambda: mapped(*given))
        now = rushlight.func.sliced()
        if now != before:
            more = {name for name in now if now[name] != before.get(name)}
            self.slices.setdefault(opdb.entry_name(self.op), set()).update(more)
        self._compare("value", result, expected)
        return True

    def _of(self, arguments, f, places):
        """The function of the mapped tensors alone."""

        def called(*mapped):
            x, args, kwargs = convert.like(
                arguments, lambda t: mapped[places[id(t)]] if id(t) in places else t.detach()
            )
            out = f(x, *args, **kwargs)
            return out if hasattr(out, "dtype") else tuple(convert.tensors(out))

        return called


def _valid(op, f, ours):
    """``f`` of what the entry's own gradient tests make of its inputs: a symmetric matrix stays one as it moves."""
    wrapper = op.gradcheck_wrapper
    wrapper = convert.rebound(wrapper) if ours else wrapper
    return lambda *args, **kwargs: wrapper(f, *args, **kwargs)


def _variants(tensors):
    """(which tensors are mapped over, in which dimension)."""
    if not tensors:
        return []
    found = [(tensors, 0), (tensors[:1], -1)]
    return found + [(tensors[1:], 0)] if len(tensors) > 1 else found


def _two_of(t, dim, name):
    """Two values like ``t``: itself, and one that is as valid as an argument."""
    if name == "searchsorted" and not t.dtype.is_floating_point:  # an order that sorts this sequence and no other
        other = t
    elif t.dtype.is_floating_point or t.dtype.is_complex:
        other = t * 0.9
    else:
        other = t.flip(0) if t.ndim else t
    return torch.stack([t, other], dim)


def _random_like(t, seed):
    """Random numbers; triangular for a triangular matrix, which is not moved out of what an operator is defined for."""
    tangent = torch.randn(t.shape, dtype=t.dtype, generator=torch.Generator().manual_seed(seed))
    for part in (torch.tril, torch.triu):
        if t.ndim > 1 and t.numel() and part(t).equal(t):
            return part(tangent)
    return tangent


@contextlib.contextmanager
def _no_tables():
    kept = tangents.POINTWISE, tangents.LINEAR, tangents.MULTILINEAR
    tangents.POINTWISE = tangents.LINEAR = tangents.MULTILINEAR = frozenset()
    try:
        yield
    finally:
        tangents.POINTWISE, tangents.LINEAR, tangents.MULTILINEAR = kept


KINDS = {"forward": _Forward, "vmap": _Mapped, "batched": _Batched}


def entries(kind) -> dict:
    """The entries that PyTorch's own transform serves."""
    chosen = {n: o for n, o in opdb.SCORED.items() if n not in EXCLUDED and n not in EXCLUDED_FROM[kind]}
    if kind == "batched":
        return {n: o for n, o in chosen.items() if o.supports_autograd}
    if kind == "forward":
        return {n: o for n, o in chosen.items() if o.supports_forward_ad}
    return chosen


# Not compared, with the reason.
EXCLUDED = {
    **opdb.unsupported(),
    **dict.fromkeys(opdb.UNINITIALIZED, "has no numbers to compare"),
}
EXCLUDED_FROM = {
    "forward": {
        "cholesky_inverse": "PyTorch's tangent is not that of finite differences, ours is: a test of its own",
    },
    "vmap": {
        "index_fill": "PyTorch's vmap gives all examples the last one's value: a test of its own",
        "linalg.pinv": "PyTorch's vmap of a matrix without elements loses the examples",
        **dict.fromkeys(["argwhere", "bincount"], "the shape depends on values; PyTorch tries, and stacks if it can"),
    },
    "batched": {
        **dict.fromkeys(
            [
                "native_batch_norm",
                "_native_batch_norm_legit",
                "nn.functional.instance_norm",
                "nn.functional.batch_norm",
            ],
            "writes running statistics, which are not mapped over: refused",
        ),
        "nn.functional.rrelu": "draws as many numbers as there are negative ones",
        "nn.functional.ctc_loss": "has no second derivative, and so no tangent",
    },
}
# What fails, and why.
MISSING = {
    ("vmap", "as_strided|partial_views"): "strides beyond what is mapped over",
    ("batched", "as_strided|partial_views"): "strides beyond what is mapped over",
}


def check(kind, op, options: Options, tables=True) -> int:
    """Compare one entry; the number of samples compared. Raises ``Mismatch`` at the first disagreement.

    Without ``tables`` every tangent is that of the gradient rule, transposed twice.
    """
    if options.dtype is None:
        options = Options(options.samples, next(d for d in DTYPES[kind] if d in op.dtypes), options.xla)
    count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, sample in opdb.samples_of(op, options):
            try:
                comparison = KINDS[kind](op, sample, options, i)
                count += comparison.run() if tables else comparison.without_tables()
            except Mismatch:
                raise
            except Exception as error:
                raise Mismatch("harness", i, opdb._first_line(error)) from error
    return count


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--group", choices=["torch", "nn", "linalg", "fft", "special", "signal"])
    parser.add_argument("--samples", type=int, default=4, help="0: all of them")
    parser.add_argument("--dtype", help="complex128 …")
    parser.add_argument("--xla", action="store_true", help="on XLA arrays")
    parser.add_argument("--slices", action="store_true", help="list what ran slice by slice")
    parser.add_argument("--no-tables", action="store_true", help="tangents by gradient rules alone")
    parser.add_argument("-v", action="store_true", help="tracebacks")
    args = parser.parse_args(argv)
    no_tables = args.no_tables
    options = Options(args.samples, args.dtype and getattr(torch, args.dtype), args.xla)
    chosen = {n: o for n, o in opdb._chosen(args).items() if n in entries(args.kind)}
    agree, compared = 0, 0
    for name, op in chosen.items():
        try:
            count = check(args.kind, op, options, not no_tables)
            compared += count > 0
            agree += count > 0
            if args.names:
                print(f"ok   {name}: {count} samples")
        except Mismatch as error:
            compared += 1
            print(f"FAIL {name} [{error.sample}] {error.stage}: {error}", flush=True)
            if args.v:
                traceback.print_exception(error.__cause__ or error)
    if args.slices:
        for name, primitives in sorted(_Mapped.slices.items()):
            print(f"slices {name}: {' '.join(sorted(primitives))}")
    print(f"{args.kind}: {agree} of {compared} entries agree, {len(chosen) - compared} that PyTorch refuses")
    return 0 if agree == compared else 1


if __name__ == "__main__":
    sys.exit(main())
