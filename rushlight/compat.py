"""``import torch`` means rushlight: the import hook behind ``rushlight run``, and what is said about a missing name.

After ``install()``, ``torch`` and its submodules are rushlight's own module objects, ``torchvision`` is
``rushlight.vision``, and ``importlib.metadata`` knows versions of both; started processes have the hook too. A name
that is not there raises an error that lists the nearest names there are.
"""

from __future__ import annotations

import dis
import functools
import importlib
import importlib.machinery
import sys
import types

# PyTorch's package -> ours; its wheel has functorch in it
NAMES = {"torch": "rushlight", "torchvision": "rushlight.vision", "functorch": "rushlight.utils._functorch"}
DISTRIBUTIONS = ("torch", "torchvision")


def install() -> None:
    """Make ``import torch`` import rushlight, from now on, in this process and those it spawns."""
    loaded = next((name for name in NAMES if _is_foreign(sys.modules.get(name))), None)
    if loaded:
        raise ImportError(f"{loaded} itself is already imported here; install rushlight's hook before it")
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
        _install_in_spawned_processes()
        _name_classes()


class Finder:
    """Finds ``torch.x`` where ``rushlight.x`` is, as the same module object."""

    def find_spec(self, fullname, path=None, target=None):
        ours = our_name(fullname)
        if ours is None:
            return None
        if not _exists(ours):
            if _is_only_asked():
                return None
            parent, _, name = fullname.rpartition(".")
            close = advice(sys.modules.get(parent), name)
            raise ModuleNotFoundError(f"No module named '{fullname}': rushlight lacks it{close}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname in NAMES)

    def create_module(self, spec):
        module = importlib.import_module(our_name(spec.name))
        tell_nearest_names(module)
        _name_loaded_parts(spec.name)
        self._specs = {**getattr(self, "_specs", {}), spec.name: module.__spec__}
        return module

    def exec_module(self, module):
        """Nothing to run; the import system has just given the module ``torch``'s spec: it keeps its own."""
        module.__spec__ = self._specs.pop(module.__spec__.name)

    def find_distributions(self, context=None):
        """What ``importlib.metadata`` is told of ``torch`` and ``torchvision``; nothing on disk is touched."""
        name, path = getattr(context, "name", None), getattr(context, "path", sys.path)
        if name is None and path is not sys.path and _home() not in path:  # pip asks folder by folder
            return []
        return [distribution()(package) for package in DISTRIBUTIONS if name is None or _normal(name) == package]


def _name_loaded_parts(package: str) -> None:
    """Give the loaded submodules of ours their names in ``package``.

    Were they found anew, Python would name each in its package, over a function of the same name: ``gradcheck``.
    """
    ours = str(our_name(package)) + "."
    for name, module in list(sys.modules.items()):
        if name.startswith(ours):
            tell_nearest_names(module)
            sys.modules.setdefault(f"{package}.{name.removeprefix(ours)}", module)


def our_name(name: str) -> str | None:
    """``torch.nn.functional`` -> ``rushlight.nn.functional``; ``None`` for what is not PyTorch's."""
    package, dot, rest = name.partition(".")
    return NAMES[package] + dot + rest if package in NAMES else None


@functools.cache
def distribution():
    """The class of a distribution that is rushlight under another name (made when asked: its import is slow)."""
    import importlib.metadata

    class Distribution(importlib.metadata.Distribution):
        def __init__(self, package: str):
            self.package = package

        def read_text(self, filename: str) -> str | None:
            if filename == "top_level.txt":
                return self.package
            if filename == "INSTALLER":
                return "rushlight"
            if filename != "METADATA":
                return None
            version = importlib.import_module(NAMES[self.package]).__version__
            return f"Metadata-Version: 2.1\nName: {self.package}\nVersion: {version}\nSummary: rushlight\n"

        def locate_file(self, path):
            import pathlib

            return pathlib.Path(_home(), path)

    return Distribution


# -- names that are not there ----------------------------------------------------------------------------------------


class MissingName(AttributeError):
    """Looks for the nearest names only when it is printed: ``hasattr`` stays cheap."""

    def __init__(self, module: types.ModuleType, name: str):
        super().__init__(module, name)
        self._module, self._missing = module, name

    def __str__(self) -> str:
        close = lacking(self._module, self._missing)
        return f"module '{_own_name(self._module)}' has no attribute '{self._missing}'{close}"

    def __reduce__(self):
        return AttributeError, (str(self),)


# In a traceback it is what it stands for.
MissingName.__module__, MissingName.__name__, MissingName.__qualname__ = "builtins", "AttributeError", "AttributeError"


def missing(module_name: str, find=None):
    """The ``__getattr__`` of a module that tells the nearest names; ``find(name)`` may know it, or return ``None``."""

    def __getattr__(name: str):
        if (file := sys.modules.get(f"{module_name}.{name}")) is not None:
            return file  # loaded in an import that Ctrl-C ended: Python names it in its package only when it loads it
        if find is not None and (found := find(name)) is not None:
            return found
        caller = sys._getframe(1)
        # `from .. import x` looks here before it looks for a file x: the table comes after files.
        importing = caller.f_code.co_name == "_handle_fromlist"
        if not importing and (not name.startswith("__") or name in ABSENT_DUNDERS):
            from . import absent

            found = absent.find(module_name, name)
            if found is not absent.UNKNOWN:
                return found
        module = sys.modules[module_name]
        # After `from torch import x` Python drops this error for one of its own, without our words.
        if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == dis.opmap["IMPORT_FROM"]:
            raise ImportError(
                f"cannot import name '{name}' from '{module_name}'{lacking(module, name)}", name=module_name
            )
        raise MissingName(module, name)

    return __getattr__


ABSENT_DUNDERS = ("__config__",)


def tell_nearest_names(module: types.ModuleType) -> None:
    """Give a module that has no ``__getattr__`` of its own the one of ``missing``."""
    module.__dict__.setdefault("__getattr__", missing(module.__name__))


def lacking(module: types.ModuleType, name: str) -> str:
    return f": rushlight lacks {torch_path(module)}.{name}{advice(module, name)}"


def torch_path(module: types.ModuleType) -> str:
    """``rushlight.vision.ops`` -> ``torchvision.ops``"""
    return "torch" + _own_name(module).removeprefix("rushlight").replace(".vision", "vision", 1)


def advice(holder, name: str) -> str:
    """What to use in the place of a missing name: what the table says, or else the names that are spelled like it."""
    from . import absent

    path = _own_name(holder).partition(".")[2] if isinstance(holder, types.ModuleType) else holder and holder.__name__
    hint, is_broad = absent.hint(f"{path}.{name}" if path else name)
    close = nearest(holder, name)
    return f"; {hint}" if hint and not (is_broad and _is_misspelled(close, name)) else close


def _is_misspelled(close: str, name: str) -> bool:
    """Is the first of the nearest names the same but for a letter or two?"""
    import difflib

    first = close.partition(": ")[2].split(",")[0].lower()
    return difflib.SequenceMatcher(None, first, name.lower()).ratio() > 0.85


def nearest(module: types.ModuleType | type | None, name: str) -> str:
    """``"; nearest: a, b"``, or nothing when no name comes close."""
    import difflib

    folded: dict[str, list[str]] = {}
    for n in dir(module) if module else ():
        if not n.startswith("_"):
            folded.setdefault(n.lower(), []).append(n)
    close = [n for low in difflib.get_close_matches(name.lower(), folded, n=4, cutoff=0.65) for n in folded[low]]
    return f"; nearest: {', '.join(close)}" if close else ""


# -- helpers ---------------------------------------------------------------------------------------------------------


def _is_foreign(module) -> bool:
    return module is not None and _own_name(module).partition(".")[0] in NAMES


def _own_name(module: types.ModuleType) -> str:
    """What a module was imported as: ``rushlight``, also when its ``__name__`` says ``torch``."""
    return module.__spec__.name if module.__spec__ else module.__name__


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # the parent is no package, or a module without a spec
        return False


def _is_only_asked() -> bool:
    """Did ``importlib.util.find_spec`` ask? It wants ``None`` where an import wants an error."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "find_spec" and "util" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "find_spec" and frame.f_globals["__name__"] == "importlib.util"


def _home() -> str:
    """The folder that rushlight is imported from."""
    import os

    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _name_classes() -> None:
    """Packages tell a tensor by its class' module, and PyTorch by its name: from now on both are ``torch``."""
    from .device import device
    from .dtypes import dtype, finfo, iinfo
    from .layout import layout, memory_format
    from .tensor import Size, Tensor

    for kind in (Tensor, Size, device, dtype, finfo, iinfo, layout, memory_format):
        kind.__module__ = "torch"
    sys.modules[__package__].__name__ = "torch"


class _Installed:
    """Unpickled, installs the hook: how a spawned process gets it before it imports the script."""

    def __reduce__(self):
        return install, ()


def _install_in_spawned_processes() -> None:
    from multiprocessing import spawn

    original = spawn.get_preparation_data

    def get_preparation_data(name):
        return {**original(name), "rushlight": _Installed()}

    spawn.get_preparation_data = get_preparation_data
