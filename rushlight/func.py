"""Function transforms: ``grad``, ``vjp``, ``jacrev`` and friends take a function and return one."""

from __future__ import annotations

import functools

from .autograd import functional
from .autograd.grad import grad as _grad
from .autograd.mode import carry, enable_grad
from .autograd.registry import differentiable
from .autograd.tangents import Tangents, outside, zeros_like
from .ops.public import PUBLIC
from .random import default_generator
from .tensor import Tensor

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __dir__():
    return __all__


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
            out = func(*args, **kwargs)
            value, aux = out if has_aux else (out, None)
            if not isinstance(value, Tensor) or value.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got "
                    + (f"tensor with {value.ndim} dims" if isinstance(value, Tensor) else f"{type(value)}")
                    + ". Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            leaves = list(_leaves(points))
            grads = iter(_close(_differentiate(value, leaves), leaves))
            gradient = _rebuild(chosen, grads)
            (value,) = _close([value], leaves)
            aux = _map(lambda t: _close([t], leaves)[0], aux)
        return gradient, ((value, aux) if has_aux else value)

    return wrapped


def vjp(func, *primals, has_aux=False):
    """``(func(*primals), f)`` where ``f(v)`` is ``vᵀ J`` for each of the primals."""
    with enable_grad():
        chosen, points, args = _fresh(primals, tuple(range(len(primals))))
        out = func(*args)
        out, aux = _split(out, has_aux, "vjp(f, *primals)")
        _check_outputs(out, "vjp(f, *primals)")
    leaves, outputs = list(_leaves(points)), list(_leaves(out))

    def pull(*cotangents):
        v = list(_leaves(cotangents if len(cotangents) > 1 else cotangents[0]))
        with enable_grad():
            grads = _grad(outputs, leaves, v, create_graph=True, allow_unused=True, materialize_grads=True)
        return _rebuild(chosen, iter(_close(list(grads), leaves)))

    result = _rebuild(out, iter(_close(outputs, leaves)))
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
        out = func(*points)
        out, aux = _split(out, has_aux, "jvp(f, primals, tangents)")
        _check_outputs(out, "jvp(f, primals, tangents)")
        result = _map(functools.partial(_primal, level), out), _map(functools.partial(_tangent, level, strict), out)
        aux = _map(functools.partial(_primal, level), aux)
    return (*result, aux) if has_aux else result


def _check_pairs(primals, tangents) -> None:
    from .utils._pytree import tree_flatten

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
    from .utils._pytree import tree_flatten

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
        u = [zeros_like(t).requires_grad_() for t in outputs]
        live = [i for i, t in enumerate(outputs) if t.requires_grad]
        rows = _grad([outputs[i] for i in live], leaves, [u[i] for i in live], create_graph=True, allow_unused=True)

    def push(*tangents):
        given = list(_leaves(tangents))
        pairs = [(r, t) for r, t in zip(rows, given) if r is not None and r.requires_grad]
        columns = _grad([r for r, _ in pairs], u, [t for _, t in pairs], retain_graph=True, allow_unused=True)
        return _rebuild(out, iter([zeros_like(t) if c is None else c for c, t in zip(columns, outputs)]))

    return _rebuild(out, iter([t.detach() for t in outputs])), push


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that computes the Jacobian of ``func`` with respect to its ``argnums``-th argument(s)."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        several = isinstance(argnums, tuple)
        places = argnums if several else (argnums,)
        kept = []

        def of_chosen(*points):
            full = list(args)
            for place, point in zip(places, points):
                full[place] = point
            out = func(*full, **kwargs)
            if has_aux:
                kept.append(out[1])
                return out[0]
            return out

        points = tuple(args[i] for i in places)
        jacobian = functional.jacobian(of_chosen, points if several else points[0], create_graph=_any_graph(points))
        return (jacobian, kept[0]) if has_aux else jacobian

    return wrapped


jacfwd = jacrev  # forward mode gives the same numbers; rushlight has only the reverse one


def hessian(func, argnums=0):
    """A function that computes the Hessian of the scalar ``func``."""
    return jacrev(jacrev(func, argnums), argnums)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps ``func`` over a dimension of its arguments and stacks the results.

    >>> rushlight.vmap(rushlight.dot)(rushlight.ones(2, 3), rushlight.ones(2, 3))
    tensor([3., 3.])

    Differs from PyTorch: ``func`` is called for one slice after the other, so ``.item()`` and branches on values work,
    random numbers are allowed and differ unless ``randomness="same"``, and time grows with the number of slices.
    """
    name = getattr(func, "__name__", repr(func))

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
        mapped = _mapped(args, in_dims, call, name)
        state = default_generator.get_state() if randomness == "same" else None
        results = []
        for i in range(_common_size(mapped)):
            if state is not None:
                default_generator.set_state(state)
            parts = iter([t if dim is None else t.select(dim, i) for t, dim in mapped])
            keywords = {k: _map(functools.partial(_slice, i), v) for k, v in kwargs.items()}
            results.append(func(*_rebuild_all(args, parts), **keywords))
        return _stacked(results, out_dims, name)

    return wrapped


def _mapped(args, in_dims, call, name):
    """(leaf, its mapped dimension or None) for every leaf of the arguments, in order."""
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    found = list(_spread(args, in_dims, call))
    for leaf, dim in found:
        if dim is not None and not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so "
                f"expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
    if all(dim is None for _, dim in found):
        raise ValueError(f"{call}: at least one input must be mapped over: in_dims has no number")
    return found


def _spread(tree, dims, call):
    """The leaves of ``tree``, each with its entry of ``dims``; one entry may stand for a whole branch."""
    if isinstance(tree, (tuple, list, dict)):
        branches = list(tree.values()) if isinstance(tree, dict) else tree
        if isinstance(dims, (tuple, list, dict)):
            dims = list(dims.values()) if isinstance(dims, dict) else dims
            if len(dims) != len(branches):
                raise ValueError(
                    f"{call}: in_dims is not compatible with the structure of `inputs`: {len(dims)} entries for "
                    f"{len(branches)} inputs"
                )
        else:
            dims = [dims] * len(branches)
        for branch, dim in zip(branches, dims):
            yield from _spread(branch, dim, call)
    else:
        yield tree, dims


def _common_size(mapped) -> int:
    sizes = [t.shape[dim] for t, dim in mapped if dim is not None]
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _slice(i, t):
    return t.select(0, i)


def _rebuild_all(tree, values):
    """Like ``_rebuild``, of all leaves and not only the tensors."""
    if isinstance(tree, dict):
        return {k: _rebuild_all(v, values) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)([_rebuild_all(v, values) for v in tree])
    return next(values)


def _stacked(results, dims, name):
    first = results[0]
    if isinstance(first, dict):
        return {k: _stacked([r[k] for r in results], dims[k] if isinstance(dims, dict) else dims, name) for k in first}
    if isinstance(first, (tuple, list)):
        dims = dims if isinstance(dims, (tuple, list)) else [dims] * len(first)
        return type(first)([_stacked([r[i] for r in results], dims[i], name) for i in range(len(first))])
    if dims is None:
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    return PUBLIC["stack"](results, dims)


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with some of its parameters and buffers replaced."""
    from .nn.utils.stateless import _functional_call

    dicts = parameter_and_buffer_dicts
    merged = dicts if isinstance(dicts, dict) else {k: v for d in dicts for k, v in d.items()}
    return _functional_call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """The parameters, and the buffers, of several models of one class, each stacked along a new first dimension."""
    from .ops import stack

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = [dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]
    stacked = {name: stack([p[name] for p in parameters]).detach() for name in parameters[0]}
    for name, first in parameters[0].items():
        stacked[name].requires_grad_(first.requires_grad)
    return stacked, {name: stack([b[name] for b in buffers]).detach() for name in buffers[0]}


def _fresh(args, argnums):
    """(the chosen arguments' structure, fresh tensors in it, all arguments with them in place)."""
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    args = list(args)
    for i in places:
        args[i] = _map(_alias, args[i])
    chosen = tuple(args[i] for i in places)
    structure = chosen if isinstance(argnums, tuple) else chosen[0]
    return structure, chosen, args


def _alias(t):
    return t.view_as(t) if t.requires_grad else carry(t, t.detach().requires_grad_())


def _differentiate(value, leaves):
    if not value.requires_grad:
        return [t.detach() * 0 for t in leaves]
    return list(_grad(value, leaves, create_graph=True, allow_unused=True, materialize_grads=True))


def _close(tensors, leaves):
    """Cut results off the graph unless it reaches something that is not this transform's own."""
    own = {t._node for t in leaves if t.is_leaf}
    return [t if _reaches_beyond(t, own) else carry(t, t.detach()) for t in tensors]


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


def _any_graph(tree) -> bool:
    return any(t.requires_grad for t in _leaves(tree))


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
