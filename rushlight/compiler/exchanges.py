"""Collectives of a compiled function: programs with the host's exchanges between them.

A trace has its collectives as equations (``engine/xla/exchange.py``). For each of them, in their order, a program
computes what it needs, and no more; the group's thread exchanges that while the next program runs. All the rest is the
last program, the one that is given state to write: whatever goes wrong in an exchange, nothing has changed yet.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
from jax.extend.core import Var

from ..distributed.collectives import start_exchange
from ..distributed.work import Work
from ..engine.xla.exchange import exchange_p
from .guards import CompileError


class Part:
    """A program that ends with an exchange: ``takes`` what others made, ``gives`` what later ones take."""

    def __init__(self, equation, takes: list[Var], gives: list[Var], jaxpr):
        (self.sent,), (self.got,), self.params = equation.invars, equation.outvars, equation.params
        self.takes, self.gives, self.jaxpr = takes, gives, jaxpr
        self.computes = bool(jaxpr.eqns) or self.sent not in takes
        self.run: Any = None  # the program, if there is anything to compute

    def start(self, x) -> Work:
        return start_exchange(self.params["group"], self.params["what"], x, dict(self.params["static"]))


class Exchanges:
    """What a program does before its last part, which is ``last`` and takes what a call of this gives.

    ``unpacked`` finds the inputs of ``closed`` in what a program is given. ``checked``: the last output says whether
    all values are as expected; it is looked at before anything is exchanged, and is no output of ``last``.
    """

    def __init__(self, closed, count: int, checked: bool, unpacked, options):
        jaxpr = closed.jaxpr
        flag = jaxpr.outvars[-1] if checked else None
        outvars = jaxpr.outvars[:-1] if checked else jaxpr.outvars
        groups, order = _grouped(jaxpr, flag, outvars)
        if len(order) != count:
            raise CompileError("compile: a collective inside a loop or a branch of XLA's is made by no program.")
        made = [{v for e in group for v in e.outvars} for group in groups]
        uses = [_used(group, [e.invars[0]]) for group, e in zip(groups, order)] + [_used(groups[-1], outvars)]
        shared = set().union(*made) | {e.outvars[0] for e in order}
        takes = [[v for v in used if v in shared and v not in own] for used, own in zip(uses, made)]
        self._parts, self._flag = [], flag
        for k, e in enumerate(order):
            later = set(itertools.chain.from_iterable(takes[k + 1 :]))
            gives = [v for v in made[k] if v in later]
            out = [e.invars[0], *gives, *([flag] if checked and k == 0 else [])]
            self._parts.append(Part(e, takes[k], gives, _part(jaxpr, groups[k], takes[k], out)))
        for part in self._parts:
            if part.computes:
                part.run = _compiled(closed.replace(jaxpr=part.jaxpr), unpacked, options)
        self._takes = takes[-1]
        self.last = closed.replace(jaxpr=_part(jaxpr, groups[-1], takes[-1], outvars))

    def __call__(self, given: tuple) -> list | None:
        """Compute and exchange; what the last part takes. None if a value is not as expected: nothing is exchanged."""
        found: dict = {}
        for part in self._parts:
            if not part.computes:
                sent = _awaited(found, part.sent)
            else:
                sent, *made = part.run(*given, *[_awaited(found, v) for v in part.takes])
                found.update(zip(part.gives, made))
                if self._flag is not None and part is self._parts[0] and not made[-1]:
                    return None
            found[part.got] = part.start(sent)
        for part in self._parts:
            _awaited(found, part.got)
        return [found[v] for v in self._takes]


def _awaited(found: dict, v: Var):
    """What is known of ``v``, when it has come."""
    if isinstance(found[v], Work):
        found[v] = found[v].result()[0]
    return found[v]


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


def _compiled(closed, unpacked, options):
    def body(*given):
        inputs, _, others = unpacked(given)
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *inputs, *others)

    return jax.jit(body, compiler_options=options)
