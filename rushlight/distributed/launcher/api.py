"""``elastic_launch``: a function or a script in several processes, started again when one of them fails."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import socket
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from ..run import parse_args, run

__all__ = ["LaunchConfig", "elastic_launch"]


@dataclass
class LaunchConfig:
    """How many processes, how often they are started again, and where they meet.

    Differs from PyTorch: a function's processes are all on one machine; what is about logs, metrics and events changes
    nothing.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list | None = None
    duplicate_stderr_filters: list | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None


class elastic_launch:
    """``elastic_launch(config, function)(*args)``: {rank: what the function returned in it}.

    A command's name in place of a function is started with ``args`` as its arguments. Raises ``ChildFailedError`` when
    processes fail and no restarts are left.
    """

    def __init__(self, config: LaunchConfig, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        if not callable(self._entrypoint):
            return _run_command(self._config, [str(self._entrypoint), *map(str, args)])
        if self._config.max_nodes > 1:
            raise NotImplementedError(
                "elastic_launch starts a function's processes on one machine; for more, start a script with "
                "rushlight launch on each"
            )
        return _run_function(self._config, self._entrypoint, args)


def _run_command(config: LaunchConfig, command: list[str]) -> dict:
    options = ["--no-python", "--nproc-per-node", config.nproc_per_node, "--max-restarts", config.max_restarts]
    options += ["--nnodes", f"{config.min_nodes}:{config.max_nodes}", "--rdzv-id", config.run_id or "none"]
    options += ["--monitor-interval", config.monitor_interval, "--role", config.role]
    if config.max_nodes == 1:
        options.append("--standalone")
    else:
        options += ["--rdzv-backend", config.rdzv_backend, "--rdzv-endpoint", config.rdzv_endpoint]
    status = run(parse_args([*map(str, options), *command]))
    if status:
        raise ChildFailedError(command[0], {0: ProcessFailure(0, -1, status, "")})
    return {}


def _run_function(config: LaunchConfig, function, args: tuple) -> dict[int, Any]:
    name, run_id = getattr(function, "__qualname__", str(function)), config.run_id or uuid.uuid4().hex
    base = tempfile.mkdtemp(prefix="rushlight-launch-")
    for attempt in range(config.max_restarts + 1):
        folder = os.path.join(base, f"attempt_{attempt}")
        told = {
            "WORLD_SIZE": config.nproc_per_node, "LOCAL_WORLD_SIZE": config.nproc_per_node, "GROUP_RANK": 0,
            "GROUP_WORLD_SIZE": 1, "ROLE_WORLD_SIZE": config.nproc_per_node, "ROLE_NAME": config.role,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port(), "TORCHELASTIC_RUN_ID": run_id,
            "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
        }  # fmt: skip
        processes = _started(config, folder, told, function, args)
        try:
            failed = _watched(processes, config.monitor_interval)
        finally:
            _end(processes, config.shutdown_timeout or 30)
        if not failed:
            results = {rank: _result(folder, rank) for rank in range(len(processes))}
            shutil.rmtree(base, ignore_errors=True)
            return results
    failures = {
        rank: ProcessFailure(rank, p.pid or -1, p.exitcode or 0, os.path.join(folder, str(rank), "error.json"))
        for rank, p in enumerate(processes)
        if rank in failed
    }
    raise ChildFailedError(name, failures)  # the error files stay, for whoever is told of them


def _started(config: LaunchConfig, folder: str, told: dict, function, args: tuple) -> list:
    context: Any = multiprocessing.get_context(config.start_method)
    processes = []
    for rank in range(config.nproc_per_node):
        mine = os.path.join(folder, str(rank))
        os.makedirs(mine)
        own = dict.fromkeys(("RANK", "LOCAL_RANK", "ROLE_RANK"), str(rank))
        own["TORCHELASTIC_ERROR_FILE"] = os.path.join(mine, "error.json")
        env = {**{key: str(value) for key, value in told.items()}, **own}
        process = context.Process(target=_work, args=(env, os.path.join(mine, "result"), function, args))
        process.start()
        processes.append(process)
    return processes


def _work(env: dict[str, str], result: str, function, args: tuple) -> None:
    """In a process: what the function gives, written where the launcher looks for it."""
    os.environ.update(env)
    found = record(function)(*args)
    with open(result, "wb") as file:
        pickle.dump(found, file)


def _watched(processes: list, seconds: float) -> set[int]:
    """The ranks that have failed, as soon as one has; none, when all have ended well."""
    while True:
        codes = [p.exitcode for p in processes]
        failed = {rank for rank, code in enumerate(codes) if code}
        if failed or None not in codes:
            return failed
        time.sleep(min(seconds, 0.1))


def _end(processes: list, patience: float) -> None:
    for p in processes:
        if p.exitcode is None:
            p.terminate()
    end = time.monotonic() + patience
    for p in processes:
        p.join(max(end - time.monotonic(), 0.01))
        if p.exitcode is None:
            p.kill()
            p.join()


def _result(folder: str, rank: int):
    with open(os.path.join(folder, str(rank), "result"), "rb") as file:
        return pickle.load(file)  # noqa: S301 - of a process that was started here


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
