"""Fetching, checking and unpacking the files of datasets."""

from __future__ import annotations

import hashlib
import os
import urllib.error

from ...hub import download
from ...io.unpack import extract_gzip, extract_tar, extract_zip

__all__ = [
    "calculate_md5",
    "check_integrity",
    "check_md5",
    "download_and_extract_archive",
    "download_url",
    "extract_archive",
    "missing_files",
]


def download_url(url: str, root, filename: str | None = None, md5: str | None = None) -> None:
    """Fetch a file into ``root``, unless it is there with the right MD5."""
    path = os.path.join(os.path.expanduser(root), filename or os.path.basename(url))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if check_integrity(path, md5):
        return
    try:
        download(url, path, "md5", md5, progress=True)
    except (urllib.error.URLError, OSError) as e:
        raise RuntimeError(f"Could not fetch {url} ({e}). Get the file in another way and put it here: {path}") from e


def download_and_extract_archive(
    url: str, download_root, extract_root=None, filename=None, md5=None, remove_finished: bool = False
) -> None:
    """Fetch an archive and unpack it."""
    filename = filename or os.path.basename(url)
    download_url(url, download_root, filename, md5)
    archive = os.path.join(os.path.expanduser(download_root), filename)
    extract_archive(archive, extract_root or download_root, remove_finished)


def extract_archive(from_path, to_path=None, remove_finished: bool = False) -> str:
    """Unpack a .tar, .tar.gz, .tgz, .zip or .gz file; nothing is written outside ``to_path``.

    Links and devices in an archive are refused, and so is one that unpacks to more than 64 times its size.
    """
    from_path = os.fspath(from_path)
    to_path = os.path.expanduser(to_path or os.path.dirname(from_path))
    if from_path.endswith((".tar", ".tar.gz", ".tgz", ".tar.xz")):
        extract_tar(from_path, to_path)
    elif from_path.endswith(".zip"):
        extract_zip(from_path, to_path)
    elif from_path.endswith(".gz"):
        to_path = os.path.join(to_path, os.path.basename(from_path)[: -len(".gz")])
        extract_gzip(from_path, to_path)
    else:
        raise RuntimeError(f"{from_path}: not an archive of a known kind (.tar, .tar.gz, .tgz, .tar.xz, .zip, .gz)")
    if remove_finished:
        os.remove(from_path)
    return to_path


def check_integrity(fpath, md5: str | None = None) -> bool:
    """Is the file there and, if ``md5`` is given, of that content?"""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


def check_md5(fpath, md5: str) -> bool:
    return calculate_md5(fpath) == md5


def calculate_md5(fpath) -> str:
    with open(fpath, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def missing_files(dataset, folder: str, names) -> RuntimeError:
    """The error for a dataset whose files are not there: which, and where they belong."""
    listed = "".join(f"\n    {os.path.join(folder, name)}" for name in names)
    return RuntimeError(
        f"Dataset not found. You can use download=True to download it. Without a network, put the files of "
        f"{type(dataset).__name__} here yourself:{listed}"
    )
