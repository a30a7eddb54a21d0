"""What goes wrong between processes."""

from __future__ import annotations

from ..errors import DistBackendError, DistError

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistNetworkError(DistError):
    """Another process cannot be reached."""


class DistStoreError(DistError):
    """A store did not have a key in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue has nothing to give."""


for _kind in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _kind.__module__ = "torch.distributed"
