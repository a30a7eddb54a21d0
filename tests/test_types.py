"""What a type checker makes of a program that uses the package."""

import re
from pathlib import Path

import pytest

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
F.cross_entropy(layer(x), torch.tensor([0])).backward()
layer.wieght
"""


def test_layers_and_operators_have_types(tmp_path):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = Path(__file__).parents[1] / "pyproject.toml"
    told, errors, _ = api.run([f"--config-file={settings}", f"--cache-dir={tmp_path}", str(program)])
    assert not errors
    assert re.findall(r'Revealed type is "([\w.]+)"', told) == [
        "rushlight.nn.parameter.Parameter",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Tensor",
        "rushlight.tensor.Tensor",
    ]
    assert re.findall(r"error: (.*)", told) == ['"Linear" has no attribute "wieght"; maybe "weight"?  [attr-defined]']
