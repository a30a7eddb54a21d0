"""What a score is made of: arrays that lie somewhere, and steps that read and write them."""

from __future__ import annotations

import math

import numpy as np

WORD = np.dtype(np.uint32)  # random words, and keys, of four: few loops take them
LETTERS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "bool": "b"}


class NotPlayed(Exception):
    """The program has something that no step does."""


class Value:
    """An array of a program: where its elements are. ``made`` are the steps that write it, all of its memory's."""

    __slots__ = ("dtype", "made", "memory", "offset", "shape", "strides")

    def __init__(self, shape, dtype, memory=0, offset=0, strides=None, made=None):
        self.shape, self.dtype, self.memory, self.offset = tuple(shape), np.dtype(dtype), memory, offset
        self.made: list[Step] = [] if made is None else made
        self.strides = dense_strides(self.shape, self.dtype.itemsize) if strides is None else tuple(strides)

    def seen(self, shape, strides, offset=0) -> Value:
        """The same memory in another way."""
        return Value(shape, self.dtype, self.memory, self.offset + offset, strides, self.made)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_dense(self) -> bool:
        return all(
            s == d or n == 1
            for s, d, n in zip(self.strides, dense_strides(self.shape, self.dtype.itemsize), self.shape)
        )

    def key(self):
        return self.memory, self.offset, self.strides


class Step:
    """One call: a kernel, its operands, None for one that is absent, and what else it is told.

    A loop (``lists`` is None) writes the last operand, and is told in ``integers`` how operands lie. A kernel is told
    of each operand's sizes and strides, and of how many there are in each of its lists; ``numbers`` may be a value.
    ``over``: pairs of what a kernel writes over, and the copy of it that it is given; ``copies`` are the steps that
    make these. ``loop``: the sizes of a loop that makes each element of one of each operand, and how these lie.
    ``work``: how many elements a loop computes, slow ones counted more often, quick ones less.
    """

    __slots__ = ("copies", "integers", "kernel", "lists", "loop", "numbers", "operands", "over", "work")

    def __init__(self, kernel, operands, integers, numbers=(), lists=None, over=(), copies=(), loop=None, work=0):
        self.kernel, self.operands, self.integers, self.numbers = kernel, operands, integers, numbers
        self.lists, self.over, self.copies, self.loop, self.work = lists, over, copies, loop, work

    @property
    def is_copy(self) -> bool:
        return self.lists is None and self.kernel[0].partition("_")[0] == ".copy"

    @property
    def values(self) -> list[Value]:
        """All that it reads and writes."""
        return [v for v in (*self.operands, self.numbers) if isinstance(v, Value)]

    @property
    def writes(self) -> list[Value]:
        return [v for v in self.values if self in v.made]


def dense_strides(shape, itemsize, order=None) -> tuple:
    """Strides of an array without gaps, whose dimensions lie in ``order``, the outermost first."""
    strides, size = [0] * len(shape), itemsize
    for d in reversed(order or range(len(shape))):
        strides[d] = size
        size *= shape[d]
    return tuple(strides)


def letter_of(v: Value) -> str:
    letter = LETTERS.get(v.dtype.name)
    if letter is None:
        raise NotPlayed(v.dtype.name)
    return letter


def collapsed(shape, strides) -> tuple[tuple, list]:
    """The same loop in as few dimensions as possible, at least one."""
    sizes: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(f[-1] == s[d] * n for f, s in zip(found, strides)):
            sizes[-1] *= n
            for f, s in zip(found, strides):
                f[-1] = s[d]
        else:
            sizes.append(n)
            for f, s in zip(found, strides):
                f.append(s[d])
    return (tuple(sizes), found) if sizes else ((1,), [[0] for _ in strides])
