"""Rushlight against PyTorch's own operator database: values, dtypes, first and second gradients of its samples.

    python tests/parity/opdb.py add nn.functional.pad        some entries (all variants of a name)
    python tests/parity/opdb.py --all --score                 everything, the score per group at the end
    python tests/parity/opdb.py --group linalg --xla -v       one group on XLA arrays, with tracebacks
    python tests/parity/opdb.py --all --part 2/16             the second of sixteen parts, for as many processes

An entry passes when every sample agrees in all stages:

    call      it exists and does not raise              inplace   the in-place method, and its gradient
    value     structure, dtypes, shapes, numbers        method    the Tensor method and the aliases
    grad      gradients by a fixed random cotangent     gradgrad  gradients of those, by create_graph
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import pathlib
import random
import sys
import time
import traceback
import types
import unittest.mock
import warnings

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import rushlight
from rushlight.tensor import Tensor

sys.path.insert(0, os.path.dirname(__file__))
import convert

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

# rtol, and atol relative to the largest expected element (at least 1). Never loosened for one test.
TOLERANCE = {
    "float16": (1e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (1e-5, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1e-5, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
GRADIENT_FACTOR = {"value": 1, "grad": 10, "gradgrad": 100}

EXCLUDED = {
    **dict.fromkeys(["to_sparse", "sparse.sampled_addmm", "sparse.mm"], "sparse"),
    **dict.fromkeys([o.name for o in op_db if o.name.startswith("jiterator")], "compiles CUDA source"),
    **dict.fromkeys([o.name for o in op_db if o.name.startswith("torch.ops.")], "not public: torch.ops"),
    **dict.fromkeys(["torch._scaled_mm", "torch._scaled_mm_v2"], "float8 matrix products of CUDA, not public"),
    **dict.fromkeys(
        ["slice", "_batch_norm_with_update", "_upsample_bilinear2d_aa", "native_dropout_backward"],
        "only reachable through torch.ops.aten",
    ),
    "_segment_reduce": "not public, prototype",
    "hash_tensor": "a checksum of PyTorch's own making",
}  # fmt: skip

# They draw random numbers: PyTorch's own from the same seed on NumPy. On XLA, whose streams are JAX's, and where
# PyTorch's come from MKL, only shape and dtype are compared.
RANDOM = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "randn", "randn_like", "rand_like",
    "randint", "randint_like", "multinomial", "bernoulli", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
}  # fmt: skip


def _mkl_draws() -> bool:
    """Whether PyTorch takes ``bernoulli_(p)``, and so dropout, and ``exponential_`` from MKL: on Intel CPUs it does."""
    torch.manual_seed(0)
    torch.empty(100).bernoulli_(0.5)
    return bool(torch.get_rng_state()[16] != 200)  # how many numbers its own generator was asked for


MKL = _mkl_draws()

# Compared up to the first gradient; that they differ in the second, and only there, is a test of its own.
FIRST_ORDER = {
    "nn.functional.linear_cross_entropy|chunked": "PyTorch's chunked version silently has no second gradient",
}

# The result's numbers are whatever was in memory: only shape and dtype are compared.
UNINITIALIZED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}

# Defined up to signs or phases: compared after the entry's own output_process_fn_grad, as in PyTorch's tests.
AMBIGUOUS = {"svd", "linalg.svd", "linalg.eigh", "linalg.eig", "svd_lowrank", "pca_lowrank", "linalg.svdvals"}

DTYPES = (torch.float32, torch.int64, torch.complex64, torch.float64, torch.bool)


class Mismatch(Exception):
    """A disagreement with PyTorch, at one stage of one sample."""

    def __init__(self, stage, sample, text):
        super().__init__(text)
        self.stage, self.sample = stage, sample


@dataclasses.dataclass
class Options:
    samples: int = 12
    dtype: torch.dtype | None = None
    xla: bool = False
    compiled: bool = False
    grad: bool = True
    seed: int = 0  # of the samples of modules
    gradgrad: bool | None = None  # None: except of what ``FIRST_ORDER`` names


def entry_name(op) -> str:
    return f"{op.name}|{op.variant_test_name}" if op.variant_test_name else op.name


ENTRIES = {entry_name(o): o for o in op_db}
# An entry with none of DTYPES on the CPU is CUDA's (batch_norm|without_cudnn).
SCORED = {n: o for n, o in ENTRIES.items() if o.name not in EXCLUDED and any(d in o.dtypes for d in DTYPES)}


def group_of(op) -> str:
    for group in ("nn.functional", "linalg", "fft", "special", "signal.windows"):
        if op.name.startswith(group + "."):
            return group
    return "torch"


def check(op, options: Options) -> int:
    """Compare one entry; the number of samples compared. Raises ``Mismatch`` at the first disagreement."""
    count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, sample in samples_of(op, options):
            try:
                count += _Comparison(op, sample, options, i).run()
            except Mismatch:
                raise
            except Exception as error:  # a fault of the comparison itself, or of Rushlight outside a call
                raise Mismatch("harness", i, _first_line(error)) from error
    if not count and dtype_of(op, options) in op.dtypes:
        raise Mismatch("harness", "-", "PyTorch accepts none of the samples")
    return count


def dtype_of(op, options):
    if options.dtype is not None:
        return options.dtype
    return next((d for d in DTYPES if d in op.dtypes), None)


def samples_of(op, options):
    """(index, sample) pairs: all, or an even spread of ``options.samples``; the same ones every time."""
    dtype = dtype_of(op, options)
    if dtype is None or dtype not in op.dtypes:
        return []
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    differentiable = op.supports_autograd and dtype in op.backward_dtypes and options.grad
    every = op.sample_inputs("cpu", dtype, requires_grad=differentiable and dtype.is_floating_point | dtype.is_complex)
    found = list(enumerate(itertools.islice(every, 600 if options.samples else None)))
    if options.samples and len(found) > options.samples:
        found = [found[round(i)] for i in np.linspace(0, len(found) - 1, options.samples)]
    return found


def counterpart(op):
    """The Rushlight function that an entry is about."""
    f = op.op
    if isinstance(f, types.FunctionType) and not convert._is_library(f):
        return convert.rebound(f)
    name = op.name
    owner = rushlight
    try:
        for part in name.split("."):
            owner = getattr(owner, part)
    except AttributeError:
        owner = getattr(Tensor, name, None)
    if not callable(owner):  # e.g. cfloat, both a dtype and a method
        owner = getattr(Tensor, name, None)
    if owner is None:
        raise AttributeError(f"rushlight.{name} does not exist")
    return owner


class _Comparison:
    """One sample, run through both libraries."""

    def __init__(self, op, sample, options, index):
        self.op, self.options, self.index = op, options, index
        self.convert = convert.Converter(options.xla)
        fresh: dict = {}

        def leaf(t):  # the sample's tensors as leaves, so that both graphs end in the same places
            if id(t) not in fresh:
                fresh[id(t)] = (t, t.detach().requires_grad_(t.requires_grad))
            return fresh[id(t)][1]

        self.process = sample.output_process_fn_grad
        self.broadcasts = sample.broadcasts_input
        from_mkl = MKL and (op.name == "exponential" or "dropout" in op.name)
        self.other_stream = op.name in RANDOM and (options.xla or options.compiled or from_mkl)
        self.first_order = entry_name(op) in FIRST_ORDER
        self.torch_args = convert.like((sample.input, tuple(sample.args), dict(sample.kwargs)), leaf)
        self.ours_args = None
        self.exact: dict | None = {}  # filled when asked for; None where there is no float64 result

    def run(self) -> bool:
        try:
            with _same_seed():
                expected = self._torch(self.op.op)
        except Exception:
            return False  # PyTorch itself refuses this sample
        if (self.options.xla or self.options.compiled) and self.op.name not in AMBIGUOUS:
            self.other_stream = self.other_stream or self._draws(expected)
        self.ours_args = self._at("convert", lambda: self.convert(self.torch_args))
        f = self._at("call", lambda: counterpart(self.op))
        if self.options.compiled:
            f = self._compiled(f)
        with _same_seed():
            result = self._at("call", lambda: self._ours(f))
        self._compare("value", result, expected)
        if self.options.grad and not self.other_stream:
            self._gradients(result, expected)
        self._variants(expected)
        return True

    def _draws(self, expected) -> bool:
        """Does PyTorch find something else with other random numbers (dropout in attention …)?"""
        return any(_bits(self._seeded(seed)) != _bits(expected) for seed in (1, 2, 3))

    def _seeded(self, seed):
        """PyTorch's result with this seed, even if the entry sets one itself."""
        set_seed = torch.manual_seed
        with unittest.mock.patch.object(torch, "manual_seed", lambda _: set_seed(seed)), _same_seed():
            return self._torch(self.op.op)

    def _compiled(self, f):
        from rushlight import compile

        made = compile(f)
        for _ in range(3):  # the first call runs eagerly, the next one is traced; no later one may depend on one before
            self._at("compile", lambda: self._ours(made))
        return made

    # -- calling -------------------------------------------------------------------------------------------------------

    def _torch(self, f, first=None):
        x, args, kwargs = self.torch_args
        return f(x if first is None else first, *args, **kwargs)

    def _ours(self, f, first=None):
        x, args, kwargs = self.ours_args
        return f(x if first is None else first, *args, **kwargs)

    def _at(self, stage, f):
        try:
            return f()
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(stage, self.index, _first_line(error)) from error

    def _fail(self, stage, text):
        raise Mismatch(stage, self.index, text)

    # -- comparing -----------------------------------------------------------------------------------------------------

    def _compare(self, stage, ours, theirs):
        self._structure(stage, ours, theirs)
        if self.op.name in UNINITIALIZED or self.other_stream:
            return
        if self.op.name in AMBIGUOUS:
            ours, theirs = self._processed(ours, theirs)
        for i, (a, b) in enumerate(zip(convert.tensors(ours), convert.tensors(theirs))):
            self._numbers(stage, a, b, f"output {i}: ", ("value", i))

    def _processed(self, ours, theirs):
        swapped = convert.rebound(self.process) if isinstance(self.process, types.FunctionType) else self.process
        return self._at("call", lambda: swapped(ours)), self.process(theirs)

    def _structure(self, stage, ours, theirs):
        if isinstance(theirs, torch.Tensor):
            if not isinstance(ours, Tensor):
                self._fail(stage, f"returned {type(ours).__name__}, not Tensor")
            if str(ours.dtype) != str(theirs.dtype):
                self._fail("dtype", f"{ours.dtype} instead of {theirs.dtype}")
            if tuple(ours.shape) != tuple(theirs.shape):
                self._fail("shape", f"{list(ours.shape)} instead of {list(theirs.shape)}")
        elif isinstance(theirs, (tuple, list)):
            if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
                self._fail(stage, f"returned {type(ours).__name__} instead of {type(theirs).__name__} of {len(theirs)}")
            fields = getattr(type(theirs), "__match_args__", ()) if hasattr(theirs, "n_fields") else ()
            if fields and getattr(type(ours), "__match_args__", None) != fields:
                self._fail(stage, f"fields {getattr(type(ours), '__match_args__', None)} instead of {fields}")
            for a, b in zip(ours, theirs):
                self._structure(stage, a, b)
        elif isinstance(theirs, (bool, int, float, complex)) and (
            type(ours) is not type(theirs) or not np.isclose(ours, theirs, equal_nan=True)
        ):
            self._fail(stage, f"returned {ours!r} instead of {theirs!r}")

    def _numbers(self, stage, ours, theirs, where="", place=None):
        a, b = convert.array_of(ours), convert.to_numpy(theirs)
        if a.shape != b.shape:
            self._fail(stage, f"{where}shape {list(a.shape)} instead of {list(b.shape)}")
        if str(b.dtype) not in TOLERANCE:
            if not np.array_equal(a, b):
                self._fail(stage, f"{where}{_worst(a, b)}")
            return
        rtol, atol = TOLERANCE[str(b.dtype)]
        factor = GRADIENT_FACTOR.get(stage, 1)
        wide = np.complex128 if b.dtype.kind == "c" else np.float64
        a, b = np.asarray(a).astype(wide), b.astype(wide)
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, finite.max(initial=0.0))
        atol = atol * factor * scale
        if not np.allclose(a, b, rtol=rtol * factor, atol=atol, equal_nan=True) and not self._as_exact(
            a, b, place, atol
        ):
            self._fail(stage, f"{where}{_worst(a, b)}")

    def _as_exact(self, a, b, place, atol):
        """Where float32 itself is too coarse: is ours as near to PyTorch's float64 result as PyTorch's float32 is?"""
        if place is None or self.exact is None:
            return False
        if not self.exact:
            self.exact = self._double() or None
        reference = self.exact and self.exact.get(place)
        if reference is None or reference.shape != a.shape or not np.isfinite(reference).all():
            return False
        return np.abs(a - reference).max() <= 4 * np.abs(b - reference).max() + atol

    def _double(self):
        return _Exact(self).places

    # -- gradients -----------------------------------------------------------------------------------------------------

    def _gradients(self, result, expected):
        ours_out, their_out = self._processed(result, expected)
        pairs = [(a, b) for a, b in zip(convert.tensors(ours_out), convert.tensors(their_out)) if b.requires_grad]
        for a, b in zip(convert.tensors(ours_out), convert.tensors(their_out)):
            if a.requires_grad != b.requires_grad:
                self._fail("grad", f"requires_grad is {a.requires_grad} instead of {b.requires_grad}")
        their_in = [t for t in convert.tensors(self.torch_args) if t.requires_grad]
        if not pairs or not their_in:
            return
        # Compiled graphs are first order.
        wanted = not self.first_order if self.options.gradgrad is None else self.options.gradgrad
        second = wanted and self.op.supports_gradgrad and not self.options.compiled
        their_cotangents = [_cotangent(b, i, second) for i, (_, b) in enumerate(pairs)]
        theirs = _torch_grad([b for _, b in pairs], their_in, their_cotangents, second)
        if theirs is None:
            return
        ours_in = [self.convert(t) for t in their_in]
        cotangents = [self.convert(c) for c in their_cotangents]
        ours = self._at("grad", lambda: _our_grad([a for a, _ in pairs], ours_in, cotangents, second))
        self._compare_gradients("grad", ours, theirs)
        if second and not all(b.isnan().all() for _, b in pairs):  # what is all nan has no second gradient
            self._second(ours, theirs, ours_in + cotangents, their_in + their_cotangents)

    def _second(self, ours, theirs, ours_in, their_in):
        pairs = [(a, b) for a, b in zip(ours, theirs) if b is not None and b.requires_grad]
        if not pairs:
            return
        if any(a is None or not a.requires_grad for a, _ in pairs):
            self._fail("gradgrad", "a first gradient does not require grad")
        projections = [_cotangent(b, 100 + i, False) for i, (_, b) in enumerate(pairs)]
        expected = _torch_grad([b for _, b in pairs], their_in, projections, False)
        if expected is None:
            return
        v = [self.convert(p) for p in projections]
        found = self._at("gradgrad", lambda: _our_grad([a for a, _ in pairs], ours_in, v, False))
        self._compare_gradients("gradgrad", found, expected)

    def _compare_gradients(self, stage, ours, theirs):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if b is None and a is not None and convert.array_of(a).any():
                self._fail(stage, f"input {i}: a gradient where PyTorch has None")
            if b is None:
                continue
            if a is None:
                if b.abs().sum() != 0:
                    self._fail(stage, f"input {i}: None instead of a gradient")
                continue
            if str(a.dtype) != str(b.dtype):
                self._fail(stage, f"input {i}: {a.dtype} instead of {b.dtype}")
            self._numbers(stage, a, b, f"input {i}: ", (stage, i))

    # -- the same thing by other names ---------------------------------------------------------------------------------

    def _variants(self, expected):
        op = self.op
        if self.options.compiled or not isinstance(self.torch_args[0], torch.Tensor):
            return
        inplace = op.get_inplace()
        if inplace is not None and not self.broadcasts:
            self._in_place(inplace)
        if self.index == 0:
            method = op.get_method()
            if isinstance(method, (types.MethodDescriptorType, types.WrapperDescriptorType)):
                self._same("method", lambda: getattr(Tensor, method.__name__), expected)
            for alias in op.aliases:
                if isinstance(alias.op, types.BuiltinFunctionType):
                    self._same("method", lambda name=alias.name: _dotted(name), expected)

    def _same(self, stage, find, expected):
        f = self._at(stage, find)
        with _same_seed():
            result = self._at(stage, lambda: self._ours(f))
        try:
            self._compare(stage, result, expected)
        except Mismatch as error:
            self._fail(stage, f"{getattr(f, '__name__', f)}: {error.stage}: {error}")

    def _in_place(self, f):
        theirs = self.torch_args[0].clone()
        try:
            with _same_seed():
                self._torch(f, theirs)
        except Exception:
            return
        name = getattr(f, "__name__", str(f))
        f = self._at("inplace", lambda: convert.constant(f))
        x = self.ours_args[0]
        ours = self._at("inplace", lambda: x.clone())
        with _same_seed():
            returned = self._at("inplace", lambda: self._ours(f, ours))
        if returned is not ours:
            self._fail("inplace", f"{name} returned another tensor than it wrote")
        try:
            self._structure("inplace", ours, theirs)
            if self.other_stream:
                return
            self._numbers("inplace", ours, theirs)
            if self.options.grad and theirs.requires_grad and self.torch_args[0].requires_grad:
                self._in_place_gradient(ours, theirs, x)
        except Mismatch as error:
            self._fail("inplace", f"{name}: {error}")

    def _in_place_gradient(self, ours, theirs, x):
        cotangent = _cotangent(theirs, 0, False)
        expected = _torch_grad([theirs], [self.torch_args[0]], [cotangent], False)
        if expected is not None:
            found = _our_grad([ours], [x], [self.convert(cotangent)], False)
            self._compare_gradients("grad", found, expected)


class _Exact:
    """The same sample in PyTorch's float64: ``places`` maps (stage, number) to its arrays; empty if that fails."""

    def __init__(self, comparison: _Comparison):
        self.op, self.process = comparison.op, comparison.process
        self.places: dict = {}
        twins: dict = {}

        def double(t):
            if id(t) not in twins:
                wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}.get(t.dtype, t.dtype)
                twins[id(t)] = (t, t.detach().to(wide).requires_grad_(t.requires_grad))
            return twins[id(t)][1]

        try:
            x, args, kwargs = convert.like(comparison.torch_args, double)
            with _same_seed():
                self.run(x, args, kwargs)
        except Exception:
            pass  # no float64 version of this sample, or of its gradients

    def result(self, x, args, kwargs):
        return self.op.op(x, *args, **kwargs)

    def run(self, x, args, kwargs):
        result = self.result(x, args, kwargs)
        processed = self.process(result)
        self.keep("value", convert.tensors(processed if self.op.name in AMBIGUOUS else result))
        outputs = [t for t in convert.tensors(processed) if t.requires_grad]
        inputs = [t for t in convert.tensors((x, args, kwargs)) if t.requires_grad]
        cotangents = [_cotangent(t, i, True) for i, t in enumerate(outputs)]
        first = _torch_grad(outputs, inputs, cotangents, True)
        self.keep("grad", first)
        first = [g for g in first if g is not None and g.requires_grad]
        projections = [_cotangent(g, 100 + i, False) for i, g in enumerate(first)]
        self.keep("gradgrad", _torch_grad(first, inputs + cotangents, projections, False))

    def keep(self, stage, tensors):
        self.places |= {(stage, i): convert.to_numpy(t) for i, t in enumerate(tensors) if t is not None}


class _same_seed:
    """Entries that draw numbers (svd_lowrank …) draw the same ones in both libraries."""

    def __enter__(self):
        torch.manual_seed(7)
        rushlight.manual_seed(7)

    def __exit__(self, *_):
        pass


def _bits(tree) -> list[bytes]:
    return [convert.to_numpy(t).tobytes() for t in convert.tensors(tree)]


def _cotangent(like, seed, requires_grad):
    noise = np.random.RandomState(seed)
    values = noise.standard_normal(tuple(like.shape))
    if like.dtype.is_complex:
        values = values + 1j * noise.standard_normal(tuple(like.shape))
    return torch.as_tensor(values).to(like.dtype).requires_grad_(requires_grad)


def _torch_grad(outputs, inputs, cotangents, create_graph):
    try:
        return torch.autograd.grad(
            outputs, inputs, cotangents, create_graph=create_graph, retain_graph=True, allow_unused=True
        )
    except RuntimeError:
        return None  # PyTorch has no gradient here


def _our_grad(outputs, inputs, cotangents, create_graph):
    return rushlight.autograd.grad(
        outputs, inputs, cotangents, create_graph=create_graph, retain_graph=True, allow_unused=True
    )


def _dotted(name):
    owner = rushlight
    for part in name.removeprefix("torch.").split("."):
        owner = getattr(owner, part)
    return owner


def _worst(a, b):
    if a.dtype.kind in "b":
        return f"{int((a != b).sum())} of {a.size} elements differ"
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
        where = np.unravel_index(
            np.argmax(np.where(np.isnan(difference) & ~(np.isnan(a) & np.isnan(b)), np.inf, np.nan_to_num(difference))),
            a.shape,
        )
    return f"{a[where]!r} instead of {b[where]!r} at {tuple(int(i) for i in where)} of {list(a.shape)}"


def _first_line(error) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:300]


# -- scores ------------------------------------------------------------------------------------------------------------


class Score:
    """How many entries of each group pass."""

    def __init__(self):
        self.passed: dict[str, bool] = {}

    def add(self, name, passed):
        self.passed[name] = passed

    def text(self) -> str:
        groups: dict = {}
        for name, op in ENTRIES.items():
            if name in self.passed:
                groups.setdefault(group_of(op), []).append((op.name, self.passed[name]))
        parts = []
        for group, results in groups.items():
            names = {n for n, _ in results}
            whole = names - {n for n, passed in results if not passed}
            parts.append(f"{group} {sum(p for _, p in results)}/{len(results)} (names {len(whole)}/{len(names)})")
        return ", ".join(parts)


class Progress:
    """Results kept in a file, so that a long run can be cut into several. To run an entry again, take out its line."""

    @staticmethod
    def add_options(parser):
        parser.add_argument("--progress", type=pathlib.Path, help="go on where the run that wrote this file stopped")
        parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
        parser.add_argument("--part", default="1/1", help="2/16: the second of sixteen parts, for as many processes")

    def __init__(self, args):
        self.file, self.end = args.progress, time.monotonic() + 60 * args.minutes
        self.part, self.parts = map(int, args.part.split("/"))
        lines = self.file.read_text().splitlines() if self.file and self.file.exists() else []
        self.done = {name: outcome == "ok" for outcome, name in (line.split("\t")[:2] for line in lines)}

    def left(self, chosen):
        """The (name, entry) pairs of this part still to be checked, until time is over."""
        chosen = dict(list(chosen.items())[self.part - 1 :: self.parts])
        for name, entry in chosen.items():
            if time.monotonic() > self.end:
                print(f"stopped: {sum(n in self.done for n in chosen)} of {len(chosen)} done")
                return
            if name not in self.done:
                yield name, entry
                if len(self.done) % 20 == 0 and "jax" in sys.modules:
                    sys.modules["jax"].clear_caches()  # thousands of small programs: gigabytes otherwise

    def note(self, name, passed, reason=""):
        self.done[name] = passed
        if self.file:
            with self.file.open("a") as f:
                f.write("\t".join(["ok" if passed else "FAIL", name, reason.replace("\n", " ")]) + "\n")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--group", choices=["torch", "nn", "linalg", "fft", "special", "signal"])
    parser.add_argument("--samples", type=int, default=12, help="0: all of them")
    parser.add_argument("--dtype", help="float64, complex64, int64 …")
    parser.add_argument("--xla", action="store_true", help="on XLA arrays")
    parser.add_argument("--compiled", action="store_true", help="through rushlight.compile")
    parser.add_argument("--no-grad", action="store_true")
    parser.add_argument("-v", action="store_true", help="tracebacks")
    parser.add_argument("--score", action="store_true", help="only the score")
    parser.add_argument("--update", action="store_true", help="write what fails to unsupported.txt, or …_xla.txt")
    Progress.add_options(parser)
    args = parser.parse_args(argv)
    options = Options(
        args.samples, args.dtype and getattr(torch, args.dtype), args.xla, args.compiled, not args.no_grad
    )
    chosen = _chosen(args)
    score, failures, progress = Score(), {}, Progress(args)
    for name, passed in progress.done.items():
        score.add(name, passed)
    for name, op in progress.left(chosen):
        try:
            count = check(op, options)
            score.add(name, True)
            progress.note(name, True)
            if args.names:
                print(f"ok   {name}: {count} samples")
        except Mismatch as error:
            score.add(name, False)
            failures[name] = f"{error.stage}: {error}"
            progress.note(name, False, failures[name])
            if not args.score:
                print(f"FAIL {name} [{error.sample}] {error.stage}: {error}", flush=True)
                if args.v:
                    traceback.print_exception(error.__cause__ or error)
    if args.update:
        update_list(set(chosen), failures, LISTED_XLA if args.xla else LISTED)
    print(score.text())
    return 0 if all(score.passed.values()) else 1


LISTED = pathlib.Path(__file__).with_name("unsupported.txt")
LISTED_XLA = pathlib.Path(__file__).with_name("unsupported_xla.txt")  # besides those


def unsupported(listed_in=LISTED) -> dict[str, str]:
    """``{entry: reason}`` as listed, one ``entry: reason`` a line."""
    lines = (line.partition(": ") for line in listed_in.read_text().splitlines() if line and not line.startswith("#"))
    return {name: reason for name, _, reason in lines}


def update_list(checked, failures, listed_in=LISTED, order=SCORED) -> None:
    """Bring the list up to date for the entries ``checked``; reasons already written stay."""
    listed = unsupported(listed_in)
    if listed_in == LISTED_XLA:
        failures = {n: reason for n, reason in failures.items() if n not in unsupported()}
    kept = {n: reason for n, reason in listed.items() if n in failures or n not in checked}
    listed = failures | kept
    head = [line for line in listed_in.read_text().splitlines() if line.startswith("#")]
    listed_in.write_text("\n".join([*head, *(f"{n}: {listed[n]}" for n in order if n in listed)]) + "\n")


def _chosen(args):
    if args.names:
        wanted = set(args.names)
        chosen = {
            n: o for n, o in ENTRIES.items() if n in wanted or o.name in wanted or o.name.split(".")[-1] in wanted
        }
        missing = wanted - {x for n, o in chosen.items() for x in (n, o.name, o.name.split(".")[-1])}
        if missing:
            print("no such entry:", ", ".join(sorted(missing)))
        return chosen
    if args.group:
        return {n: o for n, o in SCORED.items() if group_of(o).startswith(args.group)}
    return SCORED


if __name__ == "__main__":
    sys.exit(main())
