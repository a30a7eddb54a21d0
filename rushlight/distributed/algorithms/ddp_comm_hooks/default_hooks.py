"""Communication hooks: the plain mean, and means that travel in half precision."""

from __future__ import annotations

from .... import dtypes
from ....futures import Future
from ... import collectives, world

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip


def __dir__():
    return __all__


def allreduce_hook(process_group, bucket) -> Future:
    """The mean of all processes' gradients: what is done without a hook."""
    group = world.the(process_group)
    mean = bucket.buffer().div_(group.size())
    return collectives.all_reduce(mean, group=group, async_op=True).get_future().then(lambda f: f.value()[0])


def fp16_compress_hook(process_group, bucket) -> Future:
    """The mean, exchanged as float16."""
    return _compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group, bucket) -> Future:
    """The mean, exchanged as bfloat16."""
    return _compressed(process_group, bucket, dtypes.bfloat16)


def fp16_compress_wrapper(hook):
    """``hook``, with gradients given to it as float16."""
    return _wrapped(hook, dtypes.float16)


def bf16_compress_wrapper(hook):
    """``hook``, with gradients given to it as bfloat16."""
    return _wrapped(hook, dtypes.bfloat16)


def _compressed(process_group, bucket, dtype) -> Future:
    group, buffer = world.the(process_group), bucket.buffer()
    small = buffer.to(dtype).div_(group.size())
    work = collectives.all_reduce(small, group=group, async_op=True)
    return work.get_future().then(lambda future: buffer.copy_(future.value()[0]))


def _wrapped(hook, dtype):
    def wrapped(state, bucket) -> Future:
        whole = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))
        future = hook(state, bucket)

        def back(done):
            found = done.value()
            found = found[0] if isinstance(found, (list, tuple)) else found
            bucket.set_buffer(whole)
            return whole.copy_(found)

        return future.then(back)

    return wrapped
