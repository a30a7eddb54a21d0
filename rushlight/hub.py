"""Files from the network, with a cache, checksums and a progress bar; models from a ``hubconf.py``.

The cache is PyTorch's (``$TORCH_HOME/hub`` or ``~/.cache/torch/hub``): weights that one of the two fetched serve both.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import re
import sys
import types
import urllib.request
import zipfile
from typing import Any
from urllib.parse import urlparse

from .compat import missing as _missing
from .io.atomic import replacing
from .io.unpack import Budget
from .utils import _notebook

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


def __dir__():
    return __all__


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # name-<first digits of SHA-256>.ext
_CHUNK = 128 * 1024
_dir: str | None = None


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location=None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """The weights at ``url``, fetched once into ``model_dir`` (by default ``get_dir()/checkpoints``).

    With ``check_hash`` the file's name has to end in ``-<SHA-256>.ext``, eight or more digits of it.
    """
    from .serialization import load as load_file

    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    packed = _only_file_in_zip(path)
    return load_file(path if packed is None else packed, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch ``url`` into the file ``dst``, which appears only when complete and, if asked, of the right SHA-256."""
    download(url, dst, "sha256", hash_prefix, progress)


def get_dir() -> str:
    """Where fetched files are kept."""
    if _dir is not None:
        return _dir
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """Where PyTorch keeps files: ``$TORCH_HOME`` or ``~/.cache/torch``."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike) -> None:
    """Keep fetched files in another directory."""
    global _dir
    _dir = os.path.expanduser(d)


def load(repo_or_dir, model, *args, source: str = "github", **kwargs):
    """``model(*args, **kwargs)`` of the ``hubconf.py`` in a local directory.

    Differs from PyTorch: code is not fetched from GitHub; clone the repository and give ``source="local"``.
    """
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):  # about fetching code
        kwargs.pop(option, None)
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True, *, source="local"):
    """The names of the models in the ``hubconf.py`` of a local directory."""
    module = _hubconf(github, source)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check", *, source="local"):
    """The docstring of a model in the ``hubconf.py`` of a local directory."""
    return _entry(_hubconf(github, source), model).__doc__


# -- fetching --------------------------------------------------------------------------------------------------------


def download(url: str, dst: str, algorithm: str, expected: str | None, progress: bool) -> None:
    """``download_url_to_file`` with a checksum of any kind."""
    request = urllib.request.Request(url, headers={"User-Agent": "rushlight.hub"})  # noqa: S310 - the caller's address
    with urllib.request.urlopen(request) as source, replacing(os.path.expanduser(dst)) as target:  # noqa: S310
        length = source.headers.get("Content-Length")
        total = int(length) if length else None
        digest, size = _copy(source, target, hashlib.new(algorithm, usedforsecurity=False), total, progress)
        if total is not None and size != total:
            raise RuntimeError(f"{url}: the connection ended after {size} of {total} bytes; try again")
        if expected is not None and not digest.startswith(expected):
            raise RuntimeError(f'invalid hash value (expected "{expected}", got "{digest}")')


def _copy(source, target, digest, total, progress) -> tuple[str, int]:
    size = 0
    with _progress_bar(total, progress) as bar:
        while chunk := source.read(_CHUNK):
            _write_all(target, chunk)
            digest.update(chunk)
            size += len(chunk)
            bar.update(len(chunk))
    return digest.hexdigest(), size


def _write_all(target, chunk: bytes) -> None:
    """A raw file may take only a part at a time."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[target.write(rest) :]


def _progress_bar(total, progress):
    if progress and _notebook.in_notebook():
        return _notebook.Bar(total)
    try:
        from tqdm import tqdm
    except ImportError:
        return _Bar(total, progress)
    return tqdm(total=total, disable=not progress, unit="B", unit_scale=True, unit_divisor=1024)


class _Bar:
    """Percent or megabytes on one line, where tqdm is not installed."""

    def __init__(self, total: int | None, progress: bool) -> None:
        self.total, self.progress, self.done, self.shown = total, progress, 0, ""

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        if self.shown:
            sys.stderr.write("\n")

    def update(self, n: int) -> None:
        self.done += n
        megabytes = f"{self.done / 2**20:.1f} MB"
        text = f"{100 * self.done // self.total}% of {self.total / 2**20:.1f} MB" if self.total else megabytes
        if self.progress and text != self.shown:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
            self.shown = text


def _only_file_in_zip(path: str) -> io.BytesIO | None:
    """The one file in an ordinary zip, as weights were once published; None for other files."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        if any(name.endswith("data.pkl") for name in names):  # a checkpoint itself
            return None
        if len(names) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        unpacked = io.BytesIO()
        with archive.open(names[0]) as source:
            Budget(path).copy(source, unpacked)
    unpacked.seek(0)
    return unpacked


# -- hubconf.py ------------------------------------------------------------------------------------------------------


def _hubconf(directory, source: str):
    if source != "local":
        raise ValueError(
            f"rushlight.hub does not fetch code (source={source!r}). Clone the repository yourself, look at it, and "
            f'give its directory with source="local".'
        )
    path = os.path.join(os.path.expanduser(directory), "hubconf.py")
    sys.path.insert(0, os.path.dirname(path))  # hubconf.py imports its neighbours
    try:
        module = types.ModuleType("hubconf")
        module.__file__ = path
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), module.__dict__)  # noqa: S102 - what it is for
    finally:
        sys.path.remove(os.path.dirname(path))
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, model: str):
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def _find(name: str):
    """``hub.tqdm`` is the package's class, where it is installed."""
    return importlib.import_module("tqdm").tqdm if name == "tqdm" and importlib.util.find_spec("tqdm") else None


__getattr__ = _missing(__name__, _find)
