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
TWO_OR_FOUR = [2, pytest.param(4, marks=LONG)]


def equal(ours, theirs):
    assert ours == theirs


def compare(tmp_path, script, size, at_least, lines=equal, **env):
    """Run a script in both libraries; ``lines(ours, theirs)`` looks at what each rank prints."""
    theirs = run_world(tmp_path / "pytorch", size, SCRIPTS / script, **env)
    ours = run_world(tmp_path / "rushlight", size, "-m", "rushlight", "run", SCRIPTS / script, **env)
    for rank in range(size):
        lines(ours[rank].splitlines(), theirs[rank].splitlines())
        assert len(theirs[rank].splitlines()) >= at_least


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


@pytest.mark.parametrize("size", [2, 4])
def test_collectives(tmp_path, size):
    compare(tmp_path, "collectives.py", size, at_least=350)


def test_meshes(tmp_path):
    compare(tmp_path, "meshes.py", 2, at_least=130)


@pytest.mark.parametrize("size", TWO_OR_FOUR)
def test_sequences_that_are_cut(tmp_path, size):
    compare(tmp_path, "context.py", size, at_least=40, lines=near)


@pytest.mark.parametrize("size", TWO_OR_FOUR)
def test_counts_of_collectives(tmp_path, size):
    compare(tmp_path, "counted.py", size, at_least=60)


def test_checkpoints_of_safetensors(tmp_path):
    """Written and read by both, and each by the other."""
    script = "safetensors_parts.py"
    compare(tmp_path, script, 2, at_least=40)
    theirs = run_world(tmp_path / "read by pytorch", 2, SCRIPTS / script, READ=str(tmp_path / "rushlight"))
    command = ("-m", "rushlight", "run", SCRIPTS / script)
    ours = run_world(tmp_path / "read by rushlight", 2, *command, READ=str(tmp_path / "pytorch"))
    assert ours == theirs
    assert "False" not in ours[0]
    assert len(ours[0].splitlines()) >= 40


def test_wrapped_models(tmp_path):
    """FullyShardedDataParallel, cut and not, in the world and in a part of it."""
    compare(tmp_path, "wrapped.py", 3, at_least=22, lines=near)


def test_wrapped_models_with_units_inside(tmp_path):
    """Policies, names, states, norms, optimizers and whole parameters of FullyShardedDataParallel."""
    compare(tmp_path, "wrapped_inside.py", 2, at_least=300, lines=near)


def test_sharded_layers_that_are_computed_again(tmp_path):
    """Checkpoints of activations inside of units, by wrappers and by hand."""
    compare(tmp_path, "recomputed.py", 2, at_least=60, lines=near)


def test_states_that_are_staged(tmp_path):
    compare(tmp_path, "staged.py", 2, at_least=14, lines=near)


def test_functions_that_are_launched(tmp_path):
    compare(tmp_path, "launched.py", 1, at_least=9)


@pytest.mark.parametrize("size", TWO_OR_FOUR)
def test_operators_by_parts(tmp_path, size):
    compare(tmp_path, "by_parts.py", size, at_least=20, lines=near)


def test_small_things_of_elastic(tmp_path):
    compare(tmp_path, "elastic_utils.py", 1, at_least=25)


def test_gradients_through_collectives(tmp_path):
    compare(tmp_path, "gradients.py", 2, at_least=10)


@pytest.mark.parametrize("size", [1, 3])
def test_data_parallel(tmp_path, size):
    """Losses, gradients and weights of every kind of training with DistributedDataParallel."""
    compare(tmp_path, "data_parallel.py", size, at_least=41, lines=same)


def test_usual_scripts(tmp_path):
    """Passes that do not take turns, outputs of all kinds, sparse gradients, copies of wrapped modules."""
    compare(tmp_path, "usual.py", 2, at_least=26, lines=near)


def test_tutorials(tmp_path):
    """Added gradients and mixed precision, uneven inputs, a parameter server, samplers, stages made by hand."""
    compare(tmp_path, "tutorials.py", 2, at_least=23, lines=near)


def test_wrong_calls(tmp_path):
    """Kinds of errors and, where they are not those of PyTorch's C++ code, their first lines."""
    compare(tmp_path, "wrong_calls.py", 2, at_least=40)


def test_sharded_models(tmp_path):
    """Models that are made without values and cut, cut in two ways at once, losses of cut logits."""
    compare(tmp_path, "sharded.py", 2, at_least=16, lines=near)


def test_options_of_groups_and_of_data_parallel_modules(tmp_path):
    """What can be said to ``init_process_group``, ``new_group`` and ``DistributedDataParallel``."""
    compare(tmp_path, "options.py", 2, at_least=40, lines=same)


def test_groups_stores_and_optimizers(tmp_path):
    """Methods of groups, queues of stores, ``ZeroRedundancyOptimizer``, hooks, setters of ``fully_shard``."""
    compare(tmp_path, "groups.py", 2, at_least=180, lines=near)


def test_smaller_parts(tmp_path):
    """Hooks by name, PowerSGD of many matrices, averagers, shared values, roots that are none, parts by index."""
    compare(tmp_path, "smaller.py", 2, at_least=100, lines=near)


def test_pipelines(tmp_path):
    """A stage in each of three processes: losses, outputs and gradients of both schedules."""
    compare(tmp_path, "pipelines.py", 3, at_least=81, lines=same)


def test_models_cut_into_stages(tmp_path):
    """``pipeline``: where models say it and where they are told to; what schedules make of the stages."""
    compare(tmp_path, "pipelines_cut.py", 3, at_least=40, lines=same)


def test_pipelines_with_several_stages_in_a_process(tmp_path):
    """The schedules that go round: losses, outputs and gradients."""
    compare(tmp_path, "pipelines_looped.py", 2, at_least=75, lines=same)


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
