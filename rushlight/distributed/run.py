"""Start a script in several processes: ``rushlight launch``, and ``torch.distributed.run`` with torchrun's options.

On each machine one launcher starts its processes, watches them, and serves or joins the store in which they meet. When
one process fails, all are ended; while restarts are left, all are started again, on every machine. So they are when
machines come or go, if their number may change (``launchers.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, _hand_on
from .errors import DistError
from .launchers import Launchers, Round
from .store import PrefixStore, Server, Store, TCPStore

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_STREAMS = {"0": 0, "1": 1, "2": 2, "3": 3}


def main(args: list[str] | None = None) -> None:
    """``python -m torch.distributed.run [options] script.py [arguments]``"""
    status = run(parse_args(args))
    if status:
        raise SystemExit(status)


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """What the command line says."""
    return get_args_parser().parse_args(args)


def get_args_parser(parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """torchrun's options, each with ``-`` or ``_``; ``PET_NNODES`` and its like in the environment are defaults."""
    parser = parser or argparse.ArgumentParser(description="Start a script in several processes.")

    def option(name: str, *short: str, **how) -> None:
        spelled = dict.fromkeys([*short, f"--{name}", f"--{name.replace('-', '_')}"])
        told = os.environ.get(f"PET_{name.replace('-', '_').upper()}")
        if told is not None:
            how["default"] = told == "1" if how.get("action") == "store_true" else told
        parser.add_argument(*spelled, **how)

    option("nnodes", default="1", help="how many machines take part, or least:most; each runs this command")
    option("nproc-per-node", default="1", help="processes on this machine: a number, auto, cpu or gpu")
    option("node-rank", type=int, default=None, help="this machine's number; by default in order of arrival")
    option("master-addr", default="127.0.0.1", help="machine 0's address")
    option("master-port", type=int, default=29500, help="the port at which machine 0's launcher serves the store")
    option("rdzv-backend", default="static", help="static or c10d: c10d takes --rdzv-endpoint")
    option("rdzv-endpoint", default="", help="host:port of the launcher that serves the store")
    option("rdzv-id", default="none", help="a name for this run; launchers of other runs are turned away")
    option(
        "rdzv-conf",
        default="",
        help="key=value, …, in seconds: timeout, join_timeout, last_call_timeout, keep_alive_interval",
    )
    option("standalone", action="store_true", help="one machine, any free port")
    option("max-restarts", type=int, default=0, help="how often all processes are started again after a failure")
    option("monitor-interval", type=float, default=0.1, help="seconds between looks at the processes")
    option("role", default="default", help="what the processes are called in prefixes of their output")
    option("log-dir", default=None, help="where output goes that is redirected")
    option("redirects", "-r", default="0", help="to files: 0 nothing, 1 stdout, 2 stderr, 3 both; or 0:3,1:1")
    option("tee", "-t", default="0", help="to files and the console, as --redirects")
    option("local-ranks-filter", default="", help="show only these processes' output: 0,2")
    option("local-addr", default=None, help="this machine's address for the others")
    option(
        "shutdown-timeout", type=float, default=30.0, help="seconds that processes have to end when they are told to"
    )
    option("start-method", default="spawn", help=argparse.SUPPRESS)
    option("event-log-handler", default="null", help=argparse.SUPPRESS)
    option("logs-specs", default=None, help=argparse.SUPPRESS)
    option("numa-binding", default=None, help=argparse.SUPPRESS)
    option("signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help=argparse.SUPPRESS)
    option("duplicate-stdout-filters", default="", help=argparse.SUPPRESS)
    option("duplicate-stderr-filters", default="", help=argparse.SUPPRESS)
    option(
        "virtual-local-rank",
        action="store_true",
        help="each process sees one GPU only: LOCAL_RANK is 0, CUDA_VISIBLE_DEVICES its number",
    )
    option("run-path", action="store_true", help=argparse.SUPPRESS)
    option("no-python", action="store_true", help="the script is a command of its own, not Python's")
    option("module", "-m", action="store_true", help="the script is a module's name, as in python -m")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    parser.set_defaults(use_env=True)
    return parser


def run(args) -> int:
    """Start, watch and end the processes of this machine; the exit status."""
    least, most = _nodes(args.nnodes)
    with _ended_by_signals():
        launcher = _Launcher(args, least, most, _processes(args.nproc_per_node))
        try:
            return launcher.run()
        except DistError as error:
            raise SystemExit(f"the launchers have lost each other: {error}") from None
        finally:
            launcher.close()


def _nodes(text: str) -> tuple[int, int]:
    low, _, high = str(text).partition(":")
    try:
        least, most = int(low), int(high or low)
    except ValueError:
        raise SystemExit(f"--nnodes {text}: expected a number, or two as in 1:4") from None
    if not 0 < least <= most:
        raise SystemExit(f"--nnodes {text}: expected at least 1, and no more at least than at most")
    return least, most


def _processes(text: str) -> int:
    if text in ("auto", "gpu", "cpu"):
        gpus = 0
        if text != "cpu":
            from ..cuda import device_count

            gpus = device_count()
        return gpus or (os.cpu_count() or 1)
    try:
        return int(text)
    except ValueError:
        raise SystemExit(f"--nproc-per-node {text}: expected a number, auto, cpu or gpu") from None


def _own_gpu(local_rank: int) -> str:
    """The GPU of that process, by its number among those that this launcher is allowed to see."""
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if not seen:
        return str(local_rank)
    gpus = seen.split(",")
    if local_rank >= len(gpus):
        raise SystemExit(
            f"--virtual-local-rank: process {local_rank} has no GPU of its own in CUDA_VISIBLE_DEVICES={seen}"
        )
    return gpus[local_rank]


class _Launcher:
    """One machine's processes, and the store that all launchers share."""

    def __init__(self, args, least: int, most: int, processes: int):
        self.args, self._most, self.processes = args, most, processes
        self.run_id = args.rdzv_id if args.rdzv_id != "none" or not args.standalone else uuid.uuid4().hex
        self._server: Server | None = None
        self.host, self.port = self._place()
        settings = _pairs(args.rdzv_conf)
        store = PrefixStore("launchers", self._joined(float(settings.get("timeout", 900))))
        self._launchers = Launchers(store, self._server is not None, least, most, processes, args.node_rank, settings)
        self._logs: str | None = None
        self._errors: str | None = None

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._errors is not None:
            shutil.rmtree(self._errors, ignore_errors=True)

    def run(self) -> int:
        while True:
            now = self._launchers.meet()
            workers = _Workers(self, now)
            try:
                outcome = self._watch(workers, now)
            except BaseException:
                self._launchers.tell(now, "changed")  # this machine leaves
                raise
            finally:
                workers.end(self.args.shutdown_timeout)
            if outcome in ("done", "failed"):
                return 0 if outcome == "done" else 1

    def _watch(self, workers: _Workers, now: Round) -> str:
        """What this round came to, on all machines: see ``Launchers``."""
        told = False
        while True:
            failed = workers.failed()
            if failed is not None:
                self._say(failed)
                self._launchers.tell(now, "failed" if now.restarts >= self.args.max_restarts else "again")
            if workers.done() and not told:
                told = True
                self._launchers.done(now)
            if self._most > 1:
                change = self._launchers.change(now)
                if change is not None:
                    self._say(f"{change}: all processes are started again")
                    self._launchers.tell(now, "changed")
            if self._most > 1 or failed is not None or told:
                verdict = self._launchers.verdict(now)
                if verdict:
                    return verdict
            time.sleep(self.args.monitor_interval)

    @staticmethod
    def _say(what: str) -> None:
        print(f"rushlight launch: {what}", file=sys.stderr, flush=True)

    def _place(self) -> tuple[str, int]:
        """Where the store is."""
        args = self.args
        if args.standalone:
            return "127.0.0.1", 0
        if args.rdzv_endpoint:
            host, _, port = args.rdzv_endpoint.rpartition(":")
            return (host or port, int(port) if host else 29400)
        return args.master_addr, args.master_port

    def _joined(self, seconds: float) -> Store:
        """The store: served here, or by the launcher at the address that all were given."""
        timeout = datetime.timedelta(seconds=seconds)
        wanted = self.args.node_rank in (None, 0) and _is_here(self.host)
        if wanted:
            try:
                self._server = Server(self.host, self.port)
                self.port = self._server.port
            except OSError:
                if self._most == 1 and self.args.node_rank is None and self.args.rdzv_backend == "static":
                    self._server = Server(self.host, 0)  # one machine needs no port that others know
                    self.port = self._server.port
        return PrefixStore(f"run/{self.run_id}", TCPStore(self.host, self.port, timeout=timeout))

    def environment(self, local_rank: int, now: Round) -> dict[str, str]:
        """What a process is told, by torchrun's names."""
        rank, size = now.first + local_rank, now.size
        told = {
            "LOCAL_RANK": local_rank, "RANK": rank, "GROUP_RANK": now.node, "ROLE_RANK": rank,
            "ROLE_NAME": self.args.role, "LOCAL_WORLD_SIZE": self.processes, "WORLD_SIZE": size,
            "GROUP_WORLD_SIZE": now.nodes, "ROLE_WORLD_SIZE": size, "MASTER_ADDR": self.host, "MASTER_PORT": self.port,
            "TORCHELASTIC_RESTART_COUNT": now.restarts, "TORCHELASTIC_MAX_RESTARTS": self.args.max_restarts,
            "TORCHELASTIC_SIGNALS_TO_HANDLE": self.args.signals_to_handle,
            "TORCHELASTIC_RUN_ID": self.run_id, "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": self.error_file(now, local_rank),
            "RUSHLIGHT_STORE": f"{self.host}:{self.port}/{now.number}",
        }  # fmt: skip
        if self.args.virtual_local_rank:
            told.update(LOCAL_RANK=0, CUDA_VISIBLE_DEVICES=_own_gpu(local_rank))
        env = {**os.environ, **{name: str(value) for name, value in told.items()}}
        if self.processes > 1:
            env.setdefault("OMP_NUM_THREADS", "1")  # as torchrun: the processes share the cores
        return env

    def command(self, local_rank: int) -> list[str]:
        args = self.args
        told = [] if args.use_env else [f"--local-rank={local_rank}"]
        script = [args.training_script, *told, *args.training_script_args]
        if args.no_python:
            return script
        return [sys.executable, "-m", "rushlight", "run", *(["-m"] if args.module else []), *script]

    def log(self, now: Round, local_rank: int, stream: str) -> str:
        """The file that a stream is redirected to."""
        if self._logs is None:
            base = self.args.log_dir or tempfile.mkdtemp(prefix="rushlight-launch-")
            self._logs = os.path.join(base, f"{self.run_id}_{uuid.uuid4().hex[:8]}")
        folder = os.path.join(self._logs, f"attempt_{now.number}", str(local_rank))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, f"{stream}.log")

    def error_file(self, now: Round, local_rank: int) -> str:
        """Where a process writes why it failed, if its main function is decorated with ``record``."""
        if self.args.log_dir:
            return os.path.splitext(self.log(now, local_rank, "error"))[0] + ".json"
        if self._errors is None:
            self._errors = tempfile.mkdtemp(prefix="rushlight-errors-")
        return os.path.join(self._errors, f"{now.number}_{local_rank}.json")


class _Workers:
    """The processes of one round."""

    def __init__(self, launcher: _Launcher, now: Round):
        self._launcher, self._now, self._pumps = launcher, now, []
        self._processes: list[subprocess.Popen] = []
        self._ended = False
        try:
            for local_rank in range(launcher.processes):
                self._start(local_rank)
        except BaseException:
            self.end(0)
            raise

    def _start(self, local_rank: int) -> None:
        launcher, args = self._launcher, self._launcher.args
        kept = _for_rank(args.redirects, local_rank), _for_rank(args.tee, local_rank)
        shown = not args.local_ranks_filter or str(local_rank) in args.local_ranks_filter.split(",")
        streams: dict = {}
        opened, pumped = [], []
        for bit, name, console in ((1, "stdout", sys.stdout), (2, "stderr", sys.stderr)):
            if kept[1] & bit:
                file = open(launcher.log(self._now, local_rank, name), "wb")  # noqa: SIM115 - the pump closes it
                streams[name] = subprocess.PIPE
                pumped.append((name, file, console if shown else None))
            elif kept[0] & bit:
                streams[name] = open(launcher.log(self._now, local_rank, name), "wb")  # noqa: SIM115 - closed below
                opened.append(streams[name])
            elif not shown:
                streams[name] = subprocess.DEVNULL
        try:
            process = subprocess.Popen(  # noqa: S603 - what it is for
                launcher.command(local_rank),
                env=launcher.environment(local_rank, self._now),
                start_new_session=True,
                preexec_fn=_end_with_launcher,
                **streams,
            )
        except OSError as error:
            raise SystemExit(f"cannot start '{launcher.command(local_rank)[0]}': {error.strerror}") from None
        finally:
            for file in opened:
                file.close()
        self._processes.append(process)
        for name, file, console in pumped:
            prefix = f"[{args.role}{local_rank}]:".encode()
            pump = threading.Thread(target=_pump, args=(getattr(process, name), file, console, prefix), daemon=True)
            pump.start()
            self._pumps.append(pump)

    def done(self) -> bool:
        return all(process.poll() == 0 for process in self._processes)

    def failed(self) -> str | None:
        """What is to be said of the first process that failed, by what it wrote down, or else by its number."""
        found = {}
        for local_rank, process in enumerate(self._processes):
            if process.poll():
                file = self._launcher.error_file(self._now, local_rank)
                found[local_rank] = ProcessFailure(local_rank, process.pid, process.returncode, file)
        if not found:
            return None
        failure = min(found.values(), key=lambda failure: failure.timestamp)
        code, rank = failure.exitcode, self._now.first + failure.local_rank
        how = f"signal {failure.signal_name()}" if code < 0 else f"exit code {code}"
        if isinstance(failure.message, dict):
            how += f": {failure.message.get('message')}"
            _hand_on(ChildFailedError(self._launcher.args.training_script, {rank: failure}))
        script = self._launcher.args.training_script
        return f"rank {rank} (local_rank {failure.local_rank}, pid {failure.pid}) of '{script}' ended with {how}"

    def end(self, patience: float) -> None:
        """End what still runs: politely, then for good, with all that it started."""
        for process in self._processes:
            if process.poll() is None:
                _signal(process, signal.SIGTERM)
                _signal(process, signal.SIGCONT)  # a stopped process is told when it goes on
        end = time.monotonic() + patience
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.01))
        for process in self._processes:
            _signal(process, signal.SIGKILL)
            process.wait()
        for pump in self._pumps:
            pump.join(5)


def _end_with_launcher() -> None:
    """In a process that is starting: if the launcher is killed, so is this one."""
    if _prctl is not None:
        _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


_prctl: Any = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def _signal(process: subprocess.Popen, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _pump(source, file, console, prefix: bytes) -> None:
    """Lines from a process into a file, and with a prefix onto the console."""
    with source, file:
        for line in source:
            file.write(line)
            file.flush()
            if console is not None:
                console.buffer.write(prefix + line)
                console.flush()


def _for_rank(text: str, local_rank: int) -> int:
    """``3`` for all, or ``0:1,2:3`` for some: the streams of one process, 1 stdout and 2 stderr."""
    if ":" not in text:
        return _STREAMS[text]
    return _STREAMS[_pairs(text, ":").get(str(local_rank), "0")]


def _pairs(text: str, between: str = "=") -> dict[str, str]:
    return dict(pair.split(between, 1) for pair in text.split(",") if between in pair)


def _is_here(host: str) -> bool:
    """Is that one of this machine's own names?"""
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    with socket.socket() as probe:
        try:
            probe.bind((socket.gethostbyname(host), 0))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def _ended_by_signals():
    """SIGTERM ends the launcher as an interrupt does: its processes are ended with it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number, frame):
        raise SystemExit(128 + number)

    before: dict[int, Callable] = {n: signal.signal(n, end) for n in (signal.SIGTERM, signal.SIGHUP)}  # type: ignore[misc]
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    main()
