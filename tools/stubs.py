"""Writes the stubs (``*.pyi``) that type checkers and editors read, from the operator tables and the signatures.

python tools/stubs.py            writes them into the package
python tools/stubs.py --check    says which are out of step

Functions are attached to ``rushlight`` and ``Tensor`` when it is imported, where no checker sees them. Here each gets
its parameters from its signature, their types from ``ops.kinds``, their names and defaults, and a line of what it does.
What that does not tell is written by hand in ``tools/exact.pyi``. Classes keep their own files, which have annotations.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import re
import types
from pathlib import Path

import rushlight
from rushlight import Tensor
from rushlight.absent.table import PARTS
from rushlight.ops import kinds, returns

ROOT = Path(rushlight.__file__).parent
# Namespaces of functions; with "Tensor" those whose results are tensors unless something else is said.
TENSORS = ["", "nn.functional", "nn.init", "linalg", "fft", "special", "signal.windows"]
OTHERS = ["autograd", "autograd.functional", "func", "nn.utils", "utils"]

DO_NOT_EDIT = "Made by tools/stubs.py; do not edit."
HEADER = '''"""{doc}

Made by tools/stubs.py; do not edit.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from typing_extensions import TypeIs

from rushlight.device import device as _device
from rushlight.dtypes import dtype as _dtype
from rushlight.layout import layout as _layout, memory_format as _memory_format
from rushlight.ops import returns as _returns
from rushlight.random import Generator as _Generator
from rushlight.storage import UntypedStorage as _UntypedStorage
from rushlight.tensor import Size as _Size, Tensor as _Tensor
from rushlight.utils.hooks import RemovableHandle as _RemovableHandle

_Number = _int | _float | _bool
_Scalar = _Number | _complex
_Device = _device | _str | _int | None
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name the files that would change")
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if parser.parse_args().check:
        raise SystemExit("\n".join(f"{path.relative_to(ROOT.parent)} is out of step" for path in stale) or 0)
    for path in stale:
        path.write_text(stubs()[path], encoding="utf-8")


@functools.cache
def stubs() -> dict[Path, str]:
    """The text of every stub, by its path."""
    made = {ROOT / "tensor.pyi": tensor_stub(), ROOT / "ops" / "returns.pyi": returns_stub()}
    for space in (*TENSORS, *OTHERS):
        module = importlib.import_module(f"rushlight.{space}".rstrip("."))
        made[Path(module.__file__).with_suffix(".pyi")] = module_stub(module, space)
    return made


# -- files -----------------------------------------------------------------------------------------------------------


def module_stub(module: types.ModuleType, space: str) -> str:
    lines = [HEADER.format(doc=first_line(module))]
    for name in public_names(module):
        value = value_of(module, name)
        lines.append(entry(module, space, name, value))
    if space == "":
        lines += [f"{name}: Any" for name in sorted(only_names() - set(dir(module)))]
        lines.append("__version__: _str")
    return "\n".join(lines) + "\n"


def entry(module: types.ModuleType, space: str, name: str, value) -> str:
    """The declaration of one public name."""
    if inspect.ismodule(value):
        return f"from {module.__name__} import {name} as {name}"
    if inspect.isclass(value) and value.__module__ in ("torch", "builtins", "rushlight.absent"):
        return f"{name}: Any"  # FloatStorage and its kin, which have no file
    if inspect.isclass(value):
        return f"from {value.__module__} import {value.__name__} as {name}"
    if isinstance(value, types.FunctionType):
        return function(name, value, space)
    return f"{name}: {type_of(value)}"


def tensor_stub() -> str:
    """``Tensor`` with everything that ``ops/`` attaches to it, and ``Size``."""
    members = dict(exact("Tensor"))
    for name in dir(Tensor):
        value = inspect.getattr_static(Tensor, name)
        shown = not name.startswith("_") or (name in SPECIAL and isinstance(value, types.FunctionType))
        if shown and name not in members:
            members[name] = member(name, value)
    header = HEADER.format(doc=first_line(importlib.import_module("rushlight.tensor")))
    header = re.sub(r"^from rushlight.tensor .*\n", "", header, flags=re.M)
    body = "\n".join(indent(text) for text in members.values())
    size = f"{SIZE}\n_Size = Size\n"
    return f'{header}\n{size}\nclass Tensor:\n    """{first_line(Tensor)}"""\n{body}\n\n_Tensor = Tensor\n'


def member(name: str, value) -> str:
    if isinstance(value, property):
        told = annotation_of(inspect.signature(value.fget).return_annotation) if value.fget else "Any"
        doc = first_line(value)
        return f"@property\ndef {name}(self) -> {told}: " + (f'\n    """{doc}"""' if doc else "...")
    if name in SPECIAL:  # whatever has an array in it may stand on the other side
        if name in ("__neg__", "__pos__", "__abs__", "__invert__"):
            return f"def {name}(self) -> _Tensor: ..."
        told = "  # type: ignore[override]  # element by element" if name in ("__eq__", "__ne__") else ""
        return f"def {name}(self, other: Any, /) -> _Tensor: ...{told}"
    if isinstance(value, types.FunctionType):
        return function(name, value, "Tensor")
    return f"{name}: {type_of(value)}"


def returns_stub() -> str:
    """The results with named parts, as tuples with properties."""
    lines = [f'"""{first_line(returns)}\n\n{DO_NOT_EDIT}\n"""\n\nfrom rushlight.tensor import Tensor\n']
    for name, kind in sorted(vars(returns).items()):
        if inspect.isclass(kind) and kind.__module__ == returns.__name__ and kind.__match_args__:
            parts = kind.__match_args__
            lines.append(f"class {name}(tuple[{', '.join(['Tensor'] * len(parts))}]):")
            lines += [f"    @property\n    def {part}(self) -> Tensor: ..." for part in parts]
    return "\n".join(lines) + "\n"


# -- functions -------------------------------------------------------------------------------------------------------


def function(name: str, f: types.FunctionType, space: str) -> str:
    """``def name(parameters) -> result`` with its line of documentation; several where there are overloads."""
    doc = first_line(f)
    if space in ("", "Tensor", "nn.functional") and name in exact(space):
        return documented(exact(space)[name], doc)
    if space == "Tensor" and name in exact(""):
        return documented(as_method(exact("")[name]), doc)
    if space in ("", "Tensor") and is_in_place(name, f):
        return in_place(name, doc, space)
    parameters = list(inspect.signature(f).parameters.values())
    written = [parameter(p, f, i == 0 and space == "Tensor") for i, p in enumerate(parameters)]
    told = inspect.signature(f).return_annotation
    result = annotation_of(told) if told is not inspect.Signature.empty else result_of(name, f, space)
    written = with_marks(parameters, written)
    if takes_out(f) and space != "Tensor":
        at = next((i for i, text in enumerate(written) if text.startswith("**")), len(written))
        star = [] if any(text.startswith("*") for text in written[:at]) else ["*"]
        written[at:at] = [*star, "out: _Tensor | None = None" if result == "_Tensor" else "out: Any = None"]
    return documented(f"def {name}({', '.join(written)}) -> {result}: ...", doc)


def with_marks(parameters, written: list[str]) -> list[str]:
    """The ``*`` before parameters that only go by name."""
    marked = []
    for p, text in zip(parameters, written):
        before = parameters[: parameters.index(p)]
        if p.kind is p.KEYWORD_ONLY and not any(q.kind in (q.KEYWORD_ONLY, q.VAR_POSITIONAL) for q in before):
            marked.append("*")
        marked.append(text)
    return marked


def parameter(p: inspect.Parameter, f, is_self: bool) -> str:
    if is_self:
        return "self"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    kind = annotation_of(p.annotation) if p.annotation is not p.empty else kind_of(p, f)
    default = "" if p.default is p.empty else f" = {literal(p.default)}"
    if not default and p.name in ("dtype", "device") and p.kind is p.KEYWORD_ONLY:  # filled in by a decorator
        default = " = None"
    if default == " = None" and not re.search(r"\bNone\b|^Any$|_Device", kind):
        kind += " | None"
    return f"{star}{p.name}: {kind}{default}"


def kind_of(p: inspect.Parameter, f) -> str:
    """A parameter's type: what ``ops.kinds`` says, what its name says, or what its default says."""
    said = kinds.KINDS.get(f"{f.__name__.rstrip('_')}.{p.name}")
    if said and said[0] != "=":
        return KIND[said.rstrip("?")] + (" | None" if said.endswith("?") else "")
    if p.name in NAMED and fits(p.default, NAMED[p.name]):
        return NAMED[p.name]
    if p.default is p.empty or p.default is None or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        return "Any"
    if type(p.default) in (bool, str, float):
        return f"_{type(p.default).__name__}"
    return "_float" if type(p.default) is int and makes_tensors(f) else "Any"


def fits(default, kind: str) -> bool:
    """``p`` is a number, but not where its default is "fro"."""
    wanted = {str: "_str", int: "_int|_float|_Number|_Scalar", float: "_float|_Number|_Scalar"}.get(type(default))
    return wanted is None or re.search(rf"(?<!\[)({wanted})\b", kind) is not None


def result_of(name: str, f, space: str) -> str:
    known = RESULT.get(name) or RESULT.get(name.removesuffix("_copy"))
    if known:
        return known
    named = f"linalg_{name}" if space == "linalg" else name
    if space in ("", "Tensor", "linalg") and named in vars(returns):
        return f"_returns.{named}"
    return "_Tensor" if makes_tensors(f) or space in ("Tensor", "special") else "Any"


def makes_tensors(f) -> bool:
    return f.__module__.startswith(tuple(f"rushlight.{part}" for part in ("ops", "signal", *TENSORS[1:])))


def is_in_place(name: str, f) -> bool:
    return name.endswith("_") and not name.endswith("__") and "args" in inspect.signature(f).parameters


def in_place(name: str, doc: str, space: str) -> str:
    """``add_`` has the parameters of ``add``."""
    plain = inspect.getattr_static(Tensor, name.rstrip("_"), None) or getattr(rushlight.nn.functional, name.rstrip("_"))
    text = (
        function(name.rstrip("_"), plain, "Tensor")
        .split(":\n")[0]
        .removesuffix(": ...")
        .replace(f"def {name[:-1]}(", f"def {name}(", 1)
    )
    text = re.sub(r", inplace: _bool = (True|False)", "", text)
    text = re.sub(r" -> .*", " -> " + ("Self" if space == "Tensor" else "_Tensor"), text)
    return documented((text if space == "Tensor" else text.replace("(self", "(input: _Tensor", 1)) + ": ...", doc)


def takes_out(f) -> bool:
    return hasattr(f, "takes_out") or hasattr(inspect.unwrap(f, stop=lambda g: hasattr(g, "takes_out")), "takes_out")


def documented(text: str, doc: str) -> str:
    """The last ``...`` becomes the docstring."""
    return f'{text.removesuffix(" ...")}\n    """{doc}"""' if doc and text.endswith(" ...") else text


# -- what is written by hand -----------------------------------------------------------------------------------------


@functools.cache
def exact(owner: str) -> dict[str, str]:
    """The entries of ``tools/exact.pyi``: of the file itself, or of a class in it; overloads together."""
    tree = ast.parse((Path(__file__).parent / "exact.pyi").read_text(encoding="utf-8"))
    owner = owner.split(".")[-1]
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner).body if owner else tree.body
    found: dict[str, str] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AnnAssign)):
            name = node.name if isinstance(node, ast.FunctionDef) else node.target.id
            text = underscored(ast.unparse(expanded(node)))
            found[name] = f"{found[name]}\n{text}" if name in found else text
    return found


def expanded(node):
    """With what ``Out``, ``Made`` and ``Ints`` stand for."""
    text = ast.unparse(node).replace("out: Out", "out: Tensor | None=None").replace("Ints", "int | Sequence[int]")
    if "**made: Made" in text:
        star = "" if re.search(r"\*(\w|,)", text.split("**made")[0]) else "*, "
        text = text.replace("**made: Made", star + MADE)
    return ast.parse(re.sub(r":\n +\.\.\.$", ": ...", text)).body[0]


def underscored(text: str) -> str:
    """Types under names that no function or method of the stub takes: ``int`` is a dtype and a method."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in UNDERSCORED:
            node.id = "_" + node.id
    return re.sub(r":\n +\.\.\.$", ": ...", ast.unparse(tree), flags=re.M)


def as_method(text: str) -> str:
    return re.sub(r"\(\w+: _Tensor(, /)?", "(self", text)


# -- types -----------------------------------------------------------------------------------------------------------

# Written with an underscore in the stubs: ``int``, ``dtype`` and their like are functions and methods there.
UNDERSCORED = {
    *(
        "int",
        "float",
        "bool",
        "complex",
        "str",
        "type",
        "dtype",
        "device",
        "layout",
        "memory_format",
        "returns",
        "Size",
    ),
    *("Tensor", "Generator", "UntypedStorage", "RemovableHandle", "Number", "Device", "T"),
}
KNOWN = {
    *("None", "Any", "Callable", "Iterable", "Iterator", "Sequence", "Self", "object", "np"),
    *("tuple", "list", "dict", "set"),
}
MADE = (
    "dtype: dtype | None = None, layout: layout | None = None, device: Device = None, pin_memory: bool = False, "
    "requires_grad: bool = False"
)
KIND = {
    "int": "_int", "bool": "_bool", "float": "_float", "str": "_str", "Number": "_Number", "Tensor": "_Tensor",
    "Number or Tensor": "_Number | _Tensor", "tuple of ints": "Sequence[_int]",
    "int or ints": "_int | Sequence[_int]", "int or Tensor": "_int | _Tensor",
    "int, ints or Tensor": "_int | Sequence[_int] | _Tensor", "": "Any",
}  # fmt: skip

# What parameters of these names take, unless a default says otherwise.
NAMES_OF_KINDS = {
    "_Tensor": """
        input self tensor mat mat1 mat2 mat_a mat_b vec vec1 vec2 batch1 batch2 tensor1 tensor2 mask grid query key x1
        x2 input1 input2 A B L LU LD LU_data LU_pivots pivots tau theta the_template log_probs targets target anchor
        positive negative logits index src hx w_ih w_hh sorted_sequence boundaries condition linear_weight end_points
        in_proj_weight out_proj_weight count prob
    """,
    "_Tensor | None": """
        bias b_ih b_hh weights pos_weight running_mean running_var attn_mask sorter per_sample_weights offsets
        key_padding_mask
    """,
    "_Tensor | _Scalar": "other exponent q elements test_elements",
    "Sequence[_Tensor]": "tensors",
    "_int": """
        dim0 dim1 dim2 axis0 axis1 start_dim end_dim n k chunks groups diagonal minlength bins num_samples num_groups
        num_classes upscale_factor downscale_factor M ignore_index blank r n_fft edge_order padding_idx dimension step
    """,
    "_int | Sequence[_int]": "kernel_size stride padding dilation output_size output_padding normalized_shape dims",
    "Sequence[_int]": "pad split_sizes",
    "_float": """
        eps p margin lambd negative_slope momentum dropout_p rtol atol std mean gain a b norm_type maxnorm
    """,
    "_Number": "alpha beta",
    "_dtype | None": "dtype out_dtype",
    "_Device": "device",
    "_layout | None": "layout",
    "_memory_format": "memory_format",
    "_Generator | None": "generator",
    "_str | None": "rounding_mode norm side",
    "_bool | None": "size_average align_corners unbiased",
    "object": "obj",
    "Callable[..., Any]": "func fn true_fn false_fn cond_fn body_fn",
}
NAMED = {name: kind for kind, names in NAMES_OF_KINDS.items() for name in names.split()}
NAMED |= {"size": "_int | Sequence[_int]", "dim": "_int | Sequence[_int]", "weight": "Any"}

# What is returned where it is no Tensor.
RESULTS = {
    "_bool": """
        allclose can_cast equal is_autocast_cache_enabled is_autocast_cpu_enabled is_coalesced is_complex is_conj
        is_distributed is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared
        is_signed is_storage is_warn_always_enabled
    """,
    "_int": "const_data_ptr dense_dim get_deterministic_debug_mode get_device numel sparse_dim",
    "_float": "calculate_gain",
    "_str": "typename",
    "_dtype": """
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype promote_types result_type
    """,
    "None": """
        clear_autocast_cache record_stream save set_anomaly_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_enabled set_autocast_gpu_dtype set_default_tensor_type
        set_deterministic_debug_mode set_printoptions set_warn_always
    """,
    "tuple[_Tensor, ...]": """
        chunk gradient split_with_sizes unbind unravel_index unsafe_chunk unsafe_split unsafe_split_with_sizes
    """,
    "tuple[_Tensor, _Tensor]": """
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices
        fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices gru lobpcg lstm_cell
        max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices native_dropout rnn_relu rnn_tanh
        std_mean var_mean
    """,
    "tuple[_Tensor, _Tensor, _Tensor]": """
        lstm native_batch_norm native_group_norm native_layer_norm pca_lowrank svd_lowrank
    """,
    "tuple[_Tensor, _Tensor | None]": "multi_head_attention_forward",
    "Any": "__reduce_ex__ adaptive_max_pool1d embedding_bag storage storage_type",
    "_Tensor": "detach_copy view_as_complex_copy view_as_real_copy",
}
RESULT = {name: kind for kind, names in RESULTS.items() for name in names.split()}

ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
COMPARING = "neg pos abs invert lt le gt ge eq ne"
SPECIAL = {f"__{side}{name}__" for name in ARITHMETIC.split() for side in ("", "r", "i")}
SPECIAL |= {f"__{name}__" for name in COMPARING.split()}

SIZE = '''
class Size(tuple[_int, ...]):
    """The shape of a tensor: a tuple of ints."""

    def numel(self) -> _int:
        """The product of the sizes."""
    @overload  # type: ignore[override]
    def __getitem__(self, index: slice) -> Size: ...
    @overload
    def __getitem__(self, index: _int) -> _int: ...
    def __add__(self, other: tuple[_int, ...]) -> Size: ...  # type: ignore[override]
'''


def annotation_of(annotation) -> str:
    """An annotation of the source in the stub's names; Any where it has a name that the stub has not."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = re.sub(r"\b(dtypes|storage|np|numbers|tensor)\.(?=[A-Za-z])", lambda m: m[0] if m[1] == "np" else "", text)
    tree = ast.parse(text, mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if (
        names
        - UNDERSCORED
        - {
            "None",
            "Any",
            "Callable",
            "Iterable",
            "Iterator",
            "Sequence",
            "np",
            "tuple",
            "list",
            "dict",
            "set",
            "object",
            "Self",
        }
    ):
        return "Any"
    text = underscored(text)
    return re.sub(r"\b(list|dict|tuple|set|Callable)(?!\[)", lambda m: f"{m[1]}[{ITEMS[m[1]]}]", text)


ITEMS = {"list": "Any", "dict": "Any, Any", "tuple": "Any, ...", "set": "Any", "Callable": "..., Any"}


def type_of(value) -> str:
    kind = type(value).__name__
    if value is None:
        return "None"
    return f"_{kind}" if kind in UNDERSCORED else "Any"


def literal(value) -> str:
    """A default as it is written, if it is short and simple."""
    if isinstance(value, (bool, int, float, str, type(None))) and len(repr(value)) < 30 and value == value:
        return repr(value) if repr(value) not in ("inf", "-inf") else "..."
    if isinstance(value, tuple) and all(isinstance(v, (int, float)) for v in value):
        return repr(value)
    return "..."


# -- helpers ---------------------------------------------------------------------------------------------------------


def public_names(owner) -> list[str]:
    """What ``dir`` shows; of a module that says only what ``import *`` takes, that."""
    listed = getattr(owner, "__all__", None) if "__dir__" not in vars(owner) else None
    return sorted(name for name in listed or dir(owner) if not name.startswith("_"))


def value_of(module, name: str):
    """What a public name stands for; a module that needs a package which is not installed, as an empty one."""
    try:
        return getattr(module, name)
    except ImportError:
        return types.ModuleType(name)


def only_names() -> set[str]:
    """Modules that are names only: ``torch.xpu``, for programs that ask whether it is available."""
    return {path.split(".")[0] for path in PARTS if path and not path.startswith("_")}


def first_line(thing) -> str:
    doc = inspect.getdoc(thing) if not isinstance(thing, property) else thing.__doc__
    line = (doc or "").strip().split("\n")[0].replace("\\", "\\\\").replace('"', "'")
    return re.sub(r":\w+:`([^`]*)`", r"\1", line).replace("``", "`")


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


if __name__ == "__main__":
    main()
