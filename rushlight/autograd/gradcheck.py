"""``gradcheck`` and ``gradgradcheck``: gradients against finite differences."""

from __future__ import annotations

import numpy as np

from ..errors import warn_user
from ..tensor import Tensor, wrap
from . import forward_ad
from .batching import Vmap
from .grad import grad
from .mode import enable_grad, intercepting, no_grad
from .tangents import Tangents

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def __dir__():
    return __all__


class GradcheckError(RuntimeError):
    """A gradient that does not agree with finite differences, or could not be checked."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
) -> bool:
    """Compare the gradients of ``func`` at ``inputs`` with central differences; True if they agree.

    Inputs that require grad should be float64. ``fast_mode`` compares one random projection instead of every entry.

    >>> x = rushlight.randn(3, dtype=rushlight.double, requires_grad=True)
    >>> rushlight.autograd.gradcheck(lambda x: (x * x).sum(), x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    try:
        case = _Case(func, inputs, eps)
        if not case.outputs:
            case.check_no_gradient()
            return True
        if check_forward_ad:
            for i in range(len(case.outputs)):
                _compare_tangents(case, i, atol, rtol, fast_mode)
                if check_batched_forward_grad:
                    _check_batched_tangents(case, i)
        for i, output in enumerate(case.outputs if check_backward_ad else ()):
            if fast_mode:
                _compare_projected(case, i, output, atol, rtol, nondet_tol, check_grad_dtypes)
            else:
                _compare_all(case, i, output, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_batched_grad:
            _check_batched(case)
        if check_undefined_grad and check_backward_ad:
            _check_undefined(case)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
) -> bool:
    """``gradcheck`` of the gradient of ``func``: checks second derivatives.

    >>> x = rushlight.randn(3, dtype=rushlight.double, requires_grad=True)
    >>> rushlight.autograd.gradgradcheck(lambda x: x * x * x, x)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = [o for o in _tuple(func(*inputs)) if isinstance(o, Tensor) and o.requires_grad]
        generator = np.random.default_rng(0)
        grad_outputs = tuple(wrap(_random(generator, o)).requires_grad_() for o in outputs)
    else:
        grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)

    def first(*arguments):
        points, directions = arguments[:-count], arguments[-count:]
        points = tuple(p if not _wants_grad(p) or p._node is not None else p.requires_grad_() for p in points)
        outputs = [o for o in _tuple(func(*points)) if isinstance(o, Tensor) and o.requires_grad]
        wanted = tuple(p for p in points if _wants_grad(p))
        grads = grad(outputs, wanted, directions, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if isinstance(g, Tensor))

    return gradcheck(
        first,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


class _Case:
    """A function at a point: what is differentiated, and the outputs that depend on it."""

    def __init__(self, func, inputs, eps):
        self.func, self.eps = func, eps
        self.inputs = _tuple(inputs)
        self.places = [i for i, t in enumerate(self.inputs) if _wants_grad(t)]
        if not self.places:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        for i in self.places:
            _check_precision(i, self.inputs[i])
        self.wanted = [self.inputs[i] for i in self.places]
        with enable_grad():
            results = _tuple(func(*self.inputs))
        self.chosen = [j for j, o in enumerate(results) if isinstance(o, Tensor) and o.requires_grad]
        self.outputs = [results[j] for j in self.chosen]
        self.all_outputs = [o for o in results if isinstance(o, Tensor)]

    def values(self, index=None):
        """The outputs as arrays, at the inputs' present values."""
        results = _tuple(self.func(*self.inputs))
        if index is None:
            return [_array(o) for o in results if isinstance(o, Tensor)]
        return _array(results[self.chosen[index]])

    def vjp(self, index, v):
        grads = grad(self.outputs[index], self.wanted, wrap(v), retain_graph=True, allow_unused=True)
        return [np.zeros(t.shape, _array(t).dtype) if g is None else _array(g) for g, t in zip(grads, self.wanted)]

    def jvp(self, index, directions):
        """The tangent of one output for tangents of the inputs, None where they have none."""
        given = list(self.inputs)
        with enable_grad(), forward_ad.dual_level():
            for place, v in zip(self.places, directions):
                if v is not None:
                    given[place] = forward_ad.make_dual(given[place], wrap(v))
            result = _tuple(self.func(*given))[self.chosen[index]]
            tangent = forward_ad.unpack_dual(result).tangent
            return np.zeros(result.shape, _array(result).dtype) if tangent is None else _array(tangent).copy()

    def differences(self, place, index):
        """d output[index] / d input: a list over the input's elements (real, then imaginary part) of arrays."""
        x = self.wanted[place]
        flat = x.detach()
        rows = []
        for step in (self.eps, 1j * self.eps) if flat.dtype.is_complex else (self.eps,):
            rows.append([self._central(flat, position, step, index) for position in np.ndindex(*flat.shape)])
        return rows

    def _central(self, x, position, step, index):
        original = _array(x)[position].copy()
        above = self._moved(x, position, original + step, index)
        below = self._moved(x, position, original - step, index)
        _put(x, position, original)
        return (above - below) / (2 * self.eps)

    def directed(self, place, index, u):
        """d output[index] in the direction ``u`` of one input."""
        flat = self.wanted[place].detach()
        original = _array(flat).copy()
        above = self._moved(flat, ..., original + self.eps * u, index)
        below = self._moved(flat, ..., original - self.eps * u, index)
        _put(flat, ..., original)
        return (above - below) / (2 * self.eps)

    def _moved(self, x, position, value, index):
        _put(x, position, value)
        with enable_grad():  # gradgradcheck's function differentiates inside
            return self.values(index).copy()

    def check_no_gradient(self):
        """No output requires grad: then finite differences must be zero too."""
        for x in self.wanted:
            flat = x.detach()
            for position in np.ndindex(*flat.shape):
                original = _array(flat)[position].copy()
                _put(flat, position, original + self.eps)
                above = [v.copy() for v in self.values()]
                _put(flat, position, original - self.eps)
                below = [v.copy() for v in self.values()]
                _put(flat, position, original)
                if any(a.dtype.kind in "fc" and np.any(a != b) for a, b in zip(above, below)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")


def _compare_all(case, index, output, atol, rtol, nondet_tol, check_dtypes):
    numeric = [case.differences(place, index) for place in range(len(case.wanted))]
    value = _array(output)
    for unit in (1.0, 1j) if value.dtype.kind == "c" else (1.0,):
        for position in np.ndindex(*value.shape):
            v = np.zeros_like(value)
            v[position] = unit
            analytic = case.vjp(index, v)
            _check_repeatable(analytic, case.vjp(index, v), nondet_tol)
            for place, (x, g) in enumerate(zip(case.wanted, analytic)):
                _check_gradient(case, place, x, g, check_dtypes)
                expected = [
                    np.array([np.real(np.conj(unit) * row[position]) for row in part]).reshape(x.shape)
                    for part in numeric[place]
                ]
                expected = expected[0] if len(expected) == 1 else expected[0] + 1j * expected[1]
                if not np.allclose(g, expected, rtol=rtol, atol=atol, equal_nan=True):
                    raise GradcheckError(_mismatch(case, index, place, position, g, expected))


def _compare_tangents(case, index, atol, rtol, fast_mode):
    """Forward mode against finite differences: every direction of every input, or one random one."""
    for place, x in enumerate(case.wanted):
        if fast_mode:
            u = _unit(_random(np.random.default_rng(place), x))
            _compare_tangent(case, index, place, u, case.directed(place, index, u), atol, rtol)
            continue
        units = (1.0, 1j) if x.dtype.is_complex else (1.0,)
        for unit, columns in zip(units, case.differences(place, index)):
            for position, expected in zip(np.ndindex(*x.shape), columns):
                u = np.zeros(x.shape, _array(x).dtype)
                u[position] = unit
                _compare_tangent(case, index, place, u, expected, atol, rtol)


def _compare_tangent(case, index, place, u, expected, atol, rtol):
    found = case.jvp(index, [u if i == place else None for i in range(len(case.wanted))])
    if not np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True):
        raise GradcheckError(
            f"Jacobian computed with forward mode mismatch for output {case.chosen[index]} with respect to input "
            f"{case.places[place]},\nnumerical:{expected}\nanalytical:{found}\n"
        )


def _compare_projected(case, index, output, atol, rtol, nondet_tol, check_dtypes):
    """One random direction in, one out: <v, J u> by differences against <J* v, u>."""
    generator = np.random.default_rng(0)
    v = _unit(_random(generator, output))
    analytic = case.vjp(index, v)
    _check_repeatable(analytic, case.vjp(index, v), nondet_tol)
    for place, (x, g) in enumerate(zip(case.wanted, analytic)):
        _check_gradient(case, place, x, g, check_dtypes)
        u = _unit(_random(generator, x))
        expected = np.sum(np.real(np.conj(v) * case.directed(place, index, u)))
        found = np.sum(np.real(np.conj(g) * u))
        if not np.allclose(found, expected, rtol=rtol, atol=atol):
            raise GradcheckError(
                f"Jacobian mismatch for output {case.chosen[index]} with respect to input {case.places[place]},\n"
                f"numerical:{expected}\nanalytical:{found}\n\n"
                "The above quantities relating the numerical and analytical jacobians are computed in fast mode. "
                "Run with fast_mode=False to see which entries differ."
            )


def _check_gradient(case, place, x, g, check_dtypes) -> None:
    if check_dtypes and g.dtype != _array(x).dtype:
        raise GradcheckError(
            f"Gradient has dtype mismatch: input {case.places[place]} is {_array(x).dtype}, it is {g.dtype}"
        )


def _check_repeatable(first, second, tolerance) -> None:
    for i, (a, b) in enumerate(zip(first, second)):
        if a.size and np.max(np.abs(a - b)) > tolerance:
            raise GradcheckError(
                f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                f"gives "
                f"different values, although analytical gradient matches numerical gradient (input {i}). The tolerance "
                f"for nondeterminism was {tolerance}."
            )


def _check_batched(case) -> None:
    for index, output in enumerate(case.outputs):
        generator = np.random.default_rng(1)
        rows = np.stack([_random(generator, output) for _ in range(2)])
        together = grad(output, case.wanted, wrap(rows), retain_graph=True, allow_unused=True, is_grads_batched=True)
        for k, row in enumerate(rows):
            for one, all_rows in zip(case.vjp(index, row), together):
                if all_rows is not None and not np.allclose(one, _array(all_rows)[k]):
                    raise GradcheckError(
                        "A gradient computed in a batch differs from the same gradient computed alone."
                    )


def _check_batched_tangents(case, index) -> None:
    for place, x in enumerate(case.wanted):
        generator = np.random.default_rng(place)
        ways = np.stack([_random(generator, x) for _ in range(2)])
        level = Vmap(2, "error")
        with intercepting(level), Tangents() as tangents:
            given = list(case.inputs)
            given[case.places[place]] = x.detach()
            tangents.give(given[case.places[place]], level.enter(wrap(ways), 0))
            result = _tuple(case.func(*given))[case.chosen[index]]
            found = tangents.of(result)
            together = None if found is None else _array(level.leave(found.detach(), 0))
        for k, way in enumerate(ways):
            alone = case.jvp(index, [way if i == place else None for i in range(len(case.wanted))])
            if together is not None and not np.allclose(alone, together[k]):
                raise GradcheckError("A tangent computed in a batch differs from the same tangent computed alone.")


def _check_undefined(case) -> None:
    """Functions must cope with a gradient that never arrives at some of their outputs."""
    if len(case.outputs) < 2:
        return
    for index in range(len(case.outputs)):
        value = _array(case.outputs[index])
        for g in case.vjp(index, np.zeros_like(value)):
            if np.any(g):
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads: zero in gave non-zero out."
                )


def _check_precision(index, t) -> None:
    if t.dtype.itemsize < (16 if t.dtype.is_complex else 8):
        warn_user(
            f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
            f"will "
            "likely fail if all the inputs are not of double precision floating point or complex."
        )


def _mismatch(case, index, place, position, analytic, numeric) -> str:
    worst = np.unravel_index(np.argmax(np.abs(analytic - numeric)), analytic.shape) if analytic.ndim else ()
    return (
        f"Jacobian mismatch for output {case.chosen[index]} with respect to input {case.places[place]},\n"
        f"numerical:{numeric}\nanalytical:{analytic}\n"
        f"These are the gradients of output element {position}; they differ most at input element "
        f"{tuple(int(i) for i in worst)}: {numeric[worst]} by finite differences, {analytic[worst]} by backward."
    )


def _wants_grad(t) -> bool:
    return isinstance(t, Tensor) and t.requires_grad


def _tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _array(t) -> np.ndarray:
    t._sync()
    return np.asarray(t._array)


def _put(x, position, value) -> None:
    """Write into the input's memory unseen by autograd: the point moves, the graph stays."""
    from .views import put

    array = _array(x).copy()
    array[position] = value
    with no_grad():
        put(x, array)
        x._storage.version -= 1


def _random(generator, t) -> np.ndarray:
    values = generator.uniform(-1, 1, t.shape)
    if t.dtype.is_complex:
        values = values + 1j * generator.uniform(-1, 1, t.shape)
    return np.asarray(values, dtype=t.dtype.numpy)


def _unit(v):
    norm = np.linalg.norm(v.reshape(-1))
    return v / norm if norm else v
