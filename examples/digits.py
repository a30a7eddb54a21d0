"""Drawn digits, for examples that need pictures but no download: strokes with a shaky hand, as NumPy arrays."""

import itertools
import os
import struct

import numpy as np

# Each digit as strokes: corner points (x, y) between 0 and 1, y downwards.
STROKES = {
    0: [[(0.3, 0.2), (0.7, 0.2), (0.8, 0.5), (0.7, 0.8), (0.3, 0.8), (0.2, 0.5), (0.3, 0.2)]],
    1: [[(0.35, 0.35), (0.55, 0.15), (0.55, 0.85)]],
    2: [[(0.25, 0.3), (0.45, 0.15), (0.7, 0.25), (0.65, 0.5), (0.25, 0.85), (0.75, 0.85)]],
    3: [[(0.25, 0.2), (0.65, 0.2), (0.5, 0.45), (0.72, 0.65), (0.55, 0.85), (0.25, 0.8)]],
    4: [[(0.6, 0.85), (0.6, 0.15), (0.2, 0.6), (0.8, 0.6)]],
    5: [[(0.72, 0.15), (0.3, 0.15), (0.28, 0.45), (0.65, 0.5), (0.68, 0.75), (0.25, 0.85)]],
    6: [[(0.65, 0.15), (0.3, 0.5), (0.3, 0.8), (0.65, 0.82), (0.68, 0.55), (0.32, 0.55)]],
    7: [[(0.22, 0.17), (0.75, 0.17), (0.42, 0.85)]],
    8: [[(0.5, 0.48), (0.28, 0.32), (0.5, 0.15), (0.7, 0.3), (0.3, 0.68), (0.5, 0.85), (0.72, 0.68), (0.5, 0.48)]],
    9: [[(0.68, 0.42), (0.35, 0.45), (0.3, 0.22), (0.65, 0.18), (0.68, 0.42), (0.55, 0.85)]],
}


def draw(count, size=28, seed=0):
    """Pictures (count, size, size) as uint8 and the digits they show."""
    rng = np.random.RandomState(seed)
    targets = rng.randint(0, 10, count)
    images = np.stack([_draw_one(int(target), size, rng) for target in targets])
    return images, targets.astype(np.int64)


def write_idx(folder, train=1000, test=400):
    """Write drawn digits as the four files that ``datasets.MNIST(folder)`` reads, unless there are some already."""
    raw = os.path.join(folder, "MNIST", "raw")
    if os.path.exists(os.path.join(raw, "t10k-labels-idx1-ubyte")):
        return
    os.makedirs(raw, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("t10k", test, 2)):
        images, targets = draw(count, 28, seed)
        _write(os.path.join(raw, f"{name}-images-idx3-ubyte"), images)
        _write(os.path.join(raw, f"{name}-labels-idx1-ubyte"), targets.astype(np.uint8))


def save_grid(images, path, columns=8, enlarge=2):
    """Write pictures (count, height, width) between 0 and 1 side by side as a PNG, bright strokes on dark."""
    from PIL import Image

    images = np.pad(np.clip(images, 0, 1), ((0, 0), (1, 1), (1, 1))).repeat(enlarge, axis=1).repeat(enlarge, axis=2)
    rows = [np.concatenate(list(images[i : i + columns]), axis=1) for i in range(0, len(images), columns)]
    Image.fromarray((255 * np.concatenate(rows)).astype(np.uint8)).save(path, optimize=True)


def _draw_one(digit, size, rng):
    angle, scale, shift = rng.uniform(-0.25, 0.25), rng.uniform(0.75, 1.05, 2), rng.uniform(-0.08, 0.08, 2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    width = rng.uniform(0.035, 0.06)
    ys, xs = np.mgrid[0:size, 0:size]
    pixels = np.stack([xs.ravel(), ys.ravel()], 1) / (size - 1)
    nearest = np.full(size * size, np.inf)
    for stroke in STROKES[digit]:
        points = (np.array(stroke) - 0.5 + rng.normal(0, 0.02, (len(stroke), 2))) * scale @ turn + 0.5 + shift
        for a, b in itertools.pairwise(points):
            nearest = np.minimum(nearest, _distance(pixels, a, b))
    ink = 1 / (1 + np.exp((nearest - width) * 4 * size))
    return (255 * ink).astype(np.uint8).reshape(size, size)


def _distance(pixels, a, b):
    """From every pixel to the line from a to b."""
    along = np.clip((pixels - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    return np.hypot(*(pixels - a - along[:, None] * (b - a)).T)


def _write(path, array):
    with open(path, "wb") as file:
        file.write(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape))
        file.write(array.tobytes())
