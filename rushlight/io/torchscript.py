"""TorchScript archives: the modules they hold, with their weights. Their programs cannot be run here."""

from __future__ import annotations

import os
import re
import zlib

from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .loading import SafeBuilder, ZipStorages, restore_function
from .settings import allowed
from .unpickler import Unpickler, UnpicklingError
from .zipformat import Damaged, Reader

__all__ = ["ArchivedModule", "is_archive", "load"]

_LISTS = ("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist")
_LONGEST = 1 << 26  # characters of a part of a program
_MOST = 1_000_000  # modules of a model, each counted as often as it is part of it


class ArchivedModule(Module):
    """A module of a TorchScript archive: names, parameters and buffers, but no ``forward``.

    ``model.load_state_dict(rushlight.jit.load(path).state_dict())`` gives the weights to the model in Python.
    """

    def __init__(self, original_name: str = ""):
        super().__init__()
        self.original_name = original_name

    def forward(self, *args, **kwargs):
        raise NotImplementedError(
            f"{self.original_name} comes from a TorchScript archive, whose program cannot be run here. Make the model "
            "in Python and load_state_dict() this module's state_dict()."
        )

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


def is_archive(source) -> bool:
    """Does a path or an open file hold a TorchScript archive?"""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return is_archive(file)
    start = source.tell()
    try:
        return source.read(4) == b"PK\3\4" and "constants.pkl" in _Archive(source)
    except Damaged:
        return False
    finally:
        source.seek(start)


def load(source, map_location=None) -> ArchivedModule:
    """The modules and weights of a TorchScript archive."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return load(file, map_location)
    reader = _Archive(source)
    data, storages = reader.read("data.pkl"), ZipStorages(reader, restore_function(map_location), False)
    try:
        module = Unpickler(data, _Builder(reader, storages, len(data))).load()
        storages.wait()
    finally:
        storages.close()
    if not isinstance(module, ArchivedModule):
        raise RuntimeError(f"the TorchScript archive holds no module, but a {type(module).__name__}")
    return module


class _Archive(Reader):
    """A zip file whose program may be compressed; its weights are not."""

    def may_be_packed(self, name: str) -> bool:
        return name.partition("/")[2].startswith("code/")

    def text(self, name: str) -> str:
        """A part of the program."""
        data = self.read(name)
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _LONGEST).decode()
        except (zlib.error, UnicodeDecodeError):
            return data.decode(errors="replace")


class _Class:
    """A class that the archive's program defines: which of a module's tensors are parameters."""

    def __init__(self, name: str, code: str):
        self.name = name.rpartition(".")[2]
        body = re.search(rf"^class {re.escape(self.name)}\(Module\):\n((?:  .*\n|\n)*)", code, re.MULTILINE)
        self.is_module = body is not None
        listed = re.search(r"^  __parameters__ = \[(.*?)\]", body[1] if body else "", re.MULTILINE | re.DOTALL)
        self.parameters = set(re.findall(r'"([^"]*)"', listed[1])) if listed else set()


class _Builder(SafeBuilder):
    """What an archive may name beside what a weights-only file may: its own modules, and lists of one type."""

    def __init__(self, reader: _Archive, storages, length: int):
        super().__init__(allowed(), storages, length)
        self._reader = reader
        self._classes: dict[str, _Class] = {}
        self._made: dict[int, tuple] = {}  # a module not built yet -> it, and its class
        self._sizes: dict[int, int] = {}  # a built module -> how many modules it is
        self._built: list[Module] = []  # kept, so that ids stay theirs
        self._parameters: dict[int, tuple] = {}
        self.callable |= {_as_it_is}

    def find_global(self, module: str, name: str):
        if module.partition(".")[0] == "__torch__":
            return self._class(f"{module}.{name}")
        if module == "torch.jit._pickle" and name in (*_LISTS, "restore_type_tag"):
            return _as_it_is
        return super().find_global(module, name)

    def _class(self, name: str) -> _Class:
        if name not in self._classes:
            path = "code/" + name.rpartition(".")[0].replace(".", "/") + ".py"
            self._classes[name] = _Class(name, self._reader.text(path) if path in self._reader else "")
        return self._classes[name]

    def new(self, cls, args: tuple, kwargs: dict):
        if not isinstance(cls, _Class):
            return super().new(cls, args, kwargs)
        if not cls.is_module:
            raise UnpicklingError(
                f"the TorchScript archive holds a {cls.name}, which is no module: that cannot be read"
            )
        made = ArchivedModule(cls.name)
        self._made[id(made)] = made, cls
        return made

    def build(self, instance, state) -> None:
        if isinstance(instance, ArchivedModule):
            self._build_module(instance, state)
        else:
            super().build(instance, state)

    def _build_module(self, instance: ArchivedModule, state) -> None:
        self._spend((state,))
        if id(instance) not in self._made or not isinstance(state, dict):
            raise UnpicklingError("the file is corrupted or malicious: it sets the state of a module twice")
        size = 1
        for name, value in state.items():
            if isinstance(value, ArchivedModule):
                if id(value) not in self._sizes:
                    raise UnpicklingError("the file is corrupted or malicious: a module is part of itself")
                size += self._sizes[id(value)]
            if isinstance(value, Tensor) and name in self._made[id(instance)][1].parameters:
                value = self._parameter(value)
            _attach(instance, name, value)
        if size > _MOST:
            raise UnpicklingError("the file is corrupted or malicious: it builds more than it contains")
        self._sizes[id(instance)] = size
        self._built.append(self._made.pop(id(instance))[0])

    def _parameter(self, t: Tensor) -> Parameter:
        """One for every tensor: modules may share it."""
        if id(t) not in self._parameters:
            self._parameters[id(t)] = t, Parameter(t.detach(), t.requires_grad)
        return self._parameters[id(t)][1]


def _attach(module: Module, name, value) -> None:
    if type(name) is not str or "." in name or not name:
        raise UnpicklingError("the file is corrupted or malicious: a module has a part without a name")
    if isinstance(value, ArchivedModule):
        module.add_module(name, value)
    elif isinstance(value, Parameter):
        module.register_parameter(name, value)
    elif isinstance(value, Tensor):
        module.register_buffer(name, value.detach())
    elif name == "training":
        module.training = bool(value)
    elif not name.startswith("_") and not hasattr(ArchivedModule, name):
        object.__setattr__(module, name, value)


def _as_it_is(value, *type_tag):
    return value
