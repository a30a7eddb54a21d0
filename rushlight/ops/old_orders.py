"""Calls in the order of old: ``x.add_(-lr, g)``, ``addcdiv(x, value, a, b)``, ``addmm(beta, x, alpha, a, b)``.

The numbers that scale are named today. Given by place, before what they scale, they are still taken, as PyTorch does.
"""

from __future__ import annotations

import functools
import warnings
from numbers import Number

from ..tensor import Tensor

FUNCTION, METHOD, IN_PLACE = "function", "method", "in place"
_told: list[str] = []


def taking(f, numbers: tuple[str, ...], form: str):
    """``f``, which also takes ``numbers`` by place, as one of its three forms."""
    tensors = f.__code__.co_varnames[: f.__code__.co_argcount]

    @functools.wraps(f)
    def called(*args, **kwargs):
        if len(args) <= len(tensors) or kwargs:
            return f(*args, **kwargs)
        named, given = _apart(args, numbers, len(tensors), form)
        if named is None:
            return f(*args)  # says what it takes
        _tell(f.__name__ + "_" * (form == IN_PLACE), tensors, numbers, len(named), form)
        return f(*given, **named)

    return called


def _apart(args, numbers, count, form):
    """The ``numbers`` by name and the other arguments; (None, ()) where they do not stand as they used to."""
    if len(numbers) == 1:  # add(x, alpha, y)
        places = [1]
    elif form == FUNCTION:  # addmm(beta, x, alpha, a, b), addmm(beta, x, a, b)
        places = [0, 2][: len(args) - count]
    else:  # x.addmm(beta, alpha, a, b), x.addmm(beta, a, b)
        places = [1, 2][: len(args) - count]
    given = [a for i, a in enumerate(args) if i not in places]
    fits = len(given) == count and all(isinstance(args[i], Number) for i in places)
    if not fits or not all(isinstance(a, (Tensor, Number)) for a in given):
        return None, ()
    return dict(zip(numbers, (args[i] for i in places))), given


def _tell(name, tensors, numbers, given, form) -> None:
    """PyTorch's warning, once in a process."""
    if _told:
        return
    _told.append(name)
    words = [f"Tensor {t}" for t in tensors]
    scales, out = [f"Number {n}" for n in numbers[:given]], ", Tensor out = None" if form == FUNCTION else ""
    if form != FUNCTION:
        old = scales + words[1:]
    elif len(numbers) == 1:
        old = words[:1] + scales + words[1:]
    else:
        old = scales[:1] + words[:1] + scales[1:] + words[1:]
    new = words if form == FUNCTION else words[1:]
    named = ", ".join(f"Number {n} = 1" for n in numbers)
    warnings.warn(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(old)}{', *' + out if out else ''})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({', '.join(new)}, *, {named}{out})",
        stacklevel=3,
    )
