"""Checkpoints: files of PyTorch's read without PyTorch, round trips, places, sharing, interrupted saves."""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import pathlib
import pickle
import random
import signal
import stat
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn, serialization
from rushlight.io import atomic, checksum, load_sharded, save_sharded, zipformat
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


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_names_in_a_file_are_found_without_loading_it(protocol):
    file = io.BytesIO()
    torch.save([Config(1), Other(), Config(2), torch.ones(2), "text"], file, pickle_protocol=protocol)
    file.seek(0)
    found = [f"{__name__}.Config", f"{__name__}.Other"]
    assert serialization.get_unsafe_globals_in_checkpoint(file) == found
    with serialization.safe_globals([Config]):
        file.seek(0)
        assert serialization.get_unsafe_globals_in_checkpoint(file) == found[1:]
    with pytest.raises(ValueError, match="of the zip format"):
        serialization.get_unsafe_globals_in_checkpoint(DATA / "checkpoint_legacy.pt")


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


class Other:
    pass


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


def test_mmap_of_a_file_that_was_packed_anew(tmp_path):
    """Then arrays begin anywhere."""
    path, packed = tmp_path / "a.pt", tmp_path / "b.pt"
    torch.save({"w": torch.arange(70_000.0)}, path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    loaded = torch.load(packed, mmap=True)
    assert any(packed.read_bytes().index(t.numpy().tobytes()) % 4 for t in loaded.values())
    for t in loaded.values():
        assert torch.equal(t * 2 + t, 3 * torch.arange(70_000.0))


def test_mmap_of_a_large_file_reads_little(tmp_path):
    """A sparse file of 2 GiB: mapped, touched in one place, and the process stays small."""
    path = tmp_path / "large.pt"
    with serialization.skip_data():
        torch.save({"w": wrap(np.zeros(2 << 28, np.float32))}, path)  # neither memory nor disk are touched
    code = f"""
import resource, rushlight
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
t = rushlight.load({str(path)!r}, mmap=True)["w"]
assert t.shape == (2 << 28,) and t[1 << 28].item() == 0
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000, "read too much"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


PEAK = """
import sys, rushlight as torch
from rushlight.io import load_sharded, safetensors

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))

how, path = sys.argv[1:]
torch.load(path + "/small.pt")  # imports what it needs
before = peak()
if how == "file":
    with open(path + "/a.pt", "rb") as file:
        state = torch.load(file)
elif how == "safetensors":
    state = safetensors.load_file(path + "/a.safetensors")
else:
    state = load_sharded(path) if how == "shards" else torch.load(path + f"/{how}.pt")
print((peak() - before) / sum(t.nbytes for t in state.values()))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("how", ["a", "legacy", "file", "safetensors", "shards"])
def test_loading_needs_no_second_copy(tmp_path, how):
    values = {str(i): torch.ones(1 << 19) for i in range(32)}  # 64 MiB
    torch.save(1, tmp_path / "small.pt")
    if how == "safetensors":
        from rushlight.io import safetensors

        safetensors.save_file(values, tmp_path / "a.safetensors")
    elif how == "shards":
        save_sharded(values, tmp_path, "20MB", safe_serialization=False)
    else:
        path = tmp_path / ("legacy.pt" if how == "legacy" else "a.pt")
        torch.save(values, path, _use_new_zipfile_serialization=how != "legacy")
    command = [sys.executable, "-c", PEAK, how, str(tmp_path)]
    ratio = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 0.9 < ratio < (2.1 if how == "legacy" else 1.1)  # pages of the old format's mapped file count too


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


# -- checksums -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 0xDEADBEEF])
def test_checksums_are_those_of_zlib(start):
    generator, long = random.Random(0), checksum._LONG
    sizes = [0, 1, 5, *(n * long + d for n in (1, 3, 4, 5, 9) for d in (-1, 0, 1)), 1 << 20]
    for size in [*sizes, *(generator.randrange(3 << 20) for _ in range(20))]:
        data = generator.randbytes(size + 1)
        for part in (data[:size], memoryview(data)[1:]):
            assert checksum.crc32(part, start) == zlib.crc32(part, start)
    array = np.frombuffer(data, np.uint8)[: len(data) // 8 * 8].view(np.float64).reshape(-1)
    assert checksum.crc32(array) == zlib.crc32(array)


def test_files_without_checksums(tmp_path):
    """As PyTorch writes them with set_crc32_options(False); and as we do."""
    assert torch.load(DATA / "unchecked.pt")["w"].tolist() == [0, 1, 2, 3]
    serialization.set_crc32_options(False)
    try:
        torch.save({"w": torch.arange(4.0)}, tmp_path / "a.pt")
        assert not serialization.get_crc32_options()
    finally:
        serialization.set_crc32_options(True)
    with open(tmp_path / "a.pt", "rb") as file:
        assert {record.crc for record in zipformat.Reader(file).records.values()} == {None}
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [0, 1, 2, 3]


def test_a_checksum_that_was_zeroed_is_one_that_was_taken():
    """Zero means that there is none only where both places say so."""
    for path in (DATA / "small.pt", DATA / "checkpoint.pt"):
        data = path.read_bytes()
        record = zipformat.Reader(io.BytesIO(data)).find("data/0")
        crc = struct.pack("<I", record.crc)
        assert data.count(crc) == 2
        one = data[::-1].replace(crc[::-1], bytes(4), 1)[::-1]
        with pytest.raises(RuntimeError, match="checksum"):
            torch.load(io.BytesIO(one))
        torch.load(io.BytesIO(data.replace(crc, bytes(4))))


def test_skip_data(tmp_path):
    for f in (tmp_path / "a.pt", io.BytesIO()):
        with serialization.skip_data():
            torch.save({"w": torch.ones(3), "n": 1}, f)
        if isinstance(f, io.BytesIO):
            f.seek(0)
        assert torch.load(f)["w"].tolist() == [0, 0, 0]
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    with serialization.skip_data():
        assert torch.load(tmp_path / "a.pt")["w"].shape == (3,)
    assert torch.load(tmp_path / "a.pt")["w"].tolist() == [1, 1, 1]


def test_byte_order(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.tensor([1.0, 2.0]), path, _disable_byteorder_record=True)
    assert torch.load(path).tolist() == [1, 2] and serialization.get_default_load_endianness() is None
    try:
        for order, same in (("NATIVE", True), ("LITTLE", sys.byteorder == "little"), ("BIG", sys.byteorder == "big")):
            serialization.set_default_load_endianness(serialization.LoadEndianness[order])
            assert serialization.get_default_load_endianness().name == order
            assert (torch.load(path).tolist() == [1, 2]) is same
    finally:
        serialization.set_default_load_endianness(None)


# -- nothing lost ----------------------------------------------------------------------------------------------------


def test_a_failing_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.zeros(1000)}, path)
    before = path.read_bytes()
    for limit in (0, 10, 1000, 3000, len(before) - 1):

        class Full(atomic.Partial):
            def write(self, data, limit=limit):
                if self.tell() + len(data) > limit:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return super().write(data)

        monkeypatch.setattr(atomic, "Partial", Full)
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


FULL = """
import errno, os, sys, rushlight as torch
from rushlight.io import save_sharded
folder = sys.argv[1]
path = os.path.join(folder, "a.pt")
torch.save({"w": torch.ones(100_000)}, path)
save_sharded({"w": torch.ones(50_000)}, folder, safe_serialization=False)
for save in (lambda: torch.save({"w": torch.zeros(100_000)}, path),
             lambda: save_sharded({"w": torch.zeros(50_000), "v": torch.zeros(90_000)}, folder, 200_000, False)):
    before = sorted(os.listdir(folder))
    try:
        save()
        raise AssertionError("there was room")
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    assert sorted(os.listdir(folder)) == before
    assert (torch.load(path)["w"] == 1).all()
    index = torch.io.load_sharded(folder)
    assert list(index) == ["w"] and (index["w"] == 1).all()
print("kept")
"""


def test_a_full_disk_keeps_the_old_file(tmp_path):
    """A file system of 768 KiB, mounted for one process only."""
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=768k none "$0" && exec "$@"', str(tmp_path)]
    try:
        possible = subprocess.run([*mounted, "true"], capture_output=True).returncode == 0
    except OSError:
        possible = False
    if not possible:
        pytest.skip("this process may not mount a file system")
    command = [*mounted, sys.executable, "-c", FULL, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout == "kept\n", run.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_device_that_takes_nothing():
    with pytest.raises(OSError, match="No space left"):
        torch.save(1, "/dev/full")


def test_what_a_killed_save_left_is_deleted_by_the_next(tmp_path):
    path = tmp_path / "a.pt"
    for name in (".a.pt.0123abcd.partial", ".b.pt.0123abcd.partial"):  # the second is of another path
        (tmp_path / name).write_bytes(b"half")
    torch.save(1, path)
    assert sorted(os.listdir(tmp_path)) == [".b.pt.0123abcd.partial", "a.pt"]


@pytest.mark.parametrize("name", ["é" * 125 + ".pt", "[a]*?.pt"])
def test_unusual_names(tmp_path, name):
    for value in (1, 2):
        torch.save(value, tmp_path / name)
    assert torch.load(tmp_path / name) == 2 and os.listdir(tmp_path) == [name]


def test_two_savers_at_once(tmp_path):
    """One begins while another is in the middle: neither deletes or overwrites the file that the other writes."""
    path = tmp_path / "a.pt"
    with atomic.replacing(path) as file:
        file.write(b"first, ")
        torch.save("second", path)
        assert torch.load(path) == "second"
        file.write(b"but ended last")
    assert path.read_bytes() == b"first, but ended last" and os.listdir(tmp_path) == ["a.pt"]


def test_who_deletes_abandoned_files_spares_a_new_one_of_the_same_name(tmp_path, monkeypatch):
    """Another deleted the old one first, and its writer began again."""
    stem, lock = str(tmp_path / ".a.pt."), atomic._lock
    partial = tmp_path / ".a.pt.0123abcd.partial"
    partial.write_bytes(b"old")

    def late(file, wait):
        partial.unlink()
        partial.write_bytes(b"new")
        return lock(file, wait)

    monkeypatch.setattr(atomic, "_lock", late)
    atomic._delete_abandoned(stem)
    assert partial.read_bytes() == b"new"


def test_many_savers_at_once(tmp_path):
    path = tmp_path / "a.pt"

    def save(n):
        for _ in range(10):
            torch.save({"w": torch.full((5000,), float(n))}, path)
            assert len(torch.load(path)["w"].unique()) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(4)))
    assert os.listdir(tmp_path) == ["a.pt"]


KILLED_EVERYWHERE = """
import os, sys
import rushlight as torch
from rushlight.io import atomic, sharded

folder, kind = sys.argv[1:]
path = os.path.join(folder, "a.pt")

def save(step):
    state = {"v": torch.full((500,), float(step)), "w": torch.full((1000,), float(step))}
    if kind == "one":
        torch.save(state, path)
    else:
        sharded.save_sharded(state, folder, 4000, safe_serialization=False)

def saved_step():
    state = torch.load(path) if kind == "one" else sharded.load_sharded(folder)
    values = torch.cat([state["v"], state["w"]]).unique()
    assert values.numel() == 1, "parts of two checkpoints"
    return int(values.item())

save(0)
seen, left, n = [0], 0, 0
while True:
    n += 1
    child = os.fork()
    if not child:
        calls = n
        def counted(function):
            def call(*args, **kwargs):
                global calls
                calls -= 1
                if calls == 0:
                    os.kill(os.getpid(), 9)
                return function(*args, **kwargs)
            return call
        atomic.Partial.write = counted(atomic.Partial.write)
        for name in ("fsync", "replace", "chmod", "open", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        save(n)
        os._exit(0)
    ended = os.waitpid(child, 0)[1] == 0
    step = saved_step()
    assert step in (n, seen[-1]), (step, n, seen)
    seen.append(step)
    left = max(left, len(os.listdir(folder)))
    if ended:
        break
save(n)
print(n, len(set(seen)), left, len(os.listdir(folder)))
"""


@pytest.mark.parametrize(("kind", "files"), [("one", 1), ("sharded", 3)])
def test_kill_at_every_write_and_sync(tmp_path, kind, files):
    """The saving process is killed before its first, second, third … write, sync, rename and deletion."""
    command = [sys.executable, "-c", KILLED_EVERYWHERE, str(tmp_path), kind]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    places, states, most, last = map(int, output.split())
    assert places > 10 and states > 2  # some were killed before the rename, some after it
    assert files < most < files + 4 and last == files  # and what they left was there, until the next one deleted it


def test_bytes_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    """What a power failure needs, and no killed process shows."""
    calls, fsync, replace = [], os.fsync, os.replace

    def noted_fsync(descriptor):
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def noted_replace(*paths):
        calls.append("name")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    torch.save(torch.ones(3), tmp_path / "a.pt")
    assert calls == ["file", "name", "folder"]


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
from rushlight.io import atomic
path, steps, die, forget = sys.argv[1], 12, sys.argv[2], sys.argv[3]
torch.manual_seed(0)
data = torch.randn(32, 4)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
order, step = torch.randperm(32), 0
parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
if os.path.exists(path):
    saved = torch.load(path)
    for name, part in parts.items():
        if name != forget:
            part.load_state_dict(saved[name])
    if forget != "rng":
        torch.set_rng_state(saved["rng"])
    if forget != "order":
        order = saved["order"]
    step = saved["step"]

def kill(*_):
    os.kill(os.getpid(), 9)

while step < steps:
    batch = data[order[(step * 4) % 32 : (step * 4) % 32 + 4]] + 0.1 * torch.randn(4, 4)
    optimizer.zero_grad()
    (model(batch) - 1).square().mean().backward()
    optimizer.step()
    scheduler.step()
    step += 1
    if step % 8 == 0:
        order = torch.randperm(32)
    if die == f"{step} before saving":
        kill()
    if die == f"{step} while saving":
        os.fsync = kill
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({**state, "rng": torch.get_rng_state(), "order": order, "step": step}, path)
    if die == f"{step} after saving":
        kill()
"""


def trained(path, *deaths, forget="nothing"):
    """The last checkpoint of a training that was killed so many times, and started again."""
    for die in (*deaths, "never"):
        result = subprocess.run([sys.executable, "-c", TRAIN, str(path), die, forget])
        assert result.returncode == (0 if die == "never" else -signal.SIGKILL)
    return torch.load(path)


@pytest.fixture(scope="module")
def never_killed(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("training") / "whole.pt")


def test_resumed_training_is_bit_identical(tmp_path, never_killed):
    resumed = trained(tmp_path / "a.pt", "3 after saving", "6 before saving", "10 while saving")
    assert _bits(resumed) == _bits(never_killed)
    assert torch.equal(resumed["rng"], never_killed["rng"]) and torch.equal(resumed["order"], never_killed["order"])


@pytest.mark.parametrize("part", ["model", "optimizer", "scheduler", "rng", "order"])
def test_every_part_of_a_checkpoint_matters(tmp_path, never_killed, part):
    """Without any one of them the weights are others: the test above can fail."""
    assert _bits(trained(tmp_path / "a.pt", "9 after saving", forget=part)) != _bits(never_killed)


def _bits(checkpoint) -> dict[str, bytes]:
    return {name: t.numpy().tobytes() for name, t in checkpoint["model"].items()}


# -- safetensors and shards ------------------------------------------------------------------------------------------


def state():
    numbers = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(3).to(torch.bfloat16)}
    return {**numbers, "c": torch.tensor([True]), "e": torch.empty(0, 2)}


def test_safetensors_round_trip(tmp_path):
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
        part = file.get_slice("a")
        assert part.get_shape() == [2, 3] and part.get_dtype() == "F32"
        assert part[1:, ::2].tolist() == [[3, 5]] and part[1].tolist() == [3, 4, 5]
        assert repr(file.get_slice("b")[:2]) == repr(state()["b"][:2]) and file.get_slice("e")[:].shape == (0, 2)
        assert list(file.get_tensors(["c", "a"])) == ["c", "a"]
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_safetensors_refuses(tmp_path):
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


def test_an_open_safetensors_file_stays_one_file(tmp_path):
    from rushlight.io import safetensors

    path = tmp_path / "a.safetensors"
    safetensors.save_file({"a": torch.zeros(3), "b": torch.zeros(3)}, path, {"which": "old"})
    with safetensors.safe_open(path) as file:
        first, part = file.get_tensor("a"), file.get_slice("b")
        safetensors.save_file({"a": torch.ones(3), "b": torch.ones(3)}, path, {"which": "new"})
        assert first.tolist() == file.get_tensor("b").tolist() == part[:].tolist() == [0, 0, 0]
        assert file.metadata() == {"which": "old"}
    assert safetensors.load_file(path)["b"].tolist() == [1, 1, 1]


def test_safetensors_are_synced_and_locked_as_other_files(tmp_path, monkeypatch):
    """What reaches the disk is the file that gets the name, and what a killed save leaves the next one deletes."""
    from rushlight.io import safetensors

    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file)))
    path = tmp_path / "a.safetensors"
    safetensors.save_file({"a": torch.zeros(3)}, path)
    assert path.stat().st_ino in synced
    code = f"""
import os, rushlight as torch
from rushlight.io import safetensors
os.fsync = lambda file: os._exit(9)
safetensors.save_file({{"a": torch.ones(3)}}, {str(path)!r})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 9
    assert len(os.listdir(tmp_path)) == 2 and safetensors.load_file(path)["a"].tolist() == [0, 0, 0]
    safetensors.save_file({"a": torch.ones(3)}, path)
    assert os.listdir(tmp_path) == ["a.safetensors"]


HEADERS = [
    b"[]", b"{", b"\xff\xff", b"[" * 100000, b'{"a":3}', b'{"a":{"dtype":"F32","shape":[1]}}',
    b'{"__metadata__":{"a":1}}', b'{"a":{"dtype":"F77","shape":[1],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}}',
    b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,-4]}}',
    b'{"a":{"dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
    b'{"a":{"dtype":"F32","shape":[0,1000000000000],"data_offsets":[0,0]}}',
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_safetensors_headers_that_lie(tmp_path, header):
    from rushlight.io import safetensors, safetensors_format

    data = len(header).to_bytes(8, "little") + header + b"1234"
    (tmp_path / "a").write_bytes(data)
    for read in (lambda: safetensors.load(data), lambda: safetensors.load_file(tmp_path / "a")):
        with pytest.raises(type(safetensors_format.damaged("")), match="Error while deserializing"):
            read()


def test_safetensors_lengths_that_lie():
    from rushlight.io import safetensors, safetensors_format

    for data in (b"", b"123", (1 << 63).to_bytes(8, "little"), (100).to_bytes(8, "little") + b"{}"):
        with pytest.raises(type(safetensors_format.damaged("")), match="header"):
            safetensors.load(data)


def test_a_sharded_checkpoint_that_is_replaced_while_it_is_read(tmp_path, monkeypatch):
    from rushlight.io import sharded

    tensors = {str(i): torch.full((10,), float(i)) for i in range(4)}
    save_sharded(tensors, tmp_path, 80)
    read, replaced = sharded._read, []

    def read_and_replace(*args):
        result = read(*args)
        if not replaced:
            replaced.append(save_sharded({n: t + 100 for n, t in tensors.items()}, tmp_path, 80))
        return result

    monkeypatch.setattr(sharded, "_read", read_and_replace)
    assert [t[0].item() for t in load_sharded(tmp_path).values()] == [100, 101, 102, 103]
    os.unlink(next(tmp_path.glob("*00002-of-*.safetensors")))
    with pytest.raises(FileNotFoundError):  # missing, not replaced
        load_sharded(tmp_path)


def test_a_read_only_checkpoint_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    torch.save(1, path)
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda file, mode: bool(os.stat(file).st_mode & 0o200))  # the tests may be root
    with pytest.raises(PermissionError):
        torch.save(2, path)
    assert torch.load(path) == 1 and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.parametrize("safe", [True, False])
def test_shards(tmp_path, safe):
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


def test_what_a_killed_sharded_save_left_is_deleted(tmp_path):
    save_sharded({"a": torch.ones(2)}, tmp_path, safe_serialization=False)
    left = ["pytorch_model-0123abcd-00001-of-00002.bin", ".pytorch_model-0123abcd-00002-of-00002.bin.89abcdef.partial"]
    left.append("pytorch_model-00001-of-00003.bin")
    for name in [*left, "pytorch_model-mine.bin"]:
        (tmp_path / name).write_bytes(b"")
    save_sharded({"a": torch.zeros(2)}, tmp_path, safe_serialization=False)
    names = os.listdir(tmp_path)
    assert len(names) == 3 and not {*left} & {*names} and load_sharded(tmp_path)["a"][0] == 0


def test_an_index_may_not_leave_its_folder(tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../secret.safetensors"}}))
    with pytest.raises(RuntimeError, match="outside its folder"):
        load_sharded(tmp_path)


class Tagged(torch.Tensor):
    """A subclass with an attribute of its own."""


def test_a_tensor_of_a_subclass_comes_back_with_its_attributes(tmp_path):
    tensor = torch.arange(3.0).as_subclass(Tagged)
    tensor.tag = "a"
    torch.save({"x": tensor}, tmp_path / "t.pt")
    again = torch.load(tmp_path / "t.pt", weights_only=False)["x"]
    assert type(again) is Tagged and again.tag == "a" and again.tolist() == [0.0, 1.0, 2.0]
