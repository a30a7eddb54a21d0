"""Numbers by place where they are named today: ``x.add_(-lr, g)`` and its like, as old optimizers have it."""

import subprocess
import sys

CALLS = [
    "torch.add(x, 2, y)", "x.add(2, y)", "x.add_(2, y)", "torch.sub(x, 2.5, y)", "x.sub_(2, y)", "torch.add(x, 2, 3)",
    "torch.add(x, 2, y, out=torch.empty(2, 2))", "torch.addcmul(x, 2, y, y)", "x.addcmul_(2, y, y)",
    "x.addcdiv_(-2, y, y)", "torch.addcdiv(x, 2, y, y)", "torch.addmm(2, x, 3, y, y)", "torch.addmm(2, x, y, y)",
    "x.addmm(2, 3, y, y)", "x.addmm(2, y, y)", "x.addmm_(2, 3, y, y)", "torch.addmv(2, v, 3, x, v)",
    "v.addmv(2, 3, x, v)", "v.addmv_(2, x, y[0])", "torch.addr(2, x, 3, v, v)", "x.addr_(2, 3, v, v)",
    "torch.baddbmm(2, b, 3, b, b)",
    "b.baddbmm(2, b, b)", "torch.addbmm(2, x, 3, b, b)", "x.addbmm_(2, 3, b, b)", "torch.addmm(x, 2, 3, y, y)",
    "x.add(2, y, alpha=3)", "x.addcmul(y, 2, y)", "x.add('a', y)",
]  # fmt: skip

SCRIPT = """
import sys, warnings
import {library} as torch
for call in sys.stdin.read().splitlines():
    x, y, v = torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([[2.0, 3], [4, 5]]), torch.tensor([1.0, 3])
    b = y[None]
    try:
        print(call, eval(call).tolist(), x.tolist())
    except Exception as error:
        print(call, type(error).__name__)
"""
# Each call is the first in a process of its own: this one forks.
FIRST = """
import os, sys, warnings
import {library} as torch
for call in sys.stdin.read().splitlines():
    child = os.fork()
    if not child:
        x, b = torch.ones(2, 2), torch.ones(1, 2, 2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            exec(call)
            x.sub_(1, x)
        told = [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in told]
        print(call, *told, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
FIRSTS = [
    "torch.add(x, 1, x)", "x.add_(1, x)", "torch.addcmul(x, 1, x, x)", "x.addmm(1, 1, x, x)", "x.addmm_(1, x, x)",
    "torch.addbmm(1, x, 1, b, b)", "torch.addr(1, x, x[0], x[0])",
]  # fmt: skip


def printed(script, **given):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_are_pytorchs():
    ours, theirs = (
        printed(SCRIPT.format(library=library), input="\n".join(CALLS), check=False)
        for library in ("rushlight", "torch")
    )
    assert ours.splitlines() == theirs.splitlines() and ours.count("\n") == len(CALLS)


def test_the_first_is_told_in_pytorchs_words():
    ours, theirs = (
        printed(FIRST.format(library=library), input="\n".join(FIRSTS), check=False).splitlines()
        for library in ("rushlight", "torch")
    )
    assert ours == theirs and [line.count("deprecated") for line in ours] == [1] * len(FIRSTS)
