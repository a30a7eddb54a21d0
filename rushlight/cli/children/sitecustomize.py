"""What Pythons run first that a script under ``rushlight run`` starts: ``import torch`` means rushlight in them too.

Their ``PYTHONPATH`` begins with this folder. Nothing is imported until one of them asks for torch.
"""

import contextlib
import importlib
import os
import sys


class Waiting:
    """Makes way for rushlight's hook when torch is first asked for."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in ("torch", "torchvision", "functorch") or not self._install():
            return None
        return sys.meta_path[0].find_spec(fullname, path, target)

    def find_distributions(self, context=None):
        if getattr(context, "name", None) not in ("torch", "torchvision") or not self._install():
            return []
        return sys.meta_path[0].find_distributions(context)  # type: ignore[attr-defined]  # rushlight's own

    def _install(self) -> bool:
        is_first = sys.meta_path[0] is self  # else somebody has installed rushlight's hook already
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        if not is_first:
            return False
        try:
            from rushlight import compat
        except ImportError:  # a Python of another environment
            return False
        compat.install()
        return True


here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
sys.meta_path.insert(0, Waiting())  # type: ignore[arg-type]
own = sys.modules.pop("sitecustomize")
with contextlib.suppress(ModuleNotFoundError):
    importlib.import_module("sitecustomize")  # the one that this Python would have had
sys.modules.setdefault("sitecustomize", own)
