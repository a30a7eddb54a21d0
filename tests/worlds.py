"""Several processes of one script, for tests: each with its rank, all of them gone when the test is over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment(**more) -> dict[str, str]:
    """What a process of a world needs: this package, one thread, and none of a launcher's variables of our own."""
    # Processes that share an output write to it when they end, each in one piece, unless Python is told otherwise.
    left_out = ("TORCHELASTIC", "RUSHLIGHT_", "PYTHONUNBUFFERED")
    env = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        env.pop(name, None)
    return {**env, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", **more}


def run_world(folder: Path, size: int, *command, seconds: float = 240, codes=None, stopped=(), **env) -> list[str]:
    """What each of ``size`` processes of ``python command`` prints; they meet in a file, so no port is needed.

    ``codes``: the exit status that each is to have; by default 0. ``stopped``: ranks that stop themselves, and are
    ended when the others are through.
    """
    folder.mkdir(parents=True, exist_ok=True)
    processes: list[subprocess.Popen] = []
    try:
        for rank in range(size):
            whole = environment(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank))
            whole["MEETING"] = f"file://{folder / 'meeting'}"
            with open(folder / f"out{rank}", "w") as out, open(folder / f"err{rank}", "w") as err:
                line = [sys.executable, *map(str, command)]
                started = subprocess.Popen(
                    line, cwd=folder, env={**whole, **env}, stdout=out, stderr=err, start_new_session=True
                )
            processes.append(started)
        end = time.monotonic() + seconds
        for process in [p for rank, p in enumerate(processes) if rank not in stopped]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.1))
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = [((folder / f"out{r}").read_text(), (folder / f"err{r}").read_text()) for r in range(size)]
    ended = [p.returncode for p in processes]
    assert ended == (codes or [0] * size), f"exit status {ended}\n" + "\n".join(e[-3000:] for _, e in said)
    return [out for out, _ in said]
