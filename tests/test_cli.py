"""The command line: scripts run as they are, names are checked, mistakes are one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest

import rushlight
from rushlight import cli, compat
from rushlight.cli import bench, check, pictures, quickstart

ROOT = Path(__file__).parents[1]


def rushlight_command(*arguments, cwd=None, **kwargs):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-m", "rushlight", *map(str, arguments)],
        cwd=cwd, env=env, capture_output=True, text=True, **kwargs,
    )  # fmt: skip


SERVER = """
import json, os, runpy, sys
import rushlight.cli
for line in sys.stdin:
    arguments, cwd, out = json.loads(line)
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (1, 2):
            os.dup2(os.open(f"{out}/{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.chdir(cwd)
        sys.path[0], sys.argv = cwd, ["rushlight", *arguments]
        runpy.run_module("rushlight", run_name="__main__", alter_sys=True)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def forked_command(tmp_path_factory):
    """As ``rushlight_command``, by a process that forks itself when it has the package: importing it takes longer.

    For what depends on the arguments alone; what a process has from Python itself is tested with ``rushlight_command``.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SERVER]
    out = tmp_path_factory.mktemp("forked")
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:

        def run(*arguments, cwd=out):
            server.stdin.write(json.dumps([[*map(str, arguments)], str(cwd), str(out)]) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            return subprocess.CompletedProcess(
                arguments, status, (out / "1").read_text(), (out / "2").read_text()
            )  # fmt: skip

        yield run
        server.stdin.close()


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# -- run -------------------------------------------------------------------------------------------------------------


IMPORTS = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim.lr_scheduler
from torch import optim, Tensor
from torch.nn.parameter import Parameter
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
import beside
import rushlight
assert torch is rushlight and nn is rushlight.nn and F is rushlight.nn.functional and Tensor is rushlight.Tensor
assert sys.modules["torch.nn"] is rushlight.nn and datasets is rushlight.vision.datasets
assert torch.__spec__.name == "rushlight" and __name__ == "__main__"
print(sys.argv[1:], beside.value, __file__)
"""


@pytest.mark.parametrize("first", [["run"], []])
def test_run(script, first):
    script("value = 7", "beside.py")
    path = script(IMPORTS)
    done = rushlight_command(*first, path, "--epochs", "3", "-m", "--help", cwd=ROOT)
    assert done.stderr == "" and done.returncode == 0
    assert done.stdout == f"['--epochs', '3', '-m', '--help'] 7 {path}\n"


def test_run_a_module(script, tmp_path):
    script("import torch; print(torch.__name__)", "program.py")
    assert rushlight_command("run", "-m", "program", cwd=tmp_path).stdout == "torch\n"
    (tmp_path / "package").mkdir()
    script("from .inner import name; import sys; print(name, __package__, sys.argv[1:])", "package/__main__.py")
    script("import torch; name = torch.__name__", "package/inner.py")
    assert rushlight_command("run", "-m", "package", "-v", cwd=tmp_path).stdout == "torch package ['-v']\n"


def test_run_a_script_that_starts_itself_anew(script, tmp_path):
    """As launchers do: the Pythons that it starts have rushlight for torch too, and their own ``sitecustomize``."""
    script("print('customized')", "sitecustomize.py")
    path = script(
        "import subprocess, sys\n"
        "from importlib.metadata import version\n"
        "if len(sys.argv) < 4: subprocess.run([sys.executable, *sys.argv, 'again'], check=True)\n"
        "print(version('torch'), 'torch' in sys.modules, __import__('torch').__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", path, "now"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.stderr == "" and lines.count("customized") == 3
    assert len([line for line in lines if "rushlight" in line]) == 3, done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import sys; print(sys.argv, __file__, sys.path[0], sorted(globals()), sum(map(int, sys.stdin)))",
        "import warnings; warnings.warn('here')",
        "print('before', end=''); import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
        "import atexit; atexit.register(print, 'at the end'); raise KeyboardInterrupt",
        "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
        "try: 1 / 0\nexcept ZeroDivisionError as error: raise ValueError('other') from error",
    ],
)
def test_as_python_runs_it(script, tmp_path, text):
    script(text)
    command = {"cwd": tmp_path, "input": "1\n2\n"}
    pythons = subprocess.run([sys.executable, "script.py", "a"], capture_output=True, text=True, **command)
    ours = rushlight_command("run", "script.py", "a", **command)
    assert (ours.stdout, ours.stderr, ours.returncode) == (pythons.stdout, pythons.stderr, pythons.returncode)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_started_processes_have_the_hook(script, method):
    path = script(
        "import torch, torch.multiprocessing as mp\n"
        "def work(x): x.add_(torch.ones(3))\n"
        "if __name__ == '__main__':\n"
        f"    x = torch.zeros(3).share_memory_(); p = mp.get_context('{method}').Process(target=work, args=(x,))\n"
        "    p.start(); p.join(); print(p.exitcode, x)\n"
    )
    done = rushlight_command("run", path)
    assert done.stdout == "0 tensor([1., 1., 1.])\n", done.stderr


def test_exit_status_is_the_scripts(script):
    assert rushlight_command("run", script("raise SystemExit(7)")).returncode == 7
    done = rushlight_command("run", script("import sys; sys.exit('no luck')"))
    assert (done.returncode, done.stderr) == (1, "no luck\n")


def test_traceback_is_the_users(script):
    path = script("def f(x):\n    return x + {}['a']\n\nf(1)\n")
    ours, pythons = (
        rushlight_command("run", path),
        subprocess.run([sys.executable, path], capture_output=True, text=True),
    )
    assert ours.returncode == pythons.returncode == 1
    assert ours.stderr == pythons.stderr


def test_errors_of_the_library_are_one_traceback(script, forked_command):
    done = forked_command("run", script("import torch\ntorch.ones(2, 2) @ torch.ones(3, 4)\n"))
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[1].endswith('script.py", line 2, in <module>')
    assert done.stderr.endswith("mat1 and mat2 shapes cannot be multiplied (2x2 and 3x4)\n")


def test_syntax_error(script):
    path = script("def f(:\n")
    ours, pythons = (
        rushlight_command("run", path),
        subprocess.run([sys.executable, path], capture_output=True, text=True),
    )
    assert ours.returncode == 1 and ours.stderr == pythons.stderr


# -- missing names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("torch.zeross", "AttributeError: module 'rushlight' has no attribute 'zeross': rushlight lacks torch.zeross"),
        ("torch.nn.Liner", "AttributeError: module 'rushlight.nn' has no attribute 'Liner'"),
        ("from torch.nn import Liner", "ImportError: cannot import name 'Liner' from 'rushlight.nn'"),
        ("import torch.optm", "ModuleNotFoundError: No module named 'torch.optm': rushlight lacks it; nearest: optim"),
        ("from torch.optm import Adam", "ModuleNotFoundError: No module named 'torch.optm'"),
    ],
)
def test_missing_name(script, line, error, forked_command):
    done = forked_command("run", script(f"import torch\n{line}\n"))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[-1].startswith(error) and "nearest: " in lines[-1]
    assert len([text for text in lines if text.startswith("  File")]) == 1  # the user's line, not the hook's


def test_hasattr_and_plain_import():
    assert not hasattr(rushlight, "zeross") and not hasattr(rushlight.nn.functional, "rellu")
    with pytest.raises(AttributeError, match=r"nearest: .*relu"):
        rushlight.nn.functional.rellu  # noqa: B018
    with pytest.raises(ImportError, match=r"lacks torch\.tensr; nearest: .*tensor"):
        from rushlight import tensr  # noqa: F401


def test_the_hook_does_not_replace_pytorch_itself(script):
    path = script(
        "import sys, types\nfrom rushlight import compat\n"
        "sys.modules['torch'] = types.ModuleType('torch')\ncompat.install()\n"
    )
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.stderr.endswith(
        "ImportError: torch itself is already imported here; install rushlight's hook before it\n"
    )


# -- check -----------------------------------------------------------------------------------------------------------


def used(text):
    import ast

    return set(check.used_names(ast.parse(text)))


def test_names_are_followed_through_aliases():
    text = (
        "import torch, torch.nn.functional as F\nfrom torch import nn as layers\nG = torch.linalg\n"
        "def f(x): return F.relu(layers.Linear(1, 2)(x)).sum() + G.norm(x) + other.torch.missing\n"
        "class A(layers.Module): pass\n"
    )
    assert used(text) == {
        "torch", "torch.nn", "torch.nn.functional", "torch.nn.functional.relu", "torch.nn.Linear", "torch.nn.Module",
        "torch.linalg", "torch.linalg.norm",
    }  # fmt: skip


def test_guarded_imports_are_no_need():
    assert used("try:\n    import torch.xla\nexcept ImportError:\n    pass\n") == set()


def test_check(script, forked_command):
    good = script("import torch\nfrom torch import nn\nnn.Linear(2, 2); torch.Tensor.add\n", "good.py")
    bad = script(
        "raise SystemExit  # never run\nimport torch\nx = torch.zeross(2)\nfrom torch.nope import a, b\n"
        "torch.Tensor.addd\n",
        "bad.py",
    )
    done = forked_command("check", good)
    assert (done.returncode, done.stdout) == (0, f"{good}: 4 torch names, all there\n")
    done = forked_command("check", bad)
    assert done.returncode == 1
    first, second, third, last = done.stdout.splitlines()
    assert first.startswith(f"{bad}:3: torch.zeross is missing; nearest: zeros")
    assert second.startswith(f"{bad}:4: torch.nope is missing")
    assert third.startswith(f"{bad}:5: torch.Tensor.addd is missing; nearest: add")
    assert last == f"{bad}: 6 torch names, 3 missing"


def test_check_reads_notebooks_and_folders(tmp_path, forked_command):
    cells = [
        {"cell_type": "markdown", "source": ["import torch.nope"]},
        {"cell_type": "code", "source": ["!pip install x\n", "import torch\n", "%matplotlib inline\n", "await a"]},
        {"cell_type": "code", "source": "%%bash\nls -l"},
        {"cell_type": "code", "source": ["\n", "torch.zeross(2)"]},
    ]
    (tmp_path / "inner" / ".hidden").mkdir(parents=True)
    notebook = tmp_path / "inner" / "a.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    for place in ("inner/.hidden/b.py", "good.py"):
        (tmp_path / place).write_text("import torch\ntorch.ones(2)\n")
    (tmp_path / "no_python.py").write_text("print 'x'\n")
    (tmp_path / "no_torch.py").write_text("print(1)\n")
    done = forked_command("check", notebook)
    assert done.returncode == 1 and done.stdout.startswith(f"{notebook}:cell 4, line 2: torch.zeross is missing")
    done = forked_command("check", tmp_path)
    assert done.returncode == 1 and "no_torch" not in done.stdout and ".hidden" not in done.stdout
    assert f"{tmp_path / 'good.py'}: 2 torch names, all there" in done.stdout
    assert done.stdout.endswith(f"{tmp_path}: 4 files, 1 missing\n")
    assert done.stderr.count("\n") == 1 and "no_python.py:1: not Python" in done.stderr


def test_check_tells_what_is_only_a_name(script, forked_command):
    path = script("import torch\nfrom torch.package import PackageImporter\nif torch.xpu.is_available():\n    pass\n"
                  "isinstance(1, PackageImporter)\n", "asks.py")  # fmt: skip
    assert forked_command("check", path).returncode == 0
    path = script("from torch.package import PackageImporter\nPackageImporter('x')\n", "calls.py")
    done = forked_command("check", path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{path}:1: torch.package.PackageImporter is only a name here: ")


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quikstart"], "no command 'quikstart'; did you mean 'quickstart'?"),
        (["zzz"], "no command 'zzz'; there are run, launch, check, summary, quickstart, bench"),
        (["run"], "run: something is missing; write rushlight run [-m] script.py [arguments of the script ...]"),
        (["launch"], "launch: something is missing; write rushlight launch [options] script.py"),
        (["summary"], "summary: something is missing; write rushlight summary module:factory [--input"),
        (["summary", "a:b", "--input", "3,y"], "argument --input: '3,y' is not a size: write numbers with commas"),
        (["summary", "a:b", "--input", "3:foo"], "argument --input: 'foo' is not a dtype: write 8,16:int64"),
        (["run", "none.py"], "cannot read 'none.py': No such file or directory"),
        (["none.py"], "cannot read 'none.py': No such file or directory"),
        (["run", "."], "'.' is a folder, not a script"),
        (["run", "-m", "no_such_module"], "no module named 'no_such_module'"),
        (["check", "none.py"], "cannot read 'none.py': No such file or directory"),
        (["summary", "net"], "'net' does not say what makes the model: write module:factory"),
        (["summary", "none.py:Net"], "cannot read 'none.py': No such file or directory"),
        (["summary", "no_such_module:Net"], "no module named 'no_such_module'"),
        (["summary", "json:Lods"], "'json' has no 'Lods'; nearest: loads"),
        (["summary", "math:pi"], "'math:pi' is a float, not a Module, nor does calling it make one"),
        (["summary", "os:getcwd"], "'os:getcwd' made a str, not a Module"),
        (["bench", "--bogus"], "unrecognized arguments: --bogus"),
        (["quickstart", "--folder", "/dev/null/x"], "cannot write to '/dev/null/x': Not a directory"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path, forked_command):
    done = forked_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"rushlight: {message}") and done.stderr.count("\n") == 1


def test_a_mistake_by_the_command_itself():
    done = rushlight_command("zzz")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("rushlight: no command 'zzz'") and done.stderr.count("\n") == 1


def test_help_and_version(forked_command):
    shown = forked_command().stdout
    assert all(f"rushlight {command}" in shown for command in cli.COMMANDS) and "Traceback" not in shown
    assert "script.py" in forked_command("run", "--help").stdout
    assert rushlight_command("--version").stdout == f"rushlight {rushlight.version.rushlight}\n"


# -- summary, bench, quickstart --------------------------------------------------------------------------------------


def test_summary(script, forked_command):
    path = script(
        "import torch.nn as nn\n"
        "class Net(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Linear(4, 3))\n"
    )
    done = forked_command("summary", f"{path}:Net", "--input", "2,4")
    assert done.returncode == 0, done.stderr
    assert "Linear" in done.stdout and "15" in done.stdout


def test_summary_of_several_inputs(script, forked_command):
    path = script(
        "import torch.nn as nn\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.words, self.body = nn.Embedding(5, 4), nn.Sequential(nn.Linear(4, 3))\n"
        "    def forward(self, x, scale):\n        return self.body(self.words(x)) * scale\n"
    )
    given = (f"{path}:Net", "--input", "2,7:int64", "--input", "3")
    done = forked_command("summary", *given)
    assert done.returncode == 0, done.stderr
    assert "[2, 7, 3]" in done.stdout and "0: Linear" in done.stdout
    folded = forked_command("summary", *given, "--depth", "1").stdout
    assert "body: Sequential" in folded and "0: Linear" not in folded and "Parameters: 35 (" in folded


def test_summary_of_a_broken_file(script, forked_command):
    done = forked_command("summary", f"{script('x = 1 / 0')}:Net")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].endswith('script.py", line 1, in <module>')
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_bench():
    done = rushlight_command("bench", "--no-torch", "--rounds", "1", "--json", "Module()")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["name"] == "module: Module()" and row["rushlight"] > 0 and row["torch"] is None
    done = rushlight_command("bench", "--no-torch", "--rounds", "1", "Module()")
    assert done.stdout.splitlines()[1].startswith("module: Module()")
    assert rushlight_command("bench", "--no-torch", "no such case").returncode == 1


def test_bench_finds_its_files_in_an_installed_package():
    """What the wheel is given is what the command looks for there."""
    benchmarks = bench.installed(ROOT)
    places = [str(place.relative_to(ROOT)) for place in bench.PLACES]
    assert {str(Path(target).parent) for target in benchmarks.values()} == {places[1]}
    assert {"run.py", "harness.py"} <= {Path(target).name for target in benchmarks.values()}
    assert all(Path(source).is_file() for source in benchmarks)


def test_quickstart_keeps_what_was_edited(tmp_path):
    edited = tmp_path / "q" / "train_digits.py"
    edited.parent.mkdir()
    edited.write_text("mine")
    assert quickstart._untouched(edited.parent) == tmp_path / "q-2"
    (tmp_path / "q-2").mkdir()
    (tmp_path / "q-2" / "train_digits.py").write_text("mine too")
    assert quickstart._untouched(edited.parent) == tmp_path / "q-3" and edited.read_text() == "mine"
    edited.write_bytes(Path(quickstart.__file__).with_name("train_digits.py").read_bytes())
    assert quickstart._untouched(edited.parent) == edited.parent


def test_quickstart(tmp_path):
    done = rushlight_command("quickstart", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "rushlight-quickstart"
    assert sorted(path.name for path in folder.iterdir()) == [
        "digits.npz", "digits.pt", "predictions.svg", "summary.txt", "train_digits.py", "training.svg", "watch.html",
    ]  # fmt: skip
    (accuracy,) = [line for line in done.stdout.splitlines() if line.endswith("held-out digits read right")]
    assert float(accuracy.partition("%")[0]) >= 98
    assert done.stderr == ""  # no bar: this is not a terminal
    assert "watch.html" in done.stdout.splitlines()[0] and '"running":false' in (folder / "watch.html").read_text()
    for name in ("training.svg", "predictions.svg"):
        xml.dom.minidom.parse(str(folder / name))
    state = rushlight.load(folder / "digits.pt")
    assert state["conv1.weight"].shape == (32, 1, 3, 3)
    again = rushlight_command("run", "train_digits.py", cwd=folder)  # the script stands by itself
    assert again.stdout and again.stdout in done.stdout


def test_pictures_hold_what_they_show():
    text = pictures.digits([([[0] * 8] * 8, 3, 3, 0.5), ([[255] * 8] * 8, 4, 9, 0.9)])
    assert "3 · 50%" in text and "9, is 4" in text and text.count("rgb(0,0,0)") == text.count("rgb(255,255,255)") == 64
    xml.dom.minidom.parseString(pictures.training([1.0], [0.5]))


def test_names_are_mapped():
    assert compat.our_name("torch.nn") == "rushlight.nn" and compat.our_name("torchvision") == "rushlight.vision"
    assert compat.our_name("torch_geometric") is None and compat.our_name("numpy") is None


def test_parts_that_are_no_files_can_be_imported(script, forked_command):
    done = forked_command(
        "run",
        script(
            "import torch.backends.cudnn as cudnn, torch.backends.mps\n"
            "from torch.backends import cuda\nimport torch\ncudnn.benchmark = True\n"
            "print(torch.backends.cudnn.benchmark, torch.backends.mps.is_available(), cuda.matmul.allow_tf32)\n"
            "from torch.types import Device, Number\nfrom torch.utils.model_zoo import load_url\n"
        ),
    )
    assert (done.stdout, done.stderr) == ("True False False\n", "")


def test_cache_is_shown_and_cleared(tmp_path, monkeypatch, capsys):
    from rushlight.cli import main

    def run(*arguments):
        with pytest.raises(SystemExit, match="0"):
            main(["cache", *arguments])
        return capsys.readouterr().out

    monkeypatch.setenv("RUSHLIGHT_CACHE", str(tmp_path))
    (tmp_path / "xla").mkdir()
    (tmp_path / "xla" / "program").write_bytes(bytes(2_000_000))
    (tmp_path / "mine").touch()
    assert run() == f"{tmp_path / 'xla'}: 1 files, 2.0 MB\n"
    assert run("--clear").endswith("deleted\n") and list(tmp_path.iterdir()) == [tmp_path / "mine"]
    assert run() == f"{tmp_path / 'xla'}: 0 files, 0.0 MB\n"
    monkeypatch.setenv("RUSHLIGHT_CACHE", "0")
    assert run().startswith("nothing is kept")


# -- scale -------------------------------------------------------------------------------------------------------------


def test_scale_prints_a_table_and_what_it_assumes(capsys):
    from rushlight.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["scale", "--params", "70e9", "--chips", "4096", "--shard", "256", "--chip", "h100", "v5p"])
    out = capsys.readouterr().out
    assert ended.value.code == 0 and "16 replicas x 256 shards x 1 tensor x 1 stages" in out
    assert "Assumed, not measured:" in out and "h100: products reach 42% of 989 TFLOP/s" in out
    for wrong in (
        "--tensor 3", "--shard 5", "--chips 0", "--overlap 2", "--overlap nan", "--params nan", "--params inf",
        "--tokens 0", "--layers -1", "--width 0", "--sequence -5", "--efficiency 1.5", "--bandwidth 0", "--save -1",
        "--restart nan", "--chip-hours 0",
    ):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main(["scale", *wrong.split()])
        assert ended.value.code == 2, wrong
        assert capsys.readouterr().err.startswith("rushlight: ")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0 s"), (12.34, "12.3 s"), (0.1, "0.1 s"), (0.000143, "0.143 ms"), (2e-6, "2 µs")]
)
def test_scale_prints_times_in_readable_units(seconds, shown):
    from rushlight.cli.scale import _time

    assert _time(seconds) == shown


def test_the_limits_of_the_paper_model():
    import dataclasses

    from rushlight.cli.scale import CHIPS, Layout, Work, all_reduce, estimate, gather, hops, useful

    chip = dataclasses.replace(CHIPS["h100"], delay=0.0)
    work = Work(1e9, 24, 2048, 1024, 1e7)
    alone = estimate(work, Layout(1, 1, 1, 1, 1), chip)
    assert alone.moved == alone.exposed == alone.tensor == alone.bubble == 0  # one chip moves nothing
    assert alone.compute == pytest.approx(work.operations / (chip.peak * chip.efficiency))
    assert alone.state > 16e9 > estimate(work, Layout(8, 1, 1, 8, 1), chip).state

    cut = estimate(work, Layout(64, 1, 1, 64, 1), chip)
    assert cut.compute == pytest.approx(alone.compute / 64)
    fast = estimate(work, Layout(64, 1, 1, 64, 1), dataclasses.replace(chip, far_rate=2 * chip.far_rate))
    assert fast.moved == pytest.approx(cut.moved / 2)
    assert cut.moved == pytest.approx(6e9 * 63 / 64 / chip.far_rate)  # 6 bytes a parameter, all but its own part
    assert estimate(work, Layout(64, 1, 1, 64, 1), chip, overlap=0.0).exposed == cut.moved
    long = estimate(dataclasses.replace(work, tokens=1e12), Layout(64, 1, 1, 64, 1), chip, overlap=1.0)
    of_peak = work.operations * 1e5 / (long.step * 64 * chip.peak)
    assert of_peak == pytest.approx(chip.efficiency, rel=1e-3)  # with enough text only the products count
    few = estimate(dataclasses.replace(work, tokens=1.0), Layout(64, 1, 1, 64, 1), chip)
    assert few.compute == pytest.approx(6e9 / chip.memory_rate)  # with hardly any, reading the weights does

    stages = [estimate(work, Layout(64, 1, 4, 16, m), chip) for m in (4, 400)]
    assert stages[0].bubble == pytest.approx(0.75 * stages[0].compute) and stages[1].bubble < 0.01 * stages[1].compute
    tensor = estimate(work, Layout(64, 8, 1, 8, 1), chip)
    assert tensor.tensor == pytest.approx(4 * 24 * all_reduce(2 * 2048 * 1e7 / 8, 8, chip.near_rate))
    assert estimate(work, Layout(64, 1, 1, 8, 1), chip).state == pytest.approx(tensor.state * 8, rel=0.1)

    assert gather(100.0, 1, 10.0) == 0 and gather(100.0, 10**9, 10.0) == pytest.approx(10.0)
    assert hops(1, CHIPS["v5p"]) == 0 and hops(4096, CHIPS["h100"]) == 4095
    assert hops(4096, CHIPS["v5p"]) == pytest.approx(45)
    assert round(useful(5, 180, 18000), 2) == 0.97 and round(useful(60, 900, 18000), 2) == 0.87


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("deep.py", b"x = " + b"+".join([b"1"] * 100000), "nested too deeply"),
        ("long_sum.py", b"x = " + b"+".join([b"1"] * 1100), "nested too deeply"),
        ("deep.ipynb", b"[" * 100000, "nested too deeply"),
        ("cut.ipynb", b'{"cells": [', "not a notebook"),
        ("binary.py", bytes(range(256)), "not Python"),
        ("long.py", b"#" * (17 << 20), "more than 16 MB"),
    ],
)
def test_check_says_what_is_wrong_with_a_hostile_file(tmp_path, capsys, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", str(path)])
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_check_waits_for_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    done = rushlight_command("check", tmp_path / "pipe.py", timeout=300)
    assert done.returncode != 0 and "no regular file" in done.stderr


def test_nobody_reads_on():
    """As in ``rushlight scale … | head``: no traceback, but not a success either."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as out:
        command = [sys.executable, "-m", "rushlight", "scale", "--params", "7e9", "--chips", "64"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, env=env, stdout=out, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "")
