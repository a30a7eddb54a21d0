"""Names an engine does not have itself: the forward function of the op of that name serves, bound to the engine."""

from __future__ import annotations

import functools

FORWARDS: dict = {}  # op name -> forward(xp, …); filled by ``@op``


def lookup(library, name: str, engine):
    """``library.name``, or else the op ``name`` as a function of the engine's arrays."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(library, name, None)
    if found is None:
        if name not in FORWARDS:
            raise AttributeError(f"neither {library.__name__} nor the operators have '{name}'")
        found = functools.partial(FORWARDS[name], engine)
    return found


def run(xp, name: str, args: tuple, options: dict):
    """The function ``name`` of namespace ``xp``, in the form that an engine's ``once`` takes."""
    return getattr(xp, name)(*args, **options)


def through(once, library, name: str):
    """``library.name`` as one call of an engine's ``once``; as it is, if it is no function."""
    if name.startswith("__"):
        raise AttributeError(name)
    function = getattr(library, name)
    if not callable(function):
        return function

    def called(*args, **options):
        return once(name, run, (name,), args, options)

    return called
