"""The house: imports point one way, JAX stays in its rooms, and every engine offers what rules ask for."""

import ast
import functools
import importlib
import pathlib

import pytest

import rushlight
from rushlight.engine.numpy import namespace as numpy_namespace

ROOT = pathlib.Path(rushlight.__file__).parent
# From the ground up; what is named in one line may import each other. See docs/design/index.md.
LAYERS = [
    "config device dtypes errors layout storage backends version torch_version compat absent __future__",
    "engine",
    "tensor random _printing futures",
    "autograd utils.hooks",
    "ops linalg fft special signal func amp aliases retired checks types foreach overrides sparse nested "
    "quantized masked",
    "distributed",
    "nn distributed.fsdp distributed.tensor.experimental distributed.tensor.parallel",
    "optim io serialization distributed.checkpoint distributed.optim distributed.pipelining "
    "distributed.algorithms._checkpoint distributed.elastic.utils hub utils multiprocessing fx vision ao quantization",
    "compiler export jit cuda accelerator distributions testing library quasirandom schemas operator_checks profiler "
    "autograd.profiler onnx distributed.tensor.debug",
    "inspect",
    "cli __main__ __init__ pytest_plugin",
]
LEVEL = {part: level for level, line in enumerate(LAYERS) for part in line.split()}


def module_of(path):
    return path.relative_to(ROOT.parent).with_suffix("").parts


def level_of(parts):
    """The layer of ('rushlight', 'nn', 'module'), by the longest name that LAYERS has."""
    for end in (4, 3, 2):
        level = LEVEL.get(".".join(parts[1:end]))
        if level is not None:
            return level
    return None


class Scan:
    """What the tests ask of one file: each is read once, and its tree is not kept."""

    def __init__(self, path):
        self.path, tree = path, ast.parse(path.read_text())
        self.imports = list(imports(path, tree))
        self.strangers = []
        self.asked: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.strangers += strangers(node)
            elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
                self.asked |= names_that_a_rule_uses(node)


@functools.cache
def scans():
    return [Scan(path) for path in sorted(ROOT.rglob("*.py"))]


def imports(path, tree):
    """The modules of this package that a file imports when it is itself imported, and their names from it."""
    here, statements = module_of(path), list(tree.body)
    while statements:
        s = statements.pop()
        if isinstance(s, ast.If) and "TYPE_CHECKING" not in ast.dump(s.test):
            statements += s.body + s.orelse
        elif isinstance(s, ast.Try):
            statements += s.body
        elif isinstance(s, ast.ImportFrom) and s.level:
            base = here[: len(here) - s.level] + tuple(s.module.split(".") if s.module else ())
            yield from ((s.lineno, (*base, a.name)) for a in s.names)


def strangers(node):
    """The lines that import JAX."""
    imported = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
    imported += [a.name for a in node.names] if isinstance(node, ast.Import) else []
    return [node.lineno] if any(str(m).split(".")[0] in ("jax", "jaxlib") for m in imported) else []


def names_that_a_rule_uses(function):
    """Every ``xp.name`` in a function whose first parameter is ``xp``: forwards, rules, updates, shared formulas."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments or arguments[0].arg != "xp":
        return set()
    attributes = (node for node in ast.walk(function) if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "xp"}


def test_every_part_has_its_layer():
    parts = {
        p.stem if p.is_file() else p.name for p in ROOT.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()
    }
    assert parts == {name for name in LEVEL if "." not in name}


def test_imports_point_one_way():
    upwards = []
    for scan in scans():
        mine = level_of(module_of(scan.path))
        for line, target in scan.imports:
            theirs = level_of(target)
            if theirs is not None and theirs > mine:
                upwards.append(f"{scan.path.relative_to(ROOT.parent)}:{line} imports {'.'.join(target)}")
    assert not upwards, "\n".join(upwards)


def test_only_the_rooms_of_xla_know_jax():
    allowed = (
        "engine/xla/",
        "engine/deferred/",
        "engine/cold/",
        "engine/meta/",
        "engine/spread/",
        "compiler/",
        "cuda/",
    )
    found = []
    for scan in scans():
        name = scan.path.relative_to(ROOT).as_posix()
        if not name.startswith(allowed):
            found += [f"{name}:{line}" for line in scan.strangers]
    assert not found


def offered_by(namespace):
    """The functions that are written or imported in the namespace's own file, for rules to use."""
    tree = ast.parse(pathlib.Path(namespace.__file__).read_text())
    named = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    named += [a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) and n.module for a in n.names]
    found = {n: getattr(namespace, n, None) for n in named if not n.startswith("_")}
    return {n for n, value in found.items() if callable(value) and not isinstance(value, type)}


@pytest.mark.parametrize("engine", ["numpy", "xla", "deferred", "meta", "batched", "spread"])
def test_an_engine_offers_what_rules_ask_for(engine):
    namespace = numpy_namespace
    if engine != "numpy":
        pytest.importorskip("jax")
        namespace = importlib.import_module(f"rushlight.engine.{engine}.namespace")
    used = set().union(*(scan.asked for scan in scans())) | {"BODIES", "BACKWARD"}
    assert len(used) > 150
    assert sorted(name for name in used if not hasattr(namespace, name)) == []


def test_engines_offer_the_same_names():
    pytest.importorskip("jax")
    from rushlight.engine.xla import namespace as xla_namespace

    only_xla = {
        "check_room",
        "check_same_device",
        "device_of",
        "draw",
        "explained",
        "is_tracing",
        "next_key",
        "place_of",
        "serves_update",
        "to_device",
        "to_numpy",
        "update_all",
        "without_promises",
    }
    assert sorted(n for n in offered_by(numpy_namespace) if not hasattr(xla_namespace, n)) == []
    assert sorted(n for n in offered_by(xla_namespace) - only_xla if not hasattr(numpy_namespace, n)) == []


BESIDE_TORCH = [
    "inspect", "vision", "vision.datasets", "vision.io", "vision.models", "vision.models.detection", "vision.ops",
    "vision.transforms", "vision.transforms.functional", "vision.transforms.v2", "vision.transforms.v2.functional",
    "vision.tv_tensors", "vision.utils",
]  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_TORCH)
def test_namespaces_beside_torch_show_public_names(name):
    """Names in ``__all__``, and files that torchvision has too; tests/parity/test_public_names.py is for the others."""
    module = importlib.import_module(f"rushlight.{name}")
    others = {n: getattr(module, n) for n in dir(module) if n not in module.__all__}
    assert set(module.__all__) <= set(dir(module))
    assert [n for n, value in others.items() if not getattr(value, "__name__", "").startswith("rushlight.")] == []
