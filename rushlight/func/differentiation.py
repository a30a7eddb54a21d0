"""Derivatives of functions as functions: ``grad``, ``vjp``, ``jvp``, ``jacrev``, ``jacfwd``, ``hessian``."""

from __future__ import annotations

import functools
import math

from ..autograd.batching import unit_vectors
from ..autograd.grad import grad as _grad
from ..autograd.mode import carry, enable_grad, fresh, levels, transforming
from ..autograd.registry import differentiable
from ..autograd.tangents import Tangents, outside, zeros_like
from ..tensor import Tensor
from .mapping import vmap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def grad(func, argnums=0, has_aux=False):
    """A function that computes the gradient of the scalar ``func`` with respect to its ``argnums``-th argument(s).

    >>> rushlight.func.grad(lambda x: (x * x).sum())(rushlight.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def grad_and_value(func, argnums=0, has_aux=False):
    """Like ``grad``; the function returns ``(gradient, value)``."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with enable_grad():
            chosen, points, args = _fresh(args, argnums)
            with _tracking(points):
                out = func(*args, **kwargs)
            value, aux = out if has_aux else (out, None)
            _check_scalar(value)
            leaves = list(_leaves(points))
            grads = iter(_close(_differentiate(value, leaves), leaves))
            gradient = _rebuild(chosen, grads)
            (value,) = _close([value], leaves)
            aux = _map(lambda t: _close([t], leaves)[0], aux)
        return gradient, ((value, aux) if has_aux else value)

    return wrapped


def _check_scalar(value) -> None:
    call = "grad_and_value(f)(*args): Expected f(*args) to return a"
    if not isinstance(value, Tensor):
        raise RuntimeError(f"{call} Tensor, got {type(value)}")
    if value.ndim:
        raise RuntimeError(
            f"{call} scalar Tensor, got tensor with {value.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
            "instead?"
        )


def vjp(func, *primals, has_aux=False):
    """``(func(*primals), f)`` where ``f(v)`` is ``vᵀ J`` for each of the primals."""
    with enable_grad():
        chosen, points, args = _fresh(primals, tuple(range(len(primals))))
        with _tracking(points):
            out = func(*args)
        out, aux = _split(out, has_aux, "vjp(f, *primals)")
        _check_outputs(out, "vjp(f, *primals)")
    leaves, outputs = list(_leaves(points)), list(_leaves(out))

    def pull(*cotangents):
        v = list(_leaves(cotangents if len(cotangents) > 1 else cotangents[0]))
        moved = [(y, g) for y, g in zip(outputs, v) if y.requires_grad]  # others are the same whatever the primals are
        with enable_grad():
            graph = _is_recorded([*outputs, *v], leaves)
            grads = [zeros_like(t) for t in leaves]
            if moved:
                ys, gs = zip(*moved)
                grads = _grad(ys, leaves, gs, retain_graph=True, create_graph=graph, allow_unused=True,
                              materialize_grads=True)  # fmt: skip
        return _rebuild(chosen, iter(_close(list(grads), leaves)))

    result = _rebuild(out, iter(_close(outputs, leaves)))
    aux = _map(lambda t: _close([t], leaves)[0], aux)
    return (result, pull, aux) if has_aux else (result, pull)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """``(func(*primals), J tangents)``, by forward mode.

    >>> rushlight.func.jvp(rushlight.sin, (rushlight.zeros(2),), (rushlight.ones(2),))
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    _check_pairs(primals, tangents)
    with Tangents() as level:
        with outside(level):
            points = _map(differentiable.alias, primals)
        for point, tangent in zip(_leaves(points), _leaves(tangents)):
            level.give(point, tangent)
        with transforming(level):
            out = func(*points)
        out, aux = _split(out, has_aux, "jvp(f, primals, tangents)")
        _check_outputs(out, "jvp(f, primals, tangents)")
        result = _map(functools.partial(_primal, level), out), _map(functools.partial(_tangent, level, strict), out)
        aux = _map(functools.partial(_primal, level), aux)
    return (*result, aux) if has_aux else result


def _check_pairs(primals, tangents) -> None:
    from ..utils._pytree import tree_flatten

    call = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    points, structure = tree_flatten(primals)
    directions, given = tree_flatten(tangents)
    if structure != given:
        raise RuntimeError(
            f"{call}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with "
            f"structure {given}"
        )
    if not points:
        raise RuntimeError(f"{call}: Expected primals to contain at least one Tensor.")
    for what, values in (("primals", points), ("tangents", directions)):
        for t in values:
            if not isinstance(t, Tensor):
                raise RuntimeError(f"{call}: Expected {what} to only contain Tensors, got {type(t)}")
    for point, direction in zip(points, directions):
        for what, t in (("primal", point), ("tangent", direction)):
            if not (t.dtype.is_floating_point or t.dtype.is_complex):
                raise ValueError(f"Expected {what} to be floating point or complex, but got: {t.dtype}")
        if point.shape != direction.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(point.shape)} while the given forward gradient is of size "
                f"{list(direction.shape)}."
            )


def _split(out, has_aux, call):
    """The result of a function and its aux, if it has one."""
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return out


def _check_outputs(out, call, primals="primals") -> None:
    from ..utils._pytree import tree_flatten

    leaves = tree_flatten(out)[0]
    if not leaves:
        raise RuntimeError(f"{call}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*{primals}) to return only tensors, got unsupported type {type(leaf)}"
            )


def _primal(level, t):
    with outside(level):
        return differentiable.alias(t)


def _tangent(level, strict, t):
    found = level.of(t)
    if found is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    return zeros_like(t) if found is None else found


def linearize(func, *primals):
    """``(func(*primals), f)`` where ``f(*tangents)`` is ``J tangents``; ``func`` is called once.

    >>> _, f = rushlight.func.linearize(rushlight.sin, rushlight.zeros(2))
    >>> f(rushlight.ones(2))
    tensor([1., 1.])
    """
    with enable_grad():
        _, points, args = _fresh(primals, tuple(range(len(primals))))
        out = func(*args)
        _check_outputs(out, "linearize(f, *primals)")
        leaves, outputs = list(_leaves(points)), list(_leaves(out))
        u = [fresh(zeros_like(t)).requires_grad_() for t in outputs]
        live = [i for i, t in enumerate(outputs) if t.requires_grad]
        rows = _grad([outputs[i] for i in live], leaves, [u[i] for i in live], create_graph=True, allow_unused=True)

    def push(*tangents):
        given = list(_leaves(tangents))
        pairs = [(r, t) for r, t in zip(rows, given) if r is not None and r.requires_grad]
        columns = _grad([r for r, _ in pairs], u, [t for _, t in pairs], retain_graph=True, allow_unused=True)
        return _rebuild(out, iter([zeros_like(t) if c is None else c for c, t in zip(columns, outputs)]))

    return _rebuild(out, iter([t.detach() for t in outputs])), push


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that computes the Jacobian of ``func`` by its ``argnums``-th argument(s), row by row.

    One backward pass gives a row; ``vmap`` runs all of them at once, or ``chunk_size`` at a time.

    >>> rushlight.func.jacrev(rushlight.sin)(rushlight.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        points, of_points = _at_points(func, args, kwargs, argnums)
        out, pull, *aux = vjp(of_points, *points, has_aux=has_aux)
        outputs = list(_leaves(out))
        rows = vmap(lambda *v: pull(_rebuild(out, iter(v))), chunk_size=chunk_size)(*unit_vectors(outputs))
        made = [_map(functools.partial(_rows_of, i, outputs), rows) for i in range(len(outputs))]
        made = [m if isinstance(argnums, tuple) else m[0] for m in made]
        jacobian = _rebuild(out, iter(made))
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapped


def jacfwd(func, argnums=0, has_aux=False, *, chunk_size=None, randomness="error"):
    """A function that computes the Jacobian of ``func`` by its ``argnums``-th argument(s), column by column.

    One run of ``jvp`` gives a column; ``vmap`` runs all of them at once, or ``chunk_size`` at a time.

    >>> rushlight.func.jacfwd(rushlight.sin)(rushlight.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        points, of_points = _at_points(func, args, kwargs, argnums)
        inputs = list(_leaves(points))

        def push(*directions):
            _out, tangent, *aux = jvp(of_points, points, _rebuild(points, iter(directions)), has_aux=has_aux)
            return tangent, *aux

        basis = unit_vectors(inputs)
        columns, *aux = vmap(push, out_dims=(-1, None) if has_aux else (-1,), randomness=randomness,
                             chunk_size=chunk_size)(*basis)  # fmt: skip
        split = functools.partial(_columns_of, points, inputs, isinstance(argnums, tuple))
        jacobian = _rebuild(columns, iter([split(t) for t in _leaves(columns)]))
        return (jacobian, aux[0]) if has_aux else jacobian

    return wrapped


def hessian(func, argnums=0):
    """A function that computes the Hessian of the scalar ``func``: forward mode over a backward pass.

    >>> rushlight.func.hessian(lambda x: (x**3).sum())(rushlight.ones(2))
    tensor([[6., 0.],
            [0., 6.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def _at_points(func, args, kwargs, argnums):
    """(the chosen arguments, ``func`` as a function of them alone)."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    if not args:
        raise RuntimeError("jacobian of a function: it was called without arguments to differentiate by")
    for i in places:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")

    def of_points(*points):
        full = list(args)
        for place, point in zip(places, points):
            full[place] = point
        return func(*full, **kwargs)

    return tuple(args[i] for i in places), of_points


def _rows_of(index, outputs, rows):
    """Of all rows those of one output, in its shape."""
    counts = [math.prod(t.shape) for t in outputs]
    start = sum(counts[:index])
    part = rows if len(outputs) == 1 else rows[start : start + counts[index]]
    return part.reshape((*outputs[index].shape, *rows.shape[1:]))


def _columns_of(points, inputs, several, columns):
    """All columns of one output, apart by inputs, each in its input's shape."""
    counts = [math.prod(t.shape) for t in inputs]
    parts, start = [], 0
    for t, count in zip(inputs, counts):
        part = columns if len(inputs) == 1 else columns[..., start : start + count]
        parts.append(part.reshape((*columns.shape[:-1], *t.shape)))
        start += count
    made = _rebuild(points, iter(parts))
    return made if several else made[0]


def _fresh(args, argnums):
    """(the chosen arguments' structure, fresh tensors in it, all arguments with them in place)."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    args = list(args)
    for i in places:
        args[i] = _map(_alias, args[i])
    chosen = tuple(args[i] for i in places)
    structure = chosen if isinstance(argnums, tuple) else chosen[0]
    return structure, chosen, args


def _tracking(points):
    return transforming(frozenset([t._node for t in _leaves(points)]))


def _alias(t):
    return t.view_as(t) if t.requires_grad else carry(t, fresh(t).requires_grad_())


def _differentiate(value, leaves):
    if not value.requires_grad:
        return [zeros_like(t) for t in leaves]
    graph = _is_recorded([value], leaves)
    return list(_grad(value, leaves, create_graph=graph, allow_unused=True, materialize_grads=True))


def _is_recorded(tensors, leaves) -> bool:
    """Must a backward pass from ``tensors`` to ``leaves`` be part of a graph that others differentiate?"""
    own = {t._node for t in leaves if t.is_leaf}
    return bool(levels()) or any(_reaches_beyond(t, own) for t in tensors)


def _close(tensors, leaves):
    """Cut results off the graph unless it reaches something that is not this transform's own."""
    own = {t._node for t in leaves if t.is_leaf}
    return [_cut(t, own) for t in tensors]


def _cut(t, own):
    if _reaches_beyond(t, own):
        return t
    made = t.detach()
    for level, tangent in t.__dict__.get("_tangents", {}).items():
        level.give(made, _cut(tangent, own))
    return made


def _reaches_beyond(t, own) -> bool:
    if not t.requires_grad:
        return False
    stack, seen = [t._node], set()
    while stack:
        node = stack.pop()
        if node in seen or node in own:
            continue
        seen.add(node)
        edges = [e for e in node.edges if e is not None]
        if not edges:
            return True
        stack.extend(edges)
    return False


def _leaves(tree):
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _leaves(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from _leaves(value)


def _map(function, tree):
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {k: _map(function, v) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(_map(function, v) for v in tree)
    return tree


def _rebuild(tree, values):
    return _map(lambda _: next(values), tree)
