"""``import torch`` means rushlight: the import hook behind ``rushlight run``, and what is said about a missing name.

After ``install()``, ``torch`` and its submodules are rushlight's own module objects, and ``torchvision`` is
``rushlight.vision``; started processes have the hook too. A name that is not there raises an error that lists the
nearest names there are.
"""

from __future__ import annotations

import dis
import importlib
import importlib.machinery
import sys
import types

NAMES = {"torch": "rushlight", "torchvision": "rushlight.vision"}  # PyTorch's package -> ours


def install() -> None:
    """Make ``import torch`` import rushlight, from now on, in this process and those it spawns."""
    loaded = next((name for name in NAMES if _is_foreign(sys.modules.get(name))), None)
    if loaded:
        raise ImportError(f"{loaded} itself is already imported here; install rushlight's hook before it")
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
        _install_in_spawned_processes()


class Finder:
    """Finds ``torch.x`` where ``rushlight.x`` is, as the same module object."""

    def find_spec(self, fullname, path=None, target=None):
        ours = our_name(fullname)
        if ours is None:
            return None
        if not _exists(ours):
            parent, _, name = fullname.rpartition(".")
            close = nearest(sys.modules.get(parent), name)
            raise ModuleNotFoundError(f"No module named '{fullname}': rushlight lacks it{close}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec):
        module = importlib.import_module(our_name(spec.name))
        tell_nearest_names(module)
        self._specs = {**getattr(self, "_specs", {}), spec.name: module.__spec__}
        return module

    def exec_module(self, module):
        """Nothing to run; the import system has just given the module ``torch``'s spec: it keeps its own."""
        module.__spec__ = self._specs.pop(module.__spec__.name)


def our_name(name: str) -> str | None:
    """``torch.nn.functional`` -> ``rushlight.nn.functional``; ``None`` for what is not PyTorch's."""
    package, dot, rest = name.partition(".")
    return NAMES[package] + dot + rest if package in NAMES else None


# -- names that are not there ----------------------------------------------------------------------------------------


class MissingName(AttributeError):
    """Looks for the nearest names only when it is printed: ``hasattr`` stays cheap."""

    def __init__(self, module: types.ModuleType, name: str):
        super().__init__(module, name)
        self._module, self._missing = module, name

    def __str__(self) -> str:
        return (
            f"module '{self._module.__name__}' has no attribute '{self._missing}'{lacking(self._module, self._missing)}"
        )

    def __reduce__(self):
        return AttributeError, (str(self),)


# In a traceback it is what it stands for.
MissingName.__module__, MissingName.__name__, MissingName.__qualname__ = "builtins", "AttributeError", "AttributeError"


def missing(module_name: str, find=None):
    """The ``__getattr__`` of a module that tells the nearest names; ``find(name)`` may know it, or return ``None``."""

    def __getattr__(name: str):
        if find is not None and (found := find(name)) is not None:
            return found
        module = sys.modules[module_name]
        caller = sys._getframe(1)
        # After `from torch import x` Python drops this error for one of its own, without our words.
        if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == dis.opmap["IMPORT_FROM"]:
            raise ImportError(
                f"cannot import name '{name}' from '{module_name}'{lacking(module, name)}", name=module_name
            )
        raise MissingName(module, name)

    return __getattr__


def tell_nearest_names(module: types.ModuleType) -> None:
    """Give a module that has no ``__getattr__`` of its own the one of ``missing``."""
    module.__dict__.setdefault("__getattr__", missing(module.__name__))


def lacking(module: types.ModuleType, name: str) -> str:
    path = module.__name__.removeprefix("rushlight").replace(".vision", "vision", 1)
    return f": rushlight lacks torch{path}.{name}{nearest(module, name)}"


def nearest(module: types.ModuleType | None, name: str) -> str:
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
    return module is not None and module.__name__.partition(".")[0] in NAMES


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    import importlib.util

    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # the parent is no package, or a module without a spec
        return False


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
