"""Who is told of each collective: ``CommDebugMode``, while its block runs."""

from __future__ import annotations

import contextlib

WATCHERS: list = []  # called with what it is named here, and how many


def tell(what: str, count: int = 1) -> None:
    for watcher in WATCHERS:
        watcher(what, count)


@contextlib.contextmanager
def as_one(what: str):
    """A call that counts once, by a name of its own, whatever it is made of."""
    tell(what)
    watchers = WATCHERS[:]
    WATCHERS.clear()
    try:
        yield
    finally:
        WATCHERS.extend(watchers)
