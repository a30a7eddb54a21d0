"""Everything that asks for torch finds rushlight; names of parts that are not here answer and explain."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

import rushlight
from rushlight import absent
from rushlight.absent.table import PARTS
from rushlight.torch_version import TorchVersion

ROOT = pathlib.Path(__file__).parents[1]


def python(*arguments, cwd=None):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


ASKING = """
import importlib.metadata, importlib.util
assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch.nn.functional")
assert importlib.util.find_spec("torch.fx") and importlib.util.find_spec("torch.no_such_part") is None
assert importlib.metadata.version("torch").startswith("2.13.0+rushlight")
assert importlib.metadata.version("torchvision").startswith("0.28.0+rushlight")
assert importlib.metadata.packages_distributions()["torch"][0] == "torch"
assert "torch" in {d.metadata["Name"] for d in importlib.metadata.distributions()}
import torch, torch.distributed as dist, pickle
assert torch.__name__ == "torch" and torch.torch is torch and importlib.util.find_spec("torch")
assert torch.__version__ >= "2.9" and torch.__version__ > (2, 13) and torch.version.__version__ == torch.__version__
assert torch.Tensor.__module__ == "torch" and torch.dtype.__module__ == "torch"
assert pickle.loads(pickle.dumps(torch.Tensor)) is torch.Tensor
assert dist.is_available() and not dist.is_initialized() and torch.distributed is dist
"""


def test_everybody_who_asks_finds_it(tmp_path):
    (tmp_path / "asking.py").write_text(ASKING + "print('found')\n")
    (tmp_path / "notebook.py").write_text(f"import rushlight\nrushlight.install()\n{ASKING}print('found')\n")
    (tmp_path / "spawning.py").write_text(
        "import multiprocessing, runpy\n"
        "if __name__ == '__main__':\n"
        "    p = multiprocessing.get_context('spawn').Process(target=runpy.run_path, args=('asking.py',))\n"
        "    p.start(); p.join(); print(p.exitcode)\n"
    )
    assert python("-m", "rushlight", "run", "asking.py", cwd=tmp_path) == "found\n"
    assert python("-m", "rushlight", "asking.py", cwd=tmp_path) == "found\n"
    assert python("notebook.py", cwd=tmp_path) == "found\n"
    assert python("-m", "rushlight", "spawning.py", cwd=tmp_path) == "found\n0\n"


def test_pytest_plugin(tmp_path):
    (tmp_path / "conftest.py").write_text("import torch\nassert torch.__name__ == 'torch'\nimport rushlight\n")
    (tmp_path / "test_it.py").write_text(
        "import torch, rushlight\ndef test_it():\n    assert torch is rushlight and torch.ones(2).sum() == 2\n"
    )
    out = python("-m", "pytest", "-q", "-p", "rushlight.pytest_plugin", "-p", "no:cacheprovider", tmp_path)
    assert "1 passed" in out


def test_pip_takes_it_for_torch():
    out = python("-m", "rushlight", "run", "-m", "pip", "list", "--format", "freeze")
    assert f"torch=={rushlight.__version__}" in out.splitlines()


def test_versions_compare_by_their_numbers():
    v = TorchVersion("2.13.0+cpu")
    assert v > "2.9" and v >= (2, 13) and v < (3,) and v > "2.13.0rc1" and v < "2.13.1.dev2" and v > "2.13.0"
    assert not v < "2.13.0" and not v <= "2.13" and max("2.9", v) is v
    assert v == "2.13.0+cpu" and v != "2.13.0" and v != (2, 13) and v != 2 and v > "abc"[:0]
    assert v.split("+") == ["2.13.0", "cpu"] and {v: 1}["2.13.0+cpu"] == 1
    with pytest.raises(TypeError):
        v > 2  # noqa: B015
    assert v >= pytest.importorskip("packaging.version").Version("2.13.0")


# -- names of parts that are not here --------------------------------------------------------------------------------


def entries():
    for path in PARTS:
        for name in absent._kinds(path):
            yield path, name


@pytest.mark.parametrize("path", list(PARTS))
def test_every_entry_can_be_had(path):
    import importlib

    module = importlib.import_module(f"rushlight.{path}".rstrip("."))
    for name in absent._kinds(path):
        assert getattr(module, name, absent) is not absent, name


def test_no_entry_stands_before_what_is_here():
    """An entry for a name that exists is dead: it is taken out when the part is built."""
    import importlib

    found = []
    for path, name in entries():
        module = importlib.import_module(f"rushlight.{path}".rstrip("."))
        if isinstance(module.__spec__ and module.__spec__.loader, type):
            continue  # a module of the table itself
        if name in vars(module) and not absent.is_absent(vars(module)[name], path, name):
            found.append(f"{path}.{name}")
    assert not found


def test_names_are_found_however_the_module_was_imported():
    """Nobody asked ``rushlight`` for its ``nn`` here: saving had imported it."""
    python(
        "-c", "import rushlight.serialization as s, rushlight.nn as nn; assert nn.qat.__name__ == 'rushlight.nn.qat'"
    )


def test_a_function_is_not_lost_to_the_file_of_its_name():
    loaded = "import rushlight; rushlight.install(); import torch.autograd.gradcheck"
    python("-c", f"{loaded}; assert callable(torch.autograd.gradcheck)")


def test_what_is_called_says_what_to_use():
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.rpc\.init_rpc is only a name here: "):
        rushlight.distributed.rpc.init_rpc("worker")
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.ScriptModule is only a name here: there is no Torch"):
        rushlight.jit.ScriptModule()

    class Mine(rushlight.package.PackageImporter):
        pass

    with pytest.raises(NotImplementedError, match=r"torch\.package\.PackageImporter is only a name here"):
        Mine()
    assert not isinstance(rushlight.nn.Linear(1, 1), (rushlight.jit.ScriptModule, rushlight.jit.TracedModule))
    assert not isinstance(rushlight.ones(2), rushlight.distributed.tensor.DTensor)


def test_guards_answer():
    assert not rushlight.distributed.rpc.is_available() and not rushlight.distributed.is_initialized()
    assert not rushlight.xpu.is_available() and rushlight.mps.is_available() is False
    assert rushlight.distributed.ReduceOp.SUM is not rushlight.distributed.ReduceOp.MAX
    with rushlight.profiler.record_function("step"), rushlight.autograd.profiler.record_function("inner"):
        pass

    @rushlight._dynamo.disable
    def f(x):
        return x

    @rushlight.jit._overload_method
    def g(x):
        return x

    assert f(1) == g(1) == 1 and rushlight.fx.wrap(f) is f
    assert rushlight.__config__.show().startswith("rushlight")


def test_descriptions_can_be_made():
    """Packages make some when they are imported."""
    from rushlight.distributed.tensor import Placement
    from rushlight.distributed.tensor.placement_types import _StridedShard as Strided

    assert Strided(0, 2) == Strided(dim=0, split_factor=2) != Strided(1, 2)
    assert isinstance(Strided(0, 2), Placement) and repr(Strided(-1, 2)) == "_StridedShard(dim=-1, split_factor=2)"


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (".utils.data", "IterDataPipe", "use Dataset or IterableDataset"),
        (".cuda", "FloatStorage", "use dtype= and device="),
        (".sparse", "to_sparse_semi_structured", "COO, CSR or CSC"),
        (".nn", "Liner", "nearest: Linear"),
        (".distributed", "init_proces_group", "nearest: init_process_group"),
    ],
)
def test_a_missing_name_is_told_from_a_misspelled_one(module, name, said):
    import importlib

    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module("rushlight" + module), name)
    assert said in str(caught.value) and ("nearest" in said) == ("nearest" in str(caught.value))


def test_what_people_report_and_measure_with():
    text = rushlight.utils.collect_env.get_pretty_env_info()
    assert text.startswith("PyTorch version: ") and "Is CUDA available: " in text and "numpy==" in text
    measured = rushlight.utils.benchmark.Timer("x + y", "y = 2", globals={"x": rushlight.ones(3)}, label="add")
    found = measured.blocked_autorange(min_run_time=0.001)
    assert found.median > 0 and repr(found).splitlines()[1:3] == ["add", "setup: y = 2"]


def test_annotations():
    assert str(rushlight.FloatTensor | None) == "typing.Optional[<class 'torch.FloatTensor'>]"
    assert (None | rushlight.LongTensor) and (rushlight.SymInt | int) and rushlight.jit.Final[int]


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
try:
    import rushlight.nn
except KeyboardInterrupt:
    import rushlight as torch
    import rushlight.distributed
    import rushlight.nn as nn

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model(torch.ones(1, 2)).sum().backward()
    print(nn.modules.activation.MultiheadAttention is nn.MultiheadAttention, model[0].weight.grad is not None)
"""


@pytest.mark.parametrize("where", ["rushlight.nn.layers.conv", "rushlight.distributed.world", "rushlight.nn.utils"])
def test_an_interrupted_import_can_be_made_again(where):
    assert python("-c", INTERRUPTED, where) == "True True\n"


def test_import_stays_light():
    out = python("-c", "import sys, rushlight; print('rushlight.absent.table' in sys.modules, 'enum' in sys.modules)")
    assert out.startswith("False")
