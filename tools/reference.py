"""Writes the pages of ``docs/reference``: every public name once, under PyTorch's name, with its arguments and text.

python tools/reference.py            writes them
python tools/reference.py --check    says which are out of step, and which names have no text

Arguments and their types are those of the stubs (``tools/stubs.py``); the text is the docstring.
"""

from __future__ import annotations

import argparse
import ast
import enum
import functools
import importlib
import inspect
import re
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import stubs

from rushlight.nn import Module

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"

# Page -> its namespaces. A name that several have is shown in the first.
NAMESPACES = {
    "torch": ["torch"],
    "tensor": ["torch.Tensor"],
    "nn": [
        "torch.nn",
        "torch.nn.parameter",
        "torch.nn.attention",
        "torch.nn.attention.bias",
        "torch.nn.attention.flex_attention",
        "torch.nn.parallel",
    ],
    "functional": ["torch.nn.functional", "torch.nn.grad"],
    "init": ["torch.nn.init"],
    "nn_utils": [
        "torch.nn.utils",
        "torch.nn.utils.rnn",
        "torch.nn.utils.parametrize",
        "torch.nn.utils.parametrizations",
        "torch.nn.utils.prune",
        "torch.nn.utils.stateless",
    ],
    "optim": ["torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils"],
    "autograd": [
        "torch.autograd",
        "torch.autograd.function",
        "torch.autograd.functional",
        "torch.autograd.forward_ad",
        "torch.autograd.graph",
        "torch.func",
    ],
    "math": [
        "torch.linalg",
        "torch.fft",
        "torch.special",
        "torch.signal.windows",
        "torch.sparse",
        "torch.nested",
        "torch.masked",
    ],
    "data": ["torch.utils.data"],
    "vision": [
        "torchvision.transforms",
        "torchvision.transforms.functional",
        "torchvision.transforms.v2",
        "torchvision.transforms.v2.functional",
        "torchvision.tv_tensors",
        "torchvision.io",
        "torchvision.datasets",
        "torchvision.models",
        "torchvision.models.detection",
        "torchvision.ops",
        "torchvision.utils",
    ],
    "distributions": [
        "torch.distributions",
        "torch.distributions.constraints",
        "torch.distributions.transforms",
        "torch.distributions.kl",
        "torch.distributions.utils",
    ],
    "compile": ["torch.compiler", "torch.export", "torch.onnx", "torch.jit", "torch.fx", "torch.library"],
    "quantization": [
        "torch.ao.quantization",
        "torch.ao.quantization.observer",
        "torch.ao.quantization.fake_quantize",
        "torch.ao.quantization.qconfig",
        "torch.ao.nn.quantized",
        "torch.ao.nn.quantized.dynamic",
        "torch.ao.nn.intrinsic",
    ],
    "devices": [
        "torch.amp",
        "torch.cuda",
        "torch.cuda.amp",
        "torch.cuda.nvtx",
        "torch.cuda.profiler",
        "torch.accelerator",
        "torch.backends",
    ],
    "distributed": [
        "torch.distributed",
        "torch.distributed.device_mesh",
        "torch.distributed.nn.functional",
        "torch.distributed.checkpoint",
        "torch.distributed.checkpoint.state_dict",
        "torch.distributed.checkpoint.staging",
        "torch.distributed.tensor",
        "torch.distributed.tensor.parallel",
        "torch.distributed.tensor.experimental",
        "torch.distributed.tensor.debug",
        "torch.distributed.fsdp",
        "torch.distributed.pipelining",
        "torch.distributed.algorithms.join",
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
        "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook",
        "torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks",
        "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook",
        "torch.distributed.algorithms.ddp_comm_hooks.quantization_hooks",
        "torch.distributed.algorithms.model_averaging.averagers",
        "torch.distributed.elastic.multiprocessing.errors",
        "torch.distributed.elastic.utils.data",
        "torch.distributed.launcher",
        "torch.distributed.optim",
        "torch.multiprocessing",
        "torch.futures",
    ],
    "utils": [
        "torch.serialization",
        "torch.storage",
        "torch.random",
        "torch.hub",
        "torch.overrides",
        "torch.testing",
        "torch.types",
        "torch.torch_version",
        "torch.utils",
        "torch.utils.benchmark",
        "torch.utils.checkpoint",
        "torch.utils.collect_env",
        "torch.utils.dlpack",
        "torch.utils.flop_counter",
        "torch.utils.hooks",
    ],
    "profiler": ["torch.profiler", "torch.autograd.profiler"],
    "inspect": ["rushlight.inspect"],
    "op": ["rushlight.autograd.op"],
}
TITLES = {
    "torch": "Functions of tensors", "tensor": "Tensor", "nn": "Modules and layers", "functional": "nn.functional",
    "init": "nn.init", "nn_utils": "nn.utils", "optim": "Optimizers and schedules", "autograd": "autograd and func",
    "math": "linalg, fft, special, signal, sparse, nested, masked", "data": "utils.data", "vision": "Vision",
    "distributions": "Distributions", "compile": "compile, export, fx, library", "devices": "Devices and precision",
    "distributed": "Many processes", "utils": "Files, random numbers, utilities", "inspect": "Looking inside",
    "op": "Writing operators", "profiler": "Profiler", "quantization": "Quantization",
}  # fmt: skip
EXAMPLE = re.compile(r"((?:^ *>>> .*\n?)(?:^(?! *$).*\n?)*)", re.M)
HEAD = "# {title}\n\n<!-- Made by tools/reference.py; do not edit. -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name the pages that would change")
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if parser.parse_args().check:
        wrong = [f"{path.relative_to(ROOT)} is out of step: python tools/reference.py" for path in stale]
        raise SystemExit("\n".join(wrong + [f"{name} has no docstring" for name in undocumented()]) or 0)
    for path in stale:
        path.write_text(pages()[path], encoding="utf-8")


@functools.cache
def pages() -> dict[Path, str]:
    """The text of every page, by its path."""
    return {PAGES / f"{page}.md": page_text(page) for page in NAMESPACES}


def undocumented() -> list[str]:
    spaces = [space for several in NAMESPACES.values() for space in several]
    return [f"{s}.{name}" for s in spaces for name, value in shown_in(s).items() if not stubs.first_line(value)]


def page_text(page: str) -> str:
    parts = [HEAD.format(title=TITLES[page])]
    for space in NAMESPACES[page]:
        entries = [entry(space, name, value) for name, value in shown_in(space).items()]
        if entries:
            parts.append(f"## {space}\n\n{text_of(owner_of(space))}\n\n" + "\n".join(entries) + "\n")
    return "\n".join(parts)


# -- which names -----------------------------------------------------------------------------------------------------


@functools.cache
def shown_in(space: str) -> dict[str, object]:
    """The names of a namespace that no earlier one has, with what they stand for."""
    earlier = []
    for other in (s for spaces in NAMESPACES.values() for s in spaces):
        if other == space:
            break
        earlier.append(other)
    return {
        name: value
        for name, value in public(space).items()
        if not any(public(other).get(name) is value for other in earlier if space != "torch.Tensor")
    }


@functools.cache
def public(space: str) -> dict[str, object]:
    """Callables of ours and, of Tensor, properties; modules and constants are not in the reference."""
    owner = owner_of(space)
    found = {}
    for name in stubs.public_names(owner):
        value = inspect.getattr_static(owner, name) if inspect.isclass(owner) else stubs.value_of(owner, name)
        if is_ours(value):
            found[name] = value
    return found


def is_ours(value) -> bool:
    if isinstance(value, property):
        return True
    module = getattr(value, "__module__", None) or ""
    return callable(value) and not inspect.ismodule(value) and module.split(".")[0] in ("rushlight", "torch")


def owner_of(space: str):
    """``torch.nn`` -> our module; ``torch.Tensor`` -> the class."""
    path = re.sub(r"^torchvision", "rushlight.vision", re.sub(r"^torch(?=\.|$)", "rushlight", space))
    return stubs.Tensor if path == "rushlight.Tensor" else importlib.import_module(path)


# -- one entry -------------------------------------------------------------------------------------------------------


def entry(space: str, name: str, value) -> str:
    """An item of a list: how it is called, its line, and below it what else its docstring says."""
    line, _, rest = text_of(value).partition("\n")
    members = list(value.__members__) if isinstance(value, enum.EnumType) else []
    called = [name] if members or isinstance(value, property) else signatures(space, name, value)
    if members:
        line += f" Its members: {', '.join(f'`{member}`' for member in members)}."
    lines = [f"- {' or '.join(f'`{space}.{text}`' for text in called)}: {line}"]
    if rest.strip():
        lines += ["", *("    " + text if text else "" for text in rest.strip("\n").split("\n")), ""]
    if inspect.isclass(value):
        lines += methods(value)
    return "\n".join(lines)


def signatures(space: str, name: str, value) -> list[str]:
    """How it is called: one line, or one for each overload."""
    if isinstance(value, types.FunctionType):
        path = space.removeprefix("torch").lstrip(".")
        text = stubs.function(name, value, path if path in ("Tensor", *stubs.TENSORS) else "elsewhere")
        return [without_types(node) for node in ast.parse(text).body]
    return [f"{name}{plain_signature(value)}"]


def plain_signature(value) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # an exception
        return "(*args)"
    if getattr(value, "__init__", None) is Module.__init__ and value is not Module:
        return "()"
    parameters = [p.replace(annotation=p.empty, default=shown(p.default)) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class shown:
    """A default as the stubs write it."""

    def __new__(cls, default):
        if default is inspect.Parameter.empty:
            return default
        self = object.__new__(cls)
        self.text = stubs.literal(default)
        return self

    def __repr__(self) -> str:
        return self.text


def without_types(node: ast.FunctionDef) -> str:
    """``name(input, dim=None)``: the arguments as people write them."""
    arguments = node.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    if arguments.args and arguments.args[0].arg == "self":
        del arguments.args[0]
    return f"{node.name}({ast.unparse(arguments)})"


def methods(kind: type) -> list[str]:
    """The public methods and properties that a class itself has, one line each."""
    lines = []
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if name.startswith("_") or not (isinstance(function, (types.FunctionType, property)) and function.__doc__):
            continue
        called = "" if isinstance(function, property) else re.sub(r"\((self|cls)(, )?", "(", plain_signature(function))
        lines.append(f"    - `{name}{called}`: {stubs.first_line(function)}")
    return lines


def text_of(thing) -> str:
    """A docstring as Markdown: examples become blocks."""
    doc = (inspect.getdoc(thing) if not isinstance(thing, property) else thing.__doc__) or ""
    doc = re.sub(r":\w+:`([^`]*)`", r"`\1`", inspect.cleandoc(doc)).replace("``", "`")
    return EXAMPLE.sub(lambda m: f"```pycon\n{m[1].rstrip()}\n```\n", doc).rstrip()


if __name__ == "__main__":
    main()
