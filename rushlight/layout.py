"""Names for how a tensor lies in memory."""

from __future__ import annotations

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "jagged",
    "layout",
    "memory_format",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "preserve_format",
    "qscheme",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
]


class _Name:
    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


class memory_format(_Name):
    """The order of a tensor's dimensions in memory."""


class layout(_Name):
    """How elements are stored: one after the other, or only some of them with their places (``sparse/``)."""


class qscheme(_Name):
    """How the codes of a quantized tensor stand for numbers: one scale for all, or one for each channel."""


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
strided = layout("strided")
sparse_coo, sparse_csr, sparse_csc = layout("sparse_coo"), layout("sparse_csr"), layout("sparse_csc")
jagged = layout("jagged")  # examples of different lengths (``nested/``)
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")  # names only: no tensor has them
per_tensor_affine, per_tensor_symmetric = qscheme("per_tensor_affine"), qscheme("per_tensor_symmetric")
per_channel_affine, per_channel_symmetric = qscheme("per_channel_affine"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")  # a name only: no tensor has it

_CHANNELS_LAST = {channels_last: (4, (0, 2, 3, 1)), channels_last_3d: (5, (0, 2, 3, 4, 1))}


def memory_order(form: memory_format, ndim: int) -> tuple[int, ...]:
    """The dimensions from outermost to innermost in memory."""
    if form not in _CHANNELS_LAST:
        return tuple(range(ndim))
    rank, order = _CHANNELS_LAST[form]
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {form.name} format")
    return order


def channels_last_order(ndim: int) -> tuple[int, ...] | None:
    """The order of an image's dimensions with the channels last; None where there is no such format."""
    return {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}.get(ndim)


def looks_channels_last(shape, strides) -> bool:
    """Would PyTorch take a tensor with these strides, gaps or not, for one whose channels lie last?"""
    order = channels_last_order(len(shape))
    if order is None or 0 in shape or strides[1] == 0:
        return False
    room = 0
    for d in (*order[:0:-1], order[0]):
        if strides[d] < room or (d == 0 and room == strides[1]):  # of (N, 1, 1, 1) nobody can tell
            return False
        room = strides[d] * shape[d]
    return True


def dense_strides(shape, order) -> tuple[int, ...]:
    """Strides, in elements, of a gapless tensor whose dimensions lie in memory in ``order``."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def is_dense(shape, strides, order) -> bool:
    """Do these strides (in elements) fill memory without gaps in ``order``? Dimensions of size 1 do not count."""
    return 0 in shape or all(
        n == 1 or have == want for n, have, want in zip(shape, strides, dense_strides(shape, order))
    )


def stride_order(shape, strides) -> tuple[int, ...]:
    """The dimensions by falling stride; broadcast (stride 0) dimensions stay beside their left neighbour."""
    order: list[int] = []
    for d in range(len(shape)):
        place = len(order)
        while place and strides[d] and 0 < strides[order[place - 1]] < strides[d] and shape[d] > 1:
            place -= 1
        order.insert(place, d)
    return tuple(order)
