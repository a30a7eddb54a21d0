"""``compile``: run a function, up to a whole training step, as one XLA program.

The first call with new argument shapes runs eagerly and watches which tensors survive it (``discover``). The second
traces the same Python under ``jax.jit`` with those tensors as inputs and the written ones as outputs (``trace``).
From then on a call is one XLA execution (``program``); state stays in XLA's buffers, packed if small, and eager code
that looks at a tensor gets the new values (``residence``).
"""

from __future__ import annotations

from .function import Compiled, CompileError, compile

__all__ = ["Compiled", "CompileError", "compile"]
