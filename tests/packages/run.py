"""PyTorch's packages on rushlight, without PyTorch: each script here, its numbers beside those recorded from PyTorch.

    python tests/packages/run.py                 # everything, in an environment made for it; prints the table
    python tests/packages/run.py --quick         # six packages that most others stand on
    python tests/packages/run.py --quick --here  # with this interpreter, which has rushlight; skipped without an index
    python tests/packages/run.py timm peft       # only these
    python tests/packages/run.py --record timm   # record again, in a second environment with torch 2.13 (CPU)
    python tests/packages/run.py --docs          # everything, and write the table into docs/packages.md

The environments are kept in --folder, so that a second run does not install again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from harness import difference  # noqa: E402

# script -> the distributions that it needs at the top; what they need in turn stands in requirements.txt too
QUICK = {
    "einops": "einops",
    "safetensors": "safetensors",
    "transformers": "transformers accelerate",
    "timm": "timm",
    "lightning": "lightning",
    "torchmetrics": "torchmetrics",
}
QUICK_NEEDS = """
    accelerate aiohappyeyeballs aiohttp aiosignal annotated-doc anyio attrs certifi charset-normalizer click einops
    filelock frozenlist fsspec h11 hf-xet httpcore2 httpx2 huggingface-hub idna jinja2 lightning lightning-utilities
    markdown-it-py markupsafe mdurl multidict numpy packaging pillow propcache psutil pygments pytorch-lightning
    pyyaml regex requests rich safetensors scipy shellingham timm tokenizers torchmetrics tqdm transformers truststore
    typer typing-extensions urllib3 yarl
"""
_PYTORCH = "torch==2.13.0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="packages, by the names of the scripts; all if none is given")
    parser.add_argument("--quick", action="store_true", help="six packages that most others stand on")
    parser.add_argument("--record", action="store_true", help="run on PyTorch and write the numbers down")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/packages.md")
    parser.add_argument("--python", help="an interpreter that has the packages: nothing is installed")
    parser.add_argument(
        "--here", action="store_true", help="packages in a folder of their own beside this interpreter's"
    )
    parser.add_argument("--folder", default="/tmp/rushlight-packages", help="where environments are made")
    args = parser.parse_args()
    names = args.names or (list(QUICK) if args.quick else scripts())
    unknown = sorted(set(names) - set(scripts()))
    if unknown:
        parser.error(f"no script for {', '.join(unknown)}; there are {', '.join(scripts())}")
    if args.here:
        place = beside(pathlib.Path(args.folder), args.quick)
        if place is None:
            return 0
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
        args.python = sys.executable
    python = args.python or environment(pathlib.Path(args.folder), args.record, args.quick)
    rows = [row for name in names for row in (record(python, name) if args.record else compare(python, name))]
    print(table(rows))
    if args.docs:
        write_docs(table(rows))
    return 0 if all(row[2] == "same" for row in rows) else 1


def scripts() -> list[str]:
    return sorted(path.stem.removeprefix("use_") for path in HERE.glob("use_*.py"))


# -- environments ----------------------------------------------------------------------------------------------------


def environment(folder: pathlib.Path, recording: bool, quick: bool) -> str:
    """An interpreter that has the pinned packages, beside rushlight or, for recording, beside PyTorch."""
    place = folder / ("torch" if recording else "quick" if quick else "rushlight")
    python = place / "bin" / "python"
    if not (place / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        # Without dependencies: the list is complete, and PyTorch with its CUDA libraries never comes along.
        subprocess.run([*pip, "--no-deps", *requirements(quick)], check=True)
        if recording:
            subprocess.run([*pip, _PYTORCH, "torchvision==0.28.0"], check=True)
        (place / "ready").touch()
    if not recording:  # this checkout, without its dependencies: NumPy and ml-dtypes are in the list
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", ROOT]
        subprocess.run(command, check=True)
    return str(python)


def beside(folder: pathlib.Path, quick: bool) -> pathlib.Path | None:
    """A folder with the packages, for this interpreter; None, and the reason printed, if they cannot be had."""
    place = folder / "beside"
    missing = [line for line in requirements(quick) if not _installed(line.partition("==")[0])]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--retries",
        "0",
        "--timeout",
        "10",
    ]
    try:
        done = subprocess.run(
            [*pip, "--no-deps", "--target", place, *missing], capture_output=True, text=True, timeout=180
        )
    except subprocess.TimeoutExpired:
        print("packages: skipped, for installing them took more than three minutes")
        return None
    if done.returncode:
        print(f"packages: skipped, for pip cannot install them: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        return None
    return place


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def requirements(quick: bool) -> list[str]:
    lines = [line for line in (HERE / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    wanted = {*QUICK_NEEDS.split(), "ml-dtypes"}
    return [line for line in lines if not quick or line.partition("==")[0].lower().replace("_", "-") in wanted]


# -- running ---------------------------------------------------------------------------------------------------------


def record(python: str, name: str) -> list[tuple]:
    results, said = run([python, "beside_torch.py"], name)
    failed = [n for n, part in results.items() if "error" in part]
    if failed or not results:
        raise SystemExit(f"{name}: PyTorch itself fails in {failed or 'all sections'}\n{said}")
    values = {n: part["value"] for n, part in results.items()}
    (HERE / "recorded" / f"{name}.json").write_text(json.dumps(values, separators=(",", ":")) + "\n")
    return [(name, n, "same", part["seconds"]) for n, part in results.items()]


def compare(python: str, name: str) -> list[tuple]:
    """(package, section, "same" or what is wrong, seconds) for each section that was recorded."""
    results, said = run([python, "-m", "rushlight", "run"], name)
    rows = []
    for section, recorded in json.loads((HERE / "recorded" / f"{name}.json").read_text()).items():
        part = results.get(section, {"error": said or "not run", "seconds": 0.0})
        if "error" in part:
            found = part["error"].strip().splitlines()[-1]
        else:
            found = difference(part["value"], recorded) or "same"
        rows.append((name, section, found, part["seconds"]))
    return rows


def run(command: list[str], name: str) -> tuple[dict, str]:
    output = HERE / f".{name}.{os.getpid()}.json"
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [*command, f"use_{name}.py", output.name], cwd=HERE, capture_output=True, text=True, env={**os.environ, **quiet}
    )
    try:
        return json.loads(output.read_text()), done.stderr
    except FileNotFoundError:
        return {}, done.stderr
    finally:
        output.unlink(missing_ok=True)


# -- the table -------------------------------------------------------------------------------------------------------


def table(rows: list[tuple]) -> str:
    """A line for each package: how many sections give PyTorch's numbers, and what the others say."""
    versions = dict(line.split("==") for line in (HERE / "requirements.txt").read_text().splitlines() if "==" in line)
    lines = ["| package | version | sections | same as PyTorch | seconds | what differs |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == name]
        same = sum(row[2] == "same" for row in mine)
        wrong = "; ".join(f"{row[1]}: {row[2][:100]}" for row in mine if row[2] != "same").replace("|", "\\|")
        version = versions.get(DISTRIBUTIONS.get(name, name.replace("_", "-")), "")
        lines.append(f"| {name} | {version} | {len(mine)} | {same} | {sum(r[3] for r in mine):.1f} | {wrong} |")
    whole = [n for n in dict.fromkeys(r[0] for r in rows) if all(r[2] == "same" for r in rows if r[0] == n)]
    packages = len({row[0] for row in rows})
    lines.append(
        f"\n{len(whole)} of {packages} packages in full; {sum(r[2] == 'same' for r in rows)} of {len(rows)} sections."
    )
    return "\n".join(lines)


DISTRIBUTIONS = {
    "ignite": "pytorch-ignite", "pyro": "pyro-ppl", "whisper": "openai-whisper", "open_clip": "open-clip-torch",
    "denoising_diffusion": "denoising-diffusion-pytorch", "segmentation_models": "segmentation-models-pytorch",
}  # fmt: skip


def write_docs(text: str) -> None:
    page = ROOT / "docs" / "packages.md"
    marked = re.compile(r"(<!-- table -->\n).*?(\n<!-- end -->)", re.S)
    page.write_text(marked.sub(lambda found: found[1] + text + found[2], page.read_text()))


if __name__ == "__main__":
    started = time.perf_counter()
    status = main()
    print(f"{time.perf_counter() - started:.0f} s")
    raise SystemExit(status)
