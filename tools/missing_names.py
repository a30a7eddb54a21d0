"""Public names of PyTorch's modules that Rushlight lacks.

python tools/missing_names.py            counts, and the names people may use
python tools/missing_names.py --all      also what belongs to TorchScript, quantization, sparse layouts, …
"""

from __future__ import annotations

import argparse
import inspect
import re
import types

import torch

import rushlight

OWNERS = ["", "Tensor", "nn", "nn.functional", "nn.init", "nn.utils", "autograd", "optim", "optim.lr_scheduler",
          "linalg", "fft", "special", "signal.windows", "func", "distributions", "utils.data", "amp"]  # fmt: skip

# What Rushlight does not have on purpose: name patterns, by what they belong to.
ABROAD = {
    "TorchScript": r"Script|Schema|JIT|^(Graph|Node|Block|Value|Use|Gradient|Code|Capsule|Argument|CallStack|AliasDb)"
    r"|Type$|TypeBuilder|ExecutionPlan|GraphExecutor|IODescriptor|StaticModule|CompilationUnit|ir_module|^parse_"
    r"|^(Buffer|Module|Parameter)Dict$|CompleteArgumentSpec"
    r"|^merge_type|^unify_type|TracingState|ErrorReport|FileCheck|^fork$|^wait$|^Future$",
    "quantization": r"quant|qparams|qint|quint|^q_|qscheme|^per_(channel|tensor)|int_repr|fbgemm|^Q[A-Z]",
    "sparse and nested layouts": r"sparse|_indices|^indices|values|^(c?col|c?row)|coalesce|^smm$|^sspaddmm|^saddmm|hsmm"
    r"|hspmm|dsmm|spmm|jagged|padded_tensor|dense|mkldnn",
    "other back ends": r"cudnn|miopen|vulkan|ipu|xpu|mtia|maia|_xla|Logger|batch_norm_(stats|elemt|gather|back|upd)",
    "symbolic shapes": r"^sym_|^Sym|Dispatch",
    "dtypes of a few bits": r"^u?int[1-7]$|^bits|^bit$|float[48]_|complex32|chalf",
    "removed from PyTorch": r"^(eig|symeig|lstsq|solve|matrix_rank|resize_as|resize|volatile|reinforce|name)$",
    "PyTorch's own plumbing": r"Storage$|StorageBase|StorageContext|^classproperty$|^get_file_path$|^native_norm$|cupti"
    r"|^index$|Tensor$|Benchmark|torch_function|Profiler|kineto|_GLOBAL|PRIVATE"
    r"|PyTorchFile|DeepCopyMemo|^(AVG|SUM|Tag|Type|TYPE_CHECKING|AggregationType|OperatorInfo|FatalError|Callable|Optional)$"
    r"|BroadcastingList|_notes$|common_args|multi_dim_common|boolean_dispatch",
}  # fmt: skip


def missing(owner: str) -> list[str]:
    """Public names of ``torch.owner`` that ``rushlight.owner`` lacks; modules and names it only imported left out."""
    theirs, ours = _dotted(torch, owner), _dotted(rushlight, owner)
    listed = set(getattr(theirs, "__all__", ())) or None
    found = []
    for name in dir(theirs):
        value = inspect.getattr_static(theirs, name)
        imported = str(getattr(value, "__module__", "")).split(".")[0] in {"typing", "collections", "functools"}
        if name.startswith("_") or isinstance(value, types.ModuleType) or imported:
            continue
        if (owner in ("", "Tensor") or listed is None or name in listed) and not hasattr(ours, name):
            found.append(name)
    return found


def abroad(name: str) -> str | None:
    return next((kind for kind, pattern in ABROAD.items() if re.search(pattern, name)), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    for owner in OWNERS:
        names = missing(owner)
        shown = [n for n in names if arguments.all or not abroad(n)]
        total = sum(not n.startswith("_") for n in dir(_dotted(torch, owner)))
        print(f"torch.{owner}".rstrip(".") + f": {len(names)} of {total} missing, {len(shown)} of them not on purpose")
        if shown:
            print("   ", *shown)


def _dotted(owner, path: str):
    for part in filter(None, path.split(".")):
        owner = getattr(owner, part)
    return owner


if __name__ == "__main__":
    main()
