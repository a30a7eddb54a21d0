"""Bad input: arguments of PyTorch's own samples, mutated, through both libraries.

    python tests/parity/fuzz_calls.py 2000 1                 2,000 calls from seed 1: a summary, and what differs
    python tests/parity/fuzz_calls.py 500 1 --only scatter   entries whose name has this in it

A call ends the same way in both (a result that agrees, or an error), or it is one of

    accepted    Rushlight gives a result where PyTorch raises       different   both give results, and they differ
    refused     Rushlight raises where PyTorch gives a result       slow        more than 10 seconds, or much memory
    chained     both raise, and ours shows NumPy's error before its own
    crashed     Rushlight ends the process                           kept        one of these, but meant (``KEPT``)

Which error it is, and its text, are compared elsewhere (tests/parity/scripts). Calls that take PyTorch itself more
than 10 seconds, or end its process, are left out.
"""

from __future__ import annotations

import argparse
import collections
import mmap
import os
import pickle
import random
import re
import resource
import signal
import sys
import tempfile
import warnings

import numpy as np
import torch

import rushlight
import rushlight.nn.functional  # now, so that no import is cut short by the clock

sys.path.insert(0, os.path.dirname(__file__))
import convert
import opdb

SECONDS = 10
MEMORY = 8 << 30  # bytes that a call may ask for
KINDS = ("accepted", "refused", "different", "slow", "chained", "crashed", "kept")
_DTYPES = (
    torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16, torch.complex64,
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, -2, 7, 2**31, -(2**31), 2**62, 0.5, -1.5, float("inf"), float("nan"), True, None, "x", 1e30)
# Left out: results by chance, or PyTorch's own crashes and undefined behaviour on bad input.
_SKIPPED = {*opdb.RANDOM, *opdb.UNINITIALIZED, *opdb.AMBIGUOUS, "linalg.eigvals", "bincount", "nn.functional.ctc_loss"}

# Differences that stay, counted apart: (kind, how the name begins, what the message has in it). The reasons are in
# docs/differences.md.
KEPT = (
    ("accepted", "fft.", "MKL FFT error"),  # empty inputs
    ("accepted", "kron", "view size is not compatible"),  # inputs that do not lie in one piece
    ("accepted", "take_along_dim", "view size is not compatible"),
    ("accepted", "__r", "descriptor"),  # Python's own look at self
    ("accepted", "nn.functional.conv", "Only zero batch or zero channel inputs"),
    ("accepted", "stft", "MKL FFT error"),
    ("accepted", "linalg.lstsq", "INTERNAL ASSERT"),  # NaN
    ("refused", "__r", "must be Tensor"),  # operators called by name on what is no tensor
    ("refused", "__rpow__", "unsupported operand type(s)"),
    ("refused", "__rpow__", "expected a number or a Tensor"),
    ("refused", "linalg.", "Expected a floating point or complex tensor"),  # whole numbers, where there are none
    ("refused", "nn.functional.conv", "9223372036854775809"),  # a kernel whose size overflows in PyTorch
    ("accepted", "index_put", "INTERNAL ASSERT"),  # a mask of no dimensions
    ("accepted", "linalg.eig", "failed to converge"),  # NaN; here its eigenvalues are NaN
    ("refused", "bmm", "expected scalar type"),  # a product of nothing
    ("refused", "max_pool2d_with_indices_backward", "only a name here"),
    ("refused", "_softmax_backward_data", "input_dtype"),  # a number for a dtype
    ("refused", "native_batch_norm", "should contain"),  # PyTorch reads beyond the end there
    ("refused", "_native_batch_norm_legit", "should contain"),
    ("refused", "lu_unpack", "Expected LU_pivots of the shape"),
    ("refused", "take_along_dim", "out of bounds"),
    ("refused", "grid_sampler_", "_mode must be one of"),  # PyTorch's result is memory that nobody has set
    ("refused", "nn.functional.fractional_max_pool", "kernel_size must be greater than zero"),
    ("refused", "view_as_complex", "half-precision complex"),
    ("different", "mode", "output 1"),  # which of equal elements is named
    ("different", "kthvalue", "output 1"),
    ("different", "topk", "output 1"),
    ("different", "resize_", ""),  # memory that nobody has set
    # float32 overflows in PyTorch's recursion, here it is computed in float64; and an order may be NaN
    *(
        ("different", f"special.{family}_polynomial", text)
        for family in ("chebyshev", "shifted_chebyshev", "hermite", "laguerre", "legendre")
        for text in ("instead of np.float64(nan)", "np.float64(nan) instead of")
    ),
    ("different", "polygamma", "inf)"),  # at poles, and where the factorial overflows
    ("different", "special.polygamma", "inf)"),
    ("different", "sort", "output 1"),
    ("different", "argsort", "output 0"),
    ("different", "nn.functional.conv", "np.float64(nan) instead of"),  # padding times a weight that is not finite
    ("different", "matrix_exp", "instead of np.float64(nan)"),  # half precision overflows in between
    ("different", "nn.functional.soft_margin_loss", "instead of np.float64(inf)"),
)

_DECOMPOSED = (
    "cholesky", "geqrf", "linalg.", "logdet", "lu", "ormqr", "pca_lowrank", "pinverse", "qr", "svd", "triangular_solve",
)  # fmt: skip

# Sums, in which infinities may meet their negatives: which of them do depends on the order of additions.
_ADDED_UP = (
    "add", "baddbmm", "bmm", "cov", "cum", "einsum", "fft.", "inner", "istft", "matmul", "matrix_exp",
    "mean", "mm", "mv", "nn.functional.bilinear", "nn.functional.conv", "nn.functional.grid_sample",
    "nn.functional.group_norm", "nn.functional.interpolate", "nn.functional.layer_norm", "nn.functional.linear",
    "nn.functional.scaled_dot", "outer", "std", "stft", "sum", "tensordot", "trapezoid", "var", "vdot",
)  # fmt: skip


class TooSlow(BaseException):
    """Not an Exception: neither library may catch it."""


def mutated(value, chance: random.Random):
    """One argument as somebody careless would give it."""
    if isinstance(value, torch.Tensor):
        return _mutated_tensor(value.detach(), chance)
    if isinstance(value, (list, tuple)) and value and chance.random() < 0.7:
        parts = list(value)
        place = chance.randrange(len(parts))
        kind = chance.randrange(3)
        if kind == 0:
            parts[place] = mutated(parts[place], chance)
        elif kind == 1:
            del parts[place]
        else:
            parts.insert(place, parts[place])
        return type(value)(parts) if type(value) in (list, tuple) else parts
    return chance.choice(_NUMBERS)


def _mutated_tensor(t, chance):
    kind = chance.randrange(9)
    if kind == 0:
        return t.to(chance.choice(_DTYPES))
    if kind == 1 and t.ndim:
        return t.select(chance.randrange(t.ndim), 0) if t.numel() else t
    if kind == 2:
        return t.unsqueeze(chance.randint(0, t.ndim))
    if kind == 3 and t.ndim:
        return t.narrow(chance.randrange(t.ndim), 0, 0)
    if kind == 4 and t.ndim:
        axis = chance.randrange(t.ndim)
        return torch.cat([t, t], axis)
    if kind == 5 and t.ndim > 1:
        return t.transpose(0, -1)
    if kind == 6 and t.numel():
        out = t.clone()
        values = (-1, 0, 100) if not t.dtype.is_floating_point else (float("nan"), float("inf"), -1e30, 0.0)
        out.reshape(-1)[chance.randrange(t.numel())] = chance.choice(values)
        return out
    if kind == 7:
        return t.reshape(-1)
    return chance.choice(_NUMBERS)


def changed(sample, chance: random.Random):
    """(input, args, kwargs) of a sample with one or two arguments mutated."""
    args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
    args = [a.detach() if isinstance(a, torch.Tensor) else a for a in args]
    for _ in range(chance.choice((1, 1, 2))):
        place = chance.randrange(len(args) + len(kwargs))
        if place < len(args):
            args[place] = mutated(args[place], chance)
        else:
            name = list(kwargs)[place - len(args)]
            kwargs[name] = mutated(kwargs[name], chance)
    return args, kwargs


def outcome(call):
    """("value", result), ("error", its type) or ("slow", None)."""

    def ring(*_):
        raise TooSlow

    signal.signal(signal.SIGPROF, ring)  # of the processor: a machine that has other work makes no call slow
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            rushlight.manual_seed(0)
            return "value", call()
    except TooSlow:
        return "slow", None
    except Exception as error:
        return "error", error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def compare(op, args, kwargs, note=lambda who: None) -> tuple[str, str]:
    """(kind, what happened) of one call; kind "same" where both agree."""
    kind, text = _compare(op, args, kwargs, note)
    name = op.name + ("|" + op.variant_test_name if op.variant_test_name else "")
    if any(kind == k and name.startswith(n) and t in text for k, n, t in KEPT) or (
        kind == "different"
        and (_not_finite(name, text, (args, kwargs)) or _rounded_in_half(args, kwargs, text) or _far(name, args))
    ):
        return "kept", f"{kind}: {text}"
    return kind, text


def _not_finite(name: str, text: str, arguments) -> bool:
    """In a sum: is it infinite here and NaN there? In a decomposition of what is not finite: is one of them not?"""
    finite = np.isfinite(_numbers(text))
    if len(finite) == 2 and name.startswith(_DECOMPOSED):
        small = []
        convert.like(arguments, lambda t: small.append(not t.is_floating_point() or bool((t.abs() < 1e29).all())))
        return not finite.all() and not all(small)
    return len(finite) == 2 and name.startswith(_ADDED_UP) and not finite.any()


def _far(name: str, args) -> bool:
    """A polynomial of an order so high that its angle has no digits left."""
    return "_polynomial_" in name and any(isinstance(a, (int, float)) and abs(a) >= 2**31 for a in args)


def _rounded_in_half(args, kwargs, text: str) -> bool:
    """Do numbers differ by a rounding of float16, which PyTorch keeps some of what lies in between in?"""
    halves = []
    convert.like((args, kwargs), lambda t: halves.append(t.dtype is torch.float16))
    numbers = _numbers(text)
    return any(halves) and len(numbers) == 2 and bool(np.isclose(*numbers, rtol=2e-3, atol=2e-3))


def _numbers(text: str) -> list[complex]:
    return [complex(n) for n in re.findall(r"np\.(?:float|complex)\d+\(([^ ]*)\)", text.partition(" at (")[0])]


def _compare(op, args, kwargs, note) -> tuple[str, str]:
    if op.name.startswith("signal.windows.") and 2**31 in args:
        return "same", "PyTorch is slow"  # half a minute for its numbers, and no signal ends that
    # Copies: a view would bring more memory than PyTorch, which is given copies, has.
    args, kwargs = convert.like(args, _copy), convert.like(kwargs, _copy)
    ours_args, ours_kwargs = convert.Converter()((args, kwargs))
    note("theirs")
    theirs = outcome(lambda: op.op(*convert.like(args, _copy), **convert.like(kwargs, _copy)))
    if theirs[0] == "slow":
        return "same", "PyTorch is slow"
    note("ours")
    ours = outcome(lambda: opdb.counterpart(op)(*ours_args, **ours_kwargs))
    if ours[0] == "slow":
        return "slow", f"after {SECONDS} s"
    if ours[0] == theirs[0] == "error":
        inner = ours[1].__cause__ or (None if ours[1].__suppress_context__ else ours[1].__context__)
        return ("same", "") if inner is None else ("chained", f"{_line(ours[1])}, after {_line(inner)}")
    if theirs[0] == "error":
        return "accepted", f"{type(theirs[1]).__name__}: {_line(theirs[1])}"
    if ours[0] == "error":
        if isinstance(ours[1], MemoryError):
            return "slow", f"memory: {_line(ours[1])}"
        return "refused", f"{type(ours[1]).__name__}: {_line(ours[1])}"
    try:
        comparison = opdb._Comparison(op, _Sample(args, kwargs), opdb.Options(grad=False), 0)
        comparison._compare("value", ours[1], theirs[1])
    except opdb.Mismatch as error:
        return "different", _line(error)
    except MemoryError:  # of the comparison: a result that is expanded from little
        return "same", "too large to compare"
    return "same", ""


def _copy(t):
    return t.clone()


class _Sample:
    output_process_fn_grad = staticmethod(lambda value: value)
    broadcasts_input = False

    def __init__(self, args, kwargs):
        self.input, self.args, self.kwargs = args[0], args[1:], kwargs


def _line(error) -> str:
    return (str(error).splitlines() or [""])[0][:120]


def calls(count: int, seed: int, only: str = ""):
    """``count`` mutated calls, of entries chosen at random: (entry, args, kwargs)."""
    chance = random.Random(seed)
    entries = [(name, op) for name, op in opdb.SCORED.items() if op.name not in _SKIPPED and only in name]
    samples: dict = {}
    made = 0
    while made < count:
        name, op = chance.choice(entries)
        if name not in samples:
            samples[name] = [s for _, s in opdb.samples_of(op, opdb.Options(samples=6, grad=False))]
        if not samples[name]:
            continue
        try:
            args, kwargs = changed(chance.choice(samples[name]), chance)
        except (RuntimeError, IndexError, TypeError, OverflowError):
            continue  # PyTorch cannot make such a tensor
        made += 1
        yield name, op, args, kwargs


def run(count: int, seed: int, only: str = ""):
    """(how many of each kind, what was found)."""
    tally, found = collections.Counter(), []
    for i, (name, op, args, kwargs) in enumerate(calls(count, seed, only)):
        kind, text = compare(op, args, kwargs)
        tally[kind] += 1
        if kind != "same":
            found.append((i, kind, name, text, _shown(args, kwargs)))
    return tally, found


def _shown(args, kwargs) -> str:
    def show(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(show, value)) + ")"
        return repr(value)[:40]

    return ", ".join([*map(show, args), *(f"{k}={show(v)}" for k, v in kwargs.items())])


def watched(count: int, seed: int, only: str = ""):
    """What ``run`` gives, from processes of which each goes on after the call that ended the one before."""
    tally, found, start = collections.Counter(), [], 0
    while start < count:
        place = mmap.mmap(-1, 4096)
        with tempfile.TemporaryFile() as results:
            child = os.fork()
            if not child:
                _run_in_child(place, results, (count, seed, only, start))
            _, status = os.waitpid(child, 0)
            who, _, call = place[:].rstrip(b"\0").decode().partition(" ")
            results.seek(0)
            while True:
                try:
                    more, seen = pickle.load(results)
                except EOFError:
                    break
                tally += more
                found += seen
        if not status:
            break
        start = int(call.split()[0]) + 1
        kind = "crashed" if who == "ours" else "same"
        tally[kind] += 1
        print(f"{kind:9} {call}: {who} ended the process, status {status}", flush=True)
    return tally, found


def _run_in_child(place, results, arguments) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    count, seed, only, start = arguments
    for i, (name, op, args, kwargs) in enumerate(calls(count, seed, only)):
        if i < start:
            continue
        call = f"{i} {name}({_shown(args, kwargs)})"

        def note(who, call=call):
            # What never comes back to Python ends the process, after three times the seconds it has.
            signal.setitimer(signal.ITIMER_VIRTUAL, 3 * SECONDS)
            place[:] = f"{who} {call}".encode()[:4096].ljust(4096, b"\0")

        kind, text = compare(op, args, kwargs, note)
        entry = [] if kind == "same" else [(i, kind, name, text, _shown(args, kwargs))]
        pickle.dump((collections.Counter({kind: 1}), entry), results)
        results.flush()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    tally, found = watched(given.count, given.seed, given.only)
    for i, kind, name, text, shown in sorted(found, key=lambda entry: entry[1:3]):
        print(f"{kind:9} {i:6} {name}({shown}): {text}")
    print(f"{tally.total()} calls:", ", ".join(f"{kind} {tally[kind]}" for kind in ("same", *KINDS)))


if __name__ == "__main__":
    main()
