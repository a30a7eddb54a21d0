"""Collectives of a compiled function: programs with the host's exchanges between them.

A trace has its collectives as equations (``engine/xla/exchange.py``). For each of them, in their order, a program
computes what it needs, and no more; the thread of collectives exchanges that while the next program runs. All the
rest is the last program, the one that is given state to write: whatever goes wrong in an exchange, nothing has changed
yet. Programs are XLA's (``program.py``) or played (``played.py``). Where two processes sum by swapping what they have,
the program that needs the sum adds: it has to go through those numbers anyway.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, Var

from ..distributed.collectives import start_exchange
from ..distributed.work import Work
from ..engine.xla.collectives import SWAPPED
from ..engine.xla.exchange import exchange_p
from .guards import CompileError


class Part:
    """A program that ends with an exchange: ``takes`` what others made, ``gives`` what later ones take.

    Its outputs are what is ``sent``, what it ``gives``, and, of the first part, whether values are as expected.
    """

    def __init__(self, equation, takes: list[Var], gives: list[Var], closed, checked: bool, later: set[Var]):
        (self.sent,), (self.got,), self.params = equation.invars, equation.outvars, equation.params
        self.takes, self.gives, self.closed, self.checked = takes, gives, closed, checked
        self.computes = bool(closed.jaxpr.eqns) or self.sent not in takes
        self.is_spent = self.computes and self.sent not in later  # nobody needs it when it was sent
        self.run: Any = None  # the program, if there is anything to compute

    def start(self, x) -> Work:
        return start_exchange(self.params["group"], self.params["what"], x, dict(self.params["static"]), self.is_spent)


class Exchanges:
    """What a program does before its last part, which is ``last`` and takes what a call of this gives.

    ``checked``: the last output says whether all values are as expected; it is looked at before anything is exchanged,
    and is no output of ``last``. ``swaps``: do two processes sum by swapping? ``made(part)`` is a part as a function of
    what is given and what it takes: it returns what is sent and a list of what it gives, or None where values are not
    as expected.
    """

    def __init__(self, closed, count: int, checked: bool, swaps: bool, made: Callable[[Part], Any]):
        closed = _with_swaps(closed) if swaps else closed
        jaxpr = closed.jaxpr
        flag = jaxpr.outvars[-1] if checked else None
        outvars = jaxpr.outvars[:-1] if checked else jaxpr.outvars
        groups, order = _grouped(jaxpr, flag, outvars)
        if len(order) != count:
            raise CompileError("compile: a collective inside a loop or a branch of XLA's is made by no program.")
        computed = [{v for e in group for v in e.outvars} for group in groups]
        uses = [_used(group, [e.invars[0]]) for group, e in zip(groups, order)] + [_used(groups[-1], outvars)]
        shared = set().union(*computed) | {e.outvars[0] for e in order}
        takes = [[v for v in used if v in shared and v not in own] for used, own in zip(uses, computed)]
        self.parts = []
        for k, e in enumerate(order):
            later = set(itertools.chain.from_iterable(takes[k + 1 :]))
            gives = [v for v in computed[k] if v in later and v is not e.invars[0]]
            out = [e.invars[0], *gives, *([flag] if checked and k == 0 else [])]
            part = closed.replace(jaxpr=_part(jaxpr, groups[k], takes[k], out))
            self.parts.append(Part(e, takes[k], gives, part, checked and k == 0, later))
        for part in self.parts:
            if part.computes:
                part.run = made(part)
        self.takes = takes[-1]
        self.last = closed.replace(jaxpr=_part(jaxpr, groups[-1], takes[-1], outvars))

    def __call__(self, given) -> list | None:
        """Compute and exchange; what the last part takes. None if a value is not as expected: nothing is exchanged."""
        found: dict = {}
        for part in self.parts:
            if part.run is None:
                sent = _awaited(found, part.sent)
            else:
                made = part.run(*given, *[_awaited(found, v) for v in part.takes])
                if made is None:
                    return None
                sent, gives = made
                found.update(zip(part.gives, gives))
                found[part.sent] = sent
            found[part.got] = part.start(sent)
        for part in self.parts:
            _awaited(found, part.got)
        return [found[v] for v in self.takes]


def changed_meanwhile() -> RuntimeError:
    """For a step that has exchanged and cannot be made: others do not send again what they have sent."""
    return RuntimeError(
        "compile: a signal handler has changed what a step depends on while it exchanged something with other "
        "processes; the step was not made"
    )


def _awaited(found: dict, v: Var):
    """What is known of ``v``, when it has come."""
    if isinstance(found[v], Work):
        found[v] = found[v].result()[0]
    return found[v]


def _with_swaps(closed):
    """The jaxpr with sums of two processes as what they are: a swap, and an addition of whatever is needed."""

    def body(*inputs):
        known = dict(zip(jaxpr.invars, inputs)) | dict(zip(jaxpr.constvars, closed.consts))
        halves: dict[Var, tuple] = {}  # of sums: this process's part and the other's

        def value(v):
            if isinstance(v, Literal):
                return v.val
            if v not in known:
                known[v] = jnp.add(*halves[v])
            return known[v]

        for e in jaxpr.eqns:
            if e.primitive is exchange_p and _is_swapped(e.params, e.invars[0].aval):
                x = value(e.invars[0])
                halves[e.outvars[0]] = x, exchange_p.bind(x, **{**e.params, "what": "swap", "static": ()})
                continue
            if e.primitive.name == "slice" and e.invars[0] in halves:  # one bucket's gradients are wanted one by one
                halves[e.outvars[0]] = tuple(e.primitive.bind(x, **e.params) for x in halves[e.invars[0]])
                continue
            with e.ctx.manager:
                made = e.primitive.bind(*map(value, e.invars), **e.primitive.get_bind_params(e.params))
            known.update(zip(e.outvars, made if e.primitive.multiple_results else [made]))
        return [value(v) for v in jaxpr.outvars]

    jaxpr = closed.jaxpr
    return jax.make_jaxpr(body)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in closed.in_avals))


def _is_swapped(params, x) -> bool:
    """Is it a sum for which two processes send each other all they have, as ``Ring`` does, and in one piece?"""
    is_sum = params["what"] == "all_reduce" and dict(params["static"])["op"] == "sum" and x.dtype.kind in "fiu"
    return is_sum and params["group"].size() == 2 and 0 < x.size * x.dtype.itemsize <= SWAPPED


def _grouped(jaxpr, flag, outvars):
    """(equations in groups, the exchanges): what each exchange needs beyond the ones before it, then all outputs."""
    made_by = {v: i for i, e in enumerate(jaxpr.eqns) for v in e.outvars}
    order = [i for i, e in enumerate(jaxpr.eqns) if e.primitive is exchange_p]
    done: set[int] = set()

    def needed(variables):
        """The equations that lead to these, and are in no group yet."""
        mine, stack = set(), list(variables)
        while stack:
            j = made_by.get(v) if isinstance(v := stack.pop(), Var) else None
            if j is not None and j not in mine and j not in done:
                mine.add(j)
                stack += jaxpr.eqns[j].invars
        return mine

    groups = []
    for k, i in enumerate(order):
        mine = needed([*jaxpr.eqns[i].invars, *([flag] if flag is not None and k == 0 else [])])
        if not mine.isdisjoint(order):
            raise CompileError("compile: whether values are as expected depends on what other processes send.")
        groups.append([jaxpr.eqns[j] for j in sorted(mine)])
        done |= {*mine, i}
    groups.append([jaxpr.eqns[j] for j in sorted(needed(outvars))])
    return groups, [jaxpr.eqns[i] for i in order]


def _used(equations, outvars) -> list[Var]:
    """The variables that these equations and outputs read, each once."""
    every = itertools.chain(itertools.chain.from_iterable(e.invars for e in equations), outvars)
    return list(dict.fromkeys(v for v in every if isinstance(v, Var)))


def _part(jaxpr, equations, takes, outvars):
    return jaxpr.replace(eqns=equations, invars=[*jaxpr.invars, *takes], outvars=outvars)
