"""Put measured numbers into both READMEs, in the places marked ``<!-- fill: name -->``.

rushlight bench --json > bench.json
python tools/readme_numbers.py --bench bench.json opdb="1,204 of 1,210" moduledb="112 of 114"
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
HEADS = {
    "README.md": ("work", "ratio", "seconds per call, best of several, on"),
    "README.zh-CN.md": ("工作", "比值", "每次调用的秒数，多次取最好，机器："),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=pathlib.Path, help="what `rushlight bench --json` printed")
    parser.add_argument("cells", nargs="*", metavar="name=text")
    args = parser.parse_args()
    for name, head in HEADS.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        for cell in args.cells:
            key, _, value = cell.partition("=")
            text = fill(text, rf"(<!-- fill: {re.escape(key)} -->)[^|\n]*(?=\|)", f" {value} ", key)
        if args.bench:
            table = bench_table(json.loads(args.bench.read_text(encoding="utf-8")), head)
            text = fill(text, r"(<!-- fill: bench -->\n).*?(?=<!-- end -->)", f"\n{table}\n\n", "bench", re.S)
        page.write_text(text, encoding="utf-8")


def fill(text: str, pattern: str, value: str, key: str, flags=0) -> str:
    text, count = re.subn(pattern, lambda m: m[1] + value, text, flags=flags)
    if count != 1:
        raise SystemExit(f"the README has {count} places for '{key}'")
    return text


def bench_table(measured: dict, head) -> str:
    work, ratio, caption = head
    machine = measured["machine"]
    lines = [f"{caption} {machine['processor']}, Python {machine['python']}, NumPy {machine['numpy']}", ""]
    lines += [f"| {work} | rushlight | PyTorch {machine['torch'] or ''} | {ratio} |", "|---|---|---|---|"]
    for row in measured["rows"]:
        theirs = "" if row["torch"] is None else f"{row['torch']:.3g}"
        times = "" if row["ratio"] is None else f"{row['ratio']:.2f}×"
        lines.append(f"| {row['name']} | {row['rushlight']:.3g} | {theirs} | {times} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
