"""Calling an op: pick the engine, convert, compute, wrap, record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import dtypes
from ..engine import accelerated, joint, namespace_of, operand
from ..engine.numpy import layouts
from ..engine.numpy import namespace as numpy_engine
from ..engine.open_size import has_open, is_open
from ..errors import too_large, type_name
from ..tensor import Storage, Tensor, wrap
from . import mode, overriding, shortcuts
from .foresight import foreseen
from .lowering import lowered
from .mode import state
from .overriding import PLAIN
from .plan import Plans
from .promotion import (
    COMPLEX_HALF,
    FLOAT8,
    IN_COMPLEX_HALF,
    IN_FLOAT8,
    cast_back,
    computed_in,
    convert,
    decide,
    rounded,
)
from .record import has_gradient, link_view, record, record_several

if TYPE_CHECKING:
    from .op import Op

_ndarray = np.ndarray
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_BOOL, _INT8, _INT = np.dtype(np.bool_), np.dtype(np.int8), np.dtype(np.int64)
_new = object.__new__
_PLAIN_SCALARS = frozenset({int, float, bool, type(None)})
_OPERANDS = (Tensor, int, float, complex, np.number, np.bool_)


def caller(o: Op, node=None, operator=False, short=True, first=False):
    """The function that is the op: ``_general_caller``, behind a short cut where there are few arrays."""
    plans = Plans(o, node or o.node)
    general = _general_caller(o, plans, layouts.rule_of(o, node or o.node), operator, first)
    general.op, general.node = o, node or o.node  # interceptors are handed this one, and want to know what it is
    if o.aux is not None or o.residuals or o.name in layouts.OWN or not short:
        return general
    if o.variadic or (o.static and len(o.arrays) == 2):
        return shortcuts.others(o, plans, general)
    short_cut = {1: shortcuts.single, 2: shortcuts.pair, 3: shortcuts.trio}.get(len(o.arrays))
    return general if short_cut is None else short_cut(o, plans, general)


def _general_caller(o: Op, plans: Plans, layout, operator=False, first=False):
    """The function that runs, wraps and records op ``o``; everything that happens on every call is in sight here.

    With ``operator`` it is fit for ``Tensor.__add__``: an operand of a foreign type gives NotImplemented.
    With ``first`` only the first of several outputs has a gradient.
    """
    forward, promote, exact, is_view, name = o.forward, o.promote, o.exact, o.view, o.name
    detour = o.wide
    numpy_forward = numpy_engine.BODIES.get(name, forward)
    defaults, differentiable_op = o.static, bool(o.rules)
    keep, check, residuals, position = o.keep, o.check, o.residuals, o.position
    simple = not (o.static or residuals or o.aux is not None)
    scalars = _PLAIN_SCALARS - {type(None)} if operator else _PLAIN_SCALARS
    own_order = name in layouts.OWN
    as_given = is_view or o.lowered is not None
    indexed = promote is None and check is None and not operator  # indices or a mask beside the rest are nothing odd

    def call(*args, **static):
        if mode.active and state.interceptors:
            return mode.intercept(call, args, static)
        xp = numpy_engine
        arrays, nodes, needs, bit, common, plain, mixed = [], [], 0, 1, None, True, False
        for a in args:
            kind = a.__class__
            if kind in PLAIN or isinstance(a, Tensor):
                if kind not in PLAIN and overriding.meets(kind):
                    return _stranger(o, call, args, static, operator)
                if a._view is not None and a._view.seen != a._storage.version:
                    a._refresh(differentiable_op)
                array, n = a._array, a._node
                if array.__class__ is not _ndarray:
                    xp = namespace_of(array) if xp is numpy_engine else joint(xp, array)
                if array.dtype is not common:
                    if common is None:
                        common = array.dtype
                    elif indexed and (array.dtype is _INT or array.dtype is _BOOL):
                        mixed = True
                    else:
                        plain = False
                if n is not None:
                    needs |= bit
                nodes.append(n)
                arrays.append(array)
            else:
                if kind not in scalars:
                    plain = False
                nodes.append(None)
                arrays.append(a)
            bit += bit

        if xp is not numpy_engine and len(arrays) > 1:
            xp.check_same_device(arrays)
        compute = target = final = auxiliary = None
        given = arrays
        odd = not (plain and (common is _F32 or common is _F64)) and not as_given
        if odd and not (indexed and plain and (common is _INT or common is _BOOL)):  # else there is nothing to convert
            if operator and not all(isinstance(a, _OPERANDS) for a in args):
                return _stranger(o, call, args, static, True)
            if common is None and args:
                raise _not_a_tensor(o, args)
            if common in FLOAT8 and name not in IN_FLOAT8:
                raise _no_kernel(o, arrays, None)
            if check is not None:
                _checked(check, arrays, promote)
            target, final = decide(args, arrays, promote, keep, detour or (xp is numpy_engine and not exact))
            compute = computed_in(target, final)
            if final is not None and len(args) > 1:
                args, arrays = rounded(name, args, final), rounded(name, arrays, final)
            if final is COMPLEX_HALF and name not in IN_COMPLEX_HALF and _needs_kernel(promote, arrays):
                raise _no_kernel(o, arrays, final)
        try:
            if simple and xp is numpy_engine:
                if compute is not None:
                    arrays = convert(xp, o, arrays, target, final)
                out = numpy_forward(xp, *arrays)
                if final is not None:
                    out = cast_back(xp, out, final, detour)
            else:
                static = {**defaults, **static}
                if xp.DEFERS:
                    arrays = [operand(xp, a) if a.__class__ is int else a for a in arrays]
                    if position is not None:
                        static[position] = operand(xp, static[position])
                kept = needs if residuals and state.grad else 0
                if xp is numpy_engine and not odd and o.lowered is None:
                    out, auxiliary = _evaluate(xp, o, kept, arrays, static)
                elif xp is numpy_engine:
                    out, auxiliary = evaluate(xp, o, kept, target, final, arrays, static)
                else:
                    out, auxiliary = xp.once(name, evaluate, (o, kept, target, final), arrays, static)
        except MemoryError as error:
            raise too_large(error) from None
        except (ValueError, TypeError) as error:
            if operator and any(a is None for a in args):
                return NotImplemented
            if promote or layout is layouts.each:
                check_broadcast(arrays)
            if isinstance(error, TypeError) and "ufunc" in str(error):  # NumPy has no loop for the dtype
                raise _no_kernel(o, arrays, compute) from None
            if larger := too_large(error):
                raise larger from None
            raise
        except RuntimeError as error:
            if promote and isinstance(error, NotImplementedError):
                check_broadcast(arrays)  # shapes are looked at before a kernel is
            if xp is numpy_engine:
                raise
            with xp.explained():  # of memory that ran out
                raise

        if own_order and xp is numpy_engine:
            out = layouts.of_its_own(out, name, static, given)
        if out.__class__ is tuple:
            if layouts.watched and layout is not None and xp is numpy_engine:
                out = tuple([layout(a, given) if a.shape == out[0].shape else a for a in out])
            return record_several(o, plans, args, nodes, needs, xp, out, auxiliary, static, compute, first)
        if odd and promote == "common" and compute == _BOOL and out.dtype == _INT8:  # NumPy counts
            raise _no_kernel(o, arrays, compute)
        if xp is numpy_engine:
            out = out if out.__class__ is _ndarray else np.asarray(out)
            if (odd or mixed) and [a for a in arrays if a is out]:
                out = out.copy()  # floor of integers, say: what is no view has memory of its own
            if layouts.watched and layout is not None and out.ndim > 1:
                out = layout(out, given)
        t = _new(Tensor)
        t._array, t._node, t._grad, t._storage, t._view = out, None, None, None, None
        if is_view:
            link_view(o, args[0], t, static)
        if (
            needs
            and differentiable_op
            and state.grad
            and ((out.dtype is common and not (odd or as_given)) or has_gradient(o, args[0], out.dtype))
        ):
            t._node = record(plans[needs], args, nodes, xp, out, auxiliary, static, compute)
        elif mode.active and state.inference and t._storage is None:
            t._storage = Storage(inference=True)
        return t

    return call


def _checked(check, arrays, promote) -> None:
    try:
        check(*arrays)
    except NotImplementedError:
        if promote:
            check_broadcast(arrays)  # shapes are looked at before a kernel is
        raise


def _stranger(o, call, args, static, operator):
    """What an operand of a foreign type answers, if it overrides functions; Python itself refuses for an operator."""
    if has_open(args):
        return call(*[wrap(accelerated().asarray(a)) if is_open(a) else a for a in args], **static)
    if not (overriding.state.subclasses and any(overriding.overrides(type(a)) for a in args)):
        if not any(type(a) in overriding.DISPATCHING for a in args):
            return NotImplemented
        from . import dispatching

        return dispatching.run(call, args, static)
    try:
        return overriding.ask_operator(o, call, args, static)
    except overriding.Refused:
        if operator:
            return NotImplemented
        raise


def _needs_kernel(promote, arrays) -> bool:
    """Is there something to compute? Element by element PyTorch asks for a kernel even if there is not."""
    return promote is not None or all(getattr(a, "size", 1) for a in arrays)


def _no_kernel(o, arrays, compute):
    """PyTorch's error for a dtype that the op does not serve."""
    dtype = compute or next(a.dtype for a in arrays if hasattr(a, "dtype"))
    word = dtypes.of_numpy(dtype).char.removesuffix("Tensor")
    return NotImplementedError(f"\"{o.label}_cpu\" not implemented for '{word}'")


def evaluate(xp, o: Op, needs: int, target, final, arrays, static: dict):
    """Op ``o`` in namespace ``xp``: (its output, what it keeps for backward beside its arguments).

    ``target`` and ``final`` are what ``decide`` says of the dtypes of ``arrays``.
    """
    if o.lowered is not None:
        arrays = [lowered(xp, a, o.lowered) for a in arrays]
    if target is not None or final is not None:
        arrays = convert(xp, o, arrays, target, final)
    out, auxiliary = _evaluate(xp, o, needs, arrays, static)
    return out if final is None else cast_back(xp, out, final, o.wide), auxiliary


evaluate.foreseen = foreseen  # type: ignore[attr-defined] # see engine/deferred/kinds.py


def _evaluate(xp, o: Op, needs: int, arrays, static: dict):
    body = xp.BODIES.get(o.name, o.forward)
    if o.residuals and body is not o.forward:
        if not [a for a in arrays if a is not None and not getattr(a, "size", 1)]:
            found = body(needs, *arrays, **static)
            if found is not None:  # else it is left to the op's own forward
                return found
        body = o.forward  # fused ones are spared arrays without elements
    if o.aux is None:
        return body(xp, *arrays, **static), None
    known = {**static, **dict(zip(o.arrays, arrays))}
    auxiliary = o.aux(xp, *[known[n] for n in o.aux_names])
    return body(xp, *arrays, aux=auxiliary, **static), auxiliary


def _not_a_tensor(o, args):
    return TypeError(f"{o.label}(): argument 'input' (position 1) must be Tensor, not {type_name(args[0])}")


def check_broadcast(arrays) -> None:
    """Raise PyTorch's error if the shapes of ``arrays`` do not broadcast together."""
    shape: tuple = ()
    for a in arrays:
        other = getattr(a, "shape", ())
        for i in range(1, min(len(shape), len(other)) + 1):
            if shape[-i] != other[-i] and 1 not in (shape[-i], other[-i]):
                raise RuntimeError(
                    f"The size of tensor a ({shape[-i]}) must match the size of tensor b ({other[-i]}) at "
                    f"non-singleton dimension {max(len(shape), len(other)) - i}"
                ) from None
        longer, shorter = (shape, other) if len(shape) >= len(other) else (other, shape)
        tail = len(longer) - len(shorter)
        shape = longer[:tail] + tuple(b if a == 1 else a for a, b in zip(longer[tail:], shorter))
