"""``distributed.checkpoint``: folders that many write. On meshes and between processes: devices8.py, test_mesh.py."""

from __future__ import annotations

import os
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint import state_dict as states
from rushlight.distributed.checkpoint.filesystem import read_metadata
from rushlight.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing")


def state(k: float) -> dict:
    return {
        "model": {"weight": torch.full((3, 4), k), "half": torch.full((2,), k, dtype=torch.bfloat16)},
        "list": [k, torch.full((), k)], "empty": torch.ones(0, 3), "epoch": int(k), 7: {"pair": (1, "a")},
    }  # fmt: skip


def same(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) and a.dtype is b.dtype if isinstance(a, torch.Tensor) else a == b


def test_tensors_are_filled_in_place_and_values_replaced(tmp_path):
    dcp.save(state(2), checkpoint_id=tmp_path / "new" / "folder")
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == [".metadata", "__0_0.distcp"]
    loaded = state(5)
    weight = loaded["model"]["weight"]
    dcp.load(loaded, checkpoint_id=str(tmp_path / "new" / "folder"))
    assert same(loaded, state(2)) and loaded["model"]["weight"] is weight
    wide = {"model": {"weight": torch.zeros(3, 4, dtype=torch.float64)}}
    dcp.load(wide, checkpoint_id=tmp_path / "new" / "folder")
    assert wide["model"]["weight"].dtype is torch.float64 and (wide["model"]["weight"] == 2).all()


def test_objects_with_a_state_and_a_part_of_a_storage(tmp_path):
    model, big = nn.Linear(3, 2), torch.arange(1000.0)
    dcp.save({"model": model, "part": big[3:5]}, storage_writer=dcp.FileSystemWriter(tmp_path))
    assert (tmp_path / "__0_0.distcp").stat().st_size < 4000
    other, part = nn.Linear(3, 2), torch.zeros(2)
    dcp.load({"model": other, "part": part}, storage_reader=dcp.FileSystemReader(tmp_path))
    assert torch.equal(other.weight, model.weight) and part.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("asked", "error", "text"),
    [
        ({"model": {"weight": torch.ones(4, 4)}}, ValueError, "Size mismatch between saved"),
        ({"missing": torch.ones(1)}, RuntimeError, "Missing key in checkpoint state_dict: missing."),
        ({"model": {"weight": 3}}, ValueError, "Invalid checkpoint metadata for model.weight"),
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path, asked, error, text):
    dcp.save(state(2), checkpoint_id=tmp_path)
    epoch = {"epoch": 9, **asked}
    with pytest.raises(dcp.CheckpointException, match=text) as caught:
        dcp.load(epoch, checkpoint_id=tmp_path)
    assert isinstance(caught.value.failures[0][0], error) and epoch["epoch"] == 9


def test_bad_calls(tmp_path):
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(dcp.CheckpointException, match="it has no file"):
        dcp.load({"a": 1}, checkpoint_id=tmp_path)
    dcp.save({"a": 1}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists and self"):
        dcp.save({"a": 1}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    part = {"a": 0, "b": 5}
    dcp.load(part, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert part == {"a": 1, "b": 5}


@pytest.mark.parametrize("at", range(5))
def test_an_interrupted_save_leaves_the_one_before(tmp_path, monkeypatch, at):
    """Fail at the start of the n-th of: writing two files, giving them their names, deleting the old."""
    dcp.save(state(1), checkpoint_id=tmp_path)
    steps = iter(range(100))

    def failing(function):
        def call(*args, **kwargs):
            if next(steps) == at:
                raise OSError("no space left")
            return function(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "unlink"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    with pytest.raises(dcp.CheckpointException, match="no space left"):
        dcp.save(state(2), checkpoint_id=tmp_path)
    monkeypatch.undo()
    loaded = state(0)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert same(loaded, state(1)) or (at > 3 and same(loaded, state(2)))
    dcp.save(state(3), checkpoint_id=tmp_path)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert same(loaded, state(3)) and len(os.listdir(tmp_path)) == 2


def test_a_stager_with_a_thread(tmp_path):
    from rushlight.distributed.checkpoint.staging import DefaultStager

    stager, saved = DefaultStager(), {"w": torch.arange(3.0)}
    found = dcp.async_save(saved, checkpoint_id=tmp_path, async_stager=stager)
    assert found.staging_completion.result() is None
    saved["w"].zero_()
    found.upload_completion.result()
    stager.synchronize_staging()
    stager.close()
    again = {"w": torch.zeros(3)}
    dcp.load(again, checkpoint_id=tmp_path)
    assert again["w"].tolist() == [0, 1, 2]


def test_async_save_copies_first(tmp_path):
    saved = state(4)
    future = dcp.async_save(saved, checkpoint_id=tmp_path)
    saved["model"]["weight"].zero_()
    future.result()
    loaded = state(0)
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert same(loaded, state(4))


def test_one_file_and_back(tmp_path):
    torch.save(state(6), tmp_path / "file.pt")
    torch_save_to_dcp(tmp_path / "file.pt", tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "again.pt")
    again = torch.load(tmp_path / "again.pt")
    again[7] = again.pop("7")  # keys are text in a checkpoint
    assert same(again, state(6))


# -- files from anybody ------------------------------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/never",)


def test_nothing_in_a_file_is_run(tmp_path):
    for value in (Evil(), {"a": Evil()}):
        with pytest.raises(pickle.UnpicklingError, match="posix"):
            read_metadata(pickle.dumps(value))
    with pytest.raises(pickle.UnpicklingError, match="no checkpoint's"):
        read_metadata(pickle.dumps({"a": 1}))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"\x8c\x0c__0_0.distcp", b"\x8c\x09../0.dist", "outside of its folder"),
        (b"\x8c\x0c__0_0.distcp", b"\x8c\x0b/etc/passwd", "outside of its folder"),
        (b"\x8c\x05sizes", b"\x8c\x05sixes", "other fields"),
        (b"K\x03K\x04\x86", b"M\xff\xffM\xff\xff\x86", "does not fit its place"),
    ],
)
def test_metadata_that_does_not_make_sense(tmp_path, old, new, text):
    dcp.save({"w": torch.ones(3, 4)}, checkpoint_id=tmp_path)
    data = (tmp_path / ".metadata").read_bytes()
    assert old in data
    (tmp_path / ".metadata").write_bytes(data.replace(old, new))
    with pytest.raises(dcp.CheckpointException, match=text):
        dcp.load({"w": torch.ones(3, 4)}, checkpoint_id=tmp_path)


def test_a_damaged_file_is_found(tmp_path):
    dcp.save({"w": torch.ones(300)}, checkpoint_id=tmp_path)
    data = bytearray((tmp_path / "__0_0.distcp").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "__0_0.distcp").write_bytes(data)
    with pytest.raises(dcp.CheckpointException, match=r"checksum|corrupt|damaged"):
        dcp.load({"w": torch.ones(300)}, checkpoint_id=tmp_path)
    (tmp_path / "__0_0.distcp").write_bytes(data[:100])
    with pytest.raises(dcp.CheckpointException, match="shorter"):
        dcp.load({"w": torch.ones(300)}, checkpoint_id=tmp_path)


# -- the state of models and optimizers --------------------------------------------------------------------------------


def made(seed: int):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(
        [{"params": [model[0].weight], "lr": 0.1}, {"params": [model[0].bias, *model[1].parameters()]}]
    )
    return model, optimizer


def trained(model, optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 2)).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("flat", [False, True])
def test_training_goes_on_from_a_state(tmp_path, flat):
    options = states.StateDictOptions(flatten_optimizer_state_dict=flat)
    model, optimizer = made(0)
    trained(model, optimizer)
    own, steps = states.get_state_dict(model, optimizer, options=options)
    dcp.save({"model": own, "optim": steps}, checkpoint_id=tmp_path)
    other, second = made(1)
    own, steps = states.get_state_dict(other, second, options=options)
    loaded = {"model": own, "optim": steps}
    dcp.load(loaded, checkpoint_id=tmp_path)
    states.set_state_dict(
        other, second, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"], options=options
    )
    torch.manual_seed(2)
    trained(model, optimizer)
    torch.manual_seed(2)
    trained(other, second)
    assert same(dict(model.state_dict()), dict(other.state_dict()))
    assert same(optimizer.state_dict(), second.state_dict())


def test_names_without_wrappers_and_without_parts():
    model, optimizer = made(0)
    plain = list(model.state_dict())
    assert list(states.get_model_state_dict(nn.DataParallel(model))) == plain
    assert list(states.get_model_state_dict(torch.compile(model))) == plain
    assert list(states.get_model_state_dict(model, submodules={model[0]})) == ["0.weight", "0.bias"]
    short = states.StateDictOptions(keep_submodule_prefixes=False)
    assert list(states.get_model_state_dict(model, submodules={model[0]}, options=short)) == ["weight", "bias"]
    model[0].bias.requires_grad_(False)
    trains = states.StateDictOptions(ignore_frozen_params=True)
    assert "0.bias" not in states.get_model_state_dict(model, options=trains)
    before = model[0].weight.clone()
    found = states.get_optimizer_state_dict(model, optimizer)
    assert torch.equal(before, model[0].weight) and model[0].weight.grad is None
    assert list(found["state"]) == ["0.weight", "1.weight", "1.bias"]
    assert [g["params"] for g in found["param_groups"]] == [["0.weight"], ["0.bias", "1.weight", "1.bias"]]
    with pytest.raises(RuntimeError, match="Missing key"):
        states.set_model_state_dict(model, {})
    missed = states.set_model_state_dict(model, {"x": 1}, options=states.StateDictOptions(strict=False))
    assert missed.unexpected_keys == ["x"]
