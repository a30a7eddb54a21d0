"""Compiles the kernels with the system's C compiler: ``python -m rushlight.engine.native.build``.

The same function runs at install (``hatch_build.py``). It needs nothing but a compiler and Python's headers, and is
imported without rushlight.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "src"
LIBRARY = HERE / "_kernels.abi3.so"
# What is no family of kernels.
ALONE = (
    "arrays", "binding", "calls", "ffi", "guards", "memory", "player", "pool", "reader", "recorder", "slots", "tape",
)  # fmt: skip

# No -ffast-math: NaN, infinities and signed zeros come out as the plain rules have them.
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-asynchronous-unwind-tables",  # which nobody reads
    "-fopenmp-simd",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-pthread",
]
# What only GCC understands. Threaded jumps make branches of clamps, and both sides of each are computed then.
GCC = ["-fno-thread-jumps"]
CLANG = ["-Wno-pass-failed"]  # it says of which marked loops it makes no vectors
# These families tell cases apart in their source. Copies of their loops for cases that GCC thinks of, or for what comes
# before and after an index, would make the library a quarter larger, and not faster. (Others need theirs.)
_AS_WRITTEN = ["-fno-unswitch-loops", "-fno-ipa-cp-clone", "-fno-version-loops-for-strides"]
_AS_ONE = ["-fno-split-loops"]
_SHORT = ["-O2"]
SMALLER = {
    **dict.fromkeys(["attention", "axes", "matmul", "norms", "orders", "rnn", "softmax"], _AS_WRITTEN),
    **dict.fromkeys(["chains", "sampling", "windows"], _AS_ONE),
    "conv": ["-fno-ipa-cp-clone", *_AS_ONE],
    # Loops that are marked are vectors in any case; vectors of the others, for operands that lie anyhow, gain nothing.
    "steps": ["-O2", "-fvect-cost-model=very-cheap"],
    **dict.fromkeys(["along", "copies", "losses", "slopes", "tables"], _SHORT),
}
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-unknown-pragmas"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1"]
# Processors without AVX2 are from before 2013: what is for them is to work, and to be small.
X86 = {
    "base": ["-Os"],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512"],
}
# In double precision only products have code of their own for AVX-512, others take AVX2's: the rest was a sixth of the
# library. Nor are these families' loops, but those that are marked, unrolled and told apart for doubles: it takes less
# than a tenth more time.
IN_DOUBLE = ("matmul",)
PLAIN_IN_DOUBLE = ("attention", "chains", "conv", "losses", "rnn", "sampling", "tables", "windows")
SETS = X86 if platform.machine().lower() in ("x86_64", "amd64") else {"base": []}


def build(target: Path = LIBRARY, sanitize: bool = False) -> Path:
    """Compile all sources into ``target``; raises RuntimeError, which says why, where that is not possible."""
    compiler = _compiler()
    is_gcc = _is_gcc(compiler)
    flags = [*FLAGS, *(GCC if is_gcc else CLANG), *WARNINGS, *(SANITIZE if sanitize else [])]
    with tempfile.TemporaryDirectory() as folder:
        jobs = list(_jobs(Path(folder), flags, SMALLER if is_gcc else {}))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(lambda job: _run([*compiler, *job]), jobs))
        objects = [job[-1] for job in jobs]
        made = target.with_suffix(".new")
        _run([*compiler, *_shared(), *(SANITIZE if sanitize else []), "-pthread", *objects, "-lm", "-o", str(made)])
        made.replace(target)  # a process that has the old one loaded keeps it
    return target


def families() -> list[str]:
    return sorted(path.stem for path in SOURCES.glob("*.c") if path.stem not in ALONE)


def _jobs(folder: Path, flags: list[str], of_family: dict[str, list[str]]):
    """The arguments of each compiler call; the last one is the file it makes."""
    for family in families():
        for name, instructions in SETS.items():
            for dtype, define in (("f32", []), ("f64", ["-DRL_DOUBLE"])):
                if dtype == "f64" and _of_doubles(family, name) != name:
                    continue
                made = folder / f"{family}_{name}_{dtype}.o"
                source = SOURCES / f"{family}.c"
                smaller = _SHORT if dtype == "f64" and family in PLAIN_IN_DOUBLE else []
                more = [*of_family.get(family, []), *smaller, *instructions, f"-DRL_SET={name}", *define]
                yield [*flags, *more, "-c", str(source), "-o", str(made)]
    define = [f"-DRL_FAMILIES_{name}(F)={_table(name)}" for name in SETS]
    define += ["-DRL_X86"] if SETS is X86 else []
    for name in ALONE:
        include = "-I" + sysconfig.get_paths()["include"]
        yield [*flags, *define, include, "-c", str(SOURCES / f"{name}.c"), "-o", str(folder / f"{name}.o")]


def _table(name: str) -> str:
    """The families of an instruction set as binding.c wants them."""
    return "".join(f"F({family},{name},{_of_doubles(family, name)})" for family in families())


def _of_doubles(family: str, name: str) -> str:
    """The instruction set of a family's kernels for doubles, where ``name`` is that of the others."""
    return "avx2" if name == "avx512" and family not in IN_DOUBLE else name


def _compiler() -> list[str]:
    asked = os.environ.get("CC")
    candidates = [shlex.split(asked)] if asked else [["cc"], ["gcc"], ["clang"]]
    for candidate in candidates:
        if shutil.which(candidate[0]):
            return candidate
    raise RuntimeError(f"there is no C compiler ({' or '.join(c[0] for c in candidates)})")


def _is_gcc(compiler: list[str]) -> bool:
    """clang, which goes by the name of gcc here and there, says so."""
    done = subprocess.run([*compiler, "--version"], capture_output=True, text=True)  # noqa: S603 - the C compiler
    return "clang" not in done.stdout


def _shared() -> list[str]:
    """Python's own symbols are found when the library is loaded; those of its own functions are left out."""
    return ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared", "-s"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 - the C compiler
    if done.returncode:
        raise RuntimeError(f"the C compiler failed: {shlex.join(command)}\n{done.stderr[-4000:]}")
    if done.stderr:
        print(done.stderr, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(print(build(sanitize="--sanitize" in sys.argv[1:])))
