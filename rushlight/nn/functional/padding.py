"""``pad``: more elements around a tensor, or fewer."""

from __future__ import annotations

import operator

from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...ops.common import as_double, refuse
from ...ops.public import PUBLIC
from ...ops.resize import Map

__all__ = ["pad"]

_REFLECT, _REPLICATE = (
    {d: variant(xp.resample, f"{kind}Pad{d}DBackward0") for d in (1, 2, 3)} for kind in ("Reflection", "Replication")
)
_circular = variant(xp.resample, "CopySlices")  # PyTorch writes the parts one by one


def pad(input, pad, mode="constant", value=None):
    """Add ``pad = (left, right, top, bottom, …)`` elements, the last dimension's first; negative numbers take away.

    ``mode``: "constant" (``value``, or 0), "reflect", "replicate" or "circular".

    >>> F.pad(rushlight.tensor([[1.0, 2, 3]]), (1, 1), mode="reflect").tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """
    amounts, shape = _amounts(pad), input._array.shape
    if len(amounts) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(amounts) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {len(shape)}"
        )
    if mode == "constant":
        return PUBLIC["constant_pad_nd"](input, amounts, 0 if value is None else as_double("pad", "value", 4, value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    dims = len(amounts) // 2
    if dims not in (1, 2, 3) or len(shape) not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(amounts)} is not supported for {len(shape)}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    pairs = list(zip(amounts[-2::-2], amounts[::-2]))  # the first dimension's first
    if mode == "circular":
        _check_circular(shape[-dims:], pairs)
        return _circular(input, maps=_maps("circular", shape, pairs))
    if mode not in ("reflect", "replicate"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check(mode, dims, shape, pairs)
    refuse(f"{'reflection' if mode == 'reflect' else 'replication'}_pad{dims}d", lambda d: d.name == "bool", input)
    return (_REFLECT if mode == "reflect" else _REPLICATE)[dims](input, maps=_maps(mode, shape, pairs))


def _amounts(pad) -> tuple:
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    for i, n in enumerate(pad):
        if n.__class__ is not int and (not hasattr(n, "__index__") or (n.__class__ is bool and not i)):
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, but found element of type "
                f"{type(n).__name__} at pos {i}"
            )
    return tuple([operator.index(n) for n in pad])


def _maps(kind, shape, pairs) -> tuple:
    sizes = shape[len(shape) - len(pairs) :]
    return tuple(
        None if before == after == 0 else Map(kind, n, n + before + after, (before, after))
        for n, (before, after) in zip(sizes, pairs)
    )


def _check(mode, dims, shape, pairs) -> None:
    if 0 in shape[-dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for i, (before, after) in enumerate(reversed(pairs)):
        dim = len(shape) - 1 - i
        if mode == "reflect" and max(before, after) >= shape[dim]:
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {dim} of input {list(shape)}"
            )
    size = [n + before + after for n, (before, after) in zip(shape[-dims:], pairs)]
    if min(size) < 1:
        names = "DHW"[3 - dims :]
        given, made = (" ".join(f"{a}: {n}" for a, n in zip(names, values)) for values in (shape[-dims:], size))
        raise RuntimeError(f"input ({given}) is too small. Calculated output {made}")


def _check_circular(sizes, pairs) -> None:
    for n, (before, after) in zip(sizes, pairs):
        if max(before, after) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
