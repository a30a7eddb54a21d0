"""``BlockMask``: for every block of queries, which blocks of keys it needs, and which of those whole."""

from __future__ import annotations

import copy

from ...dtypes import bool_, int32
from ...ops import PUBLIC

__all__ = ["BlockMask", "blocks_of", "noop_mask", "rounded_up"]

_TABLES = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


def noop_mask(batch, head, token_q, token_kv):
    """The ``mask_mod`` that allows everything."""
    return batch.new_ones(size=(), dtype=bool_, device=batch.device)


class BlockMask:
    """The blocks of a mask: ``kv_indices[b, h, i, :kv_num_blocks[b, h, i]]`` are needed in part by queries' block i.

    The ``full_`` tables list those needed whole; the ``q_`` tables say the same by blocks of keys.
    """

    def __init__(
        self,
        seq_lengths,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks,
        full_kv_indices,
        q_num_blocks,
        q_indices,
        full_q_num_blocks,
        full_q_indices,
        BLOCK_SIZE=(128, 128),
        mask_mod=noop_mask,
    ):
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        pairs = ("kv", kv_num_blocks, kv_indices), ("q", q_num_blocks, q_indices)
        fulls = ("full_kv", full_kv_num_blocks, full_kv_indices), ("full_q", full_q_num_blocks, full_q_indices)
        for name, counts, indices in (*pairs, *fulls):
            if (counts is None) != (indices is None):
                raise AssertionError(f"{name}_num_blocks and {name}_indices must be both provided or omitted")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = noop_mask if mask_mod is None else mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks,
        kv_indices,
        full_kv_num_blocks=None,
        full_kv_indices=None,
        BLOCK_SIZE=128,
        mask_mod=None,
        seq_lengths=None,
        compute_q_blocks=True,
    ):
        """The mask of the tables by queries; those by keys follow from them."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        columns = [None] * 4
        if compute_q_blocks:
            columns[:2] = blocks_of(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
        if compute_q_blocks and full_kv_indices is not None:
            columns[2:] = blocks_of(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]
        rows = kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices
        return cls(seq_lengths, *rows, *columns, BLOCK_SIZE=size, mask_mod=mask_mod)

    @property
    def shape(self):
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    def sparsity(self) -> float:
        """How many of the scores need not be computed, in per cent."""
        needed = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            needed += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - needed * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """1 for every block that is needed, in part or whole."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense.to(int32)

    def as_tuple(self, flatten: bool = True):
        """Everything it is made of."""
        tables = tuple(getattr(self, name) for name in _TABLES)
        orders = (None,) * 4  # of PyTorch's GPU kernels
        if flatten:
            return (*self.seq_lengths, *tables, *orders, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tables, *orders, self.BLOCK_SIZE, self.mask_mod)

    def to(self, device):
        """The same mask on ``device``."""
        return self._changed(lambda table: table.to(device))

    def __getitem__(self, index):
        """The mask of some examples, heads or blocks of queries; a number keeps its dimension."""
        index = tuple(_kept(i) for i in (index if isinstance(index, tuple) else (index,)))
        rows = [None if t is None else t[index] for t in (getattr(self, name) for name in _TABLES[:4])]
        return BlockMask.from_kv_blocks(
            *rows,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=None,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int):
        """The upper left corner for other lengths. The ``mask_mod`` must suit them."""
        rows, columns = rounded_up(new_q_len, self.BLOCK_SIZE[0]), rounded_up(new_kv_len, self.BLOCK_SIZE[1])

        def corner(counts, indices):
            return (None, None) if indices is None else blocks_of(_dense(counts, indices)[..., :rows, :columns])

        partial = corner(self.kv_num_blocks, self.kv_indices)
        full = corner(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*partial, *full, self.BLOCK_SIZE, self.mask_mod, (new_q_len, new_kv_len))  # type: ignore[call-arg]  # two and two

    def to_string(self, grid_size=(20, 20), limit: int = 4) -> str:
        """A picture of every head, at most ``grid_size`` characters pairs high and wide (-1: a pair per block)."""
        dense = self.to_dense()
        heads = dense.reshape(-1, *dense.shape[-2:])
        pictures = []
        for i, head in enumerate(heads[:limit]):
            pictures.append(
                f"{_place(i, dense.shape[:-2])}\n" + "".join(row + "\n" for row in _picture(head, grid_size))
            )
        if len(heads) > limit:
            pictures.append(
                "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
            )
        return "\n".join(pictures)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        lines = [f"{name}={None if (t := getattr(self, name)) is None else t.shape}" for name in _TABLES]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        lines.append(f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}")
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"

    def _changed(self, change):
        new = copy.copy(self)
        for name in _TABLES:
            if getattr(self, name) is not None:
                setattr(new, name, change(getattr(self, name)))
        return new


def blocks_of(dense):
    """(how many, which first) blocks of each row of a boolean table are True."""
    dense = dense.to(int32)
    return dense.sum(-1).to(int32), dense.argsort(dim=-1, descending=True, stable=True).to(int32).contiguous()


def _dense(counts, indices):
    """The boolean table that ``blocks_of`` made these of."""
    listed = PUBLIC["arange"](indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    return PUBLIC["zeros_like"](listed).scatter(-1, indices.long(), listed)


def rounded_up(n: int, size: int) -> int:
    """How many blocks of ``size`` hold ``n``."""
    return -(-n // size)


def _kept(index):
    return slice(index, index + 1 or None) if isinstance(index, int) else index


def _place(number, shape) -> str:
    place = []
    for n in reversed(shape):
        number, i = divmod(number, n)
        place.append(i)
    return str(tuple(reversed(place)))


def _picture(table, grid_size):
    """Rows of a picture: a pair of characters for the blocks of a cell, full, empty or between."""
    rows, columns = table.shape
    height, width = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
    tall, wide = (1 if n == -1 else max(rounded_up(m, n), 1) for m, n in ((rows, height), (columns, width)))
    for top in range(0, rows, tall):
        cells = (table[top : top + tall, left : left + wide].float().mean().item() for left in range(0, columns, wide))
        yield "".join("██" if share == 1 else "  " if share == 0 else "░░" for share in cells)
