"""List the torch names that scripts, notebooks or folders use and rushlight lacks, without running them."""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
import types

from .. import absent, compat


def arguments(parser) -> None:
    parser.usage = "rushlight check script.py | notebook.ipynb | folder [...]"
    parser.add_argument("paths", nargs="+", metavar="path", help="scripts, notebooks, or folders of them")


def main(args) -> int:
    found = 0
    for path in args.paths:
        if os.path.isdir(path):
            files = _files_in(path)
            lacking = sum(_check(file, quiet=True) for file in files)
            print(f"{path}: {len(files)} files, " + (f"{lacking} missing" if lacking else "all there"))
        else:
            lacking = _check(path, quiet=False)
        found += lacking
    return 1 if found else 0


def _check(path: str, quiet: bool) -> int:
    """Print what a file lacks, and how many names that are; a file without torch is passed over when ``quiet``."""
    from . import Mistake

    try:
        reader, where = _reader_of(path)
    except Mistake as mistake:
        if not quiet:
            raise
        print(f"rushlight: {mistake}", file=sys.stderr)  # one of many: the others are still checked
        return 0
    names = reader.in_order()
    if quiet and not names:
        return 0
    missing: dict[str, tuple[int, str]] = {}  # the shortest missing name of each -> where, what is said of it
    for name, line in names.items():
        if (lacking := missing_part(name)) is not None:
            missing.setdefault(lacking[0], (line, f"is missing{lacking[1]}"))
        elif name in reader.called and (said := absent.only_a_name(_find(name)[0])):
            missing[name] = line, "is" + said.partition(" is")[2]
    for name, (line, said) in missing.items():
        print(f"{path}:{where(line)}: {name} {said}")
    print(f"{path}: {len(names)} torch names, " + (f"{len(missing)} missing" if missing else "all there"))
    return len(missing)


_NOT_LOOKED_INTO = {"__pycache__", "node_modules", "site-packages"}


def _files_in(folder: str) -> list[str]:
    """The scripts and notebooks of a folder; what is hidden, or installed there, is left out."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            f
            for f in folders
            if f[0] != "." and f not in _NOT_LOOKED_INTO and not os.path.exists(os.path.join(place, f, "pyvenv.cfg"))
        )
        found += [os.path.join(place, f) for f in sorted(files) if f.endswith((".py", ".ipynb")) and f[0] != "."]
    return found


def _reader_of(path: str):
    """What has read a file, and a function that says where in the file a line of it is."""
    from . import Mistake

    try:
        tree, where = _parsed(path)
        return _read(tree), where
    except (RecursionError, MemoryError):
        raise Mistake(f"{path}: nested too deeply to be read") from None


def _parsed(path: str):
    """The syntax tree of a file, and a function that says where in the file a line of it is."""
    from . import Mistake

    notebook = path.endswith(".ipynb")
    most = _MOST_BYTES["notebook" if notebook else "script"]
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise Mistake(f"{path}: no regular file")  # a pipe or a device may never end
        with open(path, "rb") as file:
            source = file.read(most + 1)
        if len(source) > most:
            raise Mistake(f"{path}: more than {most >> 20} MB, which is too long to be read")
        return _notebook(source) if notebook else (ast.parse(source, path), str)
    except OSError as error:
        raise Mistake(f"cannot read '{path}': {error.strerror}") from None
    except SyntaxError as error:
        raise Mistake(f"{path}:{error.lineno}: not Python: {error.msg}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Mistake(f"{path}: not a {'notebook' if notebook else 'script'}") from None


_MOST_BYTES = {"script": 16 << 20, "notebook": 256 << 20}  # notebooks carry their pictures


def _notebook(source: bytes):
    """All code cells as one program. Lines of the shell and of IPython become empty: ``!pip …``, ``%time …``."""
    starts, body = [], []
    start = 0
    for number, cell in enumerate(json.loads(source)["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        if lines and lines[0].startswith("%%") and lines[0].split()[0] not in _PYTHON_CELLS:
            continue  # another language
        code = "\n".join("" if line.lstrip()[:1] in ("!", "%", "?") else line for line in lines)
        tree = compile(code, f"cell {number}", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        body += ast.increment_lineno(tree, start).body
        starts.append((start, number))
        start += len(lines)

    def where(line: int) -> str:
        first, number = max(s for s in starts if s[0] < line)
        return f"cell {number}, line {line - first}"

    return ast.Module(body, []), where


_PYTHON_CELLS = {"%%time", "%%timeit", "%%capture", "%%prun"}


def _read(tree: ast.Module) -> _Reader:
    reader = _Reader()
    reader.visit(tree)
    reader.visit(tree)  # again: a name may be used in a function above the import of it
    return reader


def used_names(tree: ast.Module) -> dict[str, int]:
    """Every dotted torch name a program uses -> the first line that does."""
    return _read(tree).in_order()


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.names: dict[str, str] = {}  # the program's name for it -> torch's
        self.used: dict[str, int] = {}
        self.called: set[str] = set()

    def in_order(self) -> dict[str, int]:
        return dict(sorted(self.used.items(), key=lambda item: item[1]))

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

    def visit_Call(self, node):
        if (name := self._dotted(node.func)) is not None:
            self.called.add(name)
        self.generic_visit(node)

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
    return ".".join(parts[: parts.index(missing) + 1]), compat.advice(parent, missing)


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
