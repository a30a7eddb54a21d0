"""``vmap``: a function of one example becomes one of many, run once."""

from __future__ import annotations

import functools

from ..autograd import mode, views
from ..autograd.batching import LEVELS, Vmap
from ..engine import batched_engine
from ..tensor import Tensor, wrap

__all__ = ["sliced", "vmap"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps ``func`` over a dimension of its arguments and stacks the results.

    >>> rushlight.vmap(rushlight.dot)(rushlight.ones(2, 3), rushlight.ones(2, 3))
    tensor([3., 3.])

    ``func`` runs once, each operator on all examples. ``chunk_size`` limits how many at a time. Random numbers are an
    error, the "same" for all examples, or "different".
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = _get_name(func)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
        mapped = _mapped(args, in_dims, call, name)
        size = _common_size(mapped)
        if chunk_size is None or chunk_size >= size:
            return _run(func, args, kwargs, mapped, size, out_dims, randomness, name)
        found = []
        for start in range(0, size, chunk_size):
            part = [_part(t, dim, start, start + chunk_size) for t, dim in mapped]
            count = min(chunk_size, size - start)
            found.append(_run(func, args, kwargs, part, count, out_dims, randomness, name))
        return _chained(found, out_dims)

    return wrapped


def sliced() -> dict:
    """What ``vmap`` has run slice by slice so far for want of a batching rule: counts by name."""
    return dict(batched_engine().SLICED)


def _run(func, args, kwargs, mapped, size, out_dims, randomness, name):
    level = Vmap(size, randomness)
    with mode.intercepting(level), mode.transforming(level):
        entered = [t if dim is None else _entered(t, dim, level) for t, dim in mapped]
        result = func(*_rebuild(args, iter(entered)), **kwargs)
    level.close()
    for (t, dim), inner in zip(mapped, entered):
        if dim is not None and isinstance(t, Tensor) and inner._storage is not None and inner._storage.version:
            views.check_writable(t)
            views.assign(t, level.leave(inner, dim))
    return _left(result, out_dims, level, name, (out_dims, result))


def _entered(t, dim, level):
    """What each example sees; collections of tensors, as tensordict's, know themselves what that is."""
    return level.enter(t, dim) if isinstance(t, Tensor) else t._add_batch_dim(in_dim=dim, vmap_level=level.depth)


def _left(result, dims, level, name, whole):
    """The results of all examples; ``dims`` may be one number for a whole branch."""
    if isinstance(result, Tensor):
        if dims is None:
            if level._below(result._array)[0]:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            return level.collapse(result) / level.size if level.holds(result._array) else result
        if isinstance(dims, (tuple, list)) and len(dims) == 1:
            dims = dims[0]
        return level.leave(result, _checked_out_dim(result, dims, name))
    if hasattr(result, "_maybe_remove_batch_dim"):
        return result._maybe_remove_batch_dim(name, vmap_level=level.depth, batch_size=level.size, out_dim=dims)
    if isinstance(result, dict):
        named = dims if isinstance(dims, dict) else dict.fromkeys(result, dims)
        return {k: _left(v, named[k], level, name, whole) for k, v in result.items()}
    if isinstance(result, (tuple, list)):
        if isinstance(dims, (tuple, list)):
            if len(dims) != len(result):
                raise ValueError(_incompatible_out(name, *whole))
        else:
            dims = [dims] * len(result)
        parts = [_left(v, d, level, name, whole) for v, d in zip(result, dims)]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if dims is None:
        return result
    raise ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)}. Did you mean to set out_dims= "
        "to None for output?"
    )


def _checked_out_dim(t, dim, name) -> int:
    if not isinstance(dim, int) or not -t.ndim - 1 <= dim <= t.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-t.ndim - 1}, {t.ndim}], but got {dim})"
        )
    return dim if dim >= 0 else dim + t.ndim + 1


def _mapped(args, in_dims, call, name):
    """(leaf, its mapped dimension or None) for every leaf of the arguments, in order."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    found = list(_spread(args, in_dims, call, (args, in_dims)))
    for leaf, dim in found:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if dim is not None and not (isinstance(leaf, Tensor) or hasattr(leaf, "_add_batch_dim")):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so "
                f"expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
    return found


def _spread(tree, dims, call, whole):
    """The leaves of ``tree``, each with its entry of ``dims``; one entry may stand for a whole branch."""
    if isinstance(tree, (tuple, list, dict)):
        branches = list(tree.values()) if isinstance(tree, dict) else tree
        if isinstance(dims, (tuple, list, dict)):
            if isinstance(dims, dict):
                dims = [dims[k] for k in tree] if isinstance(tree, dict) and dims.keys() == tree.keys() else ()
            if len(dims) != len(branches):
                raise ValueError(_incompatible(call, *whole))
        else:
            dims = [dims] * len(branches)
        for branch, dim in zip(branches, dims):
            yield from _spread(branch, dim, call, whole)
    elif isinstance(dims, (tuple, list, dict)):
        raise ValueError(_incompatible(call, *whole))
    else:
        yield tree, dims


def _incompatible_out(name, out_dims, result) -> str:
    from ..utils._pytree import tree_flatten

    have, want = tree_flatten(out_dims)[1], tree_flatten(result)[1]
    return (
        f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
        f"`outputs`. out_dims has structure {have} but outputs has structure {want}."
    )


def _incompatible(call, args, in_dims) -> str:
    from ..utils._pytree import tree_flatten

    return (
        f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
        f"{tree_flatten(in_dims)[1]} but inputs has structure {tree_flatten(args)[1]}."
    )


def _common_size(mapped) -> int:
    sizes = [t.shape[dim] for t, dim in mapped if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]


def _part(t, dim, start, stop):
    return (t, None) if dim is None else (t.narrow(dim, start, min(stop, t.shape[dim]) - start), dim)


def _chained(found, dims):
    """The results of several runs as one."""
    from ..ops import cat

    first = found[0]
    if isinstance(first, dict):
        return {k: _chained([f[k] for f in found], dims[k] if isinstance(dims, dict) else dims) for k in first}
    if isinstance(first, (tuple, list)):
        dims = dims if isinstance(dims, (tuple, list)) else [dims] * len(first)
        return type(first)([_chained([f[i] for f in found], dims[i]) for i in range(len(first))])
    if dims is None or not isinstance(first, Tensor):
        return first
    return cat(found, dims[0] if isinstance(dims, (tuple, list)) else dims)


def _rebuild(tree, values):
    """``tree`` with ``values`` in the place of its leaves."""
    if isinstance(tree, dict):
        return {k: _rebuild(v, values) for k, v in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [_rebuild(v, values) for v in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return next(values)


# -- what collections of tensors call, by PyTorch's names: a level goes by its number --------------------------------


def _add_batch_dim(t: Tensor, dim: int, level: int) -> Tensor:
    return LEVELS[level].enter(t, dim)


def _remove_batch_dim(t: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    return LEVELS[level].leave(t, out_dim)


def _maybe_remove_batch_dim(name: str, t, level: int, batch_size: int, out_dim):
    return _left(t, out_dim, LEVELS[level], name, (out_dim, t))


def _get_name(func) -> str:
    return getattr(func, "__name__", repr(func))


def is_batchedtensor(t: Tensor) -> bool:
    return t._array.__class__ is batched_engine().Batched


def get_unwrapped(t: Tensor) -> Tensor:
    """The tensor below: with all examples of the innermost level in it."""
    return wrap(t._array.inner) if is_batchedtensor(t) else t
