"""What type checkers and editors make of programs that use the package."""

from __future__ import annotations

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


def test_layers_and_operators_have_types(tmp_path):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = ROOT / "pyproject.toml"
    options = [f"--config-file={settings}", "--follow-imports=silent", f"--cache-dir={tmp_path}"]
    told, errors, _ = api.run([*options, str(program)])
    assert not errors
    assert re.findall(r'Revealed type is "(.+)"', told) == [
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
    assert [line.split(";")[0] for line in re.findall(r"error: (.*)", told)] == [
        '"Linear" has no attribute "wieght"',
        '"Tensor" has no attribute "summ"',
        'Module has no attribute "rnadn"',
    ]


def test_user_programs_by_mypy(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    told, errors, status = api.run([*options, *map(str, PROGRAMS), *map(str, (ROOT / "rushlight").rglob("*.pyi"))])
    assert (status, errors) == (0, ""), told


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


def test_torch_is_another_name_for_editors(tmp_path, monkeypatch, capsys):
    """``rushlight typings``: a program that says ``import torch`` is checked as one of ours."""
    from rushlight.cli import main

    api = pytest.importorskip("mypy.api")
    with pytest.raises(SystemExit, match="0"):
        main(["typings", str(tmp_path / "typings")])
    assert "torchvision are names of rushlight" in capsys.readouterr().out
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nimport torchvision.ops\n"
        "reveal_type(torch.ones(2))\nreveal_type(nn.Linear(1, 1))\nreveal_type(torch.__version__)\n"
    )
    monkeypatch.setenv("MYPYPATH", f"{tmp_path / 'typings'}{os.pathsep}{ROOT}")
    told, errors, status = api.run(
        ["--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}", str(program)]
    )
    assert (status, errors) == (0, ""), told
    assert re.findall(r'Revealed type is "(.+)"', told) == [
        "rushlight.tensor.Tensor",
        "rushlight.nn.layers.linear.Linear",
        "str",
    ]


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
