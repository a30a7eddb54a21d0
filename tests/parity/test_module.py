"""The behaviour of nn.Module: one script, run on PyTorch and on rushlight, must print the same lines."""

import contextlib
import importlib.util
import io
import re
import sys
import types
from pathlib import Path

import pytest
import torch

import rushlight

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(p.stem for p in SCRIPTS.glob("*.py") if p.stem != "helpers")


@pytest.mark.parametrize("name", NAMES)
def test_script_prints_the_same_lines(name):
    expected, actual = run(name, torch), run(name, rushlight)
    assert len(expected) > 20
    assert actual == expected


def test_no_public_name_of_module_is_missing():
    ours = set(dir(rushlight.nn.Module))
    assert [n for n in dir(torch.nn.Module) if not n.startswith("__") and n not in ours] == []


def test_no_attribute_of_a_new_module_is_missing():
    ours = rushlight.nn.Module()
    assert [n for n in vars(torch.nn.Module()) if not hasattr(ours, n)] == []


@pytest.mark.parametrize("name", ["module", "container", "lazy", "linear", "flatten"])
def test_names_of_modules_of_pytorch_are_found_in_ours(name):
    theirs = getattr(torch.nn.modules, name)
    ours = sys.modules[f"rushlight.nn.modules.{name}"]
    public = [n for n in theirs.__all__ if not n.startswith("_")]
    assert [n for n in public if not hasattr(ours, n)] == []


def run(name: str, package) -> list[str]:
    """The lines a script prints when ``import torch`` means ``package``."""
    printed = io.StringIO()
    with importing_as_torch(package), contextlib.redirect_stdout(printed):
        spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # pickle finds its classes there
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[spec.name]
    return [normal(line) for line in printed.getvalue().splitlines()]


@contextlib.contextmanager
def importing_as_torch(package):
    """Let ``torch`` and ``torch.*`` name ``package``'s modules; the real ones come back afterwards."""
    real = {n: m for n, m in sys.modules.items() if n == "torch" or n.startswith("torch.")}
    prefix = package.__name__
    if package is not torch:
        for n in real:
            del sys.modules[n]
        ours = {n: m for n, m in sys.modules.items() if n == prefix or n.startswith(prefix + ".")}
        sys.modules.update({"torch" + n.removeprefix(prefix): m for n, m in ours.items()})
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield
    finally:
        sys.path.remove(str(SCRIPTS))
        if package is not torch:  # what PyTorch imported meanwhile stays: it cannot be imported twice
            for n in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
                del sys.modules[n]
            sys.modules.update(real)


def normal(line: str) -> str:
    """Without what may differ: addresses, and the files classes live in."""
    line = re.sub(r"0x[0-9a-f]+", "0x", line)
    line = re.sub(r"\b(?:torch\.nn\.modules|rushlight\.nn\.layers|rushlight\.nn)\.\w+\.(\w+)", r"nn.\1", line)
    return line.replace("rushlight.tensor.Tensor", "torch.Tensor")


def test_the_comparison_can_fail():
    wrong = types.ModuleType("wrong")
    wrong.__dict__.update({k: v for k, v in vars(rushlight).items() if not k.startswith("__")})
    wrong.add = lambda a, b: rushlight.add(a, b) + 1
    assert run("teaching", torch) != run_teaching_with(wrong)


def run_teaching_with(package) -> list[str]:
    printed = io.StringIO()
    source = (SCRIPTS / "teaching.py").read_text()
    with importing_as_torch(rushlight), contextlib.redirect_stdout(printed):
        sys.modules["torch"] = package
        exec(compile(source, "teaching.py", "exec"), {"__name__": "teaching"})
    return [normal(line) for line in printed.getvalue().splitlines()]
