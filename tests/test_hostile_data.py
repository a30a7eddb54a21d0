"""Data sets and archives made to harm: nothing is read as pointers, written elsewhere, or unpacked without bound."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from rushlight import hub
from rushlight.vision import datasets
from rushlight.vision.datasets.mnist import read_idx
from rushlight.vision.datasets.utils import extract_archive


def cifar(folder, batch: bytes):
    """A CIFAR-100 whose training file is ``batch``."""
    place = folder / "cifar-100-python"
    place.mkdir(exist_ok=True)
    (place / "train").write_bytes(batch)
    (place / "meta").write_bytes(pickle.dumps({"fine_label_names": ["a"]}, 2))
    return datasets.CIFAR100(folder)


def array_pickle(dtype: bytes, state: bytes = b"", shape: bytes = b"K\x02\x85", data: bytes = b"C\x10" + b"A" * 16):
    """A dict with one array of any dtype, state of that dtype, shape and bytes, as NumPy pickles them."""
    return (
        b"\x80\x03}X\x04\x00\x00\x00datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
        + shape + b"cnumpy\ndtype\n" + dtype + b"K\x00K\x01\x87R" + state + b"\x89" + data + b"tbs."
    )  # fmt: skip


OBJECTS = array_pickle(b"X\x02\x00\x00\x00O8")
RECORDS = array_pickle(
    b"X\x02\x00\x00\x00V8",
    b"(K\x03X\x01\x00\x00\x00|NX\x01\x00\x00\x00f\x85}X\x01\x00\x00\x00fcnumpy\ndtype\nX\x02\x00\x00\x00O8K\x00K\x01\x87R"
    b"K\x00\x86sK\x08K\x01K\x00tb",
)
EMPTY_VOID = array_pickle(b"X\x02\x00\x00\x00V0", shape=b"J\xff\xff\xff\x7f\x85", data=b"C\x00")
HUGE = array_pickle(b"X\x02\x00\x00\x00u1", shape=b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86")
NEGATIVE = array_pickle(b"X\x02\x00\x00\x00u1", shape=b"J\xff\xff\xff\xffJ\xf0\xff\xff\xff\x86")
CALLED = b"\x80\x03}X\x04\x00\x00\x00datacnumpy\nndarray\n(J\xff\xff\xff\x7f\x85tRs."
MADE = b"\x80\x03}X\x04\x00\x00\x00datacnumpy\nndarray\n(J\xff\xff\xff\x7f\x85t\x81s."
FILES = {
    "objects": OBJECTS, "records": RECORDS, "empty void": EMPTY_VOID, "huge": HUGE, "negative": NEGATIVE,
    "ndarray called": CALLED, "ndarray made": MADE,
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_cifar_arrays_are_bytes(tmp_path, name):
    with pytest.raises(pickle.UnpicklingError, match="no file of CIFAR's"):
        cifar(tmp_path, FILES[name])


def test_cifar_contents_are_checked(tmp_path):
    images = np.zeros((2, 3072), np.uint8)
    for content, match in [
        ({"data": images, "fine_labels": [1]}, "whole number for each"),
        ({"data": images, "fine_labels": [1, "x"]}, "whole number for each"),
        ({"data": images[:, :10].copy(), "fine_labels": [1, 2]}, "rows of 3072"),
        ({"fine_labels": [1, 2]}, "rows of 3072"),
        ([1], "a list where"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            cifar(tmp_path, pickle.dumps(content, 2))
    with pytest.raises(pickle.UnpicklingError, match="not of bytes"):
        cifar(tmp_path, pickle.dumps({"data": images.astype(float), "fine_labels": [1, 2]}, 5))
    assert cifar(tmp_path, pickle.dumps({"data": images, "fine_labels": [1, 2]}, 5)).targets == [1, 2]


def test_idx_sizes_are_checked_before_memory_is_asked_for(tmp_path):
    header = b"\0\0\x08\x03" + struct.pack(">3I", 1 << 31, 1 << 31, 1 << 31)
    for content in (header, gzip.compress(header)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(RuntimeError, match="more than 64 times"):
            read_idx(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"\0\0\x08\xff" + b"\0\0\0\x01" * 3)
    with pytest.raises(RuntimeError, match="bytes where an IDX file has 1020"):
        read_idx(tmp_path / "file")


def test_gzip_bombs(tmp_path):
    size = 64 << 20
    (tmp_path / "file.gz").write_bytes(gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", size) + bytes(size)))
    with pytest.raises(RuntimeError, match="more than 64 times"):
        read_idx(tmp_path / "file.gz")
    with pytest.raises(RuntimeError, match="more than 64 times"):
        extract_archive(tmp_path / "file.gz", tmp_path)
    assert os.listdir(tmp_path) == ["file.gz"]


def tar_of(path, *members: tuple[str, bytes, bytes]) -> str:
    """A tar file of (name, kind, contents or target)."""
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
            else:
                info.linkname = content.decode()
            archive.addfile(info, io.BytesIO(content))
    return str(path)


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", tarfile.REGTYPE, b"x")],
        [("/evil", tarfile.REGTYPE, b"x")],
        [("a/../../evil", tarfile.REGTYPE, b"x")],
        [("link", tarfile.SYMTYPE, b"/etc"), ("link/evil", tarfile.REGTYPE, b"x")],
        [("d/" * 40 + "link", tarfile.SYMTYPE, b"..")],  # links of links: as CVE-2025-4517 gets out
        [("hard", tarfile.LNKTYPE, b"/etc/passwd")],
        [("pipe", tarfile.FIFOTYPE, b"")],
    ],
)
def test_tar_members_stay_below_the_folder(tmp_path, members):
    target = tmp_path / "into" / "here"
    target.mkdir(parents=True)
    archive = tar_of(tmp_path / "data.tar.gz", ("good", tarfile.REGTYPE, b"good"), *members)
    with pytest.raises(RuntimeError, match=r"lies outside|is a link or a device"):
        extract_archive(archive, target)
    assert not os.listdir(target)
    assert sorted(os.listdir(tmp_path)) == ["data.tar.gz", "into"]


def test_zip_members_stay_below_the_folder(tmp_path):
    path = tmp_path / "data.zip"
    target = tmp_path / "target"
    target.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("good/file", "good")
        archive.writestr("../evil", "x")
    with pytest.raises(RuntimeError, match="lies outside"):
        extract_archive(path, target)
    assert not os.listdir(target)
    os.symlink(tmp_path, target / "way-out")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("way-out/evil", "x")
    with pytest.raises(RuntimeError, match="through a link"):
        extract_archive(path, target)
    assert not (tmp_path / "evil").exists()


def test_good_archives_still_unpack(tmp_path):
    tar = tar_of(tmp_path / "data.tgz", ("a/b", tarfile.REGTYPE, b"one"), ("./c", tarfile.REGTYPE, b""))
    extract_archive(tar, tmp_path / "tar")
    assert (tmp_path / "tar" / "a" / "b").read_bytes() == b"one"
    assert (tmp_path / "tar" / "c").read_bytes() == b""
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("x/y", "two")
        archive.writestr("empty/", "")
    extract_archive(tmp_path / "data.zip", tmp_path / "zip")
    assert (tmp_path / "zip" / "x" / "y").read_bytes() == b"two"
    assert (tmp_path / "zip" / "empty").is_dir()


def test_zip_bombs(tmp_path):
    path = tmp_path / "weights.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights.pth", bytes(64 << 20))
    with pytest.raises(RuntimeError, match="more than 64 times"):
        extract_archive(path, tmp_path / "target")
    with pytest.raises(RuntimeError, match="more than 64 times"):
        hub.load_state_dict_from_url("https://example.org/weights.zip", model_dir=str(tmp_path), progress=False)


def test_folders_of_links_in_circles(tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    (folder / "1.txt").write_text("x")
    for name in "abc":
        os.symlink(folder, folder / name)
    assert len(datasets.DatasetFolder(str(tmp_path), str, (".txt",))) == 1  # else 3 to the power of 40 folders
