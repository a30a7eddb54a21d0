"""Calls in the order of old: ``x.add_(-lr, g)``, ``addcdiv(x, value, a, b)``, ``addmm(beta, x, alpha, a, b)``.

The numbers that scale are named today. Given by place, before what they scale, they are still taken, as PyTorch does.
"""

from __future__ import annotations

import functools
import inspect
from numbers import Number

from ..errors import warn_user
from ..tensor import Tensor

FUNCTION, METHOD, IN_PLACE = "function", "method", "in place"
_told: list[str] = []


def taking(f, numbers: tuple[str, ...], form: str, explain=None):
    """``f``, which also takes ``numbers`` by place, as one of its three forms; ``explain`` as in ``kinds.checked``."""
    code = inspect.unwrap(f).__code__
    tensors = code.co_varnames[: code.co_argcount]

    @functools.wraps(f)
    def called(*args, **kwargs):
        if len(args) <= len(tensors) or kwargs:
            try:
                return f(*args, **kwargs)
            except Exception:
                if explain is not None:
                    explain(f.__name__, f, args[1:], kwargs)
                raise
        places = _places(len(numbers), form)[: len(args) - len(tensors)]
        given = [a for i, a in enumerate(args) if i not in places]
        scales = [args[i] for i in places]
        if len(given) != len(tensors) or not (all(map(_is_number, scales)) and all(map(_is_operand, given))):
            if explain is not None:
                explain(f.__name__, f, args[1:], kwargs, failed=True)
            return f(*args)  # says what it takes
        _tell(f.__name__ + "_" * (form == IN_PLACE), tensors, numbers, places, form)
        return f(*given, **dict(zip(numbers, scales)))

    return called


def _places(count: int, form: str) -> list[int]:
    """Where the numbers stand among the arguments, a method's tensor included."""
    if count == 1:  # add(x, alpha, y), x.add(alpha, y)
        return [1]
    return [0, 2] if form == FUNCTION else [1, 2]  # addmm(beta, x, alpha, a, b), x.addmm(beta, alpha, a, b)


def _is_number(value) -> bool:
    return isinstance(value, Number)


def _is_operand(value) -> bool:
    return isinstance(value, (Tensor, Number))


def _tell(name, tensors, numbers, places, form) -> None:
    """PyTorch's warning, once in a process."""
    if _told:
        return
    _told.append(name)
    new = [f"Tensor {t}" for t in tensors]
    old = new.copy()
    for place, number in zip(places, numbers):
        old.insert(place, f"Number {number}")
    if form != FUNCTION:
        del old[0], new[0]  # the tensor whose method it is
    out = ", Tensor out = None" if form == FUNCTION else ""
    named = ", ".join(f"Number {n} = 1" for n in numbers)
    warn_user(
        f"This overload of {name} is deprecated:\n\t{name}({', '.join(old)}{', *' + out if out else ''})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({', '.join(new)}, *, {named}{out})"
    )
