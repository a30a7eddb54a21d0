"""What the launchers of several machines agree on, in a store that one of them serves.

The run goes on in rounds. In each, the processes of all machines that take part run once; then there is a verdict:
``done``, ``failed``, or another round, because a process failed (``again``) or machines came or went (``changed``).
Who takes part is said by the launcher that serves the store: those that are ready when as many have come as there may
be, or enough, and nobody else after a last call. Who comes later is ready for a round that has begun: where there is
room, that is a change.
"""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple

from .errors import DistError
from .store import Store


class Round(NamedTuple):
    """One turn of all processes: its number, how many failures came before, and this machine's place in it.

    ``first`` is the rank of this machine's first process, ``size`` the number of all machines' processes.
    """

    number: int
    restarts: int
    node: int
    nodes: int
    first: int
    size: int


class Launchers:
    """All launchers of a run, as one of them sees them.

    ``least`` to ``most`` machines take part. This one starts so many ``processes``, and has the number ``place``, if it
    was given one. ``settings`` are torchrun's: seconds to wait for others, for the last call, and for a sign of life.
    """

    def __init__(
        self, store: Store, serves: bool, least: int, most: int, processes: int, place: int | None, settings: dict
    ):
        self._store, self._serves, self._least, self._most = store, serves, least, most
        self._patience = float(settings.get("join_timeout", 600))
        self._last_call = float(settings.get("last_call_timeout", 30))
        self._silence = float(settings.get("keep_alive_interval", 5)) * int(settings.get("keep_alive_max_attempt", 3))
        self._me = store.add("launchers", 1)
        self._about = _written([(-1 if place is None else place, self._me, processes)])
        self._next: int | None = 0 if serves else None  # the number of the round to be ready for
        self._restarts = 0
        self._members: list[int] = []
        self._heard: dict[int, tuple[int, float]] = {}  # of each member, its last sign of life, and when it came

    def meet(self) -> Round:
        """Wait for the next round that this launcher takes part in."""
        end = time.monotonic() + self._patience
        if self._next is None:
            self._next = int(self._store.get("round"))
        while True:
            number, self._next = self._next, self._next + 1
            self._store.append(f"ready/{number}", self._about)
            if self._serves:
                self._gather(number, end)
            self._wait(f"members/{number}", end)
            (restarts,), *members = _read(self._store.get(f"members/{number}"))
            self._members = [me for _, me, _ in members]
            if self._me in self._members:
                self._heard = {}
                node, counts = self._members.index(self._me), [count for _, _, count in members]
                return Round(number, restarts, node, len(counts), sum(counts[:node]), sum(counts))
            if self._wait(f"verdict/{number}", None) in ("done", "failed"):
                raise SystemExit("the run was over before this machine could take part")

    def _gather(self, number: int, end: float) -> None:
        """Say who takes part in a round."""
        self._store.set("round", str(number))
        called, last = 0, 0.0
        while len(came := self._ready(number)) < self._most:
            now = time.monotonic()
            if len(came) > called:
                called, last = len(came), now + self._last_call
            if now > (end if called < self._least else last):
                break
            time.sleep(0.02)
        if len(came) < self._least:
            raise SystemExit(
                f"{len(came)} of at least {self._least} machines (--nnodes) were there within {self._patience:g} "
                "seconds (--rdzv-conf join_timeout=…)"
            )
        members = sorted(came, key=lambda found: found[:2])[: self._most]  # who was there before keeps its place
        self._store.set(f"members/{number}", _written([(self._restarts,), *members]))

    def _ready(self, number: int) -> list[tuple[int, ...]]:
        """(the place it wants, its number, its processes) of launchers that are ready."""
        return _read(self._store.get(f"ready/{number}"))

    def _wait(self, key: str, end: float | None) -> str:
        while not self._store.check([key]):
            if end is not None and time.monotonic() > end:
                raise SystemExit(f"the other machines were not there within {self._patience:g} seconds")
            time.sleep(0.05)
        return self._store.get(key).decode()

    # -- while processes run -----------------------------------------------------------------------------------------

    def change(self, of: Round) -> str | None:
        """Give a sign of life; who serves the store looks whether machines have come or gone, and says what it saw."""
        with contextlib.suppress(DistError):
            self._store.add(f"alive/{self._me}", 1)
            if self._serves:
                return self._gone() or self._arrived(of)
        return None

    def _arrived(self, of: Round) -> str | None:
        more = len(self._ready(of.number)) - of.nodes
        if more == 0 or of.nodes == self._most or self._store.check([f"done/{of.number}"]):
            return None
        return f"{more} more machine(s) came"

    def _gone(self) -> str | None:
        now = time.monotonic()
        for node, member in enumerate(self._members):
            sign = self._store.add(f"alive/{member}", 0)
            if self._heard.get(member, (-1, 0.0))[0] != sign:
                self._heard[member] = sign, now
            elif now - self._heard[member][1] > self._silence:
                return f"machine {node} was not heard of for {self._silence:g} seconds"
        return None

    def done(self, of: Round) -> None:
        """This machine's processes have ended well."""
        if self._store.add(f"done/{of.number}", 1) >= of.nodes:
            self.tell(of, "done")

    def tell(self, of: Round, verdict: str) -> None:
        """What came of a round, unless somebody has said so."""
        with contextlib.suppress(DistError):
            self._store.compare_set(f"verdict/{of.number}", "", verdict)

    def verdict(self, of: Round) -> str:
        """What came of a round; empty while it goes on."""
        key = f"verdict/{of.number}"
        try:
            if not self._store.check([key]):
                return ""
            found = self._store.get(key).decode()
        except DistError:  # the launcher that serves the store is gone
            return "failed"
        self._restarts += found == "again"
        if found in ("done", "failed"):
            self._part(of)
        return found

    def _part(self, of: Round) -> None:
        """The launcher that serves the store stays until all have read the verdict."""
        end = time.monotonic() + 10
        with contextlib.suppress(DistError):
            seen = self._store.add(f"seen/{of.number}", 1)
            while self._serves and seen < of.nodes and time.monotonic() < end:
                time.sleep(0.02)
                seen = self._store.add(f"seen/{of.number}", 0)


def _written(rows) -> str:
    return "".join(" ".join(map(str, row)) + ";" for row in rows)


def _read(text: bytes) -> list[tuple[int, ...]]:
    return [tuple(map(int, row.split())) for row in text.split(b";") if row]
