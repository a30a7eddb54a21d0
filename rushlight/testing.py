"""``rushlight.testing``: ``assert_close``, with tolerances by dtype, and ``make_tensor``."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

import numpy as np

import rushlight as torch

from .errors import warn_user

__all__ = ["assert_allclose", "assert_close", "make_tensor"]


def __dir__():
    return __all__


# (rtol, atol) when none are given; exact for integers and booleans
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raise ``AssertionError`` unless two tensors, or two structures of them, are equal within tolerances.

    >>> rushlight.testing.assert_close(rushlight.tensor([1.0]), rushlight.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        given, other = ("rtol", "atol") if atol is None else ("atol", "rtol")
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but got no {other} beside {given}."
        )
    problem = _difference(actual, expected, rtol, atol, equal_nan, (check_device, check_dtype, check_stride), "")
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


# (rtol, atol) of the old function
_OLD_TOLERANCES = {
    torch.float16: (1e-3, 1e-3),
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-5, 1e-8),
}


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The old ``assert_close``, with a warning: wider tolerances, any dtype and device."""
    warn_user(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    actual, expected = (t if isinstance(t, torch.Tensor) else torch.tensor(t) for t in (actual, expected))
    if rtol is None and atol is None:
        pairs = [_OLD_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs))
    assert_close(
        actual,
        expected.to(actual.device),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )


def _difference(actual, expected, rtol, atol, equal_nan, checks, place) -> str | None:
    """The first difference, in words."""
    rest = (rtol, atol, equal_nan, checks)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match{place}: {list(actual)} and {list(expected)}"
        return next(filter(None, (_difference(actual[k], expected[k], *rest, _item(place, k)) for k in actual)), None)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences do not match{place}: {len(actual)} != {len(expected)}"
        pairs = enumerate(zip(actual, expected))
        return next(filter(None, (_difference(a, e, *rest, _item(place, i)) for i, (a, e) in pairs)), None)
    if actual is None and expected is None:
        return None
    try:
        tensors = _tensor(actual), _tensor(expected)
    except (TypeError, ValueError):
        if type(actual) is type(expected):
            return None if actual == expected else f"Values are not equal{place}: {actual!r} != {expected!r}"
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
        ) from None
    scalars = all(isinstance(v, numbers.Number) for v in (actual, expected))
    return _tensor_difference(*tensors, *rest, place, scalars)


def _tensor_difference(actual, expected, rtol, atol, equal_nan, checks, place, scalars) -> str | None:
    check_device, check_dtype, check_stride = checks
    unequal = [
        (actual.shape != expected.shape, "shape", actual.shape, expected.shape),
        (check_device and actual.device != expected.device, "device", actual.device, expected.device),
        (check_dtype and actual.dtype != expected.dtype and not scalars, "dtype", actual.dtype, expected.dtype),
        (check_stride and actual.stride() != expected.stride(), "stride()", actual.stride(), expected.stride()),
    ]
    for differs, name, a, e in unequal:
        if differs:
            return f"The values for attribute '{name}' do not match{place}: {a} != {e}."
    if rtol is None:
        pairs = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs))
    a, e = (_array(t) for t in (actual, expected))
    close = np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan) if rtol or atol else _equal(a, e, equal_nan)
    return None if close.all() else _report(a, e, close, rtol, atol, place, scalars)


def _report(a, e, close, rtol, atol, place, scalars) -> str:
    with np.errstate(all="ignore"):
        apart = np.abs(a - e) if a.dtype != bool else (a != e).astype(np.int64)
        relative = (apart / np.abs(e)).astype(
            np.float64 if a.dtype.itemsize > 4 and a.dtype.kind in "fc" else np.float32
        )
    exact = not rtol and not atol
    if scalars:
        limits = "" if exact else f" (up to {atol} allowed)", "" if exact else f" (up to {rtol} allowed)"
        kind = "equal" if exact else "close"
        return (
            f"Scalars are not {kind}{place}!\n\nExpected {e[()]} but got {a[()]}.\n"
            f"Absolute difference: {apart[()]}{limits[0]}\nRelative difference: {relative[()]}{limits[1]}"
        )
    wrong = np.where(close, -1.0, apart), np.where(close, -1.0, relative)
    worst = [tuple(map(int, np.unravel_index(np.argmax(w), w.shape))) for w in wrong]
    count, total = int((~close).sum()), close.size
    limits = "" if exact else f" (up to {atol} allowed)", "" if exact else f" (up to {rtol} allowed)"
    return (
        f"Tensor-likes are not {'equal' if exact else 'close'}{place}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {apart[worst[0]].item()} at index {worst[0]}{limits[0]}\n"
        f"Greatest relative difference: {relative[worst[1]].item()} at index {worst[1]}{limits[1]}"
    )


def _equal(a, e, equal_nan):
    return (a == e) | ((a != a) & (e != e)) if equal_nan else a == e


def _array(t) -> np.ndarray:
    """As NumPy's; integers and half precision in a type that their differences fit in."""
    t = t.detach().cpu()
    if t.dtype in (torch.float16, torch.bfloat16):
        t = t.to(torch.float32)
    elif t.dtype is torch.complex32:
        t = t.to(torch.complex64)
    return t.numpy() if t.is_floating_point() or t.is_complex() or t.dtype == torch.bool else t.to(torch.int64).numpy()


def _tensor(value):
    wide = {float: torch.float64, complex: torch.complex128}.get(type(value))
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value, dtype=wide)


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _item(place: str, key) -> str:
    return f" for item [{key!r}]" if not place else f"{place}[{key!r}]"


def make_tensor(
    *shape, dtype, device=None, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False
):
    """Uniform values from ``low`` to ``high``: -9 to 9, for integers from their range, 0 or 1 for booleans."""
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    drawn = (*shape[:-1], 2 * shape[-1]) if noncontiguous and shape else shape
    if dtype == torch.bool:
        made = torch.randint(0, 2, drawn, device=device).to(dtype)
    elif not (dtype.is_floating_point or dtype.is_complex):
        low, high = (0 if dtype == torch.uint8 else -9) if low is None else low, 10 if high is None else high
        made = torch.randint(int(low), int(high), drawn, device=device).to(dtype)
    else:
        low, high = -9 if low is None else low, 9 if high is None else high
        made = torch.rand(drawn, dtype=dtype, device=device) * (high - low) + low
    if exclude_zero:
        made[made == 0] = 1
    made = made[..., ::2] if noncontiguous and shape else made
    return made.requires_grad_(requires_grad)
