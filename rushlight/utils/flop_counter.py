"""``FlopCounterMode``: floating-point operations of matrix products and convolutions, where they happen.

An interceptor sees the operators of forward passes; a hook on each result counts what its gradients take in backward:
as much again for each argument that needs one.
"""

from __future__ import annotations

from collections import defaultdict

from ..autograd.mode import intercepting
from ..tensor import Tensor

__all__ = ["FlopCounterMode", "register_flop_formula"]

_WORDS = {"conv": "convolution", "conv_input": "convolution", "linear": "addmm"}


class FlopCounterMode:
    """Counts in its block; ``get_total_flops()`` is their number.

    Differs from PyTorch: counts are for the whole block (``"Global"``), not by module; ``inspect.summary`` has those.

    >>> layer = nn.Linear(3, 4)
    >>> with rushlight.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     layer(rushlight.ones(5, 3)).sum().backward()
    >>> counter.get_total_flops()
    240
    """

    def __init__(self, mods=None, depth: int = 2, display: bool = True, custom_mapping=None):
        self.display, self.depth = display, depth
        self.flop_counts: dict = defaultdict(lambda: defaultdict(int))

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """For the block as a whole, the count of each operator."""
        return {"Global": dict(self.flop_counts["Global"])}

    def get_table(self, depth: int | None = None) -> str:
        rows = [("Global", self.get_total_flops()), *((f"  {op!r}", n) for op, n in self.flop_counts["Global"].items())]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {count:>15,}" for name, count in rows)

    def __enter__(self) -> FlopCounterMode:
        from ..inspect.summary import Counter

        self.flop_counts.clear()
        self._block = intercepting(Counter(self._count))
        self._block.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._block.__exit__(*error)
        if self.display:
            print(self.get_table())

    def _count(self, products: int, name: str, result, args) -> None:
        from ..library import namespace

        operator, flops = getattr(namespace("aten"), _WORDS.get(name, "mm")), 2 * products
        counts = self.flop_counts["Global"]
        counts[operator] += flops
        needed = [a for a in args[:2] if isinstance(a, Tensor) and a.requires_grad]
        if isinstance(result, Tensor) and result.requires_grad and needed:

            def in_backward(gradient) -> None:
                counts[operator] += flops * len(needed)

            result.register_hook(in_backward)


def register_flop_formula(targets, get_raw: bool = False):
    """Accepted for PyTorch programs; only products and convolutions are counted here."""
    return lambda formula: formula
