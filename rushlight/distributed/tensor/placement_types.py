"""How a tensor lies along one dimension of a mesh: ``Shard``, ``Replicate``, ``Partial``."""

from __future__ import annotations

from dataclasses import dataclass

from ...compat import missing as _missing

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


__getattr__ = _missing(__name__)


class Placement:
    """What ``Shard``, ``Replicate`` and ``Partial`` have in common."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of dimension ``dim``: ``ceil(n / ranks)`` long, but for the last ones."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Every rank has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Every rank has a part that must be reduced with the others': summed, unless ``reduce_op`` says otherwise."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
