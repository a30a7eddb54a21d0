"""Exported programs: saved, loaded, run without the model."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def test_export_runs_in_another_process_without_the_source(tmp_path):
    net, x = model(), torch.randn(5, 3)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "model.rl")
    np.save(tmp_path / "x.npy", x.numpy())
    code = (
        "import numpy as np, rushlight as torch, sys\n"
        "run = torch.export.load(sys.argv[1] + '/model.rl')\n"
        "np.save(sys.argv[1] + '/y.npy', run(torch.from_numpy(np.load(sys.argv[1] + '/x.npy'))).numpy())"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), net(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_jit_names_and_structure(tmp_path):
    net = model()
    traced = torch.jit.trace(lambda x: {"y": net(x), "pair": (x * 2, 3)}, torch.ones(1, 3))
    traced.save(tmp_path / "traced.rl")
    out = torch.jit.load(tmp_path / "traced.rl")(torch.ones(1, 3))
    np.testing.assert_allclose(out["y"].numpy(), net(torch.ones(1, 3)).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert out["pair"][0].tolist() == [[2.0, 2.0, 2.0]] and out["pair"][1] == 3
    assert "stablehlo" in traced.code


def test_wrong_shape_and_wrong_file(tmp_path):
    traced = torch.jit.trace(model(), torch.ones(1, 3))
    with pytest.raises(RuntimeError, match=r"shape \[1, 3\] as argument 0"):
        traced(torch.ones(2, 3))
    import zipfile

    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("x", "y")
    with pytest.raises(RuntimeError, match="not a file written by"):
        torch.jit.load(tmp_path / "other.zip")
