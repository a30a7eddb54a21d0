"""``ReduceOp``: how the values of several processes become one."""

from __future__ import annotations

import enum

__all__ = ["ReduceOp"]


class _RedOpType(enum.Enum):
    """The ways to reduce, by PyTorch's numbers."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __call__(self):
        return self

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return f"RedOpType.{self.name}"

    def __repr__(self):
        return f"<RedOpType.{self.name}: {self.value}>"


class ReduceOp:
    """``ReduceOp.SUM`` and its kin; an object of it is one with a factor."""

    RedOpType = _RedOpType
    SUM, AVG, PRODUCT = _RedOpType.SUM, _RedOpType.AVG, _RedOpType.PRODUCT
    MIN, MAX = _RedOpType.MIN, _RedOpType.MAX
    BAND, BOR, BXOR = _RedOpType.BAND, _RedOpType.BOR, _RedOpType.BXOR
    PREMUL_SUM = _RedOpType.PREMUL_SUM

    def __init__(self, op: _RedOpType, factor: float | None = None):
        self.op, self.factor = op, factor

    @property
    def name(self) -> str:
        return self.op.name

    def __eq__(self, other) -> bool:
        return self.op is getattr(other, "op", other) and self.factor == getattr(other, "factor", None)

    def __hash__(self) -> int:
        return hash((self.op, self.factor))


def _make_nccl_premul_sum(factor) -> ReduceOp:
    """A sum of values that are multiplied by ``factor`` first."""
    return ReduceOp(_RedOpType.PREMUL_SUM, factor)
