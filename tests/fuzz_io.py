"""Damaged and hostile checkpoints: mutations of good files, and how loading them must end.

``python tests/fuzz_io.py [mutations] [seed]`` runs the long form (20,000 mutations in about a minute);
tests/test_io_hostile.py a sample. Files of the zip format are damaged anywhere, or only in their pickle with good
checksums around it, and are loaded or mapped; those of the older format and of safetensors are loaded.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import pickle
import random
import signal
import sys
import tempfile
import tracemalloc

import rushlight as torch

DATA = pathlib.Path(__file__).parent / "data"
CLEAR: tuple = (RuntimeError, pickle.UnpicklingError, EOFError)  # how a bad file may be refused
with contextlib.suppress(ImportError):
    from safetensors import SafetensorError

    CLEAR = (*CLEAR, SafetensorError)
MEMORY = 16 << 20  # what loading a small file may take at most, whatever the file says
SECONDS = 30


class Verdict(Exception):
    """A file was not handled as it must be."""


def load(data: bytes, **arguments):
    return torch.load(io.BytesIO(data), **arguments)


def load_mapped(data: bytes):
    """From a file, mapped; its name is looked for too, as somebody would who does not trust it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(ValueError):  # no zip file
            torch.serialization.get_unsafe_globals_in_checkpoint(file.name)
        return torch.load(file.name, mmap=data[:4] == b"PK\3\4")


def load_safetensors(data: bytes):
    from rushlight.io import safetensors

    return safetensors.load(data)


def attempt(data: bytes, loader=load, **arguments):
    """Load a file that may be anything: its value, or None and the error. Anything but a clear error is a Verdict."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        result, error = loader(data, **arguments), None
    except CLEAR as refused:
        result, error = None, refused
        if isinstance(refused, RecursionError) or (not str(refused)):
            raise Verdict(f"an error that says nothing: {refused!r}") from refused
    except Exception as wrong:
        raise Verdict(f"{type(wrong).__name__}: {wrong}") from wrong
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if tracemalloc.is_tracing() and tracemalloc.get_traced_memory()[1] - before > MEMORY + 200 * len(data):
        raise Verdict(f"took {tracemalloc.get_traced_memory()[1] - before} bytes for a file of {len(data)}")
    return result, error


def check_mutation(data: bytes, original: str, checked: bool, loader=load) -> bool:
    """Was the file refused? If not, and the format has checksums, what came must be what was saved."""
    result, error = attempt(data, loader)
    if error is None and checked and repr(result) != original:
        raise Verdict("changed values were loaded without a word")
    return error is not None


def mutate(data: bytes, generator: random.Random) -> bytes:
    """One random change, or a few."""
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 1, 2, 4, 16])):
        place = generator.randrange(len(changed))
        kind = generator.randrange(6)
        if kind == 0:
            changed[place] ^= 1 << generator.randrange(8)
        elif kind == 1:
            changed[place] = generator.choice([0, 1, 0x2E, 0x7F, 0x80, 0xFF, generator.randrange(256)])
        elif kind == 2:
            del changed[place : place + generator.randrange(1, 64)]
        elif kind == 3:
            changed[place:place] = generator.randbytes(generator.randrange(1, 16))
        elif kind == 4:
            other = generator.randrange(len(changed))
            length = generator.randrange(1, 32)
            changed[place : place + length] = changed[other : other + length]
        else:
            changed[place : place + 8] = generator.choice([b"\xff" * 8, b"\0" * 8, b"\xff" * 4, b"\x7f\xff\xff\xff"])
        if not changed:
            return b""
    return bytes(changed)


def mutate_pickle(data: bytes, generator: random.Random) -> bytes:
    """A whole, well-summed archive around a damaged pickle: the checksum is no help."""
    from rushlight.io import zipformat

    reader = zipformat.Reader(io.BytesIO(data))
    file = io.BytesIO()
    writer = zipformat.Writer(file, reader.archive)
    for name in reader.records:
        content = reader.read(name)
        writer.add(name, mutate(content, generator) if name == "data.pkl" else content)
    writer.close()
    return file.getvalue()


def sources() -> list[tuple[bytes, str, bool]]:
    """Good files to damage: their bytes, how their contents print, and whether checksums guard them."""
    found = []
    for name, checked in (("small.pt", True), ("checkpoint.pt", True), ("checkpoint_legacy.pt", False)):
        data = (DATA / name).read_bytes()
        found.append((data, repr(torch.load(io.BytesIO(data))), checked))
    return found


def mutations(count: int, seed: int):
    """Damaged files: the bytes, what they print as if they load, whether checksums guard them, how to load them."""
    generator, good, others = random.Random(seed), sources(), [load, load_mapped]
    with contextlib.suppress(ImportError):
        from rushlight.io import safetensors

        good.append((safetensors.save({"w": torch.ones(3, 2), "b": torch.zeros(0)}, {"format": "pt"}), "", False))
    for i in range(count):
        data, original, checked = generator.choice(good)
        loader = load_safetensors if data is good[-1][0] and len(good) > 3 else others[i % 3 == 0]
        if checked and i % 2:
            yield mutate_pickle(data, generator), original, False, loader
        else:
            yield mutate(data, generator), original, checked and loader is load, loader


def run(count: int, seed: int) -> dict[str, int]:
    """``count`` mutations; raises at the first file that is not handled as it must be, and keeps that file."""
    tally = {"refused": 0, "loaded": 0}
    for i, (data, original, checked, loader) in enumerate(mutations(count, seed)):
        try:
            refused = check_mutation(data, original, checked, loader)
        except Verdict:
            pathlib.Path(f"fuzz_io_{seed}_{i}.bin").write_bytes(data)
            raise
        tally["refused" if refused else "loaded"] += 1
    return tally


def _too_long(*_):
    raise Verdict(f"did not end within {SECONDS} seconds")


def guard() -> None:
    """Hangs become Verdicts, and memory is watched."""
    signal.signal(signal.SIGALRM, _too_long)
    tracemalloc.start()


if __name__ == "__main__":
    count, seed = (int(value) for value in (sys.argv[1:] + ["20000", "0"][len(sys.argv) - 1 :])[:2])
    guard()
    print(run(count, seed))
