"""List the torch names that a script uses and rushlight lacks, without running it."""

from __future__ import annotations

import ast
import importlib
import sys
import types

from .. import compat


def arguments(parser) -> None:
    parser.add_argument("scripts", nargs="+", metavar="script.py")


def main(args) -> int:
    found = 0
    for path in args.scripts:
        names = used_names(_parsed(path))
        missing: dict[str, tuple[int, str]] = {}  # the shortest missing name of each -> where, nearest names
        for name, line in names.items():
            if (lacking := missing_part(name)) is not None:
                missing.setdefault(lacking[0], (line, lacking[1]))
        for name, (line, close) in missing.items():
            print(f"{path}:{line}: {name} is missing{close}")
        print(f"{path}: {len(names)} torch names, " + (f"{len(missing)} missing" if missing else "all there"))
        found += len(missing)
    return 1 if found else 0


def _parsed(path: str) -> ast.Module:
    from . import Mistake

    try:
        with open(path, "rb") as file:
            return ast.parse(file.read(), path)
    except OSError as error:
        raise Mistake(f"cannot read '{path}': {error.strerror}") from None
    except SyntaxError as error:
        raise Mistake(f"{path}:{error.lineno}: not Python: {error.msg}") from None


def used_names(tree: ast.Module) -> dict[str, int]:
    """Every dotted torch name a program uses -> the first line that does."""
    reader = _Reader()
    reader.visit(tree)
    reader.visit(tree)  # again: a name may be used in a function above the import of it
    return dict(sorted(reader.used.items(), key=lambda item: item[1]))


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.names: dict[str, str] = {}  # the program's name for it -> torch's
        self.used: dict[str, int] = {}

    def visit_Import(self, node):
        for alias in node.names:
            if compat.our_name(alias.name) is not None:
                self._use(alias.name, node)
                bound = alias.name if alias.asname else alias.name.partition(".")[0]
                self.names[alias.asname or bound] = bound

    def visit_ImportFrom(self, node):
        if node.level or node.module is None or compat.our_name(node.module) is None:
            return
        self._use(node.module, node)
        for alias in node.names:
            if alias.name != "*":
                self._use(f"{node.module}.{alias.name}", node)
                self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def visit_Assign(self, node):
        """``F = torch.nn.functional`` is one more name for it."""
        self.generic_visit(node)
        name, target = self._dotted(node.value), node.targets[0]
        if name is not None and isinstance(target, ast.Name) and isinstance(_find(name)[0], types.ModuleType):
            self.names[target.id] = name

    def visit_Attribute(self, node):
        name = self._dotted(node)
        if name is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._use(name, node)

    def visit_Try(self, node):
        """An import that the program itself is ready to do without is no need of it."""
        if not any(_catches_import_error(handler) for handler in node.handlers):
            self.generic_visit(node)
            return
        for child in [*node.body, *node.handlers, *node.orelse, *node.finalbody]:
            if not (isinstance(child, ast.Import | ast.ImportFrom) and child in node.body):
                self.visit(child)

    def _dotted(self, node) -> str | None:
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.names:
            return None
        return ".".join([self.names[node.id], *reversed(parts)])

    def _use(self, name: str, node) -> None:
        self.used[name] = min(node.lineno, self.used.get(name, node.lineno))


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    text = "BaseException" if handler.type is None else ast.unparse(handler.type)
    return any(name in text for name in ("ImportError", "ModuleNotFoundError", "Exception", "AttributeError"))


def missing_part(name: str) -> tuple[str, str] | None:
    """``None`` if rushlight has a torch name, else the name up to the part that is missing, and the nearest ones."""
    _, parent, missing = _find(name)
    if not missing:
        return None
    parts = name.split(".")
    return ".".join(parts[: parts.index(missing) + 1]), compat.nearest(parent, missing)


def _find(name: str):
    """What ``torch.a.b`` is here, the module it was looked for in, and the part that was not found."""
    first, *parts = str(compat.our_name(name)).split(".")
    found = parent = importlib.import_module(first)
    for part in parts:
        if not isinstance(found, types.ModuleType | type):
            return found, parent, ""  # a function or a value: what it carries is seen when it runs
        parent, found = found, _member(found, part)
        if found is None:
            return None, parent, part
    return found, parent, ""


def _member(holder: types.ModuleType | type, name: str):
    if hasattr(holder, name) or isinstance(holder, type):
        return getattr(holder, name, None)
    return _submodule(holder, name)


def _submodule(module: types.ModuleType, name: str):
    try:
        return importlib.import_module(f"{module.__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name and not error.name.startswith(module.__name__):  # a library it needs is not installed
            print(f"{module.__name__}.{name} needs {error.name}", file=sys.stderr)
        return None
