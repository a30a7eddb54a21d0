"""Put measured numbers into both READMEs and ``docs/measured.md``, in the places marked ``<!-- fill: name -->``.

The READMEs show some rows of the benchmarks, the page in ``docs/`` all of them. Where a cell's text has words, mend the
Chinese README by hand.

rushlight bench --json > bench.json
python tools/readme_numbers.py --bench bench.json opdb="1,204 of 1,210" moduledb="112 of 114"
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
ROWS = [
    "autograd: import",
    "autograd: record a * b",
    "autograd: chain of 100,000 ops, backward",
    "module: call",
    "module: state_dict() of 200 layers",
    "conv: conv 3x3, (64,32,26,26) to 64",
    "layers: gelu (2048, 3072)",
    "layers: layer_norm (2048, 768)",
    "layers: cross_entropy (2048, 8192)",
    "optim: Adam, 12 tensors, 670k",
    "data: 60,000 images, shuffled",
    "steps: tiny_mlp, eager",
    "steps: tiny_mlp, compiled",
    "steps: mlp, eager",
    "steps: mlp, compiled",
    "steps: cnn, eager",
    "steps: cnn, compiled",
    "steps: encoder, eager",
    "steps: encoder, compiled",
]
ENGLISH = ("work", "ratio", "seconds per call, best of several, on")
PAGES = {  # page -> words for the table, rows of the benchmarks
    "README.md": (ENGLISH, ROWS),
    "README.zh-CN.md": (("工作", "比值", "每次调用的秒数，多次取最好，机器："), ROWS),
    "docs/measured.md": (ENGLISH, None),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=pathlib.Path, help="what `rushlight bench --json` printed")
    parser.add_argument("cells", nargs="*", metavar="name=text")
    args = parser.parse_args()
    measured = json.loads(args.bench.read_text(encoding="utf-8")) if args.bench else None
    for name, (head, rows) in PAGES.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        for cell in args.cells if rows else ():
            key, _, value = cell.partition("=")
            text = fill(text, rf"(<!-- fill: {re.escape(key)} -->)[^|\n]*(?=\|)", f" {value} ", key)
        if measured:
            table = bench_table(measured, head, rows)
            text = fill(text, r"(<!-- fill: bench -->\n).*?(?=<!-- end -->)", f"\n{table}\n\n", "bench", re.S)
        page.write_text(text, encoding="utf-8")


def fill(text: str, pattern: str, value: str, key: str, flags=0) -> str:
    text, count = re.subn(pattern, lambda m: m[1] + value, text, flags=flags)
    if count != 1:
        raise SystemExit(f"a page has {count} places for '{key}'")
    return text


def bench_table(measured: dict, head, rows: list[str] | None) -> str:
    work, ratio, caption = head
    machine = measured["machine"]
    lines = [f"{caption} {machine['processor']}, Python {machine['python']}, NumPy {machine['numpy']}", ""]
    lines += [f"| {work} | rushlight | PyTorch {machine['torch'] or ''} | {ratio} |", "|---|---|---|---|"]
    found = {row["name"]: row for row in measured["rows"]}
    for row in map(found.__getitem__, rows or found):
        theirs = "" if row["torch"] is None else f"{row['torch']:.3g}"
        times = "" if row["ratio"] is None else f"{row['ratio']:.2f}×"
        lines.append(f"| {row['name']} | {row['rushlight']:.3g} | {theirs} | {times} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
