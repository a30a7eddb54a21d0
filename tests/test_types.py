"""What type checkers and editors make of programs that use the package."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PROGRAMS = sorted((ROOT / "tests" / "typing").glob("*.py"))

PROGRAM = """
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

layer = nn.Linear(3, 4)
x = torch.tensor([[1.0, 2.0, 3.0]])
reveal_type(layer.weight)
reveal_type(nn.BatchNorm1d(4).running_mean)
reveal_type(2 * layer.weight @ layer.weight)
reveal_type(layer.weight[0] == -layer.weight)
reveal_type(x.max())
reveal_type(x.max(dim=1))
reveal_type(torch.sort(x).indices)
reveal_type(x.shape)
reveal_type(x.size(0))
reveal_type(layer.to("cpu"))
F.cross_entropy(layer(x), torch.tensor([0])).backward()
layer.wieght
x.summ()
torch.rnadn(3)
"""


def test_stubs_are_in_step():
    """``python tools/stubs.py`` writes them anew."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "stubs.py", "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


UNDER_ANOTHER_NAME = """
import torch
from torch import nn
from torch.utils.data import DataLoader
import torchvision.ops

reveal_type(torch.ones(2))
reveal_type(nn.Linear(1, 1))
reveal_type(torch.__version__)
"""


@pytest.fixture(scope="module")
def told_by_mypy(tmp_path_factory):
    """What mypy says of each of the programs here, of those in tests/typing and of the stubs, in one run."""
    from rushlight.cli import main

    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")
    with pytest.raises(SystemExit, match="0"), contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["typings", str(folder / "typings")])
    assert "torchvision are names of rushlight" in printed.getvalue()
    ours = {"rushlight": folder / "program.py", "torch": folder / "another_name.py"}
    ours["rushlight"].write_text(PROGRAM)
    ours["torch"].write_text(UNDER_ANOTHER_NAME)
    stubs = (ROOT / "rushlight").rglob("*.pyi")
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    done = subprocess.run(  # a process of its own: what it leaves in memory would be searched by every collection
        [sys.executable, "-m", "mypy", *options, *map(str, (*ours.values(), *PROGRAMS, *stubs))],
        env={**os.environ, "MYPYPATH": f"{folder / 'typings'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    told = done.stdout.splitlines()[:-1]  # the last line counts them
    by_name = {name: [line for line in told if line.startswith(f"{path}:")] for name, path in ours.items()}
    rest = [line for line in told if not line.startswith(tuple(f"{path}:" for path in ours.values()))]
    return by_name | {"rest": rest}


def revealed(told) -> list[str]:
    return re.findall(r'Revealed type is "(.+)"', "\n".join(told))


def errors_in(told) -> list[str]:
    return [line.split(";")[0] for line in re.findall(r"error: (.*)", "\n".join(told))]


def test_layers_and_operators_have_types(told_by_mypy):
    told = told_by_mypy["rushlight"]
    assert revealed(told) == [
        "rushlight.nn.parameter.Parameter",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Tensor",
        "tuple[rushlight.tensor.Tensor, rushlight.tensor.Tensor, fallback=rushlight.ops.returns.max]",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Size",
        "int",
        "rushlight.nn.layers.linear.Linear",
    ]
    assert errors_in(told) == [
        '"Linear" has no attribute "wieght"',
        '"Tensor" has no attribute "summ"',
        'Module has no attribute "rnadn"',
    ]


def test_user_programs_by_mypy(told_by_mypy):
    assert told_by_mypy["rest"] == []


def test_torch_is_another_name_for_editors(told_by_mypy):
    """``rushlight typings``: a program that says ``import torch`` is checked as one of ours."""
    told = told_by_mypy["torch"]
    assert errors_in(told) == []
    assert revealed(told) == ["rushlight.tensor.Tensor", "rushlight.nn.layers.linear.Linear", "str"]


@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_user_programs_by_pyright(mode, tmp_path):
    pytest.importorskip("basedpyright")  # pyright as a package that brings its own Node
    settings = {"include": [str(ROOT / "tests" / "typing")], "extraPaths": [str(ROOT)], "typeCheckingMode": mode}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "-p", tmp_path, "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr


def test_user_programs_run():
    code = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code, *PROGRAMS], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "[[0, 1, 2, 3, 4, 5]]" in done.stdout  # what the small GPT learned


def test_editors_complete_names():
    jedi = pytest.importorskip("jedi")
    code = "import rushlight as torch\nx = torch.randn(2, 3)\ntorch.rand\nx.su\ntorch.sum"
    script = jedi.Script(code, project=jedi.Project(ROOT, added_sys_path=[str(ROOT)]))
    assert {"rand", "randn", "randint", "randperm"} <= {c.name for c in script.complete(3, 10)}
    assert {"sum", "sub", "subtract"} <= {c.name for c in script.complete(4, 4)}
    (shown,) = script.help(5, 9)
    assert "dim" in shown.docstring() and "sum of all elements" in shown.docstring()
