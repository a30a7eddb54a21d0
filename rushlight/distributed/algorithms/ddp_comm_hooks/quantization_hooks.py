"""Gradients that travel as bytes, with a scale and a zero of each process's own."""

from __future__ import annotations

from .... import dtypes
from ....futures import Future
from ....ops.public import PUBLIC
from ....tensor import Tensor
from ... import collectives, world

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]


def quantization_pertensor_hook(process_group, bucket) -> Future:
    """The mean of all processes' gradients, of each of which 8 bits are sent: one scale for a bucket."""
    from ....ao.quantization import MinMaxObserver

    row = bucket.buffer()
    return _sent(process_group, row, row[None], MinMaxObserver())


def quantization_perchannel_hook(process_group, bucket, bucket_size: int = 512) -> Future:
    """The mean of all processes' gradients, of each of which 8 bits are sent: a scale for so many numbers each."""
    from ....ao.quantization import PerChannelMinMaxObserver

    row = bucket.buffer()
    more = bucket_size - len(row) % bucket_size
    rows = PUBLIC["cat"]([row, PUBLIC["zeros"](more, dtype=row.dtype, device=row.device)]).view(-1, bucket_size)
    return _sent(process_group, row, rows, PerChannelMinMaxObserver())


def _sent(process_group, row: Tensor, rows: Tensor, observer) -> Future:
    """A future of the mean, as long as ``row``; ``rows`` are its numbers, with a scale for each row."""
    group = world.the(process_group)
    observer.to(row.device)(rows)
    scale, zero = observer.calculate_qparams()
    mine = PUBLIC["stack"]([scale.reshape(-1).float(), zero.reshape(-1).float()])
    # Not in a callback, as each process would have to come to the second exchange by itself.
    words = [PUBLIC["zeros_like"](mine) for _ in range(group.size())]
    collectives.all_gather(words, mine, group)
    bytes_ = (PUBLIC["round"](rows / mine[0][:, None]) + mine[1][:, None]).clamp(0, 255).to(dtypes.uint8)
    found = [PUBLIC["zeros_like"](bytes_) for _ in range(group.size())]
    work = collectives.all_gather(found, bytes_, group, True)

    def mean(_) -> Tensor:
        total = PUBLIC["zeros_like"](rows, dtype=dtypes.float32)
        for (scale, zero), part in zip(words, found):
            total += scale[:, None] * (part.float() - zero[:, None])
        return total.flatten()[: len(row)] / group.size()

    return work.get_future().then(mean)
