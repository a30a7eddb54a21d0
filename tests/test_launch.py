"""``rushlight launch``: processes that meet, restarts, output, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from worlds import environment

SCRIPT = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(x)
line = (dist.get_rank(), dist.get_world_size(), x.tolist(), os.environ["TORCHELASTIC_RESTART_COUNT"], sys.argv[1:])
sys.stdout.write(f"{line}\\n")
sys.stdout.flush()
if "fail" in sys.argv and dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    os._exit(7)
dist.barrier()
"""


def launch(folder, *arguments, seconds=200, code=0, **env):
    """Run ``rushlight launch --standalone``; what it printed."""
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "rushlight", "launch", "--standalone", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, env=environment(**env), capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def lines(done):
    return sorted(done.stdout.splitlines())


def test_two_processes(tmp_path):
    pytest.importorskip("jax")
    done = launch(tmp_path, "--nproc-per-node=2", "script.py", "--an-option", "x")
    assert lines(done) == [f"({r}, 2, [3.0, 3.0], '0', ['--an-option', 'x'])" for r in (0, 1)]
    assert done.stderr == ""


@pytest.mark.parametrize("option", [[], ["--use_env"]])
def test_by_its_older_name(tmp_path, option):
    """``torch.distributed.launch`` tells scripts their number, unless they look into the environment."""
    (tmp_path / "script.py").write_text("import os, sys\nprint(os.environ['LOCAL_RANK'], sys.argv[1:])")
    command = [sys.executable, "-m", "rushlight", "run", "-m", "torch.distributed.launch", *option]
    done = subprocess.run(
        [*command, "--nproc_per_node=2", "script.py", "x"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    told = (lambda r: []) if option else (lambda r: [f"--local-rank={r}"])
    assert lines(done) == [f"{r} {[*told(r), 'x']}" for r in (0, 1)]


def test_a_failed_world_is_started_again(tmp_path):
    pytest.importorskip("jax")
    done = launch(tmp_path, "--nproc_per_node", 2, "--max-restarts", 1, "script.py", "fail")
    assert lines(done)[::2] == ["(0, 2, [3.0, 3.0], '0', ['fail'])", "(1, 2, [3.0, 3.0], '0', ['fail'])"]
    assert lines(done)[1::2] == ["(0, 2, [3.0, 3.0], '1', ['fail'])", "(1, 2, [3.0, 3.0], '1', ['fail'])"]
    assert "rank 1 (local_rank 1, pid " in done.stderr and "ended with exit code 7" in done.stderr


def test_what_processes_are_told(tmp_path):
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_NAME TORCHELASTIC_RUN_ID OMP_NUM_THREADS"
    code = f"import os; os.write(1, (' '.join(os.environ[n] for n in {names.split()}) + chr(10)).encode())"
    done = launch(
        tmp_path, "--nproc-per-node", 3, "--rdzv-id", "mine", "--no-python", sys.executable, "-c", code,
    )  # fmt: skip
    assert lines(done) == [f"{r} {r} 3 3 0 default mine 1" for r in range(3)]


def test_options_from_the_environment(tmp_path):
    """``PET_`` and an option's name in capitals: how schedulers of containers set them."""
    code = "import os; os.write(1, (os.environ['RANK'] + os.environ['ROLE_NAME'] + chr(10)).encode())"
    told = {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "worker", "PET_NO_PYTHON": "1", "PET_MAX_RESTARTS": "1"}
    assert lines(launch(tmp_path, sys.executable, "-c", code, **told)) == ["0worker", "1worker"]
    assert lines(launch(tmp_path, "--role=mine", sys.executable, "-c", code, **told)) == ["0mine", "1mine"]


@pytest.mark.parametrize(("seen", "gpus"), [({}, "01"), ({"CUDA_VISIBLE_DEVICES": "3,5"}, "35")])
def test_processes_that_see_one_gpu_each(tmp_path, seen, gpus):
    names = ["RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES"]
    code = f"import os; os.write(1, (' '.join(os.environ[n] for n in {names}) + chr(10)).encode())"
    options = ["--nproc-per-node=2", "--virtual-local-rank", "--no-python", sys.executable, "-c", code]
    assert lines(launch(tmp_path, *options, **seen)) == [f"{r} 0 {gpus[r]}" for r in (0, 1)]


def test_output_into_files(tmp_path):
    code = "import os, sys; print('out', os.environ['RANK']); print('err', file=sys.stderr)"
    done = launch(
        tmp_path, "--nproc-per-node", 2, "-r", "0:3", "-t", "1:1", "--log-dir", "logs", "--no-python", sys.executable,
        "-c", code,
    )  # fmt: skip
    assert done.stdout == "[default1]:out 1\n" and done.stderr == "err\n"
    found = {p.relative_to(p.parents[1]).as_posix(): p.read_text() for p in (tmp_path / "logs").rglob("*.log")}
    assert found == {"0/stdout.log": "out 0\n", "0/stderr.log": "err\n", "1/stdout.log": "out 1\n"}


def test_a_failure_ends_the_others(tmp_path):
    code = "import os, sys, time; sys.exit(4) if os.environ['RANK'] == '1' else time.sleep(100)"
    done = launch(tmp_path, "--nproc-per-node", 2, "--no-python", sys.executable, "-c", code, code=1, seconds=60)
    assert "rank 1 " in done.stderr and "exit code 4" in done.stderr


def test_why_a_process_failed(tmp_path):
    """What ``record`` writes down is said by the launcher, handed on to its own launcher, and kept with the logs."""
    (tmp_path / "failing.py").write_text(
        "import os, time\n"
        "from torch.distributed.elastic.multiprocessing.errors import record\n"
        "@record\n"
        "def main():\n"
        "    if os.environ['RANK'] == '1':\n"
        "        raise ValueError('no good')\n"
        "    time.sleep(60)\n"
        "main()\n"
    )
    own = {"TORCHELASTIC_ERROR_FILE": str(tmp_path / "own.json")}
    done = launch(tmp_path, "--nproc-per-node=2", "--log-dir=logs", "failing.py", code=1, **own)
    assert "rank 1 (local_rank 1" in done.stderr and "ended with exit code 1: ValueError: no good" in done.stderr
    [written] = (tmp_path / "logs").rglob("error.json")
    assert (written.parent.name, written.parent.parent.name) == ("1", "attempt_0")
    for path in (written, tmp_path / "own.json"):
        assert json.loads(path.read_text())["message"]["message"] == "ValueError: no good"
    done = launch(tmp_path, "--nproc-per-node=2", "failing.py", code=1)
    assert "ended with exit code 1: ValueError: no good" in done.stderr


def test_an_ended_launcher_ends_its_processes(tmp_path):
    code = "import os, time; open(f'pid{os.environ[\"RANK\"]}', 'w').write(str(os.getpid())); time.sleep(100)"
    command = [sys.executable, "-m", "rushlight", "launch", "--standalone", "--nproc-per-node", "2", "--no-python"]
    started = subprocess.Popen([*command, sys.executable, "-c", code], cwd=tmp_path, env=environment())
    try:
        files = [tmp_path / f"pid{r}" for r in (0, 1)]
        end = time.monotonic() + 60
        while not all(f.exists() and f.read_text() for f in files) and time.monotonic() < end:
            time.sleep(0.05)
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 128 + signal.SIGTERM
    finally:
        started.kill()
        started.wait()
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


TURN = """
import os, sys, time
names = "RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE"
names += " TORCHELASTIC_RESTART_COUNT"
turn = os.environ["RUSHLIGHT_STORE"].rpartition("/")[2]
with open(f"turn{turn}.{os.environ['RANK']}.new", "w") as file:
    file.write(" ".join(os.environ[name] for name in names.split()) + f" {os.getpid()}")
os.rename(file.name, file.name.removesuffix(".new"))
while not os.path.exists("end"):
    if os.path.exists(f"fail{turn}") and os.environ["RANK"] == "0":
        sys.exit(7)
    time.sleep(0.05)
"""


class Machines:
    """Launchers on this machine, each as if it were one of its own."""

    def __init__(self, folder, *options):
        (folder / "turn.py").write_text(TURN)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._place = f"127.0.0.1:{probe.getsockname()[1]}"
        self._folder, self._options, self.launchers = folder, options, []

    def start(self, processes=1):
        command = [sys.executable, "-m", "rushlight", "launch", "--rdzv-endpoint", self._place, *self._options]
        command += ["--nproc-per-node", str(processes), "--no-python", sys.executable, "turn.py"]
        self.launchers.append(subprocess.Popen(command, cwd=self._folder, env=environment(), stderr=subprocess.PIPE))
        return self.launchers[-1]

    def turn(self, number, size):
        """What the processes of a round were told, without their ids, and these."""
        files = [self._folder / f"turn{number}.{rank}" for rank in range(size)]
        end = time.monotonic() + 100
        while not all(file.exists() for file in files):
            assert time.monotonic() < end, [p.name for p in self._folder.iterdir()]
            time.sleep(0.02)
        told = [file.read_text().rpartition(" ") for file in files]
        return [line for line, _, _ in told], [int(pid) for _, _, pid in told]


@pytest.fixture
def machines(tmp_path):
    made = Machines(
        tmp_path, "--nnodes", "1:3", "--max-restarts", "1", "--rdzv-backend", "c10d", "--rdzv-conf",
        "last_call_timeout=1,keep_alive_interval=1",
    )  # fmt: skip
    yield made
    for launcher in made.launchers:
        launcher.kill()
        launcher.communicate()


def test_machines_that_come_and_go(tmp_path, machines):
    """All start again with new ranks, and that is no restart; a machine with more processes has more ranks."""
    first = machines.start()
    assert machines.turn(0, 1)[0] == ["0 1 1 0 1 0 1 0"]
    second = machines.start(2)
    told, (_, *pids) = machines.turn(1, 3)
    assert told == ["0 3 1 0 2 0 3 0", "1 3 2 1 2 1 3 0", "2 3 2 1 2 2 3 0"]
    second.kill()  # and its processes end with it
    assert machines.turn(2, 1)[0] == ["0 1 1 0 1 0 1 0"]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    third = machines.start()
    assert machines.turn(3, 2)[0] == ["0 2 1 0 2 0 2 0", "1 2 1 1 2 1 2 0"]
    third.terminate()
    assert third.wait(60) == 128 + signal.SIGTERM
    machines.turn(4, 1)
    (tmp_path / "end").touch()
    said = first.communicate(timeout=60)[1].decode()
    assert first.returncode == 0
    assert "machine 1 was not heard of for 3 seconds" in said and said.count("1 more machine(s) came") == 2


def test_a_failure_on_one_of_several_machines(tmp_path, machines):
    """It counts as a restart, for all; the next one is the last."""
    launchers = [machines.start(), machines.start()]
    number = 0
    while not (tmp_path / f"turn{number}.1").exists():  # the second may have come to a round of the first alone
        number += (tmp_path / f"turn{number + 1}.0").exists()
        time.sleep(0.02)
    (tmp_path / f"fail{number}").touch()
    assert machines.turn(number + 1, 2)[0] == ["0 2 1 0 2 0 2 1", "1 2 1 1 2 1 2 1"]
    (tmp_path / f"fail{number + 1}").touch()
    assert [launcher.wait(60) for launcher in launchers] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nnodes", "4:1", "x.py"], "--nnodes 4:1: expected at least 1, and no more at least than at most"),
        (["--nnodes", "many", "x.py"], "--nnodes many: expected a number, or two as in 1:4"),
        (["--nnodes", "2", "--rdzv-conf", "join_timeout=1", "x.py"], "1 of at least 2 machines (--nnodes) were there"),
        (["--nproc-per-node", "many", "x.py"], "expected a number, auto, cpu or gpu"),
        (["--no-python", "no-such-command"], "cannot start 'no-such-command'"),
    ],
)
def test_mistakes(tmp_path, arguments, said):
    done = launch(tmp_path, *arguments, code=1)
    assert said in done.stderr and "Traceback" not in done.stderr
