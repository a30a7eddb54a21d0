"""``torch.library.opcheck``: does an operator of a program's own do what its registration says?

An operator that writes to what its schema calls read-only, whose fake kernel gives another shape, or that lacks a
gradient runs well by itself, and is wrong later: when something is saved for backward, on the meta device, in training.
"""

from __future__ import annotations

from typing import Any

from . import testing
from .autograd.mode import enable_grad, no_grad
from .tensor import Tensor
from .utils._pytree import tree_leaves, tree_map

CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
_KNOWN = (*CHECKS[:3], "test_aot_dispatch_static", CHECKS[3])


class OpCheckError(Exception):
    """An operator does not do what its registration says."""


class MetadataMismatchError(Exception):
    """A fake kernel's result has another shape or dtype than the real one's."""


def opcheck(op, args, kwargs, test_utils, raise_exception: bool) -> dict:
    """{name of a check: "SUCCESS" or the error}."""
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(wanted) <= set(_KNOWN):
        raise ValueError(
            f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of {_KNOWN} but it was not"
        )
    results: dict[str, Any] = {}
    for name in wanted:
        try:
            _BODIES[name](op, *_copied(args, kwargs))
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                message = f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                raise OpCheckError(message) from error
            results[name] = error
    return results


def _copied(args, kwargs) -> tuple:
    """The arguments with tensors of their own, so that no check spoils the next one's."""

    def copy(value):
        return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value

    return tree_map(copy, (tuple(args), dict(kwargs or {})))


def _schema(op, args, kwargs) -> None:
    """Only what the schema says is written."""
    named = {a.name: value for a, value in zip(op._schema.arguments, args)} | kwargs
    before = {name: _copied((value,), {})[0] for name, value in named.items()}
    with no_grad():
        op(*args, **kwargs)
    for a in op._schema.arguments:
        if a.name in named and not a.is_write and not _same(named[a.name], before[a.name][0]):
            raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")


def _same(value, before) -> bool:
    try:
        testing.assert_close(value, before, rtol=0, atol=0, equal_nan=True)
    except AssertionError:
        return False
    except TypeError:  # nothing that holds numbers
        return True
    return True


def _autograd(op, args, kwargs) -> None:
    """That a result which should have a gradient is part of the graph: every operator here goes through autograd."""
    with enable_grad():
        outputs = [t for t in tree_leaves(op(*args, **kwargs)) if isinstance(t, Tensor) and t.is_floating_point()]
    asked = any(isinstance(t, Tensor) and t.requires_grad for t in tree_leaves((args, kwargs)))
    if asked and outputs and not any(t.requires_grad for t in outputs):
        raise RuntimeError(f"{op}: an argument requires a gradient, but no result is part of the graph")


def _fake(op, args, kwargs) -> list:
    """The fake kernel's results."""
    args, kwargs = tree_map(lambda t: t.to("meta") if isinstance(t, Tensor) else t, (args, kwargs))
    with no_grad():
        return [t for t in tree_leaves(op(*args, **kwargs)) if isinstance(t, Tensor)]


def _faketensor(op, args, kwargs) -> None:
    """The fake kernel's results look like the real ones."""
    fake = _fake(op, args, kwargs)
    with no_grad():
        real = [t for t in tree_leaves(op(*args, **kwargs)) if isinstance(t, Tensor)]
    for ours, theirs in zip(real, fake):
        for what, a, b in (("Shapes", ours.shape, theirs.shape), ("Dtypes", ours.dtype, theirs.dtype)):
            if a != b:
                raise MetadataMismatchError(
                    f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched tensor "
                    f"metadata: {what} {a} and {b} are not equal!"
                )


def _dispatch(op, args, kwargs) -> None:
    """There is a fake kernel, and a gradient where one is asked for."""
    _fake(op, args, kwargs)
    with enable_grad():
        outputs = [t for t in tree_leaves(op(*args, **kwargs)) if isinstance(t, Tensor) and t.requires_grad]
        if outputs:
            sum(t.sum() for t in outputs).backward()  # type: ignore[union-attr]


_BODIES = dict(zip(_KNOWN, (_schema, _autograd, _faketensor, _dispatch, _dispatch)))
