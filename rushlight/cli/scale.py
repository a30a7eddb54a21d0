"""Estimate on paper how fast a model trains on thousands of chips, and what limits it.

Nothing is measured here. A step is computing, and moving what is cut: each part is a formula of the model, the layout
and the chip. What the table rests on is printed under it.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """A chip, and the network between chips; rates per second, for one chip."""

    name: str
    peak: float  # bfloat16 operations
    efficiency: float  # the part of the peak that a large matrix product reaches inside a model
    memory: float  # bytes
    memory_rate: float  # bytes
    near_rate: float  # bytes that leave a chip to others of its node (or torus)
    near: int  # how many chips are that near
    far_rate: float  # bytes that leave a chip to all others
    delay: float  # seconds for a message to the next chip
    torus: int  # dimensions of the network; 1 is a ring over a switched network


CHIPS = {
    "h100": Chip("h100", 989e12, 0.42, 80e9, 3.35e12, 450e9, 8, 50e9, 7e-6, 1),
    "h200": Chip("h200", 989e12, 0.44, 141e9, 4.8e12, 450e9, 8, 50e9, 7e-6, 1),
    "b200": Chip("b200", 2250e12, 0.42, 180e9, 8e12, 900e9, 8, 50e9, 7e-6, 1),
    "v5e": Chip("v5e", 197e12, 0.5, 16e9, 0.82e12, 100e9, 256, 100e9, 1e-6, 2),
    "v5p": Chip("v5p", 459e12, 0.53, 95e9, 2.77e12, 270e9, 8960, 270e9, 1e-6, 3),
}


@dataclass(frozen=True)
class Work:
    """The model, and how much text a step has."""

    params: float
    layers: int
    width: int
    sequence: int
    tokens: float  # of all chips together

    @property
    def operations(self) -> float:
        """Of a step: 6 for each parameter and token, and causal attention's."""
        return (6 * self.params + 6 * self.layers * self.sequence * self.width) * self.tokens


@dataclass(frozen=True)
class Layout:
    """The mesh: chips = replicas x shard x tensor x pipeline."""

    chips: int
    tensor: int
    pipeline: int
    shard: int
    microbatches: int

    @property
    def replicas(self) -> int:
        return self.chips // (self.tensor * self.pipeline * self.shard)


@dataclass(frozen=True)
class Estimate:
    """Seconds of a step by what they are spent on, and bytes on a chip."""

    compute: float
    bubble: float
    tensor: float
    moved: float  # sharding and replicas, whether hidden or not
    exposed: float  # the part of it that computing does not hide
    update: float
    state: float
    activations: float

    @property
    def step(self) -> float:
        return self.compute + self.bubble + self.tensor + self.exposed + self.update


def estimate(work: Work, layout: Layout, chip: Chip, overlap: float = 0.9) -> Estimate:
    """The paper model. Formulae are in docs/design/scale.md."""
    cut = layout.tensor * layout.pipeline
    mine = work.params / cut  # parameters that a chip computes with
    held = mine / layout.shard  # parameters that a chip keeps
    tokens = work.tokens / (layout.chips // cut)  # that pass through a chip's pipeline
    layers = work.layers / layout.pipeline

    arithmetic = work.operations / (layout.chips * chip.peak * chip.efficiency)
    compute = max(arithmetic, 3 * 2 * mine / chip.memory_rate)  # weights are read thrice, at two bytes
    bubble = compute * (layout.pipeline - 1) / layout.microbatches

    rate = chip.near_rate if layout.tensor <= chip.near else chip.far_rate
    sums = 4 * layers * layout.microbatches  # two forward, two backward
    tensor = 4 * layers * all_reduce(2 * work.width * tokens, layout.tensor, rate)
    tensor += sums * 2 * hops(layout.tensor, chip) * chip.delay

    gathers = 3 * (gather(2 * mine, layout.shard, chip.far_rate) + layers * hops(layout.shard, chip) * chip.delay)
    replicas = all_reduce(2 * held, layout.replicas, chip.far_rate)
    replicas += layers * 2 * hops(layout.replicas, chip) * chip.delay
    moved = gathers + replicas

    return Estimate(
        compute, bubble, tensor, moved,
        exposed=max(moved - overlap * (compute + bubble), (1 - overlap) * moved),
        update=28 * held / chip.memory_rate,  # reads 16 bytes a parameter, writes 12
        state=16 * held + 2 * 2 * mine / work.layers * layout.pipeline,  # and two layers gathered
        activations=2 * work.width * layers * tokens / layout.tensor,  # one for each layer: the rest is made again
    )  # fmt: skip


def gather(size: float, members: int, rate: float) -> float:
    """Seconds to gather (or to reduce and scatter) ``size`` bytes in a ring: each sends all but its own part."""
    return size * (members - 1) / members / rate


def all_reduce(size: float, members: int, rate: float) -> float:
    """Reduce and scatter, then gather."""
    return 2 * gather(size, members, rate)


def hops(members: int, chip: Chip) -> float:
    """How many messages stand behind each other: a ring along each dimension of the network."""
    return chip.torus * (members ** (1 / chip.torus) - 1)


def useful(save: float, restart: float, between: float) -> float:
    """The part of the time that is not saving, restarting, or computing again; saves come as often as is best."""
    return max(1 - math.sqrt(2 * save / between) - restart / between, 0.0)


# -- the command -------------------------------------------------------------------------------------------------------


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--params", type=float, default=70e9, help="parameters of the model (70e9)")
    add("--chips", type=int, default=4096, help="how many chips (4096)")
    add("--chip", nargs="+", default=["h100", "v5p"], choices=sorted(CHIPS), help="of which kinds (h100 v5p)")
    add("--layers", type=int, help="layers of the model (by its size)")
    add("--width", type=int, help="width of the model (by its size)")
    add("--sequence", type=int, default=8192, help="tokens of a text (8192)")
    add("--tokens", type=float, help="tokens of a step, all chips together (8192 for each chip)")
    add("--tensor", type=int, default=1, help="tensor parallelism: chips that share each product (1)")
    add("--pipeline", type=int, default=1, help="pipeline stages (1)")
    add("--microbatches", type=int, help="parts of a batch in the pipeline (4 for each stage)")
    add("--shard", type=int, help="chips that share parameters and state (all that are left)")
    add("--overlap", type=float, default=0.9, help="the part of computing that can hide traffic (0.9)")
    add("--efficiency", type=float, help="the part of the peak that products reach (by the chip)")
    add("--bandwidth", type=float, help="GB/s that leave a chip to all others (by the chip)")
    add("--save", type=float, default=5.0, help="seconds that a save stops training for (5)")
    add("--restart", type=float, default=180.0, help="seconds from a failure to the next step (180)")
    add("--chip-hours", type=float, default=50_000, help="hours until a chip fails, on average (50000)")


def main(args: argparse.Namespace) -> int:
    layout = _layout(args)
    layers, width = _shape(args)
    work = Work(args.params, layers, width, args.sequence, args.tokens or 8192.0 * args.chips)
    chips = [_changed(CHIPS[name], args) for name in args.chip]
    found = [estimate(work, layout, chip, args.overlap) for chip in chips]
    mesh = f"{layout.replicas} replicas x {layout.shard} shards x {layout.tensor} tensor x {layout.pipeline} stages"
    print(f"{args.params / 1e9:g}B parameters, {layers} layers of {width}, {work.tokens / 1e6:.4g}M tokens a step")
    print(f"{layout.chips} chips: {mesh}\n")
    between = args.chip_hours * 3600 / layout.chips
    for title, cell in _rows(work, layout, args, between):
        print(f"{title:34}" + "".join(f"{cell(chip, e):>16}" for chip, e in zip(chips, found)))
    print("\n" + _assumed(chips, args, between))
    return 0


def _rows(work: Work, layout: Layout, args, between: float):
    yield "", lambda chip, e: chip.name
    yield "computing", lambda chip, e: _time(e.compute)
    yield "pipeline bubble", lambda chip, e: _time(e.bubble)
    yield "tensor parallel sums", lambda chip, e: _time(e.tensor)
    yield "sharding and replicas", lambda chip, e: _time(e.moved)
    yield "  of which not hidden", lambda chip, e: _time(e.exposed)
    yield "optimizer", lambda chip, e: _time(e.update)
    yield "a step", lambda chip, e: _time(e.step)
    yield "tokens a second", lambda chip, e: f"{work.tokens / e.step:.3g}"
    yield "of the peak", lambda chip, e: f"{work.operations / (e.step * layout.chips * chip.peak):.0%}"
    yield "state on a chip", lambda chip, e: f"{e.state / 1e9:.1f} GB"
    yield "activations on a chip", lambda chip, e: f"{e.activations / 1e9:.1f} GB"
    yield "fits", lambda chip, e: "yes" if e.state + e.activations < 0.9 * chip.memory else "NO"
    yield "useful time, with failures", lambda chip, e: f"{useful(args.save, args.restart, between):.0%}"


def _time(seconds: float) -> str:
    """In the unit in which it is neither a tiny nor a large number."""
    if seconds == 0 or seconds >= 0.1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.3g} µs"


def _layout(args) -> Layout:
    from . import Mistake

    cut = args.tensor * args.pipeline
    if min(args.chips, args.tensor, args.pipeline, args.shard or 1, args.microbatches or 1) < 1:
        raise Mistake("--chips, --tensor, --pipeline, --shard and --microbatches are at least 1")
    for name in ("params", "layers", "width", "sequence", "tokens", "efficiency", "bandwidth", "chip_hours"):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            raise Mistake(f"--{name.replace('_', '-')} is a number above 0")
    if not 0 <= args.overlap <= 1 or (args.efficiency or 0) > 1:
        raise Mistake("--overlap and --efficiency are at most 1, and --overlap is at least 0")
    if not (0 <= args.save < math.inf and 0 <= args.restart < math.inf):
        raise Mistake("--save and --restart are seconds, at least 0")
    if args.chips % cut:
        raise Mistake(f"{args.chips} chips cannot be divided by {args.tensor} tensor x {args.pipeline} pipeline")
    shard = args.shard or args.chips // cut
    if (args.chips // cut) % shard:
        raise Mistake(f"{args.chips // cut} chips are left to shard over, which {shard} does not divide")
    return Layout(args.chips, args.tensor, args.pipeline, shard, args.microbatches or 4 * args.pipeline)


def _shape(args) -> tuple[int, int]:
    """Layers and width. By size, if they are not given: 12 x layers x width squared, and 100 times as wide as deep."""
    layers = args.layers or max(round((args.params / 12 / 100**2) ** (1 / 3)), 1)
    width = args.width or max(round(math.sqrt(args.params / 12 / layers) / 128), 1) * 128
    return layers, width


def _changed(chip: Chip, args) -> Chip:
    if args.efficiency is not None:
        chip = dataclasses.replace(chip, efficiency=args.efficiency)
    if args.bandwidth is not None:
        chip = dataclasses.replace(chip, far_rate=args.bandwidth * 1e9)
    return chip


def _assumed(chips: list[Chip], args, between: float) -> str:
    lines = ["Assumed, not measured:"]
    for chip in chips:
        kind = f"{chip.torus}-dimensional torus" if chip.torus > 1 else "ring"
        lines.append(
            f"  {chip.name}: products reach {chip.efficiency:.0%} of {chip.peak / 1e12:.0f} TFLOP/s; "
            f"memory {chip.memory / 1e9:.0f} GB at {chip.memory_rate / 1e12:.2f} TB/s;\n"
            f"    {chip.near_rate / 1e9:.0f} GB/s to {chip.near} chips near, {chip.far_rate / 1e9:.0f} GB/s to all; "
            f"{kind}, {chip.delay * 1e6:.0f} µs to the next"
        )
    lines += [
        f"  {args.overlap:.0%} of computing can hide sharding traffic; sums of tensor parallelism are not hidden",
        "  bfloat16 weights and gradients, float32 copies and Adam's two moments (16 bytes a parameter)",
        "  activations are kept once a layer and made again; what that costs is in the efficiency",
        f"  a save stops training for {args.save:g} s, a restart takes {args.restart:g} s, a chip fails every "
        f"{args.chip_hours:g} hours:\n    one of all every {between / 3600:.3g} hours; saves as often as is best",
    ]
    return "\n".join(lines)
