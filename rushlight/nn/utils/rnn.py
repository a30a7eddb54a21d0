"""Sequences of different lengths: padded to one tensor, or packed step by step for recurrent layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...autograd.op import differentiable as xp
from ...ops import PUBLIC
from ...tensor import Tensor, wrap

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def __dir__():
    return __all__


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """The elements of several sequences, all first ones, then all second ones, …; longer sequences come first.

    ``batch_sizes`` says how many there are of each, ``sorted_indices`` how the sequences were put in order.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs) -> PackedSequence:
        """The same with ``data`` converted or moved, and the indices moved along; itself if there is nothing to do."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        return self if self.is_cuda else self.to("cuda", *args, **kwargs)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        return self.to("cpu", *args, **kwargs)

    def _as(self, name) -> PackedSequence:
        data = getattr(self.data, name)()
        return self if data is self.data else type(self)(data, *self[1:])

    def double(self) -> PackedSequence:
        return self._as("double")

    def float(self) -> PackedSequence:
        return self._as("float")

    def half(self) -> PackedSequence:
        return self._as("half")

    def long(self) -> PackedSequence:
        return self._as("long")

    def int(self) -> PackedSequence:
        return self._as("int")

    def short(self) -> PackedSequence:
        return self._as("short")

    def char(self) -> PackedSequence:
        return self._as("char")

    def byte(self) -> PackedSequence:
        return self._as("byte")

    def pin_memory(self) -> PackedSequence:
        return self._as("pin_memory")

    def is_pinned(self) -> bool:
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def invert_permutation(permutation):
    """Where each element went."""
    return None if permutation is None else permutation.argsort()


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True) -> PackedSequence:
    """Pack padded sequences, (steps, batch, …), of the given ``lengths``.

    >>> x = rushlight.tensor([[1, 3], [2, 0]])
    >>> nn.utils.rnn.pack_padded_sequence(x, [2, 1]).data
    tensor([1, 3, 2])
    """
    lengths = _lengths(lengths)
    order = None
    if not enforce_sorted:
        order = np.argsort(-lengths, kind="stable")
        lengths = lengths[order]
        order = PUBLIC["as_tensor"](wrap(order), device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
    input = input.transpose(0, 1) if batch_first else input
    sizes = _batch_sizes(input, lengths)
    return PackedSequence(xp.pack_rows(input, sizes=sizes), wrap(np.array(sizes, dtype=np.int64)), order)


def _lengths(lengths) -> np.ndarray:
    """As a NumPy array; ``lengths`` decides shapes, so it cannot be the result of compiled code."""
    if isinstance(lengths, Tensor):
        if lengths.dim() != 1:
            raise RuntimeError(
                f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} "
                f"{lengths.type().split('.')[-1].removesuffix('Tensor')} tensor"
            )
        lengths = lengths.tolist()
    return np.array([int(n) for n in lengths], dtype=np.int64)


def _batch_sizes(input, lengths) -> tuple:
    """How many sequences have a first element, a second one, ….; refuses what cannot be packed."""
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    batch = input.size(1)
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if lengths[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if lengths[0] > input.shape[0]:
        raise RuntimeError(
            f"Expected all 'lengths' to be at most the padded length, {input.shape[0]}, but got {int(lengths[0])}"
        )
    return tuple(int((lengths > t).sum()) for t in range(lengths[0]))


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(padded sequences, their lengths): undoes ``pack_padded_sequence``."""
    sizes = tuple(sequence.batch_sizes.tolist())
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded = xp.pad_rows(sequence.data, sizes=sizes, steps=longest, value=padding_value)
    lengths = wrap((np.array(sizes)[:, None] > np.arange(sizes[0])).sum(0))
    padded = padded.transpose(0, 1) if batch_first else padded
    order = sequence.unsorted_indices
    if order is not None:
        padded, lengths = padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences of different lengths as one tensor, (steps, batch, …), the shorter ones padded.

    >>> nn.utils.rnn.pad_sequence([rushlight.ones(2), rushlight.ones(1)])
    tensor([[1., 1.],
            [1., 0.]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if not all(s.dim() for s in sequences):
        raise RuntimeError("pad_sequence: Expected sequences of at least one dimension, but got a tensor of none")
    longest, rest = max(s.shape[0] for s in sequences), sequences[0].shape[1:]
    padded = []
    for s in sequences:
        _check_rest(rest, s.shape[1:])
        missing = longest - s.shape[0]
        if missing:
            filler = s.new_full((missing, *rest), padding_value)
            s = PUBLIC["cat"]([filler, s] if padding_side == "left" else [s, filler])
        padded.append(s)
    return PUBLIC["stack"](padded, 0 if batch_first else 1)


def _check_rest(want, have) -> None:
    for i, (a, b) in enumerate(zip(want, have), 1):
        if a != b:
            raise RuntimeError(
                f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {i}"
            )


def unpad_sequence(padded_sequences, lengths, batch_first=False) -> list:
    """The sequences of a padded tensor, each cut to its length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(padded_sequences, lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True) -> PackedSequence:
    """Pack a list of sequences.

    >>> nn.utils.rnn.pack_sequence([rushlight.tensor([1, 2]), rushlight.tensor([3])]).batch_sizes
    tensor([2, 1])
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences) -> list:
    """The sequences that were packed, as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
