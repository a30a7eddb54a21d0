"""Rushlight's layers against PyTorch's own module database: the same state, outputs, buffers and gradients.

    python tests/parity/moduledb.py Conv2d LSTM               some classes
    python tests/parity/moduledb.py --all --samples 0         everything, every sample
    python tests/parity/moduledb.py --all --xla --compiled    through ``compile``, backward included, on XLA arrays

A class passes when every sample, in training and in evaluation mode, agrees in all stages:

    build     it exists and can be built                keys      names, order, shapes and dtypes of its state
    repr      what it prints                            value     outputs: structure, dtypes, shapes, numbers
    buffers   its state after the call                  grad      gradients of inputs and parameters
    gradgrad  gradients of those, where PyTorch has them
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import os
import pathlib
import sys
import traceback
import warnings

import numpy as np
import torch
from torch.testing._internal.common_modules import module_db

import rushlight

sys.path.insert(0, os.path.dirname(__file__))
import convert
import opdb
from opdb import Mismatch, Options

MODULES = {info.module_cls.__name__: info for info in module_db}
# Their samples carry float64 random numbers, which PyTorch takes with float64 inputs only.
FLOAT64 = ("FractionalMaxPool2d", "FractionalMaxPool3d")
# Compared up to the first gradient; that they differ in the second, and only there, is a test of its own.
FIRST_ORDER = {"LinearCrossEntropyLoss": "with options, PyTorch's chunked version silently has no second gradient"}
LISTED = pathlib.Path(__file__).with_name("unsupported_modules.txt")


def check(info, options: Options, modes=(True, False)) -> int:
    """Compare one class; the number of samples compared. Raises ``Mismatch`` at the first disagreement."""
    count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for training in modes:
            for place, (i, sample) in enumerate(samples_of(info, options, training)):
                name = f"{'train' if training else 'eval'} {i} {sample.desc}".strip()
                try:
                    _check_sample(info, sample, options, name, training, place)
                    count += 1
                except Mismatch:
                    raise
                except Exception as error:  # a fault of the comparison itself, or of Rushlight outside a call
                    raise Mismatch("harness", name, opdb._first_line(error)) from error
    return count


def _check_sample(info, sample, options, name, training, place):
    try:
        _Comparison(info, sample, options, name, training).run()
    except Mismatch as error:
        # In half precision a ReLU's input that rounds to the other side of 0 changes gradients altogether: then other
        # numbers are taken. What is wrong is so with any.
        if options.dtype not in (torch.float16, torch.bfloat16) or error.stage != "grad" or options.seed == 4:
            raise
        options = dataclasses.replace(options, seed=options.seed + 1)
        sample = samples_of(info, options, training)[place][1]
        _check_sample(info, sample, options, name, training, place)


def samples_of(info, options, training):
    """(index, sample) pairs: all, or an even spread of ``options.samples``; the same ones every time."""
    dtype = options.dtype or (torch.float64 if info.module_cls.__name__ in FLOAT64 else torch.float32)
    torch.manual_seed(options.seed)
    with _constructors_noted():
        found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    found = list(enumerate(found))
    if options.samples and len(found) > options.samples:
        found = [found[round(i)] for i in np.linspace(0, len(found) - 1, options.samples)]
    return found


@contextlib.contextmanager
def _constructors_noted():
    """Encoder layers that samples carry remember how they were made: a layer does not keep all of its arguments."""
    layer = torch.nn.TransformerEncoderLayer
    original = layer.__init__

    def noting(self, *args, **kwargs):
        original(self, *args, **kwargs)
        object.__setattr__(self, "made_with", (args, kwargs))

    layer.__init__ = noting
    try:
        yield
    finally:
        layer.__init__ = original


def build(info, given, convert_value):
    """The Rushlight layer that ``given``, a sample's constructor input, describes."""

    def converted(value):
        if isinstance(value, torch.nn.Module):
            args, kwargs = value.made_with
            return getattr(rushlight.nn, type(value).__name__)(*convert_value(args), **convert_value(kwargs))
        return convert_value(value)

    made = getattr(rushlight.nn, info.module_cls.__name__)
    return made(*map(converted, given.args), **{k: converted(v) for k, v in given.kwargs.items()})


class _Comparison(opdb._Comparison):
    """One sample of one class, run through both libraries; what is compared, and how, is as for operators."""

    def __init__(self, info, sample, options, index, training):
        self.op, self.options, self.index, self.training = info, options, index, training
        self.convert = convert.Converter(options.xla)
        self.process = lambda output: output
        self.other_stream, self.first_order = False, info.module_cls.__name__ in FIRST_ORDER
        self.given = sample.constructor_input
        self.forward_args = convert.like((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs)), _leaf)
        self.theirs = info.module_cls(*self.given.args, **self.given.kwargs).train(training).to(options.dtype)
        _quiet(self.theirs)
        self.exact = {}

    def run(self):
        ours = self._at("build", lambda: build(self.op, self.given, convert.Converter()).train(self.training))
        ours.to(convert.constant(self.options.dtype))
        _quiet(ours)
        if self.op.is_lazy:  # the first call gives the parameters their shapes
            copied = convert.like(self.forward_args, lambda t: t.detach().clone())
            self.theirs(*copied[0], **copied[1])
        self._load(ours)
        self.wide = copy.deepcopy(self.theirs).double() if not self.options.xla else None
        if self.options.compiled:
            self._compiled(ours)
        else:
            self._eager(ours)

    def _load(self, ours):
        state = self._at("keys", lambda: self.convert(self.theirs.state_dict()))
        if not self.op.is_lazy:
            self._same_keys(ours)
        self._at("keys", lambda: ours.load_state_dict(state))
        self._same_keys(ours)
        self._at("keys", lambda: ours.to("xla") if self.options.xla else ours)
        if not self.op.is_lazy and repr(ours) != repr(self.theirs):
            self._fail("repr", f"{ours!r} instead of {self.theirs!r}")
        for a, b in zip(ours.parameters(), self.theirs.parameters()):
            self.convert.memo[id(b)] = (b, a)
        parameters = tuple(self.theirs.parameters())
        self.torch_args = (parameters, *self.forward_args)
        self.ours_args = self._at("convert", lambda: self.convert(self.torch_args))

    def _same_keys(self, ours):
        a, b = ({k: (tuple(v.shape), str(v.dtype)) for k, v in m.state_dict().items()} for m in (ours, self.theirs))
        if list(a.items()) != list(b.items()):
            self._fail("keys", f"{a} instead of {b}")

    def _eager(self, ours):
        try:
            expected = _call(self.theirs, self.torch_args)
        except NotImplementedError as error:  # PyTorch has no half precision here
            self._alone(ours, str(error))
            return
        result = self._at("call", lambda: _call(ours, self.ours_args))
        self._compare("value", result, expected)
        self._buffers(ours)
        self._gradients(result, expected)

    def _alone(self, ours, refusal):
        """Where PyTorch has no half precision: refused in its words, or its float64 results as far as halves go."""
        try:
            result = self._at("call", lambda: _call(ours, self.ours_args))
        except Mismatch as error:
            if str(error.__cause__) == refusal:
                return
            raise
        exact = self._double()
        outputs = convert.tensors(result)
        dtype = convert.constant(self.options.dtype)
        if any(t.is_floating_point() and t.dtype is not dtype for t in outputs):
            self._fail("dtype", f"{[t.dtype for t in outputs]} instead of {dtype}")
        for i, t in enumerate(outputs):
            self._numbers("value", t, torch.as_tensor(exact["value", i]).to(self.options.dtype), f"output {i}: ")
        outputs = [t for t in outputs if t.requires_grad]
        wanted = [self.convert(t) for t in convert.tensors(self.torch_args) if t.requires_grad]
        if not outputs or not wanted:
            return
        like = [torch.empty(tuple(t.shape), dtype=self.options.dtype) for t in outputs]
        cotangents = [self.convert(opdb._cotangent(t, i, False)) for i, t in enumerate(like)]
        gradients = self._at("grad", lambda: opdb._our_grad(outputs, wanted, cotangents, False))
        theirs = [exact.get(("grad", i)) for i in range(len(wanted))]
        theirs = [None if g is None else torch.as_tensor(g).to(self.options.dtype) for g in theirs]
        self._compare_gradients("grad", gradients, theirs)

    def _buffers(self, ours):
        for (name, a), b in zip(ours.named_buffers(), self.theirs.buffers()):
            self._structure("buffers", a, b)
            self._numbers("buffers", a, b, f"{name}: ")

    def _compiled(self, ours):
        """A training step, backward included, as one compiled function; the second call is the traced one."""
        expected = _call(self.theirs, self.torch_args)
        outputs = [t for t in convert.tensors(expected) if t.requires_grad]
        their_cotangents = [opdb._cotangent(t, i, False) for i, t in enumerate(outputs)]
        their_in = [t for t in convert.tensors(self.torch_args) if t.requires_grad]
        theirs = torch.autograd.grad(outputs, their_in, their_cotangents, allow_unused=True) if outputs else []
        cotangents = [self.convert(c) for c in their_cotangents]
        ours_in = [self.convert(t) for t in their_in]

        def step(args, cotangents):
            result = _call(ours, args)
            found = [t for t in convert.tensors(result) if t.requires_grad]
            return result, rushlight.autograd.grad(found, ours_in, cotangents, allow_unused=True) if found else []

        compiled = rushlight.compile(step)
        start = [b.detach().clone() for b in ours.buffers()]
        self._at("compile", lambda: compiled(self.ours_args, cotangents))
        for b, value in zip(ours.buffers(), start):
            b.copy_(value)
        result, gradients = self._at("compile", lambda: compiled(self.ours_args, cotangents))
        if not compiled.compilations:
            self._fail("compile", "the second call was not compiled")
        self._compare("value", result, expected)
        self._buffers(ours)
        self._compare_gradients("grad", gradients, theirs)

    def _double(self):
        """The sample in PyTorch's float64, for numbers that float32 is too coarse for: see ``opdb``."""
        return _Exact(self).places


class _Exact(opdb._Exact):
    def __init__(self, comparison):
        self.op, self.process, self.places = comparison.op, comparison.process, {}
        twins: dict = {id(p): q for p, q in zip(comparison.theirs.parameters(), comparison.wide.parameters())}

        def double(t):
            if id(t) not in twins:
                wide = t.detach().double() if t.is_floating_point() else t
                twins[id(t)] = wide.requires_grad_(t.requires_grad)
            return twins[id(t)]

        self.module = comparison.wide
        with contextlib.suppress(Exception):  # no float64 version of this sample, or of its gradients
            self.run(*convert.like(comparison.torch_args, double))

    def result(self, parameters, args, kwargs):
        return _call(self.module, (parameters, args, kwargs))


def _call(module, all_args):
    """Call a module on copies, so that in-place layers work on leaves too."""
    _, args, kwargs = all_args
    args, kwargs = convert.like((args, kwargs), lambda t: t.clone() if t.requires_grad else t)
    return module(*args, **kwargs)


def _leaf(t):
    return t.detach().requires_grad_(t.requires_grad)


def _quiet(module) -> None:
    """No randomness: dropout off, everywhere in the module."""
    for m in module.modules():
        if "Dropout" in type(m).__name__:
            m.p = 0.0
        elif isinstance(getattr(m, "dropout", None), float):
            m.dropout = 0.0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--samples", type=int, default=12, help="of each mode; 0: all of them")
    parser.add_argument("--dtype", help="float64 …")
    parser.add_argument("--xla", action="store_true", help="on XLA arrays")
    parser.add_argument("--compiled", action="store_true", help="through rushlight.compile")
    parser.add_argument("-v", action="store_true", help="tracebacks")
    parser.add_argument("--score", action="store_true", help="only the score")
    parser.add_argument("--update", action="store_true", help=f"write what fails to {LISTED.name}")
    parser.add_argument("--train", action="store_true", help="only in training mode")
    opdb.Progress.add_options(parser)
    args = parser.parse_args(argv)
    options = Options(args.samples, args.dtype and getattr(torch, args.dtype), args.xla, args.compiled)
    failures, progress = {}, opdb.Progress(args)
    chosen = {name: MODULES[name] for name in args.names or MODULES}
    for name, info in progress.left(chosen):
        try:
            count = check(info, options, (True,) if args.train else (True, False))
            progress.note(name, True)
            if args.names:
                print(f"ok   {name}: {count} samples")
        except Mismatch as error:
            failures[name] = f"{error.stage}: {error}".replace("\n", " ")
            progress.note(name, False, failures[name])
            if not args.score:
                print(f"FAIL {name} [{error.sample}] {failures[name]}", flush=True)
                if args.v:
                    traceback.print_exception(error.__cause__ or error)
    if args.update:
        opdb.update_list(set(chosen), failures, LISTED, MODULES)
    passed = [progress.done[name] for name in chosen if name in progress.done]
    print(f"module_db {sum(passed)}/{len(passed)}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
