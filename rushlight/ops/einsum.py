"""``einsum``: a sum of products written as labels, contracted pair by pair with batched matrix products."""

from __future__ import annotations

import functools
import string

from ..autograd import overriding
from ..autograd.op import differentiable as xp
from .linalg import matmul
from .public import public
from .reduce import sum_

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # what the numbers of the sublist format stand for


def _asked_without_a_list(f):
    """Whoever overrides ``f`` is asked with the operands one by one, as in PyTorch, also where they came in a list."""

    @functools.wraps(f)
    def called(*args):
        if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
            args = (args[0], *args[1])
        if overriding.watching:
            return overriding.ask(called, f, args, {})
        try:
            return f(*args)
        except Exception:
            return overriding.ask_strangers(called, args, {})

    called.asks = called
    return called


@public(method=False, out=False)
@_asked_without_a_list
def einsum(*args):
    """The sum of products that an equation names: ``einsum("ij,jk->ik", a, b)``, or ``einsum(a, [0, 1], b, [1, 2])``.

    >>> import rushlight as torch
    >>> torch.einsum("ii", torch.ones(3, 3))
    tensor(3.)
    """
    equation, operands = _from_sublists(args) if not isinstance(args[0], str) else (args[0], args[1:])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output = _parse(equation, operands)
    _check_sizes(inputs, operands)
    terms = [_without_repeats(labels, t, i) for i, (labels, t) in enumerate(zip(inputs, operands))]
    labels, result = terms[0]
    for i, (other_labels, other) in enumerate(terms[1:], 1):
        later = set(output).union(*(names for names, _ in terms[i + 1 :]))
        labels, result = _contract(labels, result, other_labels, other, later)
    labels, result = _summed(labels, result, set(output))
    order = tuple(labels.index(label) for label in output)
    if len(terms) > 1 and order == tuple(range(len(order))):
        return result
    return xp.transpose(result, axes=order)


def _from_sublists(args):
    operands, lists, output = list(args[0::2]), list(args[1::2]), None
    if len(args) % 2:
        output = operands.pop()
    text = ",".join(_letters(x) for x in lists)
    return (text if output is None else f"{text}->{_letters(output)}"), operands


def _letters(sublist) -> str:
    for x in sublist:
        if x is not Ellipsis and not 0 <= x < 52:
            raise RuntimeError(f"einsum(): subscript in subscript list is not within the valid range [0, 52): {x}")
    return "".join("..." if x is Ellipsis else _LETTERS[x] for x in sublist)


def _parse(equation, operands):
    """The labels of every operand and of the result; an ellipsis becomes as many number labels as it stands for."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        few = "more" if len(operands) > len(parts) else "fewer"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation")
    covered = [_covered(i, part, t) for i, (part, t) in enumerate(zip(parts, operands))]
    widest = max(covered)
    inputs = [_expand(part, n, widest) for part, n in zip(parts, covered)]
    if arrow:
        output = _expand(right, widest, widest)
        for label in output:
            if isinstance(label, str) and not any(label in labels for labels in inputs):
                raise RuntimeError(
                    f"einsum(): output subscript {label} does not appear in the equation for any input operand"
                )
            if output.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        return inputs, output
    seen = [label for labels in inputs for label in labels if isinstance(label, str)]
    return inputs, [*range(widest), *sorted(label for label in set(seen) if seen.count(label) == 1)]


def _covered(i, part, t) -> int:
    """How many dimensions the ellipsis of one operand stands for."""
    names = part.replace("...", "", 1)
    for c in names:
        if c not in _LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {part.index(c)} in the equation string, subscripts must "
                "be in [a-zA-Z]"
            )
    n = t.ndim - len(names)
    if n < 0 or ("..." not in part and n):
        hint = " and no ellipsis was given" if "..." not in part else ""
        relation = "does not match" if not n < 0 or "..." not in part else "is greater than"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(names)}) {relation} the number of dimensions "
            f"({t.ndim}) for operand {i}{hint}"
        )
    return n


def _expand(part, n, widest) -> list:
    before, dots, after = part.partition("...")
    return [*before, *range(widest - n, widest), *after] if dots else list(part)


def _check_sizes(inputs, operands) -> None:
    sizes: dict = {}
    for i, (labels, t) in enumerate(zip(inputs, operands)):
        for label, n in zip(labels, t._array.shape):
            if sizes.get(label, 1) == 1:
                sizes[label] = n
            elif n not in (1, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with "
                    f"previously seen size {sizes[label]}"
                )


def _without_repeats(labels, t, operand):
    """A label twice in one operand means its diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            m, n = t.shape[i], t.shape[j]
            if m != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {operand} but the sizes don't match, "
                    f"{n} != {m}"
                )
            t = xp.diagonal(t, offset=0, axis1=i, axis2=j)  # the diagonal becomes the last axis
            del labels[j], labels[i]
            labels.append(label)
    return labels, t


def _summed(labels, t, kept):
    """Sum over what nobody needs any more."""
    axes = tuple(i for i, label in enumerate(labels) if label not in kept)
    if not axes:
        return labels, t
    return [label for label in labels if label in kept], sum_(t, axes)


def _contract(a_labels, a, b_labels, b, later):
    """One product of two operands, summed over the labels that only they have."""
    a_labels, a = _summed(a_labels, a, later.union(b_labels))
    b_labels, b = _summed(b_labels, b, later.union(a_labels))
    shared = [label for label in a_labels if label in b_labels]
    sizes = {label: _common(_size(a_labels, a, label), _size(b_labels, b, label)) for label in shared}
    # An axis of size 1 that meets a longer one is not shared: it only broadcasts.
    a_labels, a = _squeezed(a_labels, a, sizes)
    b_labels, b = _squeezed(b_labels, b, sizes)
    # One of size 1 in both has nothing to sum.
    single = {label for label, n in sizes.items() if n == 1 and label not in later}
    (a_labels, a), (b_labels, b) = _without(a_labels, a, single), _without(b_labels, b, single)
    both = [label for label in a_labels if label in b_labels]
    batch, inside = [x for x in both if x in later], [x for x in both if x not in later]
    a_labels, a = _summed(a_labels, a, later.union(inside))
    b_labels, b = _summed(b_labels, b, later.union(inside))
    a_only, b_only = [x for x in a_labels if x not in both], [x for x in b_labels if x not in both]
    if not inside:
        return batch + a_only + b_only, _multiplied(a_labels, a, b_labels, b, batch, a_only, b_only)
    left = _grouped(a_labels, a, batch, a_only, inside)
    right = _grouped(b_labels, b, batch, inside, b_only)
    shape = [_size(a_labels, a, x) for x in batch + a_only] + [_size(b_labels, b, x) for x in b_only]
    return batch + a_only + b_only, xp.reshape(matmul(left, right), shape=tuple(shape))


def _multiplied(a_labels, a, b_labels, b, batch, a_only, b_only):
    """A product with nothing to sum: the axes put in order, with ones where the other operand's go."""
    a = xp.transpose(a, axes=tuple(a_labels.index(x) for x in batch + a_only))
    b = xp.transpose(b, axes=tuple(b_labels.index(x) for x in batch + b_only))
    a_shape, b_shape, n = a._array.shape, b._array.shape, len(batch)
    a = xp.reshape(a, shape=a_shape + (1,) * len(b_only)) if b_only else a
    b = xp.reshape(b, shape=b_shape[:n] + (1,) * len(a_only) + b_shape[n:]) if a_only else b
    return xp.multiply(a, b)


def _size(labels, t, label) -> int:
    return t._array.shape[labels.index(label)]


def _common(m: int, n: int) -> int:
    """The size that an axis of ``m`` and one of ``n`` broadcast to."""
    return n if m == 1 else m


def _squeezed(labels, t, sizes):
    return _without(labels, t, {x for i, x in enumerate(labels) if sizes.get(x, 1) != 1 and t._array.shape[i] == 1})


def _without(labels, t, gone):
    """Axes of size 1 taken away."""
    axes = tuple(i for i, x in enumerate(labels) if x in gone)
    return ([x for x in labels if x not in gone], xp.squeeze(t, axis=axes)) if axes else (labels, t)


def _grouped(labels, t, *groups):
    """The axes in the order of three groups of labels, each group one axis."""
    t = xp.transpose(t, axes=tuple(labels.index(x) for group in groups for x in group))
    shape, at = [], 0
    for group in groups:
        size = 1
        for n in t._array.shape[at : at + len(group)]:
            size *= n
        shape.append(size)
        at += len(group)
    return xp.reshape(t, shape=tuple(shape))
