"""Worlds of several processes: the same script on PyTorch (gloo) and under ``rushlight run`` prints the same lines."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parents[1]))

from worlds import LONG, Trained, environment, run_world

import rushlight

SCRIPTS = Path(__file__).with_name("worlds")


def equal(ours, theirs):
    assert ours == theirs


def same(ours, theirs):
    """Lines of the same words; numbers may differ in the sixth digit, where matrix products do."""
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs):
        assert len(mine.split()) == len(yours.split())
        for a, b in zip(mine.split(), yours.split()):
            try:
                x, y = float(a), float(b)
            except ValueError:
                assert a == b, (mine, yours)
            else:
                assert x == pytest.approx(y, rel=1e-5, abs=2e-5), (mine, yours)


def near(ours, theirs):
    """Lines that are equal but for numbers, which may differ as in ``same``, also inside of lists."""
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
    assert [number.sub("#", line) for line in ours] == [number.sub("#", line) for line in theirs]
    for mine, yours in zip(ours, theirs):
        found, expected = ([float(n) for n in number.findall(line)] for line in (mine, yours))
        assert found == pytest.approx(expected, rel=1e-5, abs=2e-5), (mine, yours)


# Scripts by the number of processes and the world that they share: how many lines each of them prints at least, and how
# these are compared.
WORLDS = [
    (1, {"elastic_utils.py": (25, equal), "data_parallel.py": (41, same)}),
    (2, {
        "collectives.py": (350, equal),
        "counted.py": (60, equal),
        "context.py": (40, near),  # sequences that are cut
        "meshes.py": (130, equal),
        "by_parts.py": (20, near),  # operators of a program's own
        "sharded.py": (16, near),  # models made without values and cut, in two ways at once, losses of cut logits
        "staged.py": (14, near),  # checkpoints that are written in the background
    }),
    (2, {
        "gradients.py": (10, equal),  # through collectives
        "usual.py": (26, near),  # passes that do not take turns, outputs of all kinds, sparse gradients, copies
        "tutorials.py": (23, near),  # mixed precision, uneven inputs, a parameter server, samplers, stages by hand
        "wrong_calls.py": (40, equal),  # kinds of errors and, where they are not those of C++ code, their first lines
        "options.py": (40, same),  # of ``init_process_group``, ``new_group`` and ``DistributedDataParallel``
        "corners.py": (90, equal),  # several tensors at once, groups of others, groups that were left, stores
        "groups.py": (180, near),  # stores, ``ZeroRedundancyOptimizer``, hooks, setters of ``fully_shard``
        "smaller.py": (100, near),  # hooks by name, PowerSGD of many matrices, averagers, shared values, roots
        "wrapped_inside.py": (300, near),  # policies, names, states and norms of FullyShardedDataParallel
        "wrapped_ways.py": (40, near),  # of models that go other ways in each process, or begin without values
        "recomputed.py": (60, near),  # checkpoints of activations inside of units, by wrappers and by hand
        "pipelines_looped.py": (75, same),  # schedules that go round
    }),
    (3, {
        "orders.py": (120, equal),  # of sums
        "data_parallel.py": (41, same),  # every kind of training with DistributedDataParallel
        "wrapped.py": (22, near),  # FullyShardedDataParallel, cut and not, in the world and in a part of it
        "pipelines.py": (81, same),  # a stage in each process, both schedules
        "pipelines_cut.py": (40, same),  # ``pipeline``: where models say it and where they are told to
    }),
    pytest.param(4, {
        "collectives.py": (350, equal), "counted.py": (60, equal), "context.py": (40, near), "by_parts.py": (20, near),
    }, marks=LONG),
]  # fmt: skip


@pytest.mark.parametrize(("size", "scripts"), WORLDS)
def test_scripts(tmp_path, size, scripts):
    command = (SCRIPTS / "several.py", *scripts)
    theirs = in_pytorch(tmp_path / "pytorch", size, *command)
    ours = run_world(tmp_path / "rushlight", size, "-m", "rushlight", "run", *command)
    for found, expected in zip(map(by_script, ours), map(by_script, theirs)):
        assert found.keys() == expected.keys() == scripts.keys()
        for script, (at_least, lines) in scripts.items():
            lines(found[script], expected[script])
            assert len(expected[script]) >= at_least, script


def in_pytorch(folder, size, *command, **env):
    """As ``run_world``; a thread of gloo that outlives its group, now and then, cannot end a process by SIGABRT."""
    return run_world(folder, size, SCRIPTS / "ending.py", *command, **env)


def by_script(said: str) -> dict[str, list[str]]:
    """The lines of each of several scripts."""
    return {part.partition("\n")[0]: part.splitlines()[1:] for part in ("\n" + said).split("\nscript ")[1:]}


def test_functions_that_are_launched(tmp_path):
    theirs = in_pytorch(tmp_path / "pytorch", 1, SCRIPTS / "launched.py")
    assert run_world(tmp_path / "rushlight", 1, "-m", "rushlight", "run", SCRIPTS / "launched.py") == theirs
    assert len(theirs[0].splitlines()) >= 9


def test_checkpoints_of_safetensors(tmp_path):
    """Written and read by both, and each by the other."""
    script = SCRIPTS / "safetensors_parts.py"
    command = ("-m", "rushlight", "run", script)
    theirs = in_pytorch(tmp_path / "pytorch", 2, script)
    assert run_world(tmp_path / "rushlight", 2, *command) == theirs
    assert len(theirs[0].splitlines()) >= 40
    theirs = in_pytorch(tmp_path / "read by pytorch", 2, script, READ=str(tmp_path / "rushlight"))
    ours = run_world(tmp_path / "read by rushlight", 2, *command, READ=str(tmp_path / "pytorch"))
    assert ours == theirs
    assert "False" not in ours[0]
    assert len(ours[0].splitlines()) >= 40


@pytest.mark.parametrize(
    "name",
    [
        "ScheduleLoopedBFS",
        "ScheduleInterleaved1F1B",
        "ScheduleInterleavedZeroBubble",
        "ScheduleZBVZeroBubble",
        "ScheduleDualPipeV",
    ],
)
def test_order_of_schedules(name):
    """Which stage computes which part when, as PyTorch's schedules have it."""
    from torch.distributed.pipelining import schedules as theirs

    from rushlight.distributed.pipelining import schedules as ours

    for local, size, parts in itertools.product((1, 2, 3), (1, 2, 3, 4), (1, 2, 4, 6, 12)):
        for rank in range(size):
            numbers = [rank + k * size for k in range(local)]
            if name in ("ScheduleZBVZeroBubble", "ScheduleDualPipeV"):
                numbers = [*numbers[:1], *([2 * size - 1 - rank] if local > 1 else []), *numbers[2:]]
            stages = [_stage(i, local * size, rank, size) for i in numbers]
            try:
                expected = getattr(theirs, name)(stages, parts, loss_fn=len).pipeline_order[rank]
            except ValueError as error:
                with pytest.raises(ValueError, match=re.escape(str(error))):
                    getattr(ours, name)(stages, parts, loss_fn=len)
                continue
            found = [
                f"{stage.stage_index}{word[0].upper()}{part}"
                for word, stage, part in getattr(ours, name)(stages, parts, loss_fn=len)._order()
            ]
            expected = [action for action in expected if action is not None]
            pairs = [action.sub_actions or [action] for action in expected]  # forward and backward, meant to overlap
            assert found == [str(action) for action in itertools.chain(*pairs)]


def _stage(index, count, rank, size):
    """As much of a stage as a schedule looks at."""
    return types.SimpleNamespace(
        stage_index=index, num_stages=count, group_rank=rank, group_size=size, device="cpu", is_first=index == 0,
        is_last=index == count - 1, has_backward=True, submodule=None, submod=None, group=None,
    )  # fmt: skip


def test_torchrun(tmp_path):
    """PyTorch's own launcher, and ours, of the same script: 1, 2 and 3 processes train alike."""
    script = SCRIPTS / "data_parallel.py"
    losses = {}
    for size in (1, 2, 3):
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
        python = ["--no-python", sys.executable, "-m", "rushlight", "run"]
        if size == 2:
            command, python = ["-m", "rushlight", "launch", *command[2:]], []
        done = subprocess.run(
            [sys.executable, *command, *python, script], cwd=tmp_path, env=environment(SHORT="1"), capture_output=True,
            text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        lines = [line.split() for line in done.stdout.splitlines() if line.startswith("plain") and line.count(" ") == 3]
        losses[size] = {tuple(words[:3]): float(words[3]) for words in lines}
    assert len(losses[1]) == 4
    for size in (2, 3):
        assert losses[size] == pytest.approx(losses[1], rel=1e-5, abs=2e-5)


def test_torchrun_starts_a_failed_training_again(tmp_path):
    """Process 0 is killed; PyTorch's launcher starts all again, and they end as an undisturbed training does."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1", "--no-python"]
    launch += [sys.executable, "-m", "rushlight", "run", "train.py"]
    tmp = str(tmp_path)  # PyTorch's launcher leaves files there
    expected = Trained(tmp_path / "undisturbed", *launch, "none", "-1", "env://", tmp=tmp)
    trained = Trained(tmp_path / "disturbed", *launch, "SIGKILL", "0", "env://", tmp=tmp)
    assert all(rushlight.equal(expected.end[k], trained.end[k]) for k in expected.end)
    assert trained.told[1].startswith("DistBackendError all_reduce of rank 1 among ranks [0, 1]")
