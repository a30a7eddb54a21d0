"""``einsum``: a sum of products written as labels, contracted pair by pair with batched matrix products."""

from __future__ import annotations

import functools
import string

from ..autograd import overriding
from ..autograd.op import differentiable as xp
from ..engine.open_size import has_open
from .dims import numel
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
    shapes = tuple([t._array.shape for t in operands])
    plan = _plan.__wrapped__ if [shape for shape in shapes if has_open(shape)] else _plan
    first, products, last = plan(equation, shapes)
    result = _taken(first, operands[0])
    for operand, (mine, its, product) in zip(operands[1:], products):
        result = product(_taken(mine, result), _taken(its, operand))
    return _taken(last, result)


def _taken(steps, t):
    for function, given in steps:
        t = function(t, **given)
    return t


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


# -- what is to be done, which is the same for all operands of the same shapes -----------------------------------------


@functools.lru_cache(512)
def _plan(equation, shapes):
    """Steps of the first operand; of each other one what the result so far and it go through, and how they are
    multiplied; and the last steps of the result."""
    inputs, output = _parse(equation, shapes)
    _check_sizes(inputs, shapes)
    terms = [_Term(labels, shape) for labels, shape in zip(inputs, shapes)]
    for i, term in enumerate(terms):
        term.without_repeats(i)
    result, products = terms[0], []
    first, result.steps = result.steps, []
    for i, other in enumerate(terms[1:], 1):
        later = set(output).union(*(term.labels for term in terms[i + 1 :]))
        before, (result, product) = result, _contracted(result, other, later)
        products.append((before.steps, other.steps, product))
    result.sum_but(set(output))
    order = tuple(result.labels.index(label) for label in output)
    if len(terms) == 1 or order != tuple(range(len(order))):
        result.transpose(order)
    return first, products, result.steps


def _parse(equation, shapes):
    """The labels of every operand and of the result; an ellipsis becomes as many number labels as it stands for."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        few = "more" if len(shapes) > len(parts) else "fewer"
        raise RuntimeError(f"einsum(): {few} operands were provided than specified in the equation")
    covered = [_covered(i, part, len(shape)) for i, (part, shape) in enumerate(zip(parts, shapes))]
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


def _covered(i, part, ndim) -> int:
    """How many dimensions the ellipsis of one operand stands for."""
    names = part.replace("...", "", 1)
    for c in names:
        if c not in _LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {part.index(c)} in the equation string, subscripts must "
                "be in [a-zA-Z]"
            )
    n = ndim - len(names)
    if n < 0 or ("..." not in part and n):
        hint = " and no ellipsis was given" if "..." not in part else ""
        relation = "does not match" if not n < 0 or "..." not in part else "is greater than"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(names)}) {relation} the number of dimensions "
            f"({ndim}) for operand {i}{hint}"
        )
    return n


def _expand(part, n, widest) -> list:
    before, dots, after = part.partition("...")
    return [*before, *range(widest - n, widest), *after] if dots else list(part)


def _check_sizes(inputs, shapes) -> None:
    sizes: dict = {}
    for i, (labels, shape) in enumerate(zip(inputs, shapes)):
        for label, n in zip(labels, shape):
            if sizes.get(label, 1) == 1:
                sizes[label] = n
            elif n not in (1, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which does not broadcast with "
                    f"previously seen size {sizes[label]}"
                )


class _Term:
    """An operand while it is planned: the labels and sizes of its axes, and the steps that lead there."""

    def __init__(self, labels, shape):
        self.labels, self.shape = list(labels), list(shape)
        self.steps: list[tuple] = []

    def size(self, label) -> int:
        return self.shape[self.labels.index(label)]

    def step(self, function, **given):
        self.steps.append((function, given))

    def drop(self, axes):
        self.labels = [x for i, x in enumerate(self.labels) if i not in axes]
        self.shape = [n for i, n in enumerate(self.shape) if i not in axes]

    def without_repeats(self, operand):
        """A label twice in one operand means its diagonal."""
        for label in dict.fromkeys(self.labels):
            while self.labels.count(label) > 1:
                i = self.labels.index(label)
                j = self.labels.index(label, i + 1)
                m, n = self.shape[i], self.shape[j]
                if m != n:
                    raise RuntimeError(
                        f"einsum(): subscript {label} is repeated for operand {operand} but the sizes don't match, "
                        f"{n} != {m}"
                    )
                self.step(xp.diagonal, offset=0, axis1=i, axis2=j)  # the diagonal becomes the last axis
                self.drop((i, j))
                self.labels.append(label)
                self.shape.append(n)

    def sum_but(self, kept):
        """Sum over what nobody needs any more."""
        axes = tuple(i for i, label in enumerate(self.labels) if label not in kept)
        if axes:
            self.step(sum_, dim=axes)
            self.drop(axes)

    def squeeze(self, gone):
        """Axes of size 1 taken away."""
        axes = tuple(i for i, label in enumerate(self.labels) if label in gone)
        if axes:
            self.step(xp.squeeze, axis=axes)
            self.drop(axes)

    def transpose(self, axes):
        self.step(xp.transpose, axes=tuple(axes))
        self.labels, self.shape = [self.labels[i] for i in axes], [self.shape[i] for i in axes]

    def in_order(self, labels):
        self.transpose([self.labels.index(x) for x in labels])

    def reshape(self, shape):
        self.step(xp.reshape, shape=tuple(shape))

    def group(self, *groups):
        """The axes in the order of three groups of labels, each group one axis."""
        self.in_order([label for group in groups for label in group])
        self.reshape(numel([self.size(label) for label in group]) for group in groups)


def _contracted(a, b, later):
    """One product of two terms, summed over the labels that only they have: what is made, and how it is multiplied."""
    a.sum_but(later.union(b.labels))
    b.sum_but(later.union(a.labels))
    sizes = {label: _common(a.size(label), b.size(label)) for label in a.labels if label in b.labels}
    # An axis of size 1 that meets a longer one is not shared: it only broadcasts.
    for term in (a, b):
        term.squeeze({x for x, n in zip(term.labels, term.shape) if sizes.get(x, 1) != 1 and n == 1})
    # One of size 1 in both has nothing to sum.
    single = {label for label, n in sizes.items() if n == 1 and label not in later}
    a.squeeze(single)
    b.squeeze(single)
    both = [label for label in a.labels if label in b.labels]
    batch, inside = [x for x in both if x in later], [x for x in both if x not in later]
    a.sum_but(later.union(inside))
    b.sum_but(later.union(inside))
    a_only, b_only = [x for x in a.labels if x not in both], [x for x in b.labels if x not in both]
    made = _Term(batch + a_only + b_only, [a.size(x) for x in batch + a_only] + [b.size(x) for x in b_only])
    if not inside:
        _spread(a, b, batch, a_only, b_only)
        return made, xp.multiply
    a.group(batch, a_only, inside)
    b.group(batch, inside, b_only)
    made.reshape(made.shape)
    return made, matmul


def _spread(a, b, batch, a_only, b_only):
    """For a product with nothing to sum: the axes put in order, with ones where the other operand's go."""
    a.in_order(batch + a_only)
    b.in_order(batch + b_only)
    if b_only:
        a.reshape(a.shape + [1] * len(b_only))
    if a_only:
        b.reshape(b.shape[: len(batch)] + [1] * len(a_only) + b.shape[len(batch) :])


def _common(m: int, n: int) -> int:
    """The size that an axis of ``m`` and one of ``n`` broadcast to."""
    return n if m == 1 else m
