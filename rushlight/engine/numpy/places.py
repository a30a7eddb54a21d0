"""Where views without elements lie, which NumPy does not keep: their strides and offset, in elements.

A ``Place`` stands for an array, and this module for the namespace that operators make views with.
"""

from __future__ import annotations

from ...layout import dense_strides


class Place:
    """A shape, its strides, and the offset in the storage it begins at."""

    __slots__ = ("offset", "shape", "strides")

    def __init__(self, shape, strides, offset: int):
        self.shape, self.strides, self.offset = tuple(shape), tuple(strides), offset

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __getitem__(self, index: tuple) -> Place:
        shape, strides, offset = [], [], self.offset
        parts = [part for part in index if part is not Ellipsis]  # which only ever stands last
        for n, stride, part in zip(self.shape, self.strides, parts):
            if isinstance(part, slice):
                start, stop, step = part.indices(n)
                shape.append(len(range(start, stop, step)))
                strides.append(stride * step)
                offset += start * stride
            else:
                offset += part * stride
        rest = len(parts)
        return Place([*shape, *self.shape[rest:]], [*strides, *self.strides[rest:]], offset)

    def moved(self, axes) -> Place:
        return Place([self.shape[a] for a in axes], [self.strides[a] for a in axes], self.offset)


def alias(x):
    return x


def transpose(x, axes):
    return x.moved(axes)


def swapaxes(x, axis1, axis2):
    axes = list(range(x.ndim))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return x.moved(axes)


def matrix_transpose(x):
    return swapaxes(x, -2, -1)


def reshape(x, shape):
    return x if shape == x.shape else Place(shape, dense_strides(shape, range(len(shape))), x.offset)


def squeeze(x, axis=None):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {a % x.ndim for a in axes if x.shape[a] == 1}
    return x.moved([a for a in range(x.ndim) if a not in gone])


def expand_dims(x, axis):
    axis = axis % (x.ndim + 1)
    step = x.shape[axis] * x.strides[axis] if axis < x.ndim else 1
    return Place((*x.shape[:axis], 1, *x.shape[axis:]), (*x.strides[:axis], step, *x.strides[axis:]), x.offset)


def expanded(x, shape):
    while x.ndim < len(shape):
        x = expand_dims(x, 0)
    return Place(shape, [s if have == n else 0 for have, n, s in zip(x.shape, shape, x.strides)], x.offset)


def diagonal(x, offset=0, axis1=0, axis2=1):
    rows, columns = axis1 % x.ndim, axis2 % x.ndim
    length = max(0, min(x.shape[rows] - max(-offset, 0), x.shape[columns] - max(offset, 0)))
    begin = max(-offset, 0) * x.strides[rows] + max(offset, 0) * x.strides[columns] if length else 0
    rest = x.moved([a for a in range(x.ndim) if a not in (rows, columns)])
    step = x.strides[rows] + x.strides[columns]
    return Place((*rest.shape, length), (*rest.strides, step), x.offset + begin)


def windows(x, axis, size, step):
    every = (slice(None),) * axis + (slice(0, x.shape[axis] - size + 1, step),)
    wide = Place((*x.shape[:axis], x.shape[axis] + 1, *x.shape[axis + 1 :]), x.strides, x.offset)[every]
    return Place((*wide.shape, size), (*wide.strides, x.strides[axis]), x.offset)


def strided(x, shape, strides, offset):
    return Place(shape, strides, x.offset + offset)


def plain(shape) -> Place:
    """That of memory of its own."""
    return Place(shape, dense_strides(shape, range(len(shape))), 0)
