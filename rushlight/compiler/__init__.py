"""``compile``: run a function, up to a whole training step, as one XLA program.

The first call with new argument shapes runs eagerly and watches which tensors survive it (``discover``). The second
traces the same Python under ``jax.jit`` with those tensors as inputs and the written ones as outputs (``trace``).
From then on a call is one XLA execution (``program``); state stays in XLA's buffers, packed if small, and eager code
that looks at a tensor gets the new values (``residence``).

Importing this package does not import JAX; calling ``compile`` does.
"""

from __future__ import annotations

import functools
import sys

from ..compat import missing as _missing
from .stance import disable, set_stance

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_stance",
]


def __dir__():
    return __all__


def compile(model=None, *, fallback: bool = False, options: dict | None = None, **torch_options):
    """Compile a function, or a module's call, into XLA programs; also a decorator.

    The function may hold a whole training step. On the CPU a branch (``if loss > 1``) gets a program for each way. A
    function that needs a number on its way (``loss.item()``, ``x[mask]``) is cut, with one warning: its Python runs at
    every call, and the modules that it calls are compiled each by itself (``fallback=True``: not even those). With
    ``fullgraph=True`` both are errors. ``options`` go to XLA's compiler. PyTorch's
    ``mode``, ``dynamic`` and ``backend`` are accepted; each shape is a program of its own, with ``dynamic=True`` too.

    >>> w = rushlight.ones(2, requires_grad=True)
    >>> @rushlight.compile
    ... def step(x):
    ...     (w * x).sum().backward()
    ...     with rushlight.no_grad():
    ...         w.sub_(w.grad)
    ...         w.grad = None
    >>> step(rushlight.ones(2)), step(rushlight.ones(2)), w
    (None, None, tensor([-1., -1.], requires_grad=True))
    """
    if model is None:
        return functools.partial(compile, fallback=fallback, options=options, **torch_options)
    unknown = set(torch_options) - {"mode", "fullgraph", "dynamic", "backend", "disable"}
    if unknown:
        raise TypeError(f"compile() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    if torch_options.get("disable"):
        return model
    from ..nn.module import Module

    Compiled = _needs_jax().Compiled
    if not callable(model):
        raise RuntimeError(f"compile() expects a callable, but got {type(model).__name__}")
    compiled = Compiled(model, fallback, options, bool(torch_options.get("fullgraph")))
    if isinstance(model, Module):
        from .module import OptimizedModule

        return OptimizedModule(model, compiled)
    return compiled


def _needs_jax():
    try:
        from . import function
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "jaxlib"):
            raise
        raise ModuleNotFoundError(
            "rushlight.compile needs JAX: pip install 'rushlight[xla]', or 'rushlight[cuda]' for an NVIDIA GPU",
            name=error.name,
        ) from None
    return function


def is_compiling() -> bool:
    """Is this code being traced right now?"""
    devices = sys.modules.get("rushlight.engine.xla.devices")
    return devices is not None and devices.is_tracing()


is_exporting = is_dynamo_compiling = is_compiling


def allow_in_graph(fn):
    """Accepted for PyTorch programs; a trace goes through every function it calls."""
    return fn


assume_constant_result = allow_in_graph


def nested_compile_region(fn=None, **options):
    """Accepted for PyTorch programs; XLA sees the whole program in any case."""
    return (lambda f: f) if fn is None else fn


def cudagraph_mark_step_begin() -> None:
    """Accepted for PyTorch programs; results of a compiled call are never overwritten by the next one."""


def list_backends(exclude_tags=None) -> list[str]:
    """The names that ``compile(backend=…)`` takes."""
    return ["xla"]


def reset() -> None:
    """Forget every compiled program of the process, XLA's in-memory cache included."""
    import jax

    from .function import forget_all

    forget_all()
    deferred = sys.modules.get("rushlight.engine.deferred.recording")
    if deferred is not None:
        deferred.forget()
    jax.clear_caches()


def explain() -> str:
    """Which compiled functions were cut, and what was compiled for eager code on accelerators: when, where, and why."""
    report = sys.modules.get("rushlight.engine.deferred.report")
    cut = sys.modules.get("rushlight.compiler.cut")
    rows = ["0 programs compiled" if report is None else report.explain()]
    return "\n".join([*rows, *(f"cut: {reason}" for reason in (cut.reasons if cut is not None else ()))])


def _later(name):
    if name in ("CompileError", "Compiled"):
        from . import function

        return getattr(function, name)
    return None


__getattr__ = _missing(__name__, _later)
