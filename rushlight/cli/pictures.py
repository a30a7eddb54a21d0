"""Small pictures drawn as SVG text: a training curve, and digits with what a network said they are."""

from __future__ import annotations

import math
from html import escape

STYLE = """<style>
  svg { background: #fff }
  text { font: 13px system-ui, sans-serif; fill: #444 }
  text.title { font-size: 15px; fill: #111 }
  text.right { fill: #1a7f37 }
  text.wrong { fill: #cf222e; font-weight: bold }
  polyline { fill: none; stroke-width: 2 }
  .axis { stroke: #bbb }
  .grid { stroke: #eee }
  .raw { stroke: #bcd6f2; stroke-width: 1 }
  .loss { stroke: #1c6dd0 }
  .accuracy { stroke: #d9730d }
  .dot { fill: #d9730d }
</style>"""


def training(losses: list[float], accuracies: list[float]) -> str:
    """Loss of every step (and its running mean) on the left, accuracy after every epoch on the right."""
    steps, epochs = range(1, len(losses) + 1), range(1, len(accuracies) + 1)
    left = _Plot(60, "loss", "step", len(losses), 0.0, math.ceil(2 * max(losses)) / 2)
    low = min(0.9, math.floor(10 * min(accuracies)) / 10)
    right = _Plot(480, "held-out accuracy", "epoch", len(accuracies), low, 1.0, "{:.0%}")
    parts = [
        left.frame(),
        left.line(steps, losses, "raw"),
        left.line(steps, _running_mean(losses), "loss"),
        left.legend({"raw": "of each step", "loss": "mean of the last 20"}),
        right.frame(),
        right.line(epochs, accuracies, "accuracy"),
        *(
            f'<circle class="dot" cx="{right.x(e):.1f}" cy="{right.y(a):.1f}" r="3"/>'
            for e, a in zip(epochs, accuracies)
        ),
    ]
    return _svg(840, 340, parts)


def digits(shown: list[tuple[list[list[int]], int, int, float]], columns: int = 10) -> str:
    """A sheet of (pixels from 0 to 255, true digit, digit said, its probability)."""
    parts = [_text(20, 26, "held-out digits and what the network says; those it got wrong come first", "title")]
    for i, (pixels, true, said, chance) in enumerate(shown):
        x, y = 20 + i % columns * 80, 44 + i // columns * 100
        size = 64 / len(pixels)
        parts += [
            f'<path d="M{x + c * size:g} {y + r * size:g}h{size:g}v{size:g}h-{size:g}z" fill="rgb({v},{v},{v})"/>'
            for r, row in enumerate(pixels)
            for c, v in enumerate(255 - p for p in row)
        ]
        parts.append(f'<rect class="axis" x="{x}" y="{y}" width="64" height="64" fill="none"/>')
        label = f"{said} · {chance:.0%}" if said == true else f"{said}, is {true}"
        parts.append(_text(x + 32, y + 82, label, "right" if said == true else "wrong", anchor="middle"))
    return _svg(40 + columns * 80, 54 + -(-len(shown) // columns) * 100, parts)


class _Plot:
    """One pair of axes, 320 wide and 240 high."""

    def __init__(self, left, title, label, count, low, high, number="{:.1f}"):
        self.left, self.title, self.label, self.count = left, title, label, max(count, 2)
        self.low, self.high, self.number = low, high if high > low else low + 1, number

    def x(self, value) -> float:
        return self.left + 320 * (value - 1) / (self.count - 1)

    def y(self, value) -> float:
        return 290 - 240 * (value - self.low) / (self.high - self.low)

    def line(self, xs, ys, style: str) -> str:
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys))
        return f'<polyline class="{style}" points="{points}"/>'

    def legend(self, styles: dict[str, str]) -> str:
        """What each kind of line is, at the top right."""
        x = self.left + 180
        parts = []
        for i, (style, text) in enumerate(styles.items()):
            parts.append(f'<polyline class="{style}" points="{x - 26},{62 + 18 * i} {x - 6},{62 + 18 * i}"/>')
            parts.append(_text(x, 66 + 18 * i, text))
        return "\n".join(parts)

    def frame(self) -> str:
        parts = [_text(self.left, 30, self.title, "title"), _text(self.left + 160, 328, self.label, anchor="middle")]
        for value in _ticks(self.low, self.high):
            y = self.y(value)
            parts.append(f'<line class="grid" x1="{self.left}" x2="{self.left + 320}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(self.left - 8, y + 4, self.number.format(value), anchor="end"))
        parts.append(f'<path class="axis" d="M{self.left} 50V290H{self.left + 320}" fill="none"/>')
        for value in dict.fromkeys([1, *map(round, _ticks(1, self.count)), self.count]):
            if value in (1, self.count) or min(value - 1, self.count - value) > 0.08 * self.count:  # else they touch
                x = self.x(value)
                parts.append(f'<path class="axis" d="M{x:.1f} 290v4"/>')
                parts.append(_text(x, 308, str(value), anchor="middle"))
        return "\n".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """The round numbers from ``low`` to ``high``, about five."""
    size = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(size * m for m in (1, 2, 5, 10) if (high - low) / (size * m) <= 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _running_mean(values: list[float], window: int = 20) -> list[float]:
    return [sum(part) / len(part) for i in range(len(values)) if (part := values[max(0, i + 1 - window) : i + 1])]


def _text(x, y, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: int, height: int, parts: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, STYLE, *parts, "</svg>\n"])
