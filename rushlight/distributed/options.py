"""Options of backends: what scripts set for NCCL or gloo when they make a group. JAX's runtime has no such settings."""

from __future__ import annotations

import datetime
import types

DEFAULT_TIMEOUT = datetime.timedelta(minutes=30)


class Options:
    """Settings of a backend, as ``pg_options`` takes them. They are kept, and change nothing.

    How long a collective may take is the argument ``timeout`` of whatever makes the group.
    """

    def __init__(self, backend: str = "undefined", timeout: datetime.timedelta = DEFAULT_TIMEOUT):
        self._backend, self._timeout = backend, timeout
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""

    @property
    def backend(self) -> str:
        return self._backend


class _GlooOptions(Options):
    def __init__(self):
        super().__init__("gloo")


class _NCCLOptions(Options):
    def __init__(self, is_high_priority_stream: bool = False):
        super().__init__("nccl")
        self.is_high_priority_stream = is_high_priority_stream
        self.config = types.SimpleNamespace()  # NCCL's own: whatever is set
        self.split_from, self.split_color = None, 0


class _Unmade:
    """A backend of PyTorch's by its name; groups are made by ``init_process_group`` and ``new_group``."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"a {type(self).__name__} is not made by itself: init_process_group and new_group make groups, and JAX's "
            "runtime carries them"
        )


class ProcessGroupGloo(_Unmade):
    """gloo, by its name: ``ProcessGroupGloo.Options`` can be given as ``pg_options``, and changes nothing."""

    Options = Options
    _Options = _GlooOptions


class ProcessGroupNCCL(_Unmade):
    """NCCL, by its name: ``ProcessGroupNCCL.Options`` can be given as ``pg_options``, and changes nothing."""

    Options = _NCCLOptions
