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


# -- files from anybody, saves that are interrupted ------------------------------------------------------------------


def repacked(source, target, change) -> None:
    """A copy of an exported program's file with some of its parts changed."""
    import zipfile

    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))


def test_a_failing_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.rl"
    traced = torch.jit.trace(model(), torch.ones(1, 3))
    traced.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np.lib.format, "write_array", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        traced.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.rl"]


def test_calls_that_are_not_ours_are_refused(tmp_path):
    path, bad = tmp_path / "good.rl", tmp_path / "bad.rl"
    traced = torch.jit.trace(lambda x: torch.linalg.cholesky(x), torch.eye(3))
    traced.save(path)
    assert torch.jit.load(path)(torch.eye(3)).tolist() == torch.eye(3).tolist()
    for name in (b"evil_function_ffi", b"xla_python_cpu_ca"):  # as long as the real name
        repacked(path, bad, lambda _, data, name=name: data.replace(b"lapack_spotrf_ffi", name))
        with pytest.raises(RuntimeError, match=name.decode()):
            torch.jit.load(bad)


@pytest.mark.parametrize(
    ("part", "change", "match"),
    [
        ("meta.json", lambda data: data.replace(b'{"tensor": 0}', b'{"tensor": 7}'), "damaged"),
        ("meta.json", lambda data: b"[" * 100000, "damaged"),
        ("meta.json", lambda data: data.replace(b'"format": 1', b'"format": 9'), "another version"),
        ("meta.json", lambda data: data.replace(b"float32", b"__doc__"), "damaged"),
        ("program", lambda data: data[:-1000], "damaged"),
        ("weights/0.npy", lambda data: data.replace(b"(4, 3)", b"(4,33)"), "damaged"),
        ("weights/0.npy", lambda data: data.replace(b"<f4", b"|O "), "damaged"),
        ("weights/0.npy", lambda data: data[:-4], "damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path, part, change, match):
    path, bad = tmp_path / "good.rl", tmp_path / "bad.rl"
    torch.jit.trace(model(), torch.ones(1, 3)).save(path)
    repacked(path, bad, lambda name, data: change(data) if name == part else data)
    assert bad.read_bytes() != path.read_bytes()
    with pytest.raises(RuntimeError, match=match):
        torch.jit.load(bad)


def test_packed_parts_are_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "bomb.rl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", " " * (64 << 20))
    with pytest.raises(RuntimeError, match="is packed"):
        torch.jit.load(tmp_path / "bomb.rl")


def test_a_user_without_a_home(tmp_path):
    code = "import rushlight as torch; print(torch.compile(lambda x: x + 1)(torch.ones(2)).tolist())"
    patch = (
        "import pathlib; pathlib.Path.home = classmethod(lambda _: (_ for _ in ()).throw(RuntimeError('no home')))\n"
    )
    environment = {k: v for k, v in __import__("os").environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", patch + code], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[2.0, 2.0]"


# -- sizes that stay open --------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """An LSTM that starts from zeros of the batch's size."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0][:, -1]


class Tokens(nn.Module):
    """Sizes in sums and products, as sizes of new tensors, as places: what vision transformers do with a batch's."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x):
        batch, length, width = x.shape
        x = torch.cat([self.token.expand(batch, -1, -1), x, torch.ones(1, 1, 4).expand(batch, 1, width)], 1)
        heads = x.view(batch, length + 2, 2, width // 2).transpose(1, 2).reshape(batch * 2, -1)
        best = heads.argmax(1).gather(0, torch.arange(batch * 2))
        picked = heads[torch.arange(2 * batch), best].view(batch, 2) + torch.zeros(batch, 2)
        return picked / x.numel() * x.size(0) + torch.einsum("bij,bkj->bi", x, x)[:, :2]


OPEN = {
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (5, 8)),
    "recurrent": (Recurrent, (5, 4)),
    "tokens": (Tokens, (3, 4)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(-1)), (4,)),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(), nn.Linear(12, 2),
        ),
        (1, 8, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_a_batch_of_any_size(name, tmp_path):
    make, shape = OPEN[name]
    torch.manual_seed(0)
    net = make().eval()
    batch = torch.export.Dim("batch", max=64)
    exported = torch.export.export(net, (torch.randn(3, *shape),), dynamic_shapes=({0: batch},))
    torch.export.save(exported, tmp_path / "open.rl")
    loaded = torch.export.load(tmp_path / "open.rl")
    for n in (1, 2, 7, 64):
        x = torch.randn(n, *shape)
        np.testing.assert_allclose(loaded(x).numpy(), net(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="as argument 0"):
        loaded(torch.randn(65, *shape))


def test_the_same_name_is_the_same_size():
    batch = torch.export.Dim("batch")
    names = {"x": {0: batch}, "y": {0: batch, 1: torch.export.Dim.AUTO}}
    run = torch.export.export(lambda x, y: x @ y, (torch.ones(2), torch.ones(2, 3)), dynamic_shapes=names)
    assert run(torch.ones(4), torch.ones(4, 5)).tolist() == [4.0] * 5
    with pytest.raises(RuntimeError, match="as argument 1"):
        run(torch.ones(4), torch.ones(3, 5))
    with pytest.raises(ValueError, match="'z', which is no argument"):
        torch.export.export(lambda x: x, (torch.ones(2),), dynamic_shapes={"z": {0: batch}})


def test_a_size_that_cannot_stay_open_is_told():
    names = {"x": {0: torch.export.Dim("batch")}}
    with pytest.raises(RuntimeError, match="the sizes batch cannot stay open"):
        torch.export.export(lambda x: x * len(x), (torch.ones(2),), dynamic_shapes=names)
