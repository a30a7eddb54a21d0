"""``CommDebugMode``: which collectives a block of code makes, and in which modules.

Calls of ``torch.distributed`` are counted where they are made. What DTensors need is put in by XLA: there the
collectives are those of the programs that run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from ...autograd.mode import backward_number
from ...compat import missing as _missing
from ...engine import counting
from ...library import namespace
from ...utils._pytree import tree_leaves
from ...utils.flop_counter import _name_inside
from .dtensor import DTensor

__all__ = ["CommDebugMode"]
__getattr__ = _missing(__name__)


def __dir__():
    return __all__


# what happens -> the operators that PyTorch runs for it
_PLAIN = {
    "all_reduce": "allreduce_", "all_reduce_coalesced": "allreduce_coalesced_", "broadcast": "broadcast_",
    "reduce": "reduce_", "all_gather": "allgather_", "all_gather_into_tensor": "_allgather_base_",
    "gather": "gather_", "scatter": "scatter_", "reduce_scatter": "reduce_scatter_",
    "reduce_scatter_tensor": "_reduce_scatter_base_", "all_to_all": "alltoall_", "all_to_all_single": "alltoall_base_",
    "all_gather_object": "allgather_ allgather_", "gather_object": "allgather_ gather_",
    "broadcast_object_list": "broadcast_ broadcast_", "scatter_object_list": "scatter_ broadcast_ scatter_",
}  # fmt: skip
_OF_XLA = {
    "all-reduce": "all_reduce", "all-gather": "all_gather_into_tensor", "reduce-scatter": "reduce_scatter_tensor",
    "all-to-all": "all_to_all_single", "collective-permute": "all_to_all_single",
}  # fmt: skip
_BRIGHT, _END = "\033[1;33m", "\033[0m"


class CommDebugMode:
    """Counts collectives in its block, by operator, and by module and pass.

    Differs from PyTorch: operators that are no collectives are not in the tables, whatever ``noise_level`` says.

    >>> from rushlight.distributed.tensor.debug import CommDebugMode
    >>> with CommDebugMode() as counts:
    ...     rushlight.ones(3).sum()
    tensor(3.)
    >>> counts.get_total_counts()
    0
    """

    def __init__(self):
        self.comm_counts: dict = defaultdict(int)
        self.comm_module_counts: dict = {}
        self._modules: dict = {}  # name -> (how deep it lies, what it is, how its own parameters lie)
        self._parameters: dict = {}
        self._path: list = []  # the modules that run now, outermost first: (module, name)
        self._behind: tuple = ()  # in backward: the names of the modules whose gradients are computed

    def get_comm_counts(self) -> dict:
        return self.comm_counts

    def get_total_counts(self) -> int:
        return sum(self.comm_counts.values())

    def get_parameter_info(self) -> dict:
        """{module: {name: parameter}} of the modules that were called and have parameters of their own."""
        return self._parameters

    def get_sharding_info(self) -> dict:
        """{name: placements} of their parameters that are DTensors."""
        return {
            f"{module}.{name}": p.placements
            for module, found in self._parameters.items()
            for name, p in found.items()
            if isinstance(p, DTensor)
        }

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A line for each module that was called, and below it its collectives; from level 1 on, its parameters."""
        lines = []
        for name, (depth, kind, lies) in self._modules.items():
            indent = "    " * depth
            lines.append(indent + name)
            if noise_level > 0 and kind:
                lines.append(f"{indent}*module type: {kind}")
                lines += [f"{indent}*Parameter List"] * bool(lies)
                lines += [f"{indent} *{parameter}: {placements}" for parameter, placements in lies.items()]
            for way, counts in self.comm_module_counts.get(name, {}).items():
                if counts:
                    lines.append(f"{indent}  {way.upper()} PASS")
                    lines += [f"{_BRIGHT}{indent}    *{op}: {count}{_END}" for op, count in counts.items()]
        return "\n".join(lines) + "\n"

    def log_comm_debug_tracing_table_to_file(self, file_name="comm_mode_log.txt", noise_level: int = 3) -> None:
        """The table as a text file, without colours."""
        Path(file_name).write_text(re.sub(r"\033\[[\d;]*m", "", self.generate_comm_debug_tracing_table(noise_level)))

    def __enter__(self) -> CommDebugMode:
        from ...nn.modules import module

        for table in (self.comm_counts, self.comm_module_counts, self._modules, self._parameters, self._path):
            table.clear()
        self._modules["Global"] = 0, "", {}
        self._counts_of("Global")
        self._hooks = [
            module.register_module_forward_pre_hook(self._entered),
            module.register_module_forward_hook(self._left, always_call=True),
        ]
        counting.WATCHERS.append(self._seen)
        return self

    def __exit__(self, *error) -> None:
        counting.WATCHERS.remove(self._seen)
        for hook in self._hooks:
            hook.remove()

    def __repr__(self) -> str:
        return f"CommDebugMode(get_total_counts()={self.get_total_counts()})"

    # -- what happens --------------------------------------------------------------------------------------------------

    def _seen(self, what: str, count: int) -> None:
        backward = backward_number() != -1
        inside = self._behind if backward else [name for _, name in self._path]
        for op in _operators(what):
            self.comm_counts[op] += count
            for name in dict.fromkeys(["Global", *reversed(inside)]):
                self._counts_of(name)["backward" if backward else "forward"][op] += count

    def _counts_of(self, name: str) -> dict:
        fresh = {"forward": defaultdict(int), "backward": defaultdict(int)}
        return self.comm_module_counts.setdefault(name, fresh)

    def _entered(self, module, args) -> None:
        name = _name_inside(module, self._path)
        self._path.append((module, name))
        if backward_number() != -1:  # computed again, for its gradients
            return
        found = dict(module.named_parameters(recurse=False))
        lies = {key: p.placements for key, p in found.items() if isinstance(p, DTensor)}
        self._modules.setdefault(name, (len(self._path), str(type(module)).strip("<>"), lies))
        if found:
            self._parameters.setdefault(name, found)

    def _left(self, module, args, output) -> None:
        names = tuple([name for _, name in self._path])
        self._path.pop()

        def in_backward(gradient) -> None:
            self._behind = names

        for t in tree_leaves(output):
            if getattr(t, "requires_grad", False):
                t.register_hook(in_backward)


def _operators(what: str) -> list:
    """The operators of PyTorch for what is named here; none for what is no collective there."""
    if what in _OF_XLA:
        return [getattr(namespace("c10d_functional"), _OF_XLA[what])]
    if what.startswith("c10d_functional."):
        return [getattr(namespace("c10d_functional"), what.removeprefix("c10d_functional."))]
    return [getattr(namespace("c10d"), word) for word in _PLAIN.get(what, "").split()]
