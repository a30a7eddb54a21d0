"""``rushlight bench``: every case of every file here, as one table or one JSON object."""

from __future__ import annotations

import importlib
import importlib.util
import json
import platform
import sys
from pathlib import Path

import harness

import rushlight


def run(args) -> int:
    theirs = _torch() if not args.no_torch else None
    for package in filter(None, (rushlight, theirs)):
        package.set_num_threads(args.threads)
    rows, failed = [], 0
    for name, ours, other in _selected(args, theirs):
        try:
            seconds, seconds_torch = harness.compare(ours(), other() if other else None, args.rounds)
        except Exception as error:  # one case that fails says so and does not hide the others
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
            continue
        ratio = seconds_torch / seconds if seconds_torch is not None else None
        rows.append({"name": name, "rushlight": seconds, "torch": seconds_torch, "ratio": ratio})
        if not args.json:
            if len(rows) == 1:
                print(harness.header(args.rounds))
            print(harness.line(rows[-1]), flush=True)
    if args.json:
        print(json.dumps({"machine": _machine(theirs), "rows": rows}, indent=1))
    if not rows:
        print("rushlight: no case of that name" if not failed else f"rushlight: {failed} cases failed", file=sys.stderr)
    return 1 if failed or not rows else 0


def _selected(args, theirs):
    for module in _modules(quiet=bool(args.names)):
        words = [] if module.__name__ in args.names else [n for n in args.names if n not in _names()]
        if args.names and module.__name__ not in args.names and not words:
            continue
        others = dict(module.cases(theirs, gpu=args.gpu)) if theirs else {}
        for name, make in module.cases(rushlight, gpu=args.gpu):
            if not words or any(word.lower() in name.lower() for word in words):
                yield f"{module.__name__}: {name}", make, others.get(name)


def _names() -> list[str]:
    skip = {"run", "harness", "models"}
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in skip)


def _modules(quiet: bool):
    for name in _names():
        path = Path(__file__).with_name(f"{name}.py")
        if "\ndef cases(" not in path.read_text():
            if not quiet:
                print(f"bench/{name}.py is a script of its own, run it with python", file=sys.stderr)
            continue
        spec = importlib.util.spec_from_file_location(name, path)  # by path: io.py must not become Python's io
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def _torch():
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def _machine(theirs) -> dict:
    import numpy

    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "rushlight": rushlight.version.rushlight,
        "torch": theirs.__version__ if theirs else None,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    from rushlight.cli import main

    main(["bench", *sys.argv[1:]])
