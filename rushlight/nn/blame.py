"""Which module failed: a forward that raises inside a model leaves with a note that names the module's path.

Nothing is written down while all goes well. The frames of the traceback that are calls of modules say who called
whom; every call that the error leaves looks again, and so the last one knows the path from the model down.
"""

from __future__ import annotations

import itertools
from types import TracebackType

__all__ = ["note_path"]


class Note(str):
    """The note, told from others by its class; a copy in another process is a plain string."""

    __slots__ = ()

    def __reduce__(self):
        return str, (str(self),)


def note_path(error: BaseException) -> None:
    """Add ``in layer4.1.conv2: Conv2d(...)`` to an error that is leaving the call of a module."""
    try:
        called = _calls(error.__traceback__)
        path = _path(called)
        if path:
            others = [note for note in getattr(error, "__notes__", ()) if not isinstance(note, Note)]
            error.__notes__ = [*others, Note(f"in {path}: {_shown(called[-1])}")]
    except Exception:  # noqa: S110  a model that cannot be looked into: its own error matters, not ours
        pass


def _calls(traceback: TracebackType | None) -> list:
    """The modules whose calls the traceback goes through, from the outermost in."""
    from .module import Module, _call_through_impl

    codes = (Module.__call__.__code__, _call_through_impl.__code__)
    called = []
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            values = traceback.tb_frame.f_locals
            called.append(values["self"])
            if isinstance(values, dict):  # before Python 3.13 a copy that the frame keeps, and in it the error
                values.clear()
        traceback = traceback.tb_next
    return called


def _path(called: list) -> str:
    """From the first module down to the last; from the last one that is no part of its caller, if there is one."""
    parts: list[str] = []
    for outer, inner in itertools.pairwise(called):
        name = next((name for name, module in outer.named_modules() if module is inner), None)
        parts = [] if name is None else [*parts, name] if name else parts
    return ".".join(parts)


def _shown(module) -> str:
    return f"{module._get_name()}({module.extra_repr()})"
