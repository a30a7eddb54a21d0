"""Checkpoints: files of PyTorch's read without PyTorch, round trips, places, sharing, interrupted saves."""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
from collections import OrderedDict

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, serialization
from rushlight.io import atomic, load_sharded, save_sharded, saving, zipformat
from rushlight.tensor import wrap

DATA = pathlib.Path(__file__).parent / "data"


def round_trip(value, **arguments):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **arguments)


# -- files of PyTorch's ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["checkpoint.pt", "checkpoint_legacy.pt"])
def golden(request):
    return DATA / request.param


def test_golden_values(golden):
    values = torch.load(golden)["values"]
    for dtype in (torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float64, torch.complex128):
        assert repr(values[repr(dtype).removeprefix("torch.")]) == repr(torch.arange(3).to(dtype))
    assert values["bool"].tolist() == [False, True, True]
    assert values["base"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert values["transposed"].stride() == (1, 4) and values["step"].tolist() == [[0, 2], [4, 6], [8, 10]]
    assert values["expanded"].stride() == (0, 0) and values["empty"].shape == (0, 3) and values["scalar"].item() == 2.5
    assert type(values["parameter"]) is nn.Parameter and values["parameter"].requires_grad
    assert values["leaf"].requires_grad and values["leaf"].is_leaf
    assert values["conjugate"].tolist() == [1 - 2j]
    assert type(values["size"]) is torch.Size and values["dtype"] is torch.float16
    assert values["device"] == torch.device("cpu") and type(values["ordered"]) is OrderedDict
    plain = [1, -2, 2**40, 10**20, 0.5, True, None, "text", b"bytes", (1, 2), {"a", "b"}, 1j, bytearray(b"x")]
    assert values["plain"] == plain


def test_golden_sharing(golden):
    values = torch.load(golden)["values"]
    values["base"][1, 0] = 100.0
    assert values["row"][0] == 100 and values["transposed"][0, 1] == 100
    assert values["base"].untyped_storage().nbytes() == 48


def test_golden_training_state(golden):
    checkpoint = torch.load(golden)
    model = nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(4, 2))
    assert model.load_state_dict(checkpoint["model"]) and checkpoint["model"]._metadata["0"] == {"version": 1}
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.1 and len(optimizer.state) == 4


def test_golden_unsigned_and_storage():
    loaded = torch.load(DATA / "v3.pt")
    assert loaded["unsigned"].dtype is torch.uint16 and loaded["unsigned"].tolist() == [0, 1, 2]
    assert loaded["storage"].nbytes() == 8


def test_golden_protocol_5():
    assert torch.load(DATA / "protocol5.pt").shape == (3, 4)


def test_golden_module():
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules\.container\.Sequential.*add_safe_globals"):
        torch.load(DATA / "module.pt")
    model = torch.load(DATA / "module.pt", weights_only=False)
    assert type(model[0]) is nn.Linear and model(torch.ones(1, 3)).shape == (1, 2)
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.Flatten]):
        assert torch.equal(torch.load(DATA / "module.pt")[2].weight, model[2].weight)
    assert serialization.get_unsafe_globals_in_checkpoint(DATA / "module.pt") == [
        "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear",
        "torch.nn.modules.flatten.Flatten",
    ]


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_files_and_paths(tmp_path, zipped):
    value = {"w": torch.arange(3.0)}
    path = tmp_path / "a.pt"
    torch.save(value, path, _use_new_zipfile_serialization=zipped)
    assert torch.load(path)["w"].tolist() == [0, 1, 2]
    assert torch.load(str(path))["w"].tolist() == [0, 1, 2]
    with open(path, "rb") as file:
        assert torch.load(file)["w"].tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["a.pt"]


def test_several_objects_in_one_old_file():
    file = io.BytesIO()
    for i in range(3):
        torch.save(torch.full((2,), float(i)), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert [torch.load(file)[0].item() for _ in range(3)] == [0, 1, 2]


def test_sharing_survives():
    base = torch.arange(6.0)
    loaded = round_trip([base, base[2:4], base.view(2, 3).t(), base])
    assert loaded[0] is loaded[3] and loaded[1].storage_offset() == 2
    loaded[0][2] = 50.0
    assert loaded[1][0] == 50 and loaded[2][2, 0] == 50
    assert loaded[2].stride() == (1, 3)


def test_shared_parameters_of_a_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    loaded = round_trip(model, weights_only=False)
    assert loaded[1].weight is loaded[0].weight
    state = round_trip(model.state_dict())
    assert state["0.weight"].data_ptr() == state["1.weight"].data_ptr()


def test_attributes_of_tensors():
    t, p = torch.ones(2), nn.Parameter(torch.ones(2))
    t.note, p.note = "a", "b"
    loaded = round_trip([t, p])
    assert loaded[0].note == "a" and loaded[1].note == "b" and type(loaded[1]) is nn.Parameter


def test_reversed_memory_is_packed():
    assert round_trip(wrap(np.arange(4.0)[::-1])).tolist() == [3, 2, 1, 0]


def test_one_memory_of_two_types_is_refused():
    t = torch.ones(4)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        torch.save([t, t.view(torch.int32)], io.BytesIO())


def test_deep_structures():
    deep = model = nn.Sequential()
    for _ in range(80):
        model.append(nn.Sequential(nn.Linear(1, 1)))
        model = model[-1]
    assert str(round_trip(deep, weights_only=False)) == str(deep)
    nested = []
    for _ in range(350):
        nested = [nested]
    assert round_trip(nested) == nested


def test_values_of_compiled_steps():
    """After compiled calls the values lie in XLA's memory: save gets them from there."""
    pytest.importorskip("jax")
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(4):
        step(torch.ones(3, 2))
    saved = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert torch.equal(saved["model"]["weight"], model.weight.detach().cpu())
    momentum = optimizer.state[model.weight]["momentum_buffer"]
    assert torch.equal(saved["optimizer"]["state"][0]["momentum_buffer"], momentum.cpu())


class Config:
    def __init__(self, width):
        self.width = width


def test_classes_are_refused_until_allowed():
    with pytest.raises(
        pickle.UnpicklingError, match=r"Config was not an allowed global.*weights_only|add_safe_globals"
    ):
        round_trip(Config(3))
    assert round_trip(Config(3), weights_only=False).width == 3
    serialization.add_safe_globals([Config])
    try:
        assert round_trip(Config(4)).width == 4 and serialization.get_safe_globals() == [Config]
    finally:
        serialization.clear_safe_globals()
    with serialization.safe_globals([(Config, f"{Config.__module__}.Config")]):
        assert round_trip(Config(5)).width == 5
    assert serialization.get_safe_globals() == []


def test_errors_of_arguments(tmp_path):
    with pytest.raises(AttributeError, match=r"You can only torch\.load from a file that is seekable"):
        torch.load(3)
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        torch.save({}, 3)
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        torch.save({}, tmp_path / "no" / "a.pt")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(io.BytesIO(b"PK"), mmap=True)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(DATA / "small.pt", pickle_module=pickle, weights_only=True)


# -- places ----------------------------------------------------------------------------------------------------------


def seen_location(storage, location):
    assert location == "cpu" and storage.nbytes() in (16, 8)


@pytest.mark.parametrize(
    "place",
    [
        None,
        "cpu",
        torch.device("cpu"),
        {"cpu": "cpu"},
        {"cuda:0": "cpu"},
        lambda storage, location: storage,
        seen_location,
    ],
    ids=["none", "str", "device", "dict", "other", "function", "none-function"],
)
def test_map_location(place):
    assert torch.load(DATA / "small.pt", map_location=place)["w"].tolist() == [0, 1, 2, 3]


def test_map_location_to_xla():
    pytest.importorskip("jax")
    for name in ("small.pt", "checkpoint_legacy.pt"):
        loaded = torch.load(DATA / name, map_location="xla")
        t = loaded["w"] if name == "small.pt" else loaded["values"]["transposed"]
        assert t.device.type == "xla" and t.cpu().flatten()[-1].item() == (3 if name == "small.pt" else 11)
    saved = round_trip({"a": t, "b": t.detach()})
    assert saved["a"].device.type == "cpu" and saved["b"].tolist() == t.cpu().tolist()


def test_map_location_unknown():
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        torch.load(DATA / "small.pt", map_location="moon")


# -- mapping ---------------------------------------------------------------------------------------------------------


def test_mmap_is_copy_on_write(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.arange(1000.0), "e": torch.empty(0)}, path)
    before = path.read_bytes()
    loaded = torch.load(path, mmap=True)["w"]
    loaded += 1
    assert loaded[0] == 1 and path.read_bytes() == before
    assert loaded.untyped_storage().nbytes() == 4000  # and not the whole file
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)["w"][0] = 7.0
    assert torch.load(path, mmap=True)["w"][0] == 7
    with pytest.raises(RuntimeError, match="checksum"):  # a plain load sees that the bytes are not those saved
        torch.load(path)


def test_mmap_of_a_large_file_reads_little(tmp_path):
    """A sparse file of 2 GiB: mapped, touched in one place, and the process stays small."""
    path = tmp_path / "large.pt"
    _sparse_checkpoint(path, 2 << 30)
    code = f"""
import resource, rushlight
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
t = rushlight.load({str(path)!r}, mmap=True)["w"]
assert t.shape == (2 << 28,) and t[1 << 28].item() == 0
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000, "read too much"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def _sparse_checkpoint(path, size: int) -> None:
    """A checkpoint of one storage of ``size`` zero bytes that takes no room on disk; its checksum is wrong."""

    class Sparse(zipformat.Writer):
        def _write(self, data):
            if len(data) >= size:
                self.file.seek(len(data), 1)
                self.position += len(data)
            else:
                super()._write(data)

    data, storages = io.BytesIO(), saving.Storages()
    large = wrap(np.zeros(size // 4, np.float32))  # the system gives memory for it only when it is touched
    saving._pickler(pickle)(data, 2, storages).dump({"w": large})
    with open(path, "wb") as file:
        writer = Sparse(file, "large")
        writer.add("data.pkl", data.getvalue())
        writer.add("data/0", storages.memories[0], crc=0)
        writer.add("version", b"3\n")
        writer.close()


def test_zip64(monkeypatch, tmp_path):
    monkeypatch.setattr(zipformat, "ZIP64", 100)  # as if 100 bytes were 4 GiB
    torch.save({"w": torch.arange(100.0), "v": torch.ones(1)}, tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt")["w"][99] == 99


def test_more_records_than_the_old_directory_can_count():
    file = io.BytesIO()
    writer = zipformat.Writer(file, "a")
    for i in range(66000):
        writer.add(f"data/{i}", b"")
    writer.close()
    assert len(zipformat.Reader(file).records) == 66000


def test_records_are_aligned():
    file = io.BytesIO()
    torch.save([torch.ones(i + 1) for i in range(5)], file)
    records = zipformat.Reader(file).records
    assert len(records) == 8 and all(r.offset % 64 == 0 for r in records.values())


def test_equal_contents_give_equal_files():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        torch.save({"w": torch.ones(3), "n": [1, 2]}, file)
    assert files[0].getvalue() == files[1].getvalue()


# -- nothing lost ----------------------------------------------------------------------------------------------------


def test_a_failing_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.zeros(1000)}, path)
    before = path.read_bytes()
    for limit in (0, 10, 1000, 3000, len(before) - 1):

        class Full(io.FileIO):
            def write(self, data, limit=limit):
                if self.tell() + len(data) > limit:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return super().write(data)

        monkeypatch.setattr(atomic, "open", lambda p, mode, buffering: Full(p, mode), raising=False)
        with pytest.raises(OSError, match="No space left"):
            torch.save({"w": torch.ones(1000)}, path)
        assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.pt"]


LIMITED = """
import resource, sys, rushlight as torch
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    torch.save({"w": torch.ones(100_000)}, sys.argv[1])
except OSError as error:
    print(error.errno)
"""


def test_a_limit_on_the_file_size_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(1, path)
    run = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    assert int(run.stdout) == errno.EFBIG
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


def test_an_object_that_cannot_be_saved_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(1, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save({"w": torch.ones(3), "f": lambda: None}, path)
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


def test_links_and_modes_are_kept(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    torch.save(1, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2 and path.stat().st_mode & 0o777 == 0o640


KILLED_EVERYWHERE = """
import os, sys
import rushlight as torch
from rushlight.io import zipformat

path = sys.argv[1]
torch.save({"step": 0, "w": torch.zeros(1000)}, path)
seen, n = [], 0
while True:
    n += 1
    child = os.fork()
    if not child:
        left = n
        def counted(function):
            def call(*args, **kwargs):
                global left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), 9)
                return function(*args, **kwargs)
            return call
        zipformat.Writer._write = counted(zipformat.Writer._write)
        os.fsync, os.replace, os.chmod = counted(os.fsync), counted(os.replace), counted(os.chmod)
        torch.save({"step": n, "w": torch.full((1000,), float(n))}, path)
        os._exit(0)
    ended = os.waitpid(child, 0)[1] == 0
    loaded = torch.load(path)
    assert (loaded["w"] == loaded["step"]).all() and loaded["step"] in (n, *seen[-1:], 0)
    seen.append(loaded["step"])
    if ended:
        break
print(n, len(set(seen)))
"""


def test_kill_at_every_write_and_sync(tmp_path):
    """The saving process is killed before its first, second, third … write, sync and rename."""
    command = [sys.executable, "-c", KILLED_EVERYWHERE, str(tmp_path / "a.pt")]
    places, states = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert places > 10 and states >= 2


KILLED = """
import sys, rushlight as torch
from rushlight.io import sharded
path, kind, step = sys.argv[1], sys.argv[2], 0
print("ready", flush=True)
while True:
    step += 1
    state = {str(i): torch.full((60_000,), float(step)) for i in range(8)}
    if kind == "one":
        torch.save(state, path)
    else:
        sharded.save_sharded(state, path, "500KB", safe_serialization=False)
"""


@pytest.mark.parametrize("kind", ["one", "sharded"])
def test_kill_while_saving(tmp_path, kind):
    """Killed at any moment, the file is one whole checkpoint: all of its tensors are of one step."""
    path = tmp_path / "checkpoint"
    for attempt in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path), kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        process.stdout.readline()
        _wait_for(path if kind == "one" else path / "pytorch_model.bin.index.json")
        time.sleep(0.013 * attempt)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        state = torch.load(path) if kind == "one" else load_sharded(path)
        assert len(state) == 8
        assert len({t.unique().item() for t in state.values()}) == 1


def _wait_for(path) -> None:
    for _ in range(2000):
        if os.path.exists(path):
            return
        time.sleep(0.005)
    raise AssertionError("the process saved nothing")


TRAIN = """
import os, sys, rushlight as torch
from rushlight import nn
path, steps, die = sys.argv[1], 12, int(sys.argv[2])
torch.manual_seed(0)
data = torch.randn(32, 4)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5) if hasattr(nn, "Dropout") else nn.Identity(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
order, step = torch.randperm(32), 0
if os.path.exists(path):
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["rng"])
    order, step = saved["order"], saved["step"]
while step < steps:
    batch = data[order[(step * 4) % 32 : (step * 4) % 32 + 4]] + 0.1 * torch.randn(4, 4)
    optimizer.zero_grad()
    (model(batch) - 1).square().mean().backward()
    optimizer.step()
    scheduler.step()
    step += 1
    if step % 8 == 0:
        order = torch.randperm(32)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                "rng": torch.get_rng_state(), "order": order, "step": step}, path)
    if step == die:
        os.kill(os.getpid(), 9)
"""


def test_resumed_training_is_bit_identical(tmp_path):
    def train(name, *deaths):
        for die in (*deaths, 0):
            result = subprocess.run([sys.executable, "-c", TRAIN, str(tmp_path / name), str(die)])
            assert result.returncode == (-signal.SIGKILL if die else 0)
        return torch.load(tmp_path / name)

    whole, resumed = train("whole.pt"), train("resumed.pt", 3, 9)
    for name, t in whole["model"].items():
        assert t.numpy().tobytes() == resumed["model"][name].numpy().tobytes()
    assert torch.equal(whole["rng"], resumed["rng"]) and torch.equal(whole["order"], resumed["order"])


# -- safetensors and shards ------------------------------------------------------------------------------------------


def state():
    numbers = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(3).to(torch.bfloat16)}
    return {**numbers, "c": torch.tensor([True]), "e": torch.empty(0, 2)}


def test_safetensors_round_trip(tmp_path):
    pytest.importorskip("safetensors")
    from rushlight.io import safetensors

    safetensors.save_file(state(), tmp_path / "a.safetensors", {"k": "v"})
    for loaded in (
        safetensors.load_file(tmp_path / "a.safetensors"),
        safetensors.load((tmp_path / "a.safetensors").read_bytes()),
        safetensors.load(safetensors.save(state())),
    ):
        assert loaded.keys() == state().keys()
        assert all(repr(loaded[name]) == repr(t) for name, t in state().items())
    with safetensors.safe_open(tmp_path / "a.safetensors", framework="pt") as file:
        assert file.metadata() == {"k": "v"} and file.get_tensor("a").shape == (2, 3)
        with pytest.raises(KeyError, match="no tensor 'x'"):
            file.get_tensor("x")
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_safetensors_refuses(tmp_path):
    pytest.importorskip("safetensors")
    from rushlight.io import safetensors

    t = torch.ones(4)
    for tensors, error, text in [
        ({"a": t, "b": t}, RuntimeError, "share memory"),
        ({"a": t, "b": t[1:]}, RuntimeError, "share memory"),
        ({"a": t.view(2, 2).t()}, ValueError, "non contiguous"),
        ({"a": 3}, ValueError, "Key `a` is invalid"),
        ([t], ValueError, "Expected a dict"),
    ]:
        with pytest.raises(error, match=text):
            safetensors.save_file(tensors, tmp_path / "a.safetensors")
    assert os.listdir(tmp_path) == []
    safetensors.save_file({"a": t[:2], "b": t[2:]}, tmp_path / "a.safetensors")  # beside each other is fine


def test_safetensors_models_with_shared_weights(tmp_path):
    pytest.importorskip("safetensors")
    from rushlight.io import safetensors

    def build():
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = model[0].weight
        return model

    first, second = build(), build()
    safetensors.save_model(first, tmp_path / "m.safetensors")
    assert safetensors.load_model(second, tmp_path / "m.safetensors") == (set(), [])
    assert torch.equal(first[1].weight, second[1].weight) and second[0].weight is second[1].weight
    with pytest.raises(RuntimeError, match=r"Missing key.*weight"):
        safetensors.load_model(nn.Linear(2, 2), tmp_path / "m.safetensors")


@pytest.mark.parametrize("safe", [True, False])
def test_shards(tmp_path, safe):
    if safe:
        pytest.importorskip("safetensors")
    tensors = {str(i): torch.full((10,), float(i)) for i in range(5)}
    index = save_sharded(tensors, tmp_path, max_shard_size=80, safe_serialization=safe)
    table = json.loads(pathlib.Path(index).read_text())
    assert table["metadata"]["total_size"] == 200 and len({*table["weight_map"].values()}) == 3
    for place in (tmp_path, index):
        loaded = load_sharded(place)
        assert list(loaded) == list(tensors) and all(torch.equal(loaded[n], t) for n, t in tensors.items())
    assert list(load_sharded(tmp_path, names=["3"])) == ["3"]
    save_sharded({n: t + 1 for n, t in tensors.items()}, tmp_path, "1KB", safe_serialization=safe)
    assert len(os.listdir(tmp_path)) == 2 and load_sharded(tmp_path)["4"][0] == 5


def test_an_index_may_not_leave_its_folder(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))
    with pytest.raises(RuntimeError, match="outside its folder"):
        load_sharded(tmp_path)
