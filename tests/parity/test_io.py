"""Files exchanged with PyTorch, in both directions."""

from __future__ import annotations

import io
import mmap
import os
import pathlib
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch

import rushlight

ONCE = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES = [*ONCE, "complex64", "complex128", "uint16", "uint32", "uint64"]


def write(library, value, **arguments) -> bytes:
    file = io.BytesIO()
    library.save(value, file, **arguments)
    return file.getvalue()


def exchange(build, compare=repr, **arguments) -> None:
    """What each library saves, both load alike: ``build(library)`` makes the same value for either."""
    for writer in (torch, rushlight):
        data = write(writer, build(writer), **arguments)
        loaded = [compare(library.load(io.BytesIO(data))) for library in (torch, rushlight)]
        assert loaded[0] == loaded[1] == compare(build(torch))


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, zipped):
    if not zipped and dtype in ("uint16", "uint32", "uint64"):
        pytest.skip("PyTorch cannot load these from the old format")
    exchange(lambda lib: lib.arange(6).to(getattr(lib, dtype)).view(2, 3), _use_new_zipfile_serialization=zipped)


def values(lib):
    base = lib.arange(24.0).view(2, 3, 4)
    return {
        "views": [base, base[1], base.permute(2, 0, 1), base[:, 1:, ::2], base[0, 0, 0], lib.ones(1).expand(3, 4)],
        "empty": [lib.empty(0), lib.empty(2, 0, 3)],
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "frozen": lib.nn.Parameter(lib.ones(2), requires_grad=False),
        "leaf": lib.ones(2, requires_grad=True),
        "names": [lib.float32, lib.bfloat16, lib.Size([1, 2]), lib.device("cpu"), lib.strided],
        "plain": [
            1,
            -1,
            255,
            256,
            65536,
            -(2**31),
            2**31,
            2**70,
            0.5,
            float("inf"),
            True,
            None,
            "é",
            b"\0\xff",
            (),
            1j,
        ],
        "sets": [{1}, set()],
        "ordered": OrderedDict(a=1, b=OrderedDict()),
        "bytes": bytearray(b"abc"),
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_values(zipped):
    exchange(values, _use_new_zipfile_serialization=zipped)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols_are_read(protocol):
    if protocol > 2:
        torch_value = {"a": torch.arange(3.0), "b": OrderedDict(c=1)}
        loaded = rushlight.load(io.BytesIO(write(torch, torch_value, pickle_protocol=protocol)))
        assert repr(loaded) == repr(torch_value)
    ours = {"a": rushlight.arange(3.0), "b": OrderedDict(c=1)}
    data = write(rushlight, ours, pickle_protocol=protocol)
    assert (
        repr(torch.load(io.BytesIO(data), weights_only=False)) == repr(rushlight.load(io.BytesIO(data))) == repr(ours)
    )


def test_layout_of_views():
    def layouts(value):
        return [(v.shape, v.stride(), v.storage_offset(), v.untyped_storage().nbytes()) for v in value["views"]]

    exchange(values, layouts)


def test_sharing():
    def written(value):
        value["views"][0][1, 1, 1] = -1
        return [v.tolist() for v in value["views"]]

    for writer in (torch, rushlight):
        data = write(writer, values(writer))
        assert written(torch.load(io.BytesIO(data))) == written(rushlight.load(io.BytesIO(data)))


def model(lib):
    lib.manual_seed(0)
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Flatten(), lib.nn.Linear(4, 2))


def trained(lib):
    m = model(lib)
    optimizer = lib.optim.AdamW(m.parameters(), lr=0.1)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1)
    m(lib.ones(2, 3)).sum().backward()
    optimizer.step()
    schedule.step()
    return {"model": m.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}


def test_training_state():
    exchange(lambda lib: trained(lib)["model"], lambda s: (list(s), repr(s._metadata), repr(s)))
    exchange(lambda lib: trained(lib)["optimizer"])
    exchange(lambda lib: trained(lib)["schedule"])


def test_random_state():
    exchange(lambda lib: (lib.manual_seed(3), lib.rand(3), lib.get_rng_state())[2], lambda t: t.tolist())


def test_whole_modules():
    for writer in (torch, rushlight):
        data = write(writer, model(writer))
        outputs = []
        for lib in (torch, rushlight):
            m = lib.load(io.BytesIO(data), weights_only=False)
            assert type(m[0]) is lib.nn.Linear and repr(m) == repr(model(torch))
            m.register_forward_hook(lambda module, args, output: output * 2)
            outputs.append(m(lib.ones(1, 3)).tolist())
        assert outputs[0][0] == pytest.approx(outputs[1][0])


def layers(lib):
    n = lib.nn
    return {
        "Conv2d": lambda: n.Conv2d(2, 3, 2),
        "BatchNorm2d": lambda: n.BatchNorm2d(3),
        "LSTM": lambda: n.LSTM(2, 3, 2, batch_first=True),
        "MultiheadAttention": lambda: n.MultiheadAttention(4, 2),
        "TransformerEncoderLayer": lambda: n.TransformerEncoderLayer(4, 2, 8),
        "Embedding": lambda: n.Embedding(5, 2, padding_idx=0),
        "ModuleDict": lambda: n.ModuleDict({"a": n.Dropout(0.1), "b": n.ParameterList([lib.ones(2)])}),
        "CrossEntropyLoss": lambda: n.CrossEntropyLoss(weight=lib.ones(3)),
    }


@pytest.mark.parametrize("name", layers(torch))
def test_layers_as_whole_objects(name):
    if not hasattr(rushlight.nn, name):
        pytest.skip(f"no {name} yet")
    for writer in (torch, rushlight):
        writer.manual_seed(0)
        data = write(writer, layers(writer)[name]())
        loaded = [lib.load(io.BytesIO(data), weights_only=False) for lib in (torch, rushlight)]
        assert repr(loaded[0]) == repr(loaded[1])
        states = [m.state_dict() for m in loaded]
        assert repr(states[0]) == repr(states[1])


def test_names_of_classes():
    """Every class that both have is written under the name by which PyTorch imports it."""
    from rushlight.io.names import ours, theirs

    checked = 0
    for space, mine in ((torch.nn, rushlight.nn), (torch.optim, rushlight.optim)):
        for name, cls in vars(space).items():
            here = getattr(mine, name, None)
            if isinstance(cls, type) and isinstance(here, type) and cls.__module__.startswith("torch."):
                assert theirs(here) == (cls.__module__, cls.__qualname__)
                assert ours(cls.__module__, cls.__qualname__) is here
                checked += 1
    assert checked > 20


def test_numpy_scalars_when_allowed():
    allowed = [np.dtype, np._core.multiarray.scalar, np.dtypes.Float64DType]
    data = write(torch, {"loss": np.float64(0.5)})
    for lib in (torch, rushlight):
        with pytest.raises(pickle.UnpicklingError, match="scalar"):
            lib.load(io.BytesIO(data))
        with lib.serialization.safe_globals(allowed):
            assert lib.load(io.BytesIO(data)) == {"loss": 0.5}


def test_the_same_files_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    for value in (Custom(), os.system, [print]):
        torch.save(value, path)
        for lib in (torch, rushlight):
            with pytest.raises(pickle.UnpicklingError, match=r"(not an allowed global|is blocked|Unsupported)"):
                lib.load(path)


class Custom:
    pass


def test_allowing_as_in_pytorch(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(Custom(), path)
    for lib in (torch, rushlight):
        with lib.serialization.safe_globals([Custom]):
            assert type(lib.load(path)) is Custom
    names = [lib.serialization.get_unsafe_globals_in_checkpoint(path) for lib in (torch, rushlight)]
    assert names[0] == names[1] and len(names[0]) == 1


@pytest.mark.parametrize("writer", [torch, rushlight], ids=["torch", "rushlight"])
def test_mmap(tmp_path, writer):
    path = tmp_path / "a.pt"
    writer.save({"w": writer.arange(1000.0), "v": writer.ones(3)}, path)
    assert repr(torch.load(path, mmap=True)) == repr(rushlight.load(path, mmap=True))


@pytest.mark.parametrize("writer", [torch, rushlight], ids=["torch", "rushlight"])
def test_without_checksums(writer):
    writer.serialization.set_crc32_options(False)
    try:
        data = write(writer, {"w": writer.arange(4.0)})
    finally:
        writer.serialization.set_crc32_options(True)
    assert repr(torch.load(io.BytesIO(data))) == repr(rushlight.load(io.BytesIO(data)))


@pytest.mark.parametrize("writer", [torch, rushlight], ids=["torch", "rushlight"])
def test_room_for_data(tmp_path, writer):
    """``skip_data`` saves zeros, which somebody writes over: no checksum stands against that."""
    path = tmp_path / "a.pt"
    with writer.serialization.skip_data():
        writer.save({"w": writer.full((4,), 7.0)}, path)
    assert repr(torch.load(path)) == repr(rushlight.load(path)) == "{'w': tensor([0., 0., 0., 0.])}"
    for library in (torch, rushlight):
        with library.serialization.set_default_mmap_options(mmap.MAP_SHARED):
            library.load(path, mmap=True)["w"].add_(1)
    assert repr(torch.load(path)) == repr(rushlight.load(path)) == "{'w': tensor([2., 2., 2., 2.])}"


def test_settings_have_the_same_start():
    for name in ("crc32_options", "default_load_endianness", "default_mmap_options"):
        assert getattr(torch.serialization, f"get_{name}")() == getattr(rushlight.serialization, f"get_{name}")()
    helpers = {"mkdtemp", "check_module_version_greater_or_equal", "validate_cuda_device", "validate_hpu_device"}
    helpers |= {"storage_to_tensor_type", "StorageType"}
    assert {*torch.serialization.__all__} - helpers == {*rushlight.serialization.__all__}


def test_tensors_of_other_kinds_are_named():
    with pytest.raises(pickle.UnpicklingError, match="of a kind that rushlight does not have") as caught:
        rushlight.load(io.BytesIO(write(torch, torch.zeros(2, dtype=torch.uint8).view(torch.bits8))))
    assert "add_safe_globals" not in str(caught.value)


def told(t):
    return repr(t), t.stride(), t.storage_offset(), t.is_leaf, t._base is None


FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(name):
    """They have no typed storage: the pickle says the dtype apart (PyTorch cannot load that from the old format)."""
    exchange(lambda lib: lib.tensor([1.0, 2.0, 0.5, 8.0]).to(getattr(lib, name))[1:].detach(), told)


META = {
    "plain": lambda lib: lib.empty(2, device="meta"),
    "no elements": lambda lib: lib.empty(0, 3, device="meta"),
    "scalar": lambda lib: lib.empty((), dtype=lib.int64, device="meta"),
    "transposed": lambda lib: lib.empty(3, 4, device="meta").t().detach(),
    "part": lambda lib: lib.empty(4, 6, dtype=lib.float16, device="meta")[:3, ::2].detach().requires_grad_(),
    "parameter": lambda lib: lib.nn.Parameter(lib.empty(2, device="meta"), requires_grad=False),
}


@pytest.mark.parametrize("name", META)
def test_meta(name):
    """A tensor without values comes back as one, with its strides."""
    exchange(META[name], told)


@pytest.mark.parametrize(
    "build",
    [
        lambda lib: lib.ones(2, 3),
        lambda lib: lib.ones(()),
        lambda lib: lib.ones(3, 4).t(),
        lambda lib: lib.ones(4, 6, dtype=lib.float64)[1:, ::2],
        lambda lib: lib.nn.Parameter(lib.ones(3)),
        lambda lib: lib.ones(3).to(lib.float8_e5m2),
    ],
)
def test_map_location_meta(build):
    """Only what the pickle says of the tensors is kept."""
    data = write(torch, build(torch))
    theirs, ours = (told(library.load(io.BytesIO(data), map_location="meta")) for library in (torch, rushlight))
    assert ours == theirs


def test_zip64(tmp_path, monkeypatch):
    from rushlight.io import zipformat

    monkeypatch.setattr(zipformat, "ZIP64", 100)
    path = tmp_path / "a.pt"
    rushlight.save({"w": rushlight.arange(100.0), "v": rushlight.ones(1)}, path)
    assert torch.load(path)["w"][99] == 99 and torch.load(path, mmap=True)["v"][0] == 1


def test_many_storages(tmp_path):
    path = tmp_path / "a.pt"
    rushlight.save([rushlight.tensor([float(i)]) for i in range(300)], path)
    assert [t.item() for t in torch.load(path)] == list(range(300))


def test_safetensors(tmp_path):
    theirs = pytest.importorskip("safetensors.torch")
    from rushlight.io import safetensors as ours

    def tensors(lib):
        return {d: lib.arange(6).to(getattr(lib, d)).view(2, 3) for d in ONCE} | {"empty": lib.empty(0, 2)}

    theirs.save_file(tensors(torch), tmp_path / "theirs", {"format": "pt"})
    ours.save_file(tensors(rushlight), tmp_path / "ours", {"format": "pt"})
    assert (tmp_path / "theirs").read_bytes() == (tmp_path / "ours").read_bytes()
    assert repr(sorted(ours.load_file(tmp_path / "theirs").items())) == repr(
        sorted(theirs.load_file(tmp_path / "ours").items())
    )


def test_safetensors_of_models_with_shared_weights(tmp_path):
    theirs = pytest.importorskip("safetensors.torch")
    from rushlight.io import safetensors as ours

    def tied(lib):
        m = lib.nn.Sequential(lib.nn.Linear(3, 3), lib.nn.Linear(3, 3))
        m[1].weight = m[0].weight
        return m

    theirs.save_model(tied(torch), str(tmp_path / "theirs"))
    ours.save_model(tied(rushlight), tmp_path / "ours")
    with ours.safe_open(tmp_path / "theirs") as a, ours.safe_open(tmp_path / "ours") as b:
        assert a.metadata() == b.metadata() and sorted(a.keys()) == sorted(b.keys())
    assert ours.load_model(tied(rushlight), tmp_path / "theirs") == theirs.load_model(
        tied(torch), str(tmp_path / "ours")
    )


def test_the_golden_files_are_what_pytorch_loads():
    data = pathlib.Path(__file__).parents[1] / "data"
    for name in ("checkpoint.pt", "checkpoint_legacy.pt", "small.pt", "unchecked.pt"):
        assert repr(torch.load(data / name)) == repr(rushlight.load(data / name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["script", "trace"])
def test_weights_of_torchscript(how, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 3)).eval()
    model[0].bias.requires_grad_(False)
    model.shared = model[0]
    made = torch.jit.script(model) if how == "script" else torch.jit.trace(model[:3], torch.ones(2, 3))
    made.save(tmp_path / "model.pt")
    ours, theirs = rushlight.jit.load(tmp_path / "model.pt"), torch.jit.load(tmp_path / "model.pt")
    assert list(ours.state_dict()) == list(theirs.state_dict()) and ours.training == theirs.training
    for name, t in theirs.state_dict().items():
        one = ours.state_dict()[name]
        assert str(one.dtype) == str(t.dtype) and one.tolist() == t.tolist()
    assert [(n, p.requires_grad) for n, p in ours.named_parameters()] == [
        (n, p.requires_grad) for n, p in theirs.named_parameters()
    ]
    assert [m.original_name for m in ours.modules()] == [m.original_name for m in theirs.modules()]
    copy = rushlight.nn.Sequential(rushlight.nn.Linear(3, 2), rushlight.nn.BatchNorm1d(2), rushlight.nn.Linear(2, 3))
    wanted = {name: t for name, t in ours.state_dict().items() if not name.startswith("shared")}
    copy.load_state_dict(wanted)
    expected = model[:3](torch.ones(2, 3)).detach().numpy()
    np.testing.assert_allclose(copy.eval()(rushlight.ones(2, 3)).detach().numpy(), expected, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="load_state_dict"):
        ours(rushlight.ones(2, 3))
