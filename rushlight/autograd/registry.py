"""The operator registry as an array namespace, the third beside NumPy's and XLA's: double backward runs in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["differentiable"]


class Namespace:
    """The operator registry as an array namespace: ``differentiable.matmul(a, b)`` on Tensors records its op."""

    if TYPE_CHECKING:  # filled by @op

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


differentiable = Namespace()
