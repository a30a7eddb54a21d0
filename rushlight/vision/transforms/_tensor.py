"""Operations on tensors (..., C, H, W); ``_pil.py`` has the same ones for PIL images."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ...nn.functional import grid_sample, interpolate
from ...ops.creation import full, ones, tensor
from ...ops.join import cat, stack
from ...ops.selection import where
from ...tensor import Tensor, wrap


def dimensions(image: Tensor) -> tuple[int, int, int]:
    """Channels, height, width."""
    if image.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    return (1 if image.ndim == 2 else image.shape[-3]), image.shape[-2], image.shape[-1]


def resize(image, size, interpolation: str, antialias, native: bool = False):
    """``native``: bytes are interpolated as bytes, not as floats that are rounded at the end."""
    if interpolation not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError("This Interpolation mode is unsupported with Tensor input")
    smooth = interpolation in ("bilinear", "bicubic")
    options = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    return _as_batch(image, lambda x: interpolate(x, size=list(size), mode=interpolation, **options), native=native)


def crop(image, top, left, height, width):
    _, h, w = dimensions(image)
    outside = (max(-left, 0), max(-top, 0), max(left + width - w, 0), max(top + height - h, 0))
    part = image[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    return pad(part, outside, 0, "constant") if any(outside) else part


def pad(image, sides, fill, mode):
    left, top, right, bottom = sides
    _, h, w = dimensions(image)
    if mode != "constant":
        rows = wrap(np.pad(np.arange(h), (top, bottom), mode=mode))
        columns = wrap(np.pad(np.arange(w), (left, right), mode=mode))
        return image[..., rows, :][..., columns]
    made = full((*image.shape[:-2], h + top + bottom, w + left + right), 0, dtype=image.dtype, device=image.device)
    made = made + _channels(fill, image)
    made[..., top : top + h, left : left + w] = image
    return made


def hflip(image):
    return image.flip(-1)


def vflip(image):
    return image.flip(-2)


def rotate(image, angle, interpolation: str, expand: bool, center, fill):
    from .functional import affine_matrix, rotated_size

    _, h, w = dimensions(image)
    middle = np.array([w / 2, h / 2])
    offset = np.zeros(2) if center is None else np.asarray(center) - middle
    inverse = np.linalg.inv(affine_matrix(offset, -angle, (0, 0), 1.0, (0, 0)))
    return _warp(image, inverse, rotated_size(h, w, angle) if expand else (h, w), interpolation, fill)


def affine(image, inverse: np.ndarray, interpolation: str, fill):
    """``inverse`` maps pixels of the result to those of the image, both counted from the upper left corner."""
    _, h, w = dimensions(image)
    shift = np.eye(3)
    shift[:2, 2] = w / 2, h / 2
    return _warp(image, np.linalg.inv(shift) @ inverse @ shift, (h, w), interpolation, fill)


def perspective(image, inverse: np.ndarray, interpolation: str, fill):
    """``inverse`` maps points of the result to those of the image, both counted from the upper left corner."""
    _, h, w = dimensions(image)
    rows, columns = np.meshgrid(np.arange(h) + 0.5, np.arange(w) + 0.5, indexing="ij")
    places = np.stack([columns, rows, np.ones((h, w))], -1) @ inverse.T
    return _fetch(image, places[..., :2] / places[..., 2:] / np.array([w / 2, h / 2]) - 1, interpolation, fill)


def elastic(image, displacement, interpolation: str, fill):
    _, h, w = dimensions(image)
    rows, columns = np.meshgrid(*((2 * np.arange(n) + 1) / n - 1 for n in (h, w)), indexing="ij")
    moved = np.stack([columns, rows], -1) + displacement.detach().cpu().numpy()[0]
    return _fetch(image, moved, interpolation, fill)


def rgb_to_grayscale(image, channels: int):
    if image.shape[-3] == 1:
        return image.repeat_interleave(channels, -3) if channels == 3 else image.clone()
    red, green, blue = image.unbind(-3)
    gray = (0.2989 * red + 0.587 * green + 0.114 * blue).to(image.dtype).unsqueeze(-3)
    return cat([gray] * 3, -3) if channels == 3 else gray


def adjust_brightness(image, factor):
    return _blend(image, image * 0, factor)


def adjust_contrast(image, factor):
    gray = rgb_to_grayscale(image, 1) if image.shape[-3] == 3 else image
    dtype = image.dtype if image.is_floating_point() else dtypes.float32
    return _blend(image, gray.to(dtype).mean(dim=(-3, -2, -1), keepdim=True), factor)


def adjust_saturation(image, factor):
    return image if image.shape[-3] == 1 else _blend(image, rgb_to_grayscale(image, 1), factor)


def adjust_hue(image, factor):
    if image.shape[-3] == 1:
        return image
    from .functional import convert_image_dtype

    hue, saturation, value = _to_hsv(convert_image_dtype(image, dtypes.float32)).unbind(-3)
    turned = _to_rgb((hue + factor) % 1.0, saturation, value)
    return convert_image_dtype(turned, image.dtype)


def adjust_gamma(image, gamma, gain):
    from .functional import convert_image_dtype

    values = image if image.is_floating_point() else convert_image_dtype(image, dtypes.float32)
    return convert_image_dtype((gain * values**gamma).clamp(0, 1), image.dtype)


def invert(image):
    return _largest(image) - image


def posterize(image, bits: int):
    if image.is_floating_point():
        return (image * (1 << bits)).floor().clamp(0, (1 << bits) - 1) / (1 << bits)
    return image & (256 - (1 << (8 - bits)))


def solarize(image, threshold):
    limit = _largest(image)
    if threshold > limit:
        raise TypeError(f"Threshold should be less than or equal the maximum value of the dtype, {limit}")
    return where(image >= threshold, invert(image), image)


def adjust_sharpness(image, factor):
    """The border stays; inside, each pixel against the mean of its neighbours and five times itself."""
    _, h, w = dimensions(image)
    if h <= 2 or w <= 2:
        return image
    values = image if image.is_floating_point() else image.float()
    around = sum(values[..., i : i + h - 2, j : j + w - 2] for i in range(3) for j in range(3))
    smooth = values.clone()
    smooth[..., 1:-1, 1:-1] = _as((around + 4 * values[..., 1:-1, 1:-1]) / 13, image.dtype).to(values.dtype)
    return _blend(image, smooth, factor)


def autocontrast(image):
    limit = _largest(image)
    values = image if image.is_floating_point() else image.float()
    low, high = values.amin((-2, -1), keepdim=True), values.amax((-2, -1), keepdim=True)
    flat = low == high
    stretched = (values - where(flat, 0.0, low)) * (limit / where(flat, float(limit), high - low))
    return stretched.clamp(0, limit).to(image.dtype)


def equalize(image):
    if image.is_floating_point():
        from .functional import convert_image_dtype

        return convert_image_dtype(equalize(convert_image_dtype(image, dtypes.uint8)), image.dtype)
    planes = image.detach().cpu().numpy().reshape(-1, *image.shape[-2:])
    made = np.stack([_spread(plane) for plane in planes]).reshape(image.shape)
    return wrap(made).to(image.device)


def _spread(plane: np.ndarray) -> np.ndarray:
    counts = np.bincount(plane.ravel(), minlength=256)
    step = (counts.sum() - counts[counts != 0][-1]) // 255
    if step == 0:
        return plane
    table = np.concatenate([[0], (np.cumsum(counts)[:-1] + step // 2) // step]).clip(0, 255)
    return table.astype(np.uint8)[plane]


def blur(image, kernel_x: np.ndarray, kernel_y: np.ndarray):
    """Weighted sums of neighbours; the image is mirrored at its edges."""
    values = image if image.is_floating_point() else image.float()
    across, down = len(kernel_x) // 2, len(kernel_y) // 2
    _, h, w = dimensions(image)
    values = pad(values, (across, down, across, down), 0, "reflect")
    values = sum(float(k) * values[..., i : i + h, :] for i, k in enumerate(kernel_y))
    values = sum(float(k) * values[..., i : i + w] for i, k in enumerate(kernel_x))
    return _as(values, image.dtype)


def _warp(image, inverse: np.ndarray, size, interpolation: str, fill):
    """The image seen through ``inverse``, a matrix on pixel places counted from the middle."""
    _, h, w = dimensions(image)
    rows, columns = np.meshgrid(*(np.arange(n) - n / 2 + 0.5 for n in size), indexing="ij")
    places = np.stack([columns, rows, np.ones(size)], -1) @ inverse[:2].T
    return _fetch(image, places / np.array([w / 2, h / 2]), interpolation, fill)


def _fetch(image, places: np.ndarray, interpolation: str, fill):
    """The image's values at ``places`` (H, W, 2): x and y from -1 to 1; ``fill`` where they are outside."""
    _, h, w = dimensions(image)
    grid = wrap(places.astype(np.float32))

    def sample(x):
        shape = (x.shape[0], *grid.shape)
        return grid_sample(x, grid.expand(shape), interpolation, padding_mode="zeros", align_corners=False)

    moved = _as_batch(image, sample, exact=False)
    if fill is not None:
        inside = _as_batch(ones((1, h, w)), sample, exact=False)
        background = _channels(fill, moved)
        if interpolation == "nearest":
            moved = moved * (inside >= 0.5) + background * (inside < 0.5)
        else:
            moved = inside * moved + (1 - inside) * background
    return _as(moved, image.dtype)


def _as_batch(image, function, exact: bool = True, native: bool = False):
    """Run a function of floats (N, C, H, W) on any tensor image; ``exact``: then back to the image's dtype."""
    lead = image.shape[:-3]
    x = image.reshape(-1, *((1,) * (3 - image.ndim)), *image.shape[-3:])
    made = function(x if native or image.is_floating_point() else x.float())
    made = made.reshape(*(lead if image.ndim >= 3 else ()), *made.shape[(1 if image.ndim >= 3 else 2) :])
    return _as(made, image.dtype) if exact else made


def _as(values, dtype):
    """Back to an image's dtype: integers rounded, and kept in range where cubic weights overshoot."""
    if dtype.is_floating_point or values.dtype is dtype:
        return values.to(dtype)
    limits = dtypes.iinfo(dtype)
    return values.round().clamp(limits.min, limits.max).to(dtype)


def _channels(fill, image):
    """A fill value as a tensor that broadcasts over the channels."""
    if isinstance(fill, (int, float)):
        return tensor(fill).to(image.dtype)
    return tensor(list(fill)).to(image.dtype).reshape(-1, 1, 1)


def _largest(image):
    return 1.0 if image.is_floating_point() else dtypes.iinfo(image.dtype).max


def _blend(image, other, ratio):
    mixed = (ratio * image + (1.0 - ratio) * other).clamp(0, _largest(image))
    return mixed.to(image.dtype)


def _to_hsv(image):
    red, green, blue = image.unbind(-3)
    value, smallest = image.amax(-3), image.amin(-3)
    spread = value - smallest
    gray = spread == 0
    saturation = spread / (value + gray * (1 - value))
    divisor = spread + gray * 1.0
    r, g, b = ((value - channel) / divisor for channel in (red, green, blue))
    from_red, from_green = value == red, (value == green) & (value != red)
    hue = from_red * (b - g) + from_green * (2 + r - b) + (~from_red & ~from_green) * (4 + g - r)
    return stack(((hue / 6 + 1) % 1.0, saturation, value), -3)


def _to_rgb(hue, saturation, value):
    sixth = (hue * 6).floor()
    rest = hue * 6 - sixth
    p = (value * (1 - saturation)).clamp(0, 1)
    q = (value * (1 - saturation * rest)).clamp(0, 1)
    t = (value * (1 - saturation * (1 - rest))).clamp(0, 1)
    sector = sixth % 6
    choices = ((value, q, p, p, t, value), (t, value, value, q, p, p), (p, p, t, value, value, q))
    return stack([sum((sector == i) * x for i, x in enumerate(row)) for row in choices], -3)
