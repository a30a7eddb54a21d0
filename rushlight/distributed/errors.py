"""What goes wrong between processes."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something between processes failed."""


class DistBackendError(DistError):
    """A collective failed."""


class DistNetworkError(DistError):
    """Another process cannot be reached."""


class DistStoreError(DistError):
    """A store did not have a key in time."""


class QueueEmptyError(DistStoreError):
    """A store's queue has nothing to give."""


for _kind in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _kind.__module__ = "torch.distributed"
