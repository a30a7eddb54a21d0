"""Fourier transforms: three primitives (complex to complex, real to complex, complex to real), frames of a signal.

The primitives do not normalize but multiply by ``scale``, which makes each the others' adjoint.
"""

from __future__ import annotations

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..autograd.op import differentiable as xp
from ..autograd.op import op
from ..errors import warn_once
from ..tensor import Tensor, wrap
from .common import refuse
from .public import public


@op(
    node="FftC2CBackward0",
    x=lambda xp, g, axes, scale, inverse: xp.fft_c2c(g, axes=axes, scale=scale, inverse=not inverse),
)
def _fft_c2c(xp, x, *, axes, scale=1.0, inverse=False):
    y = xp.ifftn(x, axes=axes, norm="forward") if inverse else xp.fftn(x, axes=axes, norm="backward")
    return y if scale == 1 else y * scale


def _fft_r2c_x(xp, g, axes, scale, inverse, onesided, x_shape):
    if onesided:
        g = xp.resize_ends(g, axes=(axes[-1],), sizes=(x_shape[axes[-1]],))
    return xp.real(xp.fft_c2c(g, axes=axes, scale=scale, inverse=not inverse))


@op(node="FftR2CBackward0", x=_fft_r2c_x)
def _fft_r2c(xp, x, *, axes, scale=1.0, inverse=False, onesided=True):
    """The transform of real x; ``onesided``: only the half of the last axis that the rest follows from."""
    if not onesided:
        y = xp.fft_c2c(x, axes=axes, scale=1.0, inverse=inverse)
    else:
        y = xp.rfftn(x, axes=axes)
        y = xp.conj(y) if inverse else y
    return y if scale == 1 else y * scale


def _fft_c2r_x(xp, g, axes, scale, inverse, x_shape):
    n, half = g.shape[axes[-1]], x_shape[axes[-1]]
    half_spectrum = xp.fft_r2c(g, axes=axes, scale=scale, inverse=not inverse)
    return xp.double_middle(half_spectrum, axis=axes[-1], count=n - half)


@op(node="FftC2RBackward0", x=_fft_c2r_x)
def _fft_c2r(xp, x, *, axes, size, scale=1.0, inverse=True):
    """The real signal whose transform's half (along the last of ``axes``) is x; ``size`` is its length there."""
    sizes = tuple(x.shape[a] for a in axes[:-1]) + (size,)
    y = xp.irfftn(x if inverse else xp.conj(x), s=sizes, axes=axes, norm="forward")
    return y if scale == 1 else y * scale


@op(x=lambda xp, g, axis, count: xp.double_middle(g, axis=axis, count=count))
def _double_middle(xp, x, *, axis, count):
    """x with the entries 1 to ``count`` along ``axis`` doubled: those that stand for two of a full spectrum."""
    weights = np.ones([x.shape[axis] if i == axis else 1 for i in range(x.ndim)], dtype=x.real.dtype)
    weights[tuple(slice(1, 1 + count) if i == axis else slice(None) for i in range(x.ndim))] = 2
    return x * weights


def _resize_ends_x(xp, g, axes, x_shape):
    return xp.resize_ends(g, axes=axes, sizes=tuple(x_shape[a] for a in axes))


@op(node="ConstantPadNdBackward0", exact=True, x=_resize_ends_x)
def _resize_ends(xp, x, *, axes, sizes):
    """x cut or filled up with zeros at the end of each axis, to its size."""
    wanted = dict(zip(axes, sizes))
    x = x[tuple(slice(0, min(n, wanted.get(i, n))) for i, n in enumerate(x.shape))]
    return xp.pad(x, [(0, wanted.get(i, n) - n) for i, n in enumerate(x.shape)])


def _places(size, step, count):
    return np.arange(count)[:, None] * step + np.arange(size)


def _frames_x(xp, g, step, x_shape):
    return xp.overlap_add(g, step=step, length=x_shape[-1])


@op(node="AsStridedBackward0", exact=True, x=_frames_x)
def _frames(xp, x, *, size, step):
    """Windows of the last axis: ``size`` elements each, ``step`` apart."""
    return xp.take(x, _places(size, step, 1 + (x.shape[-1] - size) // step), axis=-1)


@op(node="UnfoldBackwardBackward0", x=lambda xp, g, step, x_shape: xp.frames(g, size=x_shape[-1], step=step))
def _overlap_add(xp, x, *, step, length):
    """The signal of ``length`` that frames ``step`` apart add up to."""
    out = xp.zeros((*x.shape[:-2], length), dtype=x.dtype)
    places = _places(x.shape[-1], step, x.shape[-2])
    return xp.index_add(out, x, index=(Ellipsis, places))


# -- short-time transforms -------------------------------------------------------------------------------------------


@public(out=False)
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of windows along a signal: frequencies by frames."""
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if input.ndim not in (1, 2) or input._array.dtype.kind in "biu":
        raise RuntimeError(
            f"stft({_described(input)}, n_fft={n_fft}): expected a 1D or 2D tensor of floating point or complex values"
        )
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral "
            "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
            "spectral leakage.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    if state.casting is None:  # autocast makes it float32
        refuse("stft", lambda d: d.is_floating_point and d.itemsize < 4, input)
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    x = xp.expand_dims(input, axis=0) if input.ndim == 1 else input
    if center:
        x = _padded(x, n_fft // 2, pad_mode)
    length = x._array.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(
            f"stft({_described(input)}, n_fft={n_fft}, hop_length={hop}, win_length={size}): expected 0 < n_fft <= "
            f"{length}, but got n_fft={n_fft}"
        )
    if hop <= 0:
        raise RuntimeError(f"stft({_described(input)}, n_fft={n_fft}, hop_length={hop}): expected hop_length > 0")
    if not 0 < size <= n_fft:
        raise RuntimeError(
            f"stft({_described(input)}, n_fft={n_fft}): expected 0 < win_length <= n_fft, but got {size}"
        )
    x = xp.frames(x, size=n_fft, step=hop)
    if window is not None or size < n_fft:
        x = xp.multiply(x, _centered(window, size, n_fft, input))
    scale = n_fft**-0.5 if normalized else 1.0
    last = (x.ndim - 1,)
    if x.dtype.is_complex:
        spectrum = xp.fft_c2c(x, axes=last, scale=scale)
    else:
        spectrum = xp.fft_r2c(x, axes=last, scale=scale, onesided=onesided is None or onesided)
    spectrum = xp.matrix_transpose(spectrum)
    if input.ndim == 1:
        spectrum = xp.squeeze(spectrum, axis=0)
    return spectrum if return_complex else _as_real(spectrum)


@public(out=False)
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose short-time transform this is, by adding up its windows and dividing by their weight."""
    hop, size = hop_length or n_fft // 4, win_length or n_fft
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly "
            "set `window=torch.ones(n_fft, device=<device>)`."
        )
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if input.ndim not in (2, 3):
        raise (IndexError if input.ndim < 2 else RuntimeError)(
            f"istft({_described(input)}, n_fft={n_fft}): expected a tensor with 2 or 3 dimensions, but got {input.ndim}"
        )
    if not input.numel():
        raise RuntimeError(f"istft({_described(input)}, n_fft={n_fft}): input tensor cannot be empty.")
    spectrum = xp.expand_dims(input, axis=0) if input.ndim == 2 else input
    spectrum = xp.matrix_transpose(spectrum)
    count, bins = spectrum._array.shape[-2:]
    onesided = bins != n_fft if onesided is None else onesided
    _check_bins(input, n_fft, bins, onesided)
    if window is not None and window.dtype.is_complex and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    scale = n_fft**-0.5 if normalized else 1.0 / n_fft
    last = (spectrum.ndim - 1,)
    if return_complex:
        frames = xp.fft_c2c(spectrum, axes=last, scale=scale, inverse=True)
    else:
        spectrum = spectrum if onesided else spectrum[..., : n_fft // 2 + 1]
        frames = xp.fft_c2r(spectrum, axes=last, size=n_fft, scale=scale)
    if window is not None and not window.dtype.is_complex:
        window = window.to(frames.dtype.to_real())
    weights = _centered(window, size, n_fft, frames)
    total = n_fft + hop * (count - 1)
    signal = xp.overlap_add(xp.multiply(frames, weights), step=hop, length=total)
    squared = xp.broadcast_to(xp.multiply(weights, weights), shape=(count, n_fft))
    envelope = xp.overlap_add(squared, step=hop, length=total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    signal, envelope = signal[..., start:end], envelope[start:end]
    if _has_gaps(envelope._array):
        raise RuntimeError(
            "istft(): the windows leave gaps (window overlap add min: 1): choose a window and a hop_length whose "
            "windows cover every sample."
        )
    signal = xp.divide(signal, envelope)
    if end > total:
        signal = xp.resize_ends(signal, axes=(signal.ndim - 1,), sizes=(end - start,))
    return xp.squeeze(signal, axis=0) if input.ndim == 2 else signal


def _check_bins(input, n_fft, bins, onesided) -> None:
    expected = n_fft // 2 + 1 if onesided else n_fft
    if bins != expected:
        raise RuntimeError(
            f"istft({_described(input)}, n_fft={n_fft}): expected the frequency dimension (3rd to the last) of the "
            f"input tensor to have {expected} entries with onesided={onesided} and n_fft={n_fft}, but got {bins}"
        )


def _has_gaps(weights) -> bool:
    return isinstance(weights, np.ndarray) and bool((abs(weights) < 1e-11).any())


def _centered(window, size, n_fft, like):
    """The window (ones if None), zeros on both sides up to ``n_fft``."""
    before = (n_fft - size) // 2
    if window is None:
        made = np.zeros(n_fft, dtype=like.dtype.to_real().numpy)
        made[before : before + size] = 1
        return _on_device_of(like, made)
    if window.ndim != 1 or window._array.shape[0] != size:
        raise RuntimeError(
            f"expected a 1D window tensor of size equal to win_length={size}, but got window with size "
            f"{list(window._array.shape)}"
        )
    if size == n_fft:
        return window
    return xp.roll(xp.resize_ends(window, axes=(0,), sizes=(n_fft,)), shift=(before,), axis=(0,))


def _padded(x, width, mode):
    n = x._array.shape[-1]
    if mode == "reflect" and width >= n:
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({width}, {width}) at dimension 2 of input {[1, *x.shape]}"
        )
    if mode == "constant":
        x = xp.resize_ends(x, axes=(x.ndim - 1,), sizes=(n + 2 * width,))
        return xp.roll(x, shift=(width,), axis=(x.ndim - 1,))
    places = np.pad(np.arange(n), width, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])
    return x[..., _on_device_of(x, places)]


def _on_device_of(like, array):
    from ..engine import namespace_of

    return wrap(namespace_of(like._array).asarray(array))


def _as_real(x):
    return xp.stack([xp.real(x), xp.imag(x)], axis=x.ndim)


def _described(t) -> str:
    return f"torch.{t.dtype.char}{list(t._array.shape)}"


def promoted(x, *, to_complex=False) -> Tensor:
    """What a transform is taken of: at least the default float."""
    if state.casting is not None:
        (x,) = state.casting.raise_(x)
    d = x.dtype
    if not (d.is_floating_point or d.is_complex):
        d = dtypes.get_default_dtype()
    if d.to_real().itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {d.char.removesuffix('Tensor')}")
    d = d.to_complex() if to_complex else d
    return x if d is x.dtype else xp.astype(x, dtype=d.numpy)
