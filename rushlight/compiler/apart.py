"""One program for all processes of a trace in which each has values of its own.

A value of a trace belongs to a **level**: the axes of the mesh along which every process has its own. A DTensor over
the whole mesh has none such, ordinary tensors have all of them, and a DTensor over a slice of the mesh has the others.
What is computed from constants alone belongs to none, and is computed wherever it is needed.

``seen`` equations (``engine/spread/seen.py``) lead from level to level. Between them lie regions: equations of one
level that need nothing of another. At a level with axes of its own a region is a ``shard_map`` over these axes: inside
it is plain code of one process, whose own devices XLA may still use as it likes. Otherwise XLA sees the whole arrays.

Between regions, and where the program is entered and left, what each process has for itself is joined along the first
dimension (a number is an array of one). So XLA is told nothing that is not so.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal, Var
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..engine.spread.array import sizes_of
from ..engine.spread.seen import agreed_p, cut_dimensions, seen_p
from .guards import CompileError

Level = tuple[int, ...]  # the axes along which each process has its own
WHOLE: Level = ()
_CONSTRAINT = "sharding_constraint"
_PLACES = ("sharding", "out_sharding")  # parameters of equations
_LOOPS = ("scan", "while", "cond")
_CALLS = {"jit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


class Processes:
    """The grid of a program, with its axes divided into those between processes and those inside of one."""

    def __init__(self, grid, part):
        self.grid, self._whole, self._part = grid, sizes_of(grid), sizes_of(part)
        self._between: dict[int, str] = {}
        self._inside: dict[int, str] = {}
        sizes, names = [], []
        for axis, (name, n, m) in enumerate(zip(grid.axis_names, self._whole, self._part)):
            divided = 1 < m < n
            for found, size, suffix in ((self._between, n // m, ".process"), (self._inside, m, ".device")):
                if size > 1:
                    found[axis] = f"{name}{suffix}" if divided else name
                    sizes.append(size)
                    names.append(found[axis])
        self.mesh = Mesh(grid.devices.reshape(sizes), tuple(names))
        self.own: Level = tuple(self._between)  # of what is a process's alone
        self.count = math.prod(self.mesh.shape[name] for name in self._between.values())
        self._devices = set(grid.devices.flat)
        self._check()

    def _check(self) -> None:
        """Raise unless each process has one place between the others, and all that is inside of it."""
        axes = [self.mesh.axis_names.index(name) for name in self._between.values()]
        inside = [axis for axis in range(self.mesh.devices.ndim) if axis not in axes]
        rows = np.transpose(self.mesh.devices, (*axes, *inside)).reshape(self.count, -1)
        owners = [{device.process_index for device in row} for row in rows]
        if any(len(mine) > 1 for mine in owners) or len(set().union(*owners)) < self.count:
            raise CompileError("compile: the devices of a process are no block of the mesh.")

    def level(self, sizes: tuple) -> Level:
        """Of arrays on a grid of these sizes."""
        if len(sizes) != len(self._whole) or any(n not in (w, p) for n, w, p in zip(sizes, self._whole, self._part)):
            raise CompileError("compile: DTensors of meshes that are not parts of one another.")
        return tuple(axis for axis in self._between if sizes[axis] != self._whole[axis])

    def level_of(self, laid) -> Level:
        """Of a tensor that lies so; None: an ordinary one."""
        return self.own if laid is None else self.level(sizes_of(laid.mesh.grid))

    def names(self, level: Level) -> tuple[str, ...]:
        return tuple(self._between[axis] for axis in level)

    def joined(self, level: Level) -> PartitionSpec:
        """How arrays of a level lie between regions."""
        return PartitionSpec(self.names(level)) if level else PartitionSpec()

    def pieces(self, how: tuple, level: Level) -> PartitionSpec:
        """How they lie where they are part of an array that lies as ``how`` says."""
        dims: dict = defaultdict(list)
        for axis, dim in cut_dimensions(how).items():
            if axis in level:
                dims[dim].append(self._between[axis])
        return PartitionSpec(*[tuple(dims[dim]) or None for dim in range(max(dims, default=-1) + 1)])

    def inside(self, spec, level: Level) -> PartitionSpec:
        """How an array lies in its grid, as ``spec`` says, in words for a region of its level."""
        found: list = []
        for names in spec:
            names = () if names is None else names if isinstance(names, tuple) else (names,)
            axes = [self.grid.axis_names.index(name) for name in names]
            pairs = [(None if axis in level else self._between.get(axis), self._inside.get(axis)) for axis in axes]
            found.append(tuple(name for pair in pairs for name in pair if name is not None) or None)
        return PartitionSpec(*found)

    def sharding(self, lies) -> NamedSharding:
        """How an array that a program gives lies, joined, if on its grid it lies as ``lies`` says."""
        level = self.level(sizes_of(lies.mesh))
        if level == WHOLE:
            return lies
        first, *rest = [*self.inside(lies.spec, level)] or [None]
        cut = () if first is None else first if isinstance(first, tuple) else (first,)
        return NamedSharding(self.mesh, PartitionSpec((*self.names(level), *cut), *rest))

    def joining(self, array, lies):
        """What a part of the devices have, as a program takes it; with all devices' it does so as it is."""
        if array.sharding.device_set == self._devices:
            return array
        first, *rest = array.shape or (1,)
        count = len(self._devices) // len(array.sharding.device_set)
        shards = [s.data if s.data.ndim else s.data.reshape(1) for s in array.addressable_shards]
        return jax.make_array_from_single_device_arrays((count * first, *rest), self.sharding(lies), shards)

    @property
    def divides(self) -> bool:
        """Has a process several devices?"""
        return bool(self._inside)

    @property
    def home(self) -> Own:
        return Own(NamedSharding(self.mesh, self.joined(self.own)), self.count)


class Own(NamedTuple):
    """Where ordinary tensors go: each process has its own, joined along the first dimension."""

    sharding: NamedSharding
    processes: int

    def put(self, values):
        values = values if isinstance(values, jax.Array) else np.asarray(values)
        first, *rest = values.shape or (1,)
        values = values.reshape(first, *rest)
        devices = sorted(self.sharding.addressable_devices, key=lambda device: device.id)
        shards = [jax.device_put(values if isinstance(values, jax.Array) else np.array(values), d) for d in devices]
        shape = (self.processes * first, *rest)
        return jax.make_array_from_single_device_arrays(shape, self.sharding, shards, dtype=values.dtype)


class _Known(NamedTuple):
    """Of a variable: its level, None if it is the same everywhere, and how many times levels changed before it."""

    level: Level | None
    stage: int


class _Region:
    """Equations of one level; ``out``: what is taken from it, and how it lies there, None if joined."""

    def __init__(self):
        self.equations: list = []
        self.out: dict[tuple, tuple] = {}

    def give(self, v, how: tuple | None = None) -> None:
        self.out[id(v), how] = v, how


def program(function, processes: Processes, like: list, given: list, wanted: list | None = None):
    """(``function`` of one process's values as one of all processes', the levels of its results).

    ``like`` are the shapes and dtypes of a process's arguments, ``given`` their levels and ``wanted`` those of results;
    None of an argument that is the same everywhere, or of a result that is left at its own level.
    """
    closed = jax.make_jaxpr(function)(*like)
    plan = _Plan(closed.jaxpr, processes, given, wanted or [None] * len(closed.out_avals))

    def run(*arrays):
        return tuple(plan.run(closed.consts, arrays))

    run.__name__ = function.__name__  # what profiles and XLA call it
    return run, plan.results


class _Plan:
    """A trace in regions."""

    def __init__(self, jaxpr, processes: Processes, given: list, wanted: list):
        self._jaxpr, self._processes = jaxpr, processes
        self._order = {id(e): i for i, e in enumerate(jaxpr.eqns)}
        self._known: dict[Var, _Known] = {v: _Known(level, 0) for v, level in zip(jaxpr.invars, given)}
        self._known.update({v: _Known(None, 0) for v in jaxpr.constvars})
        self._everywhere: dict[Var, Any] = {}  # equations that are computed wherever they are needed
        self._entered: dict[Var, tuple] = {}  # of variables that were seen at another level: how they came
        self._regions: dict[tuple, _Region] = defaultdict(_Region)
        self._links: dict[int, list] = defaultdict(list)  # what leads from level to level, by the stage before it
        for equation in jaxpr.eqns:
            self._place(equation)
        self.results = [self._level(v) if level is None else level for v, level in zip(jaxpr.outvars, wanted)]
        self._take_results()
        self._take_between()

    # -- making it -------------------------------------------------------------------------------------------------

    def _level(self, v) -> Level | None:
        return self._known[v].level if isinstance(v, Var) else None

    def _place(self, equation) -> None:
        known = [self._known[v] for v in equation.invars if isinstance(v, Var)]
        levels = {k.level for k in known} - {None}
        stage = max([k.stage for k in known], default=0)
        if len(levels) > 1:
            raise CompileError("compile: tensors of one process meet tensors of all, and it is not said how.")
        (level,) = levels or {self._asked(equation)}
        self._check(equation, level)
        if level is None:
            made = _Known(None, stage)
            self._everywhere.update(dict.fromkeys(equation.outvars, equation))
        elif equation.primitive is seen_p or equation.primitive is agreed_p:
            made = self._link(equation, level, stage)
        else:
            made = _Known(level, stage)
            self._regions[stage, level].equations.append(equation)
        self._known.update(dict.fromkeys(equation.outvars, made))

    def _asked(self, equation) -> Level | None:
        """The level that an equation says itself that it is of, if it does."""
        if equation.primitive.name == _CONSTRAINT:
            return self._processes.level(sizes_of(equation.params["sharding"].mesh))
        if equation.primitive is seen_p and equation.invars[0].aval.shape != equation.outvars[0].aval.shape:
            return self._processes.level(equation.params["before"])
        return None

    def _check(self, equation, level: Level | None) -> None:
        asked = self._asked(equation)
        if asked is not None and asked != level:
            raise CompileError("compile: an array is to lie on other devices than it is computed on.")
        if level and self._processes.divides and _has_loop(equation):
            raise CompileError("compile: a loop of what each process has for itself, on several devices of its own.")

    def _link(self, equation, level: Level, stage: int) -> _Known:
        """Have the region before it give what the equation takes to another level."""
        how = equation.params.get("how")
        self._links[stage].append((equation, level))
        self._regions[stage, level].give(equation.invars[0], how)
        if how is None:
            return _Known(None, stage + 1)
        self._entered[equation.outvars[0]] = how
        return _Known(self._processes.level(equation.params["after"]), stage + 1)

    def _take_results(self) -> None:
        last = max([k.stage for k in self._known.values()], default=0) + 1
        for v, level in zip(self._jaxpr.outvars, self.results):
            mine = self._level(v)
            if mine is not None and mine != level:
                raise CompileError("compile: a result is to lie on other devices than it is computed on.")
            stage = last if mine is None else self._known[v].stage
            self._regions[stage, level or WHOLE].give(v)

    def _take_between(self) -> None:
        """Have regions give what others of their level need later."""
        for (stage, level), region in list(self._regions.items()):
            for v in self._needs(region)[1]:
                known = self._known[v]
                made = known.level is not None and v not in self._entered
                if made and known.stage < stage and (known.stage, level) in self._regions:
                    self._regions[known.stage, level].give(v)

    def _needs(self, region: _Region) -> tuple[list, list[Var]]:
        """(its equations with those that are computed everywhere, the variables that it is given)."""
        equations = {id(e): e for e in region.equations}
        made = {v for e in region.equations for v in e.outvars}
        given: dict[Var, None] = {}
        stack = [v for e in region.equations for v in e.invars] + [v for v, _ in region.out.values()]
        while stack:
            v = stack.pop()
            if not isinstance(v, Var) or v in made or v in given:
                continue
            equation = self._everywhere.get(v)
            if equation is None:
                given[v] = None
            elif id(equation) not in equations:
                equations[id(equation)] = equation
                made.update(equation.outvars)
                stack += equation.invars
        return sorted(equations.values(), key=lambda e: self._order[id(e)]), list(given)

    # -- running it ------------------------------------------------------------------------------------------------

    def run(self, consts, arrays) -> list:
        """What JAX is to compute of ``arrays``."""
        found: dict = {}  # by the id of a variable, how it lies or None, and its level
        for v, array in zip((*self._jaxpr.constvars, *self._jaxpr.invars), (*map(_constant, consts), *arrays)):
            found[id(v), None, self._known[v].level] = array
        for stage in range(max([stage for stage, _ in self._regions], default=-1) + 1):
            for (at, level), region in self._regions.items():
                if at == stage and region.out:
                    found.update(self._run_region(level, region, found))
            for equation, level in self._links[stage]:
                self._follow(equation, level, found)
        return [found[id(v), None, level or WHOLE] for v, level in zip(self._jaxpr.outvars, self.results)]

    def _follow(self, equation, level: Level, found: dict) -> None:
        (source,), (target,) = equation.invars, equation.outvars
        how = equation.params.get("how")
        array = found[id(source), how, level]
        if how is None:
            found[id(target), None, None] = jnp.all(array)
        else:
            found[id(target), how, self._level(target)] = array

    def _run_region(self, level: Level, region: _Region, found: dict) -> dict:
        """What it gives, by the keys of ``found``."""
        equations, given = self._needs(region)
        out = list(region.out.values())
        hows = [self._entered.get(v) for v in given]
        arrays = [found[id(v), how, self._known[v].level] for v, how in zip(given, hows)]

        def body(*values):
            values = [x if x.shape == v.aval.shape else x.reshape(v.aval.shape) for v, x in zip(given, values)]
            made = _evaluated(equations, dict(zip(given, values)), [v for v, _ in out], self._processes, level)
            alone = [level != WHOLE and how is None for _, how in out]
            return [x.reshape(1) if one and not x.shape else x for one, x in zip(alone, map(jnp.asarray, made))]

        if level == WHOLE:
            made = body(*arrays)
        else:
            made = jax.shard_map(
                body, mesh=self._processes.mesh, axis_names=set(self._processes.names(level)), check_vma=False,
                in_specs=tuple(self._spec(self._known[v].level, how) for v, how in zip(given, hows)),
                out_specs=[self._spec(level, how) for _, how in out],
            )(*arrays)  # fmt: skip
        return {(id(v), how, level): x for (v, how), x in zip(out, made)}

    def _spec(self, level: Level | None, how: tuple | None) -> PartitionSpec:
        """How an array enters or leaves a region of its level."""
        if level is None:
            return PartitionSpec()
        return self._processes.joined(level) if how is None else self._processes.pieces(how, level)


def _evaluated(equations, values: dict, wanted, processes: Processes, level: Level) -> list:
    """JAX's ``eval_jaxpr``, of some equations, with what says how arrays lie in words of this program's mesh."""

    def read(v):
        return _constant(v.val) if isinstance(v, Literal) else values[v]

    for equation in equations:
        inputs = [read(v) for v in equation.invars]
        if equation.primitive.name == _CONSTRAINT and level != WHOLE:
            made = [_constrained(inputs[0], equation.params["sharding"].spec, processes, level)]
        elif equation.primitive is seen_p or equation.primitive is agreed_p:  # of what is the same everywhere
            made = inputs
        elif equation.primitive.name in _CALLS:  # its inner equations say on which devices their results lie
            inner = equation.params[_CALLS[equation.primitive.name]]
            known = dict(zip((*inner.jaxpr.constvars, *inner.jaxpr.invars), (*inner.consts, *inputs)))
            made = _evaluated(inner.jaxpr.eqns, known, inner.jaxpr.outvars, processes, level)
        else:
            params = equation.params if level == WHOLE else _free(equation.params)
            with equation.ctx.manager if level == WHOLE else contextlib.nullcontext():
                made = equation.primitive.bind(*inputs, **equation.primitive.get_bind_params(params))
            made = made if equation.primitive.multiple_results else [made]
        values.update(zip(equation.outvars, made))
    return [read(v) for v in wanted]


def _has_loop(equation) -> bool:
    """Is there one in it? Its inner equations say on which devices their results lie, and cannot be called instead."""
    if equation.primitive.name in _CALLS:
        return any(map(_has_loop, equation.params[_CALLS[equation.primitive.name]].jaxpr.eqns))
    return equation.primitive.name in _LOOPS


def _free(params: dict) -> dict:
    """Without what the trace knew of the devices that a result lies on."""
    return {name: None if name in _PLACES else value for name, value in params.items()}


def _constant(value):
    """Of one that lies on a process's own devices, the values: the program's devices are others."""
    lies_here = isinstance(value, jax.Array) and value.is_fully_addressable
    return np.asarray(value) if lies_here else value


def _constrained(x, spec, processes: Processes, level: Level):
    if len(processes.names(level)) == len(processes.mesh.axis_names):
        return x  # a process has one device
    return jax.lax.with_sharding_constraint(x, processes.inside(spec, level))
