"""Keeping code out of compiled code: ``disable`` for a function, ``set_stance`` for all of them."""

from __future__ import annotations

import functools

from ..autograd import mode
from ..errors import ValuesNeeded

_STANCES = (
    "default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile",
)  # fmt: skip


class _Current:
    """The stance of all compiled functions; ``eager`` is looked at by every call."""

    __slots__ = ("eager", "name")

    def __init__(self):
        self.take("default")

    def take(self, name: str) -> None:
        self.name, self.eager = name, name == "force_eager"


current = _Current()


def disable(fn=None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True):
    """Keep ``fn`` out of compiled code: a function that calls it is cut. Also a decorator, and for modules.

    What it calls runs eagerly too, unless ``recursive`` is False.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    from ..nn.module import Module

    if isinstance(fn, Module):
        fn.forward = disable(fn.forward, recursive, reason=reason)  # type: ignore[method-assign]
        return fn

    @functools.wraps(fn)
    def plainly(*args, **kwargs):
        from . import is_compiling

        if is_compiling():
            name = getattr(fn, "__qualname__", type(fn).__name__)
            raise ValuesNeeded(
                f"{name} is kept out of compiled code (compiler.disable){': ' + reason if reason else '.'}"
            )
        if not recursive:
            return fn(*args, **kwargs)
        with mode.pushed("writers", _nothing), mode.pushed("stand_ins", None):
            return fn(*args, **kwargs)

    return plainly


def _nothing(tensor) -> None:
    """Where somebody is told of writes, compiled functions are plain calls."""


class set_stance:
    """What compiled functions do from now on, in a ``with`` block, or in a decorated function.

    ``"default"``; ``"force_eager"``: run as they are; ``"eager_on_recompile"`` and ``"fail_on_recompile"``: use the
    programs there are, and otherwise run eagerly, or raise.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend=None):
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'; it is one of {', '.join(_STANCES)}")
        self._stance, self._outer = stance, current.name
        current.take(stance)

    def __enter__(self):
        current.take(self._stance)

    def __exit__(self, *_):
        current.take(self._outer)

    def __call__(self, fn):
        current.take(self._outer)

        @functools.wraps(fn)
        def under(*args, **kwargs):
            with set_stance(self._stance):
                return fn(*args, **kwargs)

        return under
