"""``FlopCounterMode``: floating-point operations of matrix products and convolutions, where they happen.

An interceptor sees the operators of forward passes; a hook on each result counts what its gradients take in backward:
as much again for each argument that needs one.
"""

from __future__ import annotations

from collections import defaultdict

from ..autograd.mode import intercepting
from ..tensor import Tensor

__all__ = ["FlopCounterMode", "register_flop_formula"]


def __dir__():
    return __all__


class FlopCounterMode:
    """Counts in its block; ``get_total_flops()`` is their number.

    Differs from PyTorch: attention on the CPU is counted too; the table needs no other package.

    >>> layer = nn.Linear(3, 4)
    >>> with rushlight.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     layer(rushlight.ones(5, 3)).sum().backward()
    >>> counter.get_total_flops()
    240
    >>> {str(call): count for call, count in counter.get_flop_counts()["Linear"].items()}
    {'aten.addmm': 120, 'aten.mm': 120}
    """

    def __init__(self, mods=None, depth: int = 2, display: bool = True, custom_mapping=None):
        self.display, self.depth = display, depth
        self.flop_counts: dict = defaultdict(lambda: defaultdict(int))
        self._path: list = []  # the modules that run now, outermost first: (module, name)

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """For the block as a whole (``"Global"``) and for each module by name, the count of each operator."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A line for each module, down to ``depth``, and for each operator in it."""
        depth = self.depth if depth is None else depth
        rows = []
        for name in ["Global", *sorted(n for n in self.flop_counts if n != "Global" and n.count(".") < depth)]:
            indent = "" if name == "Global" else " " * (name.count(".") + 1)
            rows.append((indent + name, sum(self.flop_counts[name].values())))
            rows += [(f"{indent} - {call}", count) for call, count in self.flop_counts[name].items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {count:>15,}" for name, count in rows)

    def __enter__(self) -> FlopCounterMode:
        from ..inspect.summary import Counter
        from ..nn.modules import module

        self.flop_counts.clear()
        self._path.clear()
        self._hooks = [
            module.register_module_forward_pre_hook(self._entered),
            module.register_module_forward_hook(self._left, always_call=True),
        ]
        self._block = intercepting(Counter(self._count))
        self._block.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._block.__exit__(*error)
        for hook in self._hooks:
            hook.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _entered(self, module, args) -> None:
        self._path.append((module, _name_inside(module, self._path)))

    def _left(self, module, args, output) -> None:
        self._path.pop()

    def _count(self, products: int, name: str, result, args) -> None:
        from ..library import namespace

        forward, backward = [getattr(namespace("aten"), word) for word in _words(name, args)]
        places = [self.flop_counts[place] for place in dict.fromkeys(["Global", *[name for _, name in self._path]])]
        for counts in places:
            counts[forward] += 2 * products
        needed = [a for a in args[:2] if isinstance(a, Tensor) and a.requires_grad]
        if isinstance(result, Tensor) and result.requires_grad and needed:

            def in_backward(gradient) -> None:
                for counts in places:
                    counts[backward] += 2 * products * len(needed)

            result.register_hook(in_backward)


def _name_inside(module, running: list) -> str:
    """``Net.blocks.0``: from the innermost ``running`` module that it is part of; its class, if there is none."""
    for outer, name in reversed(running):
        for path, part in outer.named_modules():
            if part is module and path:
                return f"{name}.{path}"
    return type(module).__name__


def _words(name: str, args) -> tuple[str, str]:
    """The calls that PyTorch makes of an operator here, in forward and in backward."""
    if name.startswith("conv"):
        return "convolution", "convolution_backward"
    if name == "linear":
        added = len(args) > 2 and args[2] is not None and (args[0].ndim == 2 or args[0].is_contiguous())
        return ("addmm" if added else "mm"), "mm"
    if name == "attention" or max(a.ndim for a in args if isinstance(a, Tensor)) > 2:
        return "bmm", "bmm"
    return "mm", "mm"


def register_flop_formula(targets, get_raw: bool = False):
    """Accepted for PyTorch programs; only products and convolutions are counted here."""
    return lambda formula: formula
