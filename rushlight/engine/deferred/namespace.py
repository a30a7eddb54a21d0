"""The deferred engine's namespace: every function of the XLA engine, recorded instead of run.

Rules seldom see it. An operator is one recorded call (``once``), all its gradients are another, and so is the step of
an optimizer for all parameters of a group; inside, the XLA engine's own functions run.
"""

from __future__ import annotations

import math
import sys
from threading import get_ident
from typing import Any

import jax
import numpy as np

from ... import backends
from .. import Number
from ..fallback import run, through
from ..native import library
from ..xla import devices
from ..xla import namespace as xla
from ..xla.devices import _trace, explained, place_of
from . import kinds
from .array import Deferred
from .recording import landed, last_place, recording_of, recording_on, replaced, settle, spare_collector

DEFERS = True
BODIES: dict = {}  # a recorded call runs the XLA engine's bodies
BACKWARD: dict = {}
Deferred.namespace = sys.modules[__name__]


# -- recorded calls ----------------------------------------------------------------------------------------------------


def once(name: str, function, constants: tuple, *args):
    """``function(xp, *constants, *args)`` as one recorded call: a pure function of the arrays anywhere in ``args``."""
    if _trace.key is None and _known is not None:
        try:
            made = _known(function, constants, args, backends.cudnn.allow_tf32)
        except kinds.Traced:
            made = None
        if made is not None:
            return made
    promised: list[Deferred] = []
    key: list[Any] = [function, constants]
    try:
        kinds.scan(args, promised, key)
    except kinds.Traced:
        promised = []
    if _trace.key is not None or not promised:
        return function(xla, *constants, *_now(args))
    recording = promised[0].recording
    if recording is None or recording.owner != get_ident():
        recording = recording_of(promised)
    key += (recording.name, backends.cudnn.allow_tf32)  # what bodies look at besides their arguments
    try:
        kind, numbers = kinds.find(name, (function, xla, *constants), args, key, promised, recording)
    except devices.NEEDS_VALUE:  # what is computed depends on values: they are looked at, now and from now on
        return _wrapped(function(xla, *constants, *_now(args)))
    return recording.add(kind, promised, numbers)


_known = None if library is None else library.once  # in C: a call of a known kind that goes on in this recording


def _wrapped(value):
    """JAX's arrays in a result as arrays of this engine."""
    return jax.tree.map(lambda x: Deferred(x) if isinstance(x, jax.Array) else x, value)


def __getattr__(name: str):
    """The XLA engine's function of that name, recorded; found once, then an ordinary global."""
    found = globals()[name] = through(once, xla, name)
    return found


def _made_on(place, name: str, function, *args, key=None):
    """A call without arrays to start from: ``full``, ``arange``, random numbers with their key's words."""
    if _trace.key is not None:
        return function(xla, *args) if key is None else function(xla, *args, key)
    recording = recording_on(place)
    parts: list[Any] = [function, recording.device]
    kinds.scan(args, [], parts)
    kind, numbers = kinds.find(name, (function, xla), args, parts, [], recording, key is not None)
    return recording.add(kind, [], numbers, key)


def _now(value):
    """``value`` with computed arrays in the place of promises."""
    if value.__class__ is Deferred:
        return value.force()
    if value.__class__ in (tuple, list):
        return value.__class__([_now(part) for part in value])
    if value.__class__ is dict:
        return {name: _now(part) for name, part in value.items()}
    return int(value) if value.__class__ is Number else value


xla.without_promises = _now


# -- arrays and devices ------------------------------------------------------------------------------------------------


def lifted(array) -> Deferred:
    """A JAX array, or a small NumPy one, as an array of this engine."""
    return array if array.__class__ is Deferred else Deferred(array)


def device_of(array):
    if array.__class__ is not Deferred:
        return devices.device_of(array)
    return devices.device_at(array.place)


def to_device(array, d):
    """``array`` on device ``d``. New data from outside ends a recording: there a loop begins again."""
    if array.__class__ is Deferred:
        place = place_of(d)
        if array.place is place:
            return array
        array = array.force()
    elif isinstance(array, np.ndarray) and array.ndim:
        settle()
    return Deferred(devices.to_device(array, d), owned=isinstance(array, np.ndarray))


def to_numpy(array) -> np.ndarray:
    return devices.to_numpy(array.computed() if array.__class__ is Deferred else array)


def check_same_device(arrays) -> None:
    """Raise PyTorch's error for an array of the CPU; those of other devices are noticed as they enter a recording."""
    for a in arrays:
        if a.__class__ is np.ndarray and a.ndim:
            devices.check_same_device([_now(a) for a in arrays])


def is_traced(x) -> bool:
    return False


def is_known(x) -> bool:
    """Can values be looked at without waiting? Here that would end a recording, so checks of values are left out."""
    return False


def on_host(function, name, *arrays):
    """``function`` of NumPy copies of ``arrays``, its results put back beside them."""
    place = lifted(arrays[0]).place
    results = function(*[np.asarray(_now(a)) for a in arrays])
    put = lambda r: Deferred(jax.device_put(r, place))
    return tuple(map(put, results)) if isinstance(results, tuple) else put(results)


def nonzero(x):
    return on_host(np.nonzero, "nonzero", x)


def asarray(x, dtype=None):
    if x.__class__ is Deferred:
        return x if dtype is None or x.dtype == dtype else astype(x, dtype)
    return Deferred(jax.device_put(np.array(x, dtype=dtype), _default_place()))


def astype(x, dtype):
    if x.__class__ is Deferred and x.dtype == dtype:
        return x
    return once("astype", run, ("astype",), (x, np.dtype(dtype)), {})


def alias(x):
    return x  # arrays cannot be written: nobody can tell two apart


def lay_out(x, order):
    return x


# -- arrays from nothing -----------------------------------------------------------------------------------------------


def full(shape, fill_value, dtype=None, device=None):
    shape, place = tuple(shape), device or _default_place()
    if isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    if not isinstance(fill_value, (bool, int, float, complex)):
        return once("full", run, ("full",), (shape, fill_value), {"dtype": dtype})
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > xla._LARGE:
        devices.check_room(place, size)
    return _made_on(place, "full", run, "full", (shape, fill_value), {"dtype": dtype})


def zeros(shape, dtype=None):
    return full(shape if isinstance(shape, (tuple, list)) else (shape,), 0, dtype)


def ones(shape, dtype=None):
    return full(shape if isinstance(shape, (tuple, list)) else (shape,), 1, dtype)


def arange(*args, dtype=None):
    return _made_on(_default_place(), "arange", run, "arange", args, {"dtype": dtype})


def eye(*args, **options):
    return _made_on(_default_place(), "eye", run, "eye", args, options)


def draw(kind: str, generator, device, args: tuple, options: dict):
    """Random numbers as one call: the words of their key are an input, drawn from the generator now."""
    words = generator.key_words(devices.KEY_WORDS)
    arrays = [a for a in args if a.__class__ is Deferred]
    place = arrays[0].place if arrays else place_of(device)
    recording = recording_on(place)
    parts: list[Any] = [_drawn, recording.device]
    kinds.scan((kind, args, options), arrays := [], parts)
    found, numbers = kinds.find(kind, (_drawn,), (kind, args, options), parts, arrays, recording, True)
    return recording.add(found, arrays, numbers, words)


def _drawn(kind, args, options, words):
    return xla.draw(kind, devices.Words(words), None, args, options)


def _default_place():
    """Where an array goes that nobody gave a device: where this thread last recorded."""
    return last_place() or jax.local_devices()[0]
