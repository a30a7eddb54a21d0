"""The names of ``torch._dynamo`` that programs use, for what compile does here."""

from __future__ import annotations

import dataclasses

from ..errors import ValuesNeeded


def graph_break(msg: str = "") -> None:
    """Cut the function that is being compiled."""
    from . import is_compiling

    if is_compiling():
        raise ValuesNeeded(f"it asks for a graph break. {msg}".strip())


def optimize(backend="xla", *, nopython: bool = False, disable: bool = False, dynamic=None, **_):
    """A decorator: ``compile`` with ``fullgraph=nopython``."""
    from . import compile

    return lambda fn: compile(fn, fullgraph=nopython, disable=disable)


def optimize_assert(backend="xla", **options):
    return optimize(backend, nopython=True, **options)


@dataclasses.dataclass
class ExplainOutput:
    """Into how many parts a function falls, and why."""

    graph_count: int
    graph_break_count: int
    break_reasons: list[str]

    def __str__(self) -> str:
        reasons = "".join(f"\n  Break Reason {i + 1}:\n    {r}" for i, r in enumerate(self.break_reasons))
        return f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\nBreak Reasons:{reasons}"


def explain(fn, *extra_args, **extra_kwargs):
    """``explain(fn)(*args)``: run ``fn`` once, and say whether it can be one program."""
    from .function import Compiled

    def explained(*args, **kwargs):
        reason = Compiled(fn, fullgraph=True).reason_for_cut(*args, **kwargs)
        reasons = [] if reason is None else [reason]
        return ExplainOutput(1 + len(reasons), len(reasons), reasons)

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained
