"""Stagers: who copies a state before it is written in the background, so that training may go on."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...tensor import Tensor, wrap
from ..tensor.dtensor import DTensor
from .stateful import Stateful

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What ``async_save`` asks for: ``stage`` gives a copy, or a future of one."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether ``synchronize_staging`` is called before ``async_save`` returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict) -> concurrent.futures.Future | dict:
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait until the copy is there."""
        return

    def close(self) -> None:
        """Let go of what is kept between copies."""
        return


class BlockingAsyncStager(AsyncStager):
    """Copies before ``stage`` returns. Both options are about memory that is used again, and change nothing."""

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False):
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: dict) -> dict:
        return copied(state_dict)


@dataclass
class StagingOptions:
    """How ``DefaultStager`` copies. Kinds of memory are those of GPUs and other processes: they change nothing."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies in a thread of its own, or with ``use_async_staging=False`` at once.

    Differs from PyTorch: the thread needs no GPU.
    """

    def __init__(self, config: StagingOptions | None = None):
        self._config = config or StagingOptions()
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None
        self._last: concurrent.futures.Future | None = None

    def stage(self, state_dict: dict, **kwargs: Any) -> concurrent.futures.Future | dict:
        if not self._config.use_async_staging:
            return copied(state_dict)
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "staging")
        self._last = self._thread.submit(copied, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None


def copied(value):
    """A copy that training does not change."""
    if isinstance(value, DTensor):
        from ...engine.spread import pieces

        value._sync()
        return wrap(pieces.copied(value._array))
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([copied(item) for item in value])
    return copied(value.state_dict()) if isinstance(value, Stateful) else value
