"""What a notebook shows while a cell runs, through IPython's display protocol."""

from __future__ import annotations

import sys

__all__ = ["Bar", "Shown", "in_notebook"]


def in_notebook() -> bool:
    """Does a Jupyter kernel run this program? IPython is not imported to know it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Shown:
    """A place below the cell that runs; ``show`` replaces what is in it."""

    def __init__(self) -> None:
        self._place = None

    def show(self, html: str, text: str) -> None:
        from IPython.display import display

        content = {"text/html": html, "text/plain": text}
        if self._place is None:
            self._place = display(content, raw=True, display_id=True)
        else:
            self._place.update(content, raw=True)


class Bar:
    """Bytes that have come, as a bar below the cell."""

    def __init__(self, total: int | None) -> None:
        self.total, self.done, self._said, self._shown = total, 0, "", Shown()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        pass

    def update(self, n: int) -> None:
        self.done += n
        megabytes = f"{(self.total or self.done) / 2**20:.1f} MB"
        said = f"{100 * self.done // self.total}% of {megabytes}" if self.total else megabytes
        if said != self._said:
            value = f' value="{self.done}" max="{self.total}"' if self.total else ""
            self._shown.show(f"<progress{value}></progress> {said}", said)
            self._said = said
