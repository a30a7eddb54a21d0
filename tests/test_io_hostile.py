"""Files made to harm: no code of theirs runs, memory and time stay bounded, and the error says what is wrong."""

from __future__ import annotations

import importlib
import io
import os
import pathlib
import pickle
import random
import re
import signal
import struct
import sys
import tarfile
import tracemalloc
import zipfile
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight.io import zipformat

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import fuzz_io


@pytest.fixture(autouse=True)
def _guarded():
    importlib.import_module("rushlight.engine.xla")  # loaded now: no memory of the file's
    fuzz_io.guard()
    yield
    tracemalloc.stop()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


HEAD = b"".join(pickle.dumps(v, 2) for v in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))  # of an old file


def archive(pickled: bytes, **records: bytes) -> bytes:
    """A well-formed checkpoint around any pickle."""
    file = io.BytesIO()
    writer = zipformat.Writer(file, "archive")
    writer.add("data.pkl", pickled)
    for name, data in records.items():
        writer.add(name.replace("_", "/"), data)
    writer.add("version", b"3\n")
    writer.close()
    return file.getvalue()


def refused(data: bytes, match: str = "", **arguments) -> None:
    _, error = fuzz_io.attempt(data, **arguments)
    assert error is not None, "the file was loaded"
    assert re.search(match, str(error), re.DOTALL), str(error)


# -- code ------------------------------------------------------------------------------------------------------------


class Runs:
    """Pickles to a call."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


CALLS = {
    "os.system": (os.system, "touch {0}"),
    "exec": (exec, "open({0!r}, 'w')"),
    "eval": (eval, "open({0!r}, 'w')"),
    "open": (open, "{0}", "w"),
    "getattr": (getattr, os, "system"),
    "import": (__import__, "os"),
    "map": (map, os.mkdir, ["{0}"]),
    "popen": (__import__("subprocess").Popen, ["touch", "{0}"]),
    "zipfile": (zipfile.ZipFile, "{0}", "w"),
    "partial": (__import__("functools").partial, os.mkdir, "{0}"),
    "rushlight": (torch.save, 1, "{0}"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_no_code_runs(tmp_path, name, protocol):
    canary = str(tmp_path / "canary")
    function, *args = CALLS[name]
    args = [_filled(a, canary) for a in args]
    try:
        pickled = pickle.dumps({"weight": Runs(function, *args)}, protocol)
    except (pickle.PicklingError, TypeError):  # a module as an argument: write the call by hand
        pickled = b"cbuiltins\ngetattr\n(cos\nsystem\nVx\ntR."
    refused(archive(pickled), "not an allowed global|is blocked")
    refused(HEAD + pickled, "not an allowed global|is blocked")
    assert not os.path.exists(canary)


def _filled(argument, canary: str):
    if isinstance(argument, list):
        return [_filled(a, canary) for a in argument]
    return argument.format(canary) if isinstance(argument, str) else argument


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02ctorch\nTensor\n(J\xff\xff\xff\x7ftR.",  # a huge tensor
        b"\x80\x02ctorch.nn.parameter\nParameter\n(J\xff\xff\xff\x7ftR.",
        b"\x80\x02c__builtin__\nbytearray\n(J\xff\xff\xff\x7ftR.",  # a huge bytearray
        b"\x80\x02ctorch\nFloatStorage\n(J\xff\xff\xff\x7ftR.",
        b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00rot3tR.",
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(c__builtin__\nset\nctorch\nTensor\n)}tR.",
        b"\x80\x02}(K\x01K\x02dib.",
        b"\x80\x02ccollections\nOrderedDict\n)R}(K\x02K\x03ub.",  # an attribute that is no name
        b"\x80\x02K\x01}b.",
        b"\x80\x02]K\x01K\x02s.",
        b"\x80\x02X\xff\xff\xff\xffabc.",  # a string longer than the file
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02h\x05.",
        b"\x80\x02(.",
        b"\x80\x02.",
        b"\x80\x020.",
        b"\x80\x02tttt.",
        b"\x80\x02a.",
        b"\x80\x02I" + b"9" * 10000 + b"\n.",
        b"\x80\x02(i__main__\nX\n.",  # INST, OBJ and extension codes: never in a checkpoint
        b"\x80\x02\x82\x01.",
        b"\x80\x02Q.",
        b"\x80\x02K\x01Q.",
        b"\x80\x02(X\x07\x00\x00\x00storageK\x01K\x01K\x01K\x01tQ.",
        b"\x80\x09N.",
        b"",
    ],
)
def test_pickles_that_are_none(pickled):
    refused(archive(pickled))


def tensor_pickle(size=(2,), stride=(1,), offset=0, count=2, key="0", kind="FloatStorage", location="cpu") -> bytes:
    """A pickle of one tensor, with any numbers in it."""

    def value(v) -> bytes:
        if isinstance(v, tuple):
            return b"(" + b"".join(map(value, v)) + b"t"
        if isinstance(v, str):
            return b"X" + struct.pack("<I", len(v.encode())) + v.encode()
        return pickle.dumps(v, 2)[2:-1]

    identity = [value("storage"), f"ctorch\n{kind}\n".encode(), value(key), value(location), value(count)]
    storage = b"(" + b"".join(identity) + b"tQ"
    rest = value(offset) + value(size) + value(stride) + b"\x89ccollections\nOrderedDict\n)R"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + rest + b"tR."


def test_the_tensor_pickle_is_good():
    result, error = fuzz_io.attempt(archive(tensor_pickle(), data_0=struct.pack("<2f", 1, 2)))
    assert error is None and result.tolist() == [1, 2]


@pytest.mark.parametrize(
    "numbers",
    [
        {"size": (3,)},
        {"size": (2**40,)},
        {"size": (2**61, 2**61), "stride": (0, 0)},
        {"size": (2**40,) * 5, "stride": (0,) * 5},
        {"size": (0, 2**61), "stride": (1, 1)},
        {"size": (-1,)},
        {"stride": (-1,)},
        {"stride": (2**60,)},
        {"offset": 1},
        {"offset": -1},
        {"offset": 2**62},
        {"offset": 0.5},
        {"size": (1.5,)},
        {"size": 2},
        {"size": (2, 2)},
        {"size": (1,) * 100, "stride": (1,) * 100},
        {"count": 3},
        {"count": 2**50},
        {"count": -1},
        {"count": "2"},
        {"key": "1"},
        {"key": "../version"},
        {"key": "/etc/passwd"},
        {"kind": "DoubleStorage"},
        {"kind": "NoStorage"},
        {"location": "moon"},
        {"location": "cuda:99"},
    ],
    ids=repr,
)
def test_tensors_that_do_not_fit(numbers):
    refused(archive(tensor_pickle(**numbers), data_0=struct.pack("<2f", 1, 2)))


# -- too much --------------------------------------------------------------------------------------------------------


def test_deep_nesting():
    lists, tuples = b"]" * 50_000 + b"a" * 49_999, b"N" + b"\x85" * 50_000
    dicts = b"}" + b"X\x01\x00\x00\x00a}" * 20_000 + b"s" * 20_000
    for nested in (lists, tuples, dicts):
        refused(archive(b"\x80\x02" + nested + b"."), "nests containers")


def test_deep_keys_are_not_hashed():
    refused(archive(b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"Ns."), "a key of more than")


def test_wide_keys_are_not_hashed():
    """Each tuple holds the one before twice: 2^200 parts, in a few hundred bytes."""
    doubled = b"q\x01h\x01\x86" * 200
    refused(archive(b"\x80\x02})" + doubled + b"Ns."), "a key of more than")


def test_colliding_keys():
    numbers = b"".join(pickle.dumps(k * (2**61 - 1), 2)[2:-1] + b"N" for k in range(1, 50))
    refused(archive(b"\x80\x02}(" + numbers + b"u."), "huge number as a key")


def test_copies_are_counted():
    """One long list in the file, and thousands of sets made of it."""
    long = b"](" + b"".join(b"M" + struct.pack("<H", i) for i in range(20_000)) + b"eq\x00"
    sets = b"".join(b"h\x01h\x00\x85R" for _ in range(20_000))
    refused(archive(b"\x80\x02c__builtin__\nset\nq\x01" + long + b"](" + sets + b"e."), "builds more than it contains")


def test_computed_copies_are_counted():
    """A conjugated view of a storage is computed: a file may not ask for that over and over."""
    tensor = tensor_pickle(size=(2**17,), stride=(1,), count=2**17, kind="ComplexFloatStorage")[:-3]
    tensor += b"}X\x04\x00\x00\x00conj\x88st" + b"q\x00"
    call = b"ctorch._utils\n_rebuild_tensor_v2\nq\x01"
    body = b"(" + call + b"0" + tensor[2:].replace(b"ctorch._utils\n_rebuild_tensor_v2\n", b"", 1) + b"0"
    many = b"".join(b"h\x01h\x00R" for _ in range(100))
    refused(archive(b"\x80\x02" + body + many + b"l.", data_0=bytes(2**20)), "far more of its bytes")


def test_tensors_of_devices_are_not_converted():
    tensor = tensor_pickle(size=(2**40,), stride=(0,))[2:-1]
    call = b"\x80\x02ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n("
    refused(archive(call + tensor + b"ctorch\nfloat64\nX\x03\x00\x00\x00cpu\x89tR.", data_0=bytes(8)), "another dtype")


def test_expanded_tensors_take_no_memory():
    result, error = fuzz_io.attempt(archive(tensor_pickle(size=(2**30, 2**30), stride=(0, 0)), data_0=bytes(8)))
    assert error is None and result.shape == (2**30, 2**30)


# -- archives --------------------------------------------------------------------------------------------------------


def zipped(entries: dict[str, bytes], compression=zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as z:
        for name, data in entries.items():
            z.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    "entries",
    [
        {"a/data.pkl": b"\x80\x02N.", "a/../../x": b""},
        {"a/data.pkl": b"\x80\x02N.", "/etc/passwd": b""},
        {"a/data.pkl": b"\x80\x02N.", "b/data.pkl": b""},
        {"../data.pkl": b"\x80\x02N."},
        {"data.pkl": b"\x80\x02N."},
        {"a/version": b"3"},
        {"a/data.pkl": b"\x80\x02N.", "a/x\\y": b""},
    ],
    ids=lambda e: list(e)[-1],
)
def test_names_of_records(entries):
    refused(zipped(entries), "record")


def test_bombs_are_not_unpacked():
    refused(zipped({"a/data.pkl": b"\x80\x02" + b"N0" * 10_000_000 + b"N."}, zipfile.ZIP_DEFLATED), "compressed")


def test_an_archive_of_any_other_program_loads():
    good = zipped({"a/data.pkl": tensor_pickle(), "a/data/0": struct.pack("<2f", 1, 2), "a/version": b"3\n"})
    assert fuzz_io.attempt(good)[0].tolist() == [1, 2]


def test_overlapping_records():
    """The directory names one stretch of the file many times, each time as another storage."""
    file = io.BytesIO()
    writer = zipformat.Writer(file, "a")
    writer.add("data.pkl", b"\x80\x02N.")
    writer.add("data/0", bytes(1000))
    entry = writer.entries[-1]
    writer.entries += [entry._replace(name="a/data/1")]
    writer.close()
    refused(file.getvalue(), "corrupted")


def test_wrong_sizes():
    good = archive(tensor_pickle(), data_0=struct.pack("<2f", 1, 2))
    for place in range(len(good) - 22, len(good)):
        for value in (0, 1, 0x7F, 0xFF):
            changed = good[:place] + bytes([value]) + good[place + 1 :]
            fuzz_io.attempt(changed)


def test_torchscript_is_named():
    file = io.BytesIO()
    writer = zipformat.Writer(file, "a")
    writer.add("data.pkl", b"\x80\x02N.")
    writer.add("constants.pkl", b"\x80\x02).")
    writer.close()
    refused(file.getvalue(), "TorchScript")


@pytest.mark.parametrize(
    "data", [b"", b"PK\3\4", b"hello world", b"\x80\x02N.", b"PK\5\6" + bytes(18), b"\0" * 100, b"\x80\x02"]
)
def test_no_checkpoint_at_all(data):
    refused(data)


def test_the_tar_format_is_named(tmp_path):
    """What PyTorch wrote before it had a format of its own; ``weights_only=False`` makes no difference."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("storages"))
    (tmp_path / "a.pt").write_bytes(file.getvalue())
    for f in (tmp_path / "a.pt", io.BytesIO(file.getvalue())):
        with pytest.raises(RuntimeError, match=r"tar format .* load it in PyTorch"):
            torch.load(f, weights_only=False)
    refused(file.getvalue(), "tar format")


def test_old_files_that_compute_too_much():
    """A conjugated view of 2^40 elements, all of them the same one."""
    body = tensor_pickle(size=(2**40,), stride=(0,), kind="ComplexFloatStorage").replace(b"tQ", b"NtQ")
    body = body[:-3] + b"}X\x04\x00\x00\x00conj\x88stR."
    refused(HEAD + body + pickle.dumps(["0"], 2) + struct.pack("<q", 2) + bytes(16), "far more of its bytes")


def test_old_files_with_impossible_storages():
    body = tensor_pickle(count=2**40, size=(2**40,)).replace(b"tQ", b"NtQ")
    refused(HEAD + body + pickle.dumps(["0"], 2) + bytes(16), "larger than the file")


# -- damage ----------------------------------------------------------------------------------------------------------


def test_every_byte_of_a_small_file(thorough):
    (data, original, _), generator = fuzz_io.sources()[0], random.Random(0)
    records = zipformat.Reader(io.BytesIO(data)).records
    read = [records[name] for name in ("data.pkl", "byteorder", "data/0", "data/1")]
    matters = {place for r in read for place in range(r.offset, r.offset + r.size)}
    for place in range(len(data)):
        for change in (0x01, 0xFF) if thorough else (generator.randrange(1, 256),):
            changed = bytearray(data)
            changed[place] ^= change
            assert fuzz_io.check_mutation(bytes(changed), original, True) or place not in matters


def test_every_length_of_a_small_file():
    data, _, _ = fuzz_io.sources()[0]
    for length in range(len(data)):
        refused(data[:length])


def test_every_byte_of_an_old_file(thorough):
    data, _, _ = fuzz_io.sources()[2]
    for place in range(0, len(data), 17 if thorough else 101):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        fuzz_io.check_mutation(bytes(changed), "", False)


def test_random_mutations(thorough):
    count = 300 if thorough else 100
    tally = fuzz_io.run(count, seed=1)
    assert tally["refused"] > count / 3


def test_a_damaged_file_by_path(tmp_path):
    """Large storages are read by other threads: their errors arrive."""
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(1 << 19), "v": torch.ones(1 << 19)}, path)
    data = bytearray(path.read_bytes())
    data[-(1 << 20)] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="checksum"):
        torch.load(path)
    path.write_bytes(data[: 1 << 20])
    with pytest.raises(RuntimeError, match="truncated"):
        torch.load(path)


def test_attributes_of_ordered_dicts_are_data():
    od = OrderedDict(a=1)
    od._metadata = OrderedDict(version=2)
    file = io.BytesIO()
    torch.save(od, file)
    assert fuzz_io.attempt(file.getvalue())[0]._metadata == OrderedDict(version=2)


# -- time and memory in proportion to the file -----------------------------------------------------------------------

BYTES_PER_BYTE = 300  # of memory, for each byte of a pickle: what docs/design/checkpoints.md says


def doubled(levels: int) -> bytes:
    """A list of two references to a list of two references to …: short to write, endless to print."""
    return b"]" + b"".join(b"q%c0](h%ch%ce" % (i, i, i) for i in range(levels))


def measured(data: bytes) -> Exception | None:
    """Load a file, refused or not, within the bound on memory; the alarm of the fixture bounds the time."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    _, error = fuzz_io.attempt(data)
    assert tracemalloc.get_traced_memory()[1] - before < BYTES_PER_BYTE * len(data) + (1 << 20)
    assert error is None or len(str(error)) < 1500
    return error


TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    b"X\x03\x00\x00\x00cpuK\x02tQ"
)


@pytest.mark.parametrize("levels", [60, 250])
@pytest.mark.parametrize(
    "form",
    [
        b"\x80\x02ctorch.serialization\n_get_layout\n(%stR.",  # a layout's name
        b"\x80\x02" + TENSOR + b"K\x00K\x02\x85K\x01\x85\x89Nc__builtin__\nset\n(tR}(%sK\x01utR.",  # a key of metadata
        b"\x80\x02" + TENSOR + b"K\x00K\x02\x85K\x01\x85\x89N%stR.",  # metadata
        b"\x80\x02ctorch\ndevice\n(X\x03\x00\x00\x00cpu%stR.",
        b"\x80\x02ctorch\nSize\n(%stR.",
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(%sK\x00K\x02\x85K\x01\x85\x89NtR.",  # a storage
        b"\x80\x02c__builtin__\ncomplex\n(%stR.",
        b"\x80\x02%sQ.",
        b"\x80\x02}(%sK\x01u.",
        b"\x80\x02K\x01%sb.",
        b"\x80\x02c__builtin__\nbytearray\n(%stR.",
    ],
)
def test_messages_quote_a_line_at_most(form, levels):
    error = measured(archive(form % doubled(levels), data_0=bytes(8)))
    assert error is not None


def test_long_names_are_cut_in_messages():
    long = b"a" * 1_000_000
    for pickled in (
        b"\x80\x02c" + long + b"\nx\n.",
        b"\x80\x02cos\n" + long + b"\n.",
        tensor_pickle(key="0" * 1000000),
    ):
        assert measured(archive(pickled)) is not None


def test_state_given_to_many_objects():
    """A dict of 1,000 attributes, and 10,000 objects that get it."""
    state = b"}(" + b"".join(b"X\x05\x00\x00\x00%05dN" % i for i in range(1000)) + b"uq\x01"
    for form in (
        b"\x80\x02" + state + b"0](" + b"ccollections\nOrderedDict\n)Rh\x01b" * 10000 + b"e.",
        b"\x80\x02" + state + b"0ccollections\nOrderedDict\nq\x020](" + b"h\x02)Rh\x01b" * 10000 + b"e.",
    ):
        assert measured(archive(form)) is not None
    made = b"K\x00K\x02\x85K\x01\x85\x89NtR"
    pair = (
        b"(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n(" + TENSOR[TENSOR.index(b"((") + 1 :] + made[:-2] + b"t"
    )
    for given in (b"h\x01", b"(h\x01Nt", b"(h\x01h\x01t"):
        call = b"ctorch._tensor\n_rebuild_from_type_v2\n" + pair + given + b"tR"
        assert measured(archive(b"\x80\x02" + state + b"0](" + call * 3000 + b"e.", data_0=bytes(8))) is not None
    assert measured(archive(b"\x80\x02" + state + b"0](" + call + b"e.", data_0=bytes(8))) is None


def test_tuples_of_text_are_good_keys():
    words = {("layer", i): None for i in range(3000)}
    loaded, error = fuzz_io.attempt(archive(pickle.dumps(words, 2)))
    assert error is None and loaded == words


def colliding_complex(count: int) -> list[complex]:
    """Different complex numbers of one hash: hash(a + bj) = hash(a) + 1000003 · hash(b), modulo 2**64."""
    found, target = [], None
    for b in range(1, count + 1):
        a = -1000003 * b
        number = complex(a, b)
        target = hash(number) if target is None else target
        if hash(number) == target:
            found.append(number)
    return found


def test_complex_keys_that_collide_are_refused():
    numbers = colliding_complex(4000)
    assert len(numbers) > 1000 and len({*map(hash, numbers[:3])}) == 1
    error = measured(archive(pickle.dumps(dict.fromkeys(numbers), 2)))
    assert error is not None and "same hash" in str(error)
    assert measured(archive(pickle.dumps(dict.fromkeys(numbers[:10]), 2))) is None


@pytest.mark.parametrize("name", ["punycode", "idna", "rot13", "utf-7"])
def test_codecs_are_those_that_files_have(name):
    text = b"X" + struct.pack("<I", 60000) + b"\xc3\xa4" * 30000
    codec = b"X" + struct.pack("<I", len(name)) + name.encode()
    for call in (b"c__builtin__\nbytearray\n(", b"c_codecs\nencode\n("):
        assert measured(archive(b"\x80\x02" + call + text + codec + b"tR.")) is not None
    for protocol in range(2, 6):
        loaded, error = fuzz_io.attempt(archive(pickle.dumps([bytearray(b"\xe4\x00a"), b"\xff"], protocol)))
        assert error is None and loaded == [bytearray(b"\xe4\x00a"), b"\xff"]


def test_depth_is_that_of_the_longest_way():
    """Every inner list is in the outer one too: the shortest way to each is one step."""
    count = 1000
    inner = (
        b"]("
        + b"]q\x010"
        + b"".join(b"]r%sj%sa0" % (struct.pack("<I", i + 2), struct.pack("<I", i + 1)) for i in range(count))
    )
    listed = b"".join(b"j%s" % struct.pack("<I", i + 1) for i in range(count))
    refused(archive(b"\x80\x02" + inner.replace(b"](", b"", 1) + b"](" + listed + b"e."), "nests containers")
    cycle = b"\x80\x02]q\x01h\x01a."
    loaded, error = fuzz_io.attempt(archive(cycle))
    assert error is None and loaded[0] is loaded


@pytest.mark.parametrize(
    "opcode", [b"]", b"}", b"\x8f", b")", b"N", b"K\x01\x85", b"\x8c\x01a", b"]\x94", b"h\x01)R", b"G12345678"]
)
def test_memory_is_in_proportion(opcode, thorough):
    """Many of the same small thing, in a list."""
    head = b"\x80\x04ccollections\nOrderedDict\nq\x010]("
    for count in (2000, 200000 if thorough else 20000):
        measured(archive(head + opcode * count + b"e."))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x02c__torch__\nM\n)\x81q\x00}X\x01\x00\x00\x00ah\x00sb.", "part of itself"),
        (b"\x80\x02c__torch__\nOther\n)\x81.", "no module"),
        (b"\x80\x02cos\nsystem\n.", "os"),
    ],
)
def test_torchscript_archives_do_no_harm(data, words, tmp_path):
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/code/__torch__.py", "class M(Module):\n  __parameters__ = []\n")
        archive.writestr("m/data.pkl", data)
    with pytest.raises(pickle.UnpicklingError, match=words):
        torch.jit.load(path)
