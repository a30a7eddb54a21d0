"""Images resized, sampled at any points, and with channels moved into pixels."""

from __future__ import annotations

import functools
import math

from ...autograd.op import differentiable as xp
from ...autograd.op import variant
from ...errors import warn_user
from ...ops.common import check_tensor, dtype_of, type_word
from ...ops.dims import as_int, as_ints, is_int
from ...ops.public import public
from ...ops.resize import Map
from ...tensor import Tensor
from .pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = [
    "affine_grid", "channel_shuffle", "grid_sample", "interpolate", "native_channel_shuffle", "pixel_shuffle",
    "pixel_unshuffle", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

_publish = public(method=False, out=False)

# -- channels and pixels -----------------------------------------------------------------------------------------------


@_publish
def pixel_shuffle(input, upscale_factor):
    """(…, C r², H, W) to (…, C, H r, W r): each group of r² channels becomes a block of r by r pixels.

    >>> F.pixel_shuffle(rushlight.zeros(1, 9, 4, 4), 3).shape
    torch.Size([1, 1, 12, 12])
    """
    shape = _image("pixel_shuffle", input)
    r = as_int(upscale_factor, "upscale_factor")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if shape[-3] % r**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={shape[-3]} is not divisible by {r**2}"
        )
    return xp.pixel_shuffle(input, factor=r)


@_publish
def pixel_unshuffle(input, downscale_factor):
    """(…, C, H r, W r) to (…, C r², H, W): what undoes ``pixel_shuffle``."""
    shape = _image("pixel_unshuffle", input)
    r = as_int(downscale_factor, "downscale_factor")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for word, d in (("height", -2), ("width", -1)):
        if shape[d] % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {word} to be divisible by downscale_factor, but input.size({d})={shape[d]} "
                f"is not divisible by {r}"
            )
    if not input._array.size:
        return input.clone()  # as PyTorch does: its sizes stay
    return xp.pixel_unshuffle(input, factor=r)


def _image(name, input) -> tuple:
    check_tensor(name, input)
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    return shape


@_publish
def channel_shuffle(input, groups):
    """Channels (dimension 1) dealt out anew: the first of each group, then the second of each, …"""
    check_tensor("channel_shuffle", input)
    shape, groups = input._array.shape, as_int(groups, "groups")
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return xp.channel_shuffle(input, groups=groups)


@_publish
def native_channel_shuffle(input, groups):
    """``channel_shuffle``."""
    return channel_shuffle(input, groups)


# -- resizing ----------------------------------------------------------------------------------------------------------

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_DIMS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_KINDS = {
    "nearest": "nearest", "nearest-exact": "nearest_exact", "linear": "linear", "bilinear": "linear",
    "trilinear": "linear", "bicubic": "cubic",
}  # fmt: skip
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resize the last dimensions to ``size``, or by ``scale_factor``.

    >>> F.interpolate(rushlight.zeros(1, 3, 8, 8), scale_factor=2, mode="bilinear").shape
    torch.Size([1, 3, 16, 16])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    shape = input._array.shape
    dims = len(shape) - 2
    size, scales = _target(shape[2:], size, scale_factor, mode, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and dims == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode == "area" and dims in _AREA:
        return _AREA[dims](input, size)
    _check_mode(mode, dims)
    _check_resize(shape, size)
    if antialias:
        return _smoothed(input, size, scales, mode, bool(align_corners))
    kind = _KINDS[mode]
    if mode == "nearest" and dims == 2:  # PyTorch's 2-d kernel does not look at the scale of these
        scales = tuple(None if out in (n, 2 * n) else scale for n, out, scale in zip(shape[2:], size, scales))
    options = () if kind.startswith("nearest") else (bool(align_corners),)
    same = (lambda n, out, scale: n == out) if kind == "linear" else (lambda n, out, scale: n == out and scale is None)
    maps = tuple(
        None if same(n, out, scale) else Map(kind, n, out, (*options, scale))
        for n, out, scale in zip(shape[2:], size, scales)
    )
    return _resized(input, maps, _node(mode, dims), mode)


def _node(mode, dims) -> str:
    name = {"nearest-exact": "NearestExact"}.get(mode, mode.capitalize())
    return f"Upsample{name}{dims}DBackward0"


def _smoothed(input, size, scales, mode, align):
    full = input._array.shape[2:]
    maps = tuple(Map("smooth", n, out, (align, scale, mode)) for n, out, scale in zip(full, size, scales))
    if full == size:
        maps = (None,) * len(size)
    return _resized(input, maps, _node(mode, 2).replace("Backward", "AaBackward"), mode)


@_publish
def _upsample_bilinear2d_aa(input, output_size, align_corners, scales_h=None, scales_w=None, *, scale_factors=None):
    """``interpolate`` with mode "bilinear" and anti-aliasing, as an operator."""
    size, scales = _target(input._array.shape[2:], output_size, scale_factors, "bilinear", False)
    if output_size is not None:
        scales = (scales_h, scales_w)
    return _smoothed(input, size, scales, "bilinear", align_corners)


def _resized(input, maps, node, mode):
    dtype = dtype_of(input)
    if dtype.is_floating_point or (dtype.name == "uint8" and mode.startswith("nearest")):
        return _resampler(node)(input, maps=maps)
    if dtype.name != "uint8" or len(maps) != 2:
        raise NotImplementedError(f"\"upsample_{mode}{len(maps)}d\" not implemented for '{type_word(dtype)}'")
    # Bytes are rounded after each direction, as in PyTorch and Pillow, and so are their weights.
    high, wide = [m and Map("for_bytes", m.n, m.out, (m.kind, *m.options)) for m in maps]
    for each in ((None, wide), (high, None)):
        sums = xp.resample(xp.astype(input, dtype="float32"), maps=each)
        input = xp.astype(xp.floor(sums + 0.5).clamp(0, 255), dtype="uint8")
    return input


@functools.cache
def _resampler(node):
    return variant(xp.resample, node)


def _target(full, size, scale_factor, mode, recompute):
    """(the output's sizes, for each the scale factor to count with or None)."""
    dims = len(full)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return _sizes(full, size, dims), (None,) * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (tuple, list)):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(full)} and scale_factor of shape {scale_factor}. Please provide input tensor in "
                "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
    else:
        scale_factor = (scale_factor,) * dims
    scales = tuple(_number(s) for s in scale_factor)
    sizes = tuple(math.floor(n * s) for n, s in zip(full, scales))
    return sizes, (None,) * dims if recompute or mode == "area" else scales


def _number(scale) -> float:
    if isinstance(scale, (str, bytes)) or not hasattr(scale, "__float__"):
        raise TypeError(f"interpolate(): argument 'scale_factor' must be float, not {type(scale).__name__}")
    return float(scale)


def _sizes(full, size, dims) -> tuple:
    if isinstance(size, (tuple, list)):
        if len(size) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(full)} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
                "...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if not all(is_int(n) for n in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(n) for n in size]}"
            )
        return as_ints(size, "size")
    if not is_int(size):
        raise TypeError(f"interpolate(): argument 'size' must be int or tuple of ints, not {type(size).__name__}")
    return (as_int(size, "size"),) * dims


def _check_mode(mode, dims) -> None:
    needed = _DIMS.get(mode, dims)
    if dims in (1, 2, 3) and needed == dims and mode in _MODES.split(" | "):
        return
    if mode in ("linear", "bilinear", "trilinear") and dims in (1, 2, 3):
        raise NotImplementedError(f"Got {dims + 2}D input, but {mode} mode needs {needed + 2}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims + 2}D) for the modes: {_MODES} (got "
        f"{mode})"
    )


def _check_resize(shape, size) -> None:
    full, dims = shape[2:], len(size)
    if min(*full, *size) <= 0:
        given, made = (", ".join(f"{a}: {n}" for a, n in zip("DHW"[3 - dims :], s)) for s in (full, size))
        between = " and output" if dims == 1 else " output"
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({given}){between} ({made})"
        )
    if shape[1] == 0:
        raise RuntimeError(f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}")


def _deprecated(name) -> None:
    warn_user(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated: ``interpolate``."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated: ``interpolate``."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated: ``interpolate(…, mode="bilinear", align_corners=True)``."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# -- sampling ----------------------------------------------------------------------------------------------------------

_SAMPLING, _BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)
_samplers = {d: variant(xp.grid_sampler, f"GridSampler{d}DBackward0") for d in (2, 3)}


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """``input`` at the points ``grid``: (N, H, W, 2) pairs (x, y), or (N, D, H, W, 3), from -1 to 1 across the image.

    >>> F.grid_sample(rushlight.ones(1, 1, 4, 4), rushlight.zeros(1, 1, 1, 2), align_corners=False).item()
    1.0
    """
    if mode not in _SAMPLING:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _BORDERS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warn_user(_CHANGED)
    return grid_sampler(input, grid, _SAMPLING.index(mode), _BORDERS.index(padding_mode), bool(align_corners))


@_publish
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """``grid_sample`` with modes by number."""
    check_tensor("grid_sampler", input)
    shape, points = input._array.shape, grid._array.shape
    if shape[0] != points[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(points)}"
        )
    dims = len(shape) - 2
    if points[-1] != dims:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {dims} in last dimension, but got grid with sizes "
            f"{list(points)}"
        )
    if dims not in (2, 3) or len(points) != len(shape):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(points)}"
        )
    for d in range(2, len(shape)):
        if shape[d] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(shape)} with dimension {d} being empty"
            )
    for name, given, known in (
        ("interpolation_mode", interpolation_mode, _SAMPLING),
        ("padding_mode", padding_mode, _BORDERS),
    ):
        if not 0 <= given < len(known):
            raise RuntimeError(f"grid_sampler(): {name} must be one of 0 to {len(known) - 1}, but got {given}")
    mode, padding = _SAMPLING[interpolation_mode], _BORDERS[padding_mode]
    if mode == "bicubic" and dims == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not dtype_of(input).is_floating_point:
        kernel = f"grid_sampler_{dims}d_cpu" + ("_kernel_impl" if dims == 2 else "")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(dtype_of(input))}'")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {type_word(dtype_of(input))} but found {type_word(dtype_of(grid))}")
    return _samplers[dims](input, grid, mode=mode, padding=padding, align=bool(align_corners))


@_publish
def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """``grid_sampler`` of images."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_publish
def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """``grid_sampler`` of volumes."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid for ``grid_sample`` that the transforms ``theta`` (N, 2, 3) or (N, 3, 4) make of a regular one."""
    if align_corners is None:
        warn_user(_CHANGED)
    if not isinstance(theta, Tensor) or not dtype_of(theta).is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {getattr(theta, 'dtype', type(theta))}")
    size = tuple(size)
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{_words(size)}."
        )
    if theta._array.ndim != 3 or theta._array.shape[1:] != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {_words(size)}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {_words(size)}")
    if align_corners and min(size[2:]) == 1:
        warn_user(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    return affine_grid_generator(theta, size, bool(align_corners))


@_publish
def affine_grid_generator(theta, size, align_corners):
    """``affine_grid`` without its checks."""
    if theta._array.shape[0] != size[0]:
        rows = theta._array.shape[2]
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {rows}] but got: "
            f"[{theta._array.shape[0]}, {rows}]."
        )
    return xp.affine_grid_generator(theta, size=tuple(size[2:]), align=bool(align_corners))


def _words(size) -> str:
    return f"torch.Size({list(size)})" if type(size) is not tuple else str(size)
