"""Recording one op on small tensors, and running a long graph backwards."""

from __future__ import annotations

import os
import subprocess
import sys


def cases(torch, gpu=False):
    if gpu:
        return
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)
    m, n = torch.randn(4, 3, requires_grad=True), torch.randn(3, 4)
    yield "record a * b", lambda: lambda: a * b
    yield "record a + 1.0", lambda: lambda: a + 1.0
    yield "record exp", lambda: a.exp
    yield "record sigmoid", lambda: lambda: torch.sigmoid(a)
    yield "record sum", lambda: a.sum
    yield "record a @ b", lambda: lambda: m @ n
    yield "record reshape", lambda: lambda: a.reshape(3, 2)
    yield "record a[0]", lambda: lambda: a[0]
    yield "a * b, nothing recorded", lambda: lambda: b * b
    for length in (1_000, 100_000):
        yield f"chain of {length:,} ops, backward", lambda length=length: lambda: chain(torch, length)
    yield "import", lambda: lambda: importing(torch.__name__)


def chain(torch, length: int):
    leaf = torch.ones(1, requires_grad=True)
    y = leaf
    for _ in range(length):
        y = y * 1.0
    y.backward()
    return leaf.grad


def importing(name: str) -> None:
    """With bytecode cached, as it is for an installed package."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True, env=environment)
