"""PyTorch's words for a method or function that is called with arguments it does not take.

Asked only after a call has failed. What a method takes is read from the function behind it; ``kinds`` and the names of
its parameters tell of what kind they are. Where PyTorch has several signatures they stand in a table. Where a kind is
not known nothing is said, and the call's own error goes on.
"""

from __future__ import annotations

import inspect
import sys

from ..errors import type_name
from . import kinds

# Of parameters with these names, wherever ``kinds`` says nothing else.
_TENSORS = "input mask index source src tensor1 tensor2 batch1 batch2 mat1 mat2 mat vec vec1 vec2"
_BY_NAME = {
    **dict.fromkeys(("dim", "dim0", "dim1", "diagonal", "k", "n"), "int"),
    **dict.fromkeys(_TENSORS.split(), "Tensor"),
    **dict.fromkeys(("p", "maxnorm", "negative_slope"), "Number"),
}
# Of methods with one signature: the kind of ``other``.
_PAIRS = """atan2 arctan2 hypot gcd lcm nextafter logical_and logical_or logical_xor heaviside ldexp igamma
    igammac"""
_OTHER = {**dict.fromkeys(_PAIRS.split(), "Tensor"), **dict.fromkeys(("mul", "add", "sub"), "Number or Tensor")}
_BINARY = """bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign eq floor_divide fmod ge
    greater greater_equal gt le less less_equal lt multiply ne not_equal remainder true_divide xlogy"""
_BOUNDS = ("Tensor min = None, Tensor max = None", "Number min = None, Number max = None")
_ROUNDED = ("Tensor other, *, str rounding_mode", "Number other, *, str rounding_mode")
_ALONG, _AS = "int dim, bool keepdim = False", "*, torch.dtype dtype = None"
_SORTED, _TIMES = "int dim = -1, bool descending = False", "int dim = None, *, int output_size = None"
_SPREAD = (
    "tuple of ints dim, bool unbiased = True, bool keepdim = False",
    "tuple of ints dim = None, *, Number correction = None, bool keepdim = False",
    "bool unbiased = True",
)
_MOVED = ("int source, int destination", "tuple of ints source, tuple of ints destination")
_BETWEEN = 'int dim = None, bool keepdim = False, *, str interpolation = "linear"'
_WRITTEN = ("Tensor src", "Tensor src, *, str reduce", "Number value", "Number value, *, str reduce")
_SEVERAL = {
    **dict.fromkeys(_BINARY.split(), ("Tensor other", "Number other")),
    **dict.fromkeys(("pow", "float_power"), ("Tensor exponent", "Number exponent")),
    **dict.fromkeys(("clamp", "clip"), _BOUNDS),
    "div": ("Tensor other", *_ROUNDED),
    "divide": ("Tensor other", _ROUNDED[0], "Number other", _ROUNDED[1]),
    "subtract": ("Tensor other, *, Number alpha = 1", "Number other, Number alpha = 1"),
    "clamp_max": ("Tensor max", "Number max"),
    "clamp_min": ("Tensor min", "Number min"),
    "lerp": ("Tensor end, Tensor weight", "Tensor end, Number weight"),
    "masked_fill": ("Tensor mask, Tensor value", "Tensor mask, Number value"),
    "index_fill": ("int dim, Tensor index, Tensor value", "int dim, Tensor index, Number value"),
    **dict.fromkeys(("all", "any"), ("", "tuple of ints dim = None, bool keepdim = False", _ALONG)),
    **dict.fromkeys(("max", "min"), ("", "Tensor other", _ALONG)),
    **dict.fromkeys(("mean", "sum"), (_AS, f"tuple of ints dim, bool keepdim = False, {_AS}")),
    "prod": (_AS, f"{_ALONG}, {_AS}"),
    **dict.fromkeys(("sort", "argsort"), (f"*, bool stable, {_SORTED}", _SORTED)),
    **dict.fromkeys(("std", "var"), _SPREAD),
    "count_nonzero": ("int dim = None", "tuple of ints dim"),
    **dict.fromkeys(("dsplit", "hsplit", "vsplit"), ("int sections", "tuple of ints indices")),
    "tensor_split": (
        "tuple of ints indices, int dim = 0",
        "Tensor tensor_indices_or_sections, int dim = 0",
        "int sections, int dim = 0",
    ),
    **dict.fromkeys(("moveaxis", "movedim"), _MOVED),
    **dict.fromkeys(("quantile", "nanquantile"), (f"Tensor q, {_BETWEEN}", f"float q, {_BETWEEN}")),
    "narrow": ("int dim, Tensor start, int length", "int dim, int start, int length"),
    "repeat_interleave": (f"Tensor repeats, {_TIMES}", f"int repeats, {_TIMES}"),
    "scatter": tuple(f"int dim, Tensor index, {what}" for what in _WRITTEN),
    "squeeze": ("", "int dim", "tuple of ints dim"),
    "where": ("Tensor condition, Tensor other", "Tensor condition, Number other"),
}


# Functions that are Python in PyTorch: wrong calls of them fail as those of any Python function.
_IN_PYTHON = {"block_diag", "cdist", "chain_matmul", "einsum", "istft", "lu", "norm", "stft", "tensordot", "unique"}


def explain_function(name: str, f, args: tuple, kwargs: dict) -> None:
    """``explain`` for a function, which takes ``out=`` too."""
    if name not in _IN_PYTHON:
        explain(name, f, args, kwargs, first=0)


def explain(name: str, f, args: tuple, kwargs: dict, first: int = 1, failed: bool = False) -> None:
    """Raise PyTorch's TypeError if ``args`` and ``kwargs`` are not what ``name`` takes.

    ``first`` is 1 for a method, whose tensor is not among them, and 0 for a function. Errors that are about values are
    left alone; ``failed``: there is none yet.
    """
    if not failed and not isinstance(sys.exc_info()[1], (TypeError, AttributeError)):
        return
    if (signatures := _SEVERAL.get(name.rstrip("_"))) is not None:
        if first:
            _refuse_combination(name, signatures, args, kwargs)
        return
    plain = inspect.unwrap(f)
    code = plain.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return
    positional = code.co_varnames[first : code.co_argcount]
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if not positional and not named:
        refuse_any(name, args, kwargs)
        return
    known = kinds.of(plain)
    title = plain.__name__.rstrip("_")
    required = len(positional) - len(plain.__defaults__ or ())
    if len(args) > len(positional):
        raise TypeError(f"{name}() takes {_count(required, len(positional))} but {_given(len(args))}") from None
    for place, parameter in enumerate(positional):
        if place < len(args) or parameter in kwargs:
            kind = known.get(parameter) or _kind(title, parameter)
            if kind is None:
                return
            by_position = place < len(args)
            _check(name, parameter, kind, args[place] if by_position else kwargs[parameter], place, by_position)
        elif place < required:
            _refuse_missing(name, [p for p in positional[place:required] if p not in kwargs])
    for wrong in kwargs.keys() - {*positional, *named, "out", "axis", "keepdims"}:
        raise TypeError(f"{name}() got an unexpected keyword argument '{wrong}'") from None


def refuse_any(name, args, kwargs=None) -> None:
    """Raise PyTorch's TypeError if a method that takes nothing was given something."""
    if kwargs:
        raise TypeError(f"Tensor.{name}() takes no keyword arguments") from None
    if args:
        raise TypeError(f"Tensor.{name}() takes no arguments ({len(args)} given)") from None


def _count(low, high) -> str:
    words = "positional argument" if high == 1 else "positional arguments"
    return f"{high} {words}" if low == high else f"from {low} to {high} positional arguments"


def _given(count) -> str:
    return f"{count} {'was' if count == 1 else 'were'} given"


def _refuse_missing(name, missing) -> None:
    quoted = ", ".join(f'"{parameter}"' for parameter in missing)
    words = "arguments" if len(missing) == 1 else "argument"  # as PyTorch has them
    raise TypeError(f"{name}() missing {len(missing)} required positional {words}: {quoted}") from None


def _kind(title, parameter) -> str | None:
    if parameter == "index" and title.startswith("select"):
        return "int"
    return _OTHER.get(title) if parameter == "other" else _BY_NAME.get(parameter)


def _check(name, parameter, kind, value, place, by_position) -> None:
    if kinds.fits(kind, value):
        return
    where = f" (position {place + 1})" if by_position else ""
    raise TypeError(
        f"{name}(): argument '{parameter}'{where} must be {kinds.word(kind)}, not {type_name(value)}"
    ) from None


def _refuse_combination(name, signatures, args, kwargs) -> None:
    """Raise if the arguments fit none of several signatures, which the message lists."""
    taken = [[item.split(" = ")[0].rpartition(" ")[::2] for item in _items(text)] for text in signatures]
    required = [{item.rpartition(" ")[2] for item in _items(text) if "=" not in item} for text in signatures]
    if any(_fit(parameters, text.count("="), args, kwargs) for parameters, text in zip(taken, signatures)):
        return
    long_enough = [parameters for parameters in taken if args and len(parameters) >= len(args)]
    if len(long_enough) == 1 and not kwargs:  # no other can be meant
        for place, ((kind, parameter), value) in enumerate(zip(long_enough[0], args)):
            if kind != "tuple of ints" or not (value is None or kinds.fits("int", value)):
                _check(name, parameter, kind, value, place, True)
    lines = [
        f"{name}() received an invalid combination of arguments - got ({_types(args, kwargs)}), but expected one of:"
    ]
    for parameters, needed, text in zip(taken, required, signatures):
        lines.append(f" * ({text})")
        if len(args) + len(kwargs) == len(parameters) + ("*" in text):  # which PyTorch counts, too
            lines.append(f"      didn't match because some of the {_misfit(parameters, needed, args, kwargs)}")
    raise TypeError("\n".join(lines) + "\n") from None


def _items(text) -> list[str]:
    return text.replace("*, ", "").split(", ")


def _fit(parameters, optional, args, kwargs) -> bool:
    names = [parameter for _, parameter in parameters]
    given = {**dict(zip(names, args)), **kwargs}
    return (
        len(parameters) - optional <= len(given) == len(args) + len(kwargs)
        and given.keys() <= set(names)
        and all(_fits(kind, p, given[p]) or (optional and given[p] is None) for kind, p in parameters if p in given)
    )


def _fits(kind, parameter, value) -> bool:
    return bool(kind) and kinds.fits("Number or Tensor" if parameter == "other" and kind == "Tensor" else kind, value)


def _types(args, kwargs) -> str:
    named = [f"{name}={type_name(value)}" for name, value in kwargs.items()]
    return ", ".join([*map(type_name, args), *named]) + (", " if named and not args else "")


def _misfit(parameters, required, args, kwargs) -> str:
    """What of the arguments does not fit, by the names of their types alone; PyTorch knows those of no default."""
    wanted = {parameter: kind for kind, parameter in parameters}
    wrong = [name for name in kwargs if name not in wanted]
    if wrong:
        return "keywords were incorrect: " + ", ".join(wrong)
    places = [(type_name(v), type_name(v) == kind and p in required) for (kind, p), v in zip(parameters, args)]
    places += [(f"{name}={type_name(v)}", type_name(v) == wanted[name]) for name, v in kwargs.items()]
    shown = ", ".join(text if fits else f"!{text}!" for text, fits in places)
    return f"arguments have invalid types: ({shown}{', ' if kwargs and not args else ''})"
