"""Two processes on this machine: collectives and training steps, here and in PyTorch (gloo), and bare JAX beside them.

``python bench/distributed.py [words...]`` prints the table, or the rows whose names have these words. Each library has
two processes of its own, with one thread for computing each (``NPROC`` tells XLA); medians, and the best of several
turns. "XLA" is what the runtime itself takes for the same sum: a compiled ``psum`` of an array that lies on the device
already. ``compiled`` is the whole step, ``only its module`` what is inside ``DistributedDataParallel``. ``--priority``
runs them all before whatever else the machine does (``chrt -f 50``).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIZES = {"4 B": 1, "1 MiB": 1 << 18, "100 MiB": 25 << 20}
BARS = {
    "4 B": 2.0,
    "1 MiB": 1.5,
    "100 MiB": 1.5,
    "MLP": 1.0,
    "GPT": 1.0,
    "compiled": 1 / 1.3,
}  # our time over PyTorch's


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--priority", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    found: dict = {}
    for _ in range(args.rounds):
        for library in ("rushlight", "torch", "xla"):
            for name, seconds in measured(library, args).items():
                found.setdefault(name, {}).setdefault(library, []).append(seconds)
    print(f"{'two processes, one machine':34}{'rushlight':>12}{'PyTorch':>12}{'XLA':>12}{'ours/PyTorch':>14}{'bar':>7}")
    for name, columns in found.items():
        best = {library: min(times) for library, times in columns.items()}
        cells = [f"{best[lib] * 1e3:9.3f} ms" if lib in best else "" for lib in ("rushlight", "torch", "xla")]
        ratio = f"{best['rushlight'] / best['torch']:.2f}" if "torch" in best and "rushlight" in best else ""
        bar = None if "module" in name else next((bar for word, bar in reversed(BARS.items()) if word in name), None)
        print(f"{name:34}{cells[0]:>12}{cells[1]:>12}{cells[2]:>12}{ratio:>14}{f'{bar:.2f}' if bar else '':>7}")


def measured(library: str, args) -> dict[str, float]:
    """Start two processes of one library; what the first tells."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for rank in range(2):
            env = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1", "NPROC": "1",
                   "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "MEETING": f"file://{folder}/meeting"}  # fmt: skip
            line = [sys.executable, __file__, "--worker", library, *args.names]
            line = ["chrt", "-f", "50", *line] if args.priority else line
            processes.append(subprocess.Popen(line, env=env, stdout=subprocess.PIPE if rank == 0 else None))
        out, _ = processes[0].communicate(timeout=600)
        processes[1].wait(60)
    return json.loads(out.decode().splitlines()[-1])


# -- in the processes --------------------------------------------------------------------------------------------------


def work(library: str) -> None:
    words = sys.argv[3:]
    found = {}
    for name, run in xla() if library == "xla" else runs(library):
        if all(word in name for word in words):
            found[name] = timed(run)
    if os.environ["RANK"] == "0":
        print(json.dumps(found), flush=True)


def timed(run) -> float:
    """The median of as many calls as fit into a second; both processes make the same number of them."""
    for _ in range(5):
        run()
    start = time.perf_counter()
    run()
    taken = time.perf_counter() - start
    count = 200 if taken < 4e-3 else 40 if taken < 2e-2 else 7
    count = agreed(count)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


agreed = None  # the first process's number: each library has its own way to say it


def runs(library: str):
    global agreed
    torch = __import__(library)
    dist = __import__(f"{library}.distributed", fromlist=["x"])
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=os.environ["MEETING"], rank=rank, world_size=2)

    def agreed(count):
        box = [count]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    for name, n in SIZES.items():
        x = torch.zeros(n)
        yield f"all_reduce {name}", lambda x=x: dist.all_reduce(x)
    yield "barrier", dist.barrier
    for model, make in (("MLP", mlp), ("GPT", gpt)):
        for name, compiled in (("", None), (", compiled", "step"), (", only its module", "module")):
            yield f"DDP {model} step{name}", step(torch, library, *make(torch), compiled)
    dist.barrier()
    dist.destroy_process_group()


def step(torch, library, model, inputs, loss_of, compiled):
    """A training step; PyTorch's is never compiled: its eager step is what all of ours are compared with."""
    ddp, here = torch.nn.parallel.DistributedDataParallel, library == "rushlight"
    model = ddp(torch.compile(model) if here and compiled == "module" else model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def run(inputs):
        optimizer.zero_grad()
        loss = loss_of(model(inputs))
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(run) if here and compiled == "step" else run
    return lambda: run(inputs).item()


def mlp(torch):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    labels = torch.randint(0, 10, (64,))
    return model, torch.randn(64, 784), lambda y: nn.functional.cross_entropy(y, labels)


def gpt(torch):
    torch.manual_seed(0)
    nn, width, words, length = torch.nn, 128, 256, 64

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            layer = lambda: nn.TransformerEncoderLayer(
                width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.layers = nn.ModuleList([layer() for _ in range(4)])
            self.head = nn.Linear(width, words)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

        def forward(self, text):
            x = self.words(text) + self.places.weight
            for layer in self.layers:
                x = layer(x, src_mask=self.mask, is_causal=True)
            return self.head(x)

    text = torch.randint(0, words, (8, length + 1))
    return GPT(), text[:, :-1], lambda y: nn.functional.cross_entropy(y.flatten(0, 1), text[:, 1:].flatten())


def xla():
    """JAX alone: connected by its own ``initialize``, the array on the device, the program compiled."""
    global agreed
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    folder, rank = Path(os.environ["MEETING"].removeprefix("file://")).parent, int(os.environ["RANK"])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if rank == 0:
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (folder / "port.new").write_text(str(port))
        (folder / "port.new").rename(folder / "port")
    while not (folder / "port").exists():
        time.sleep(0.01)
    jax.distributed.initialize(f"127.0.0.1:{(folder / 'port').read_text()}", 2, rank)
    agreed = lambda count: int(multihost_utils.broadcast_one_to_all(np.array(count)))
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("ranks",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("ranks"))
    add = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "ranks"), mesh=mesh, in_specs=rows.spec, out_specs=rows.spec))
    for name, n in SIZES.items():
        local = jax.device_put(np.zeros(n, np.float32), jax.local_devices()[0])
        whole = jax.make_array_from_single_device_arrays((2 * n,), rows, [local])
        yield f"all_reduce {name}", lambda whole=whole: add(whole).block_until_ready()


if __name__ == "__main__":
    main()
