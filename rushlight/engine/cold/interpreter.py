"""Goes through a recording call by call.

On a GPU an operator of CuPy's takes some ten microseconds and nothing to compile, where XLA compiles a program for a
second or more. Text that grows by a token in every turn would compile at every turn.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import jax
import numpy as np

from .. import special
from .namespace import Namespace


class Interpreter:
    """Runs recordings on one kind of device; ``enter`` and ``leave`` take arrays to the library's and back."""

    def __init__(self, library, special, enter, leave, wait):
        self.namespace = Namespace(library, special)
        self.enter, self.leave, self.wait = enter, leave, wait

    def run(self, calls: list, live: tuple, values: list, place) -> list:
        """The outputs numbered ``live`` of ``calls``: (kind, where its arrays come from, numbers, key's words) each.

        A source is (a call, one of its outputs), or a number: one of ``values``.
        """
        if not all(kind.keyed or kind.interpreted for kind, *_ in calls):
            raise ValueError("what trains is compiled at once")
        jax.block_until_ready(values)
        inputs: dict[int, Any] = {}
        made: list[list] = []
        last = _last_uses(calls)
        outputs: dict[int, Any] = {}
        wanted, number = set(live), 0
        for at, (kind, sources, numbers, key) in enumerate(calls):
            arrays = []
            for source in sources:
                if isinstance(source, tuple):
                    arrays.append(made[source[0]][source[1]])
                else:
                    if source not in inputs:
                        inputs[source] = self.enter(values[source])
                    arrays.append(inputs[source])
            if kind.keyed:  # random numbers are JAX's
                results = [self.enter(r) for r in kind.run([self.leave(a, place) for a in arrays], numbers, key)]
            else:
                results = kind.interpreted(self.namespace, arrays, numbers)
            made.append(results)
            for result in results:
                if number in wanted:
                    outputs[number] = result
                number += 1
            for done in last.get(at, ()):  # nobody asks for these any more
                made[done] = []
        self.wait()  # until then arrays of JAX's must not be freed, and results not be read
        return [self.leave(outputs[i], place) for i in live]


def _last_uses(calls: list) -> dict[int, list[int]]:
    """{a call: the calls whose outputs it is the last to use}."""
    last: dict[int, int] = {}
    for at, (_, sources, *_rest) in enumerate(calls):
        last[at] = at
        for source in sources:
            if isinstance(source, tuple):
                last[source[0]] = at
    found: dict[int, list[int]] = {}
    for call, at in last.items():
        found.setdefault(at, []).append(call)
    return found


@functools.cache
def interpreter_for(platform: str) -> Interpreter | None:
    """The interpreter for a platform, if there is a library; ``RUSHLIGHT_COLD=0`` leaves all to the compiler."""
    asked = os.environ.get("RUSHLIGHT_COLD")
    if asked == "0":
        return None
    if platform == "cpu":  # XLA compiles quickly there: only to try the interpreter
        return _with_numpy() if asked == "1" else None
    if platform in ("gpu", "cuda"):
        try:
            return _with_cupy()
        except ImportError:
            return None
    return None


def _with_numpy() -> Interpreter:
    put = lambda a, place: jax.device_put(np.array(a), place)
    return Interpreter(np, special, np.asarray, put, lambda: None)


def _with_cupy() -> Interpreter:
    import cupy
    import cupyx.scipy.special

    def leave(a, place):
        """In memory of JAX's own: its CUDA graphs cannot change from one allocator's to another's."""
        shared = jax.dlpack.from_dlpack(cupy.ascontiguousarray(a))
        return jax.device_put(shared, place, may_alias=False)

    enter = lambda a: cupy.asarray(a) if isinstance(a, np.ndarray) else cupy.from_dlpack(a)
    return Interpreter(cupy, cupyx.scipy.special, enter, leave, lambda: cupy.cuda.get_current_stream().synchronize())
