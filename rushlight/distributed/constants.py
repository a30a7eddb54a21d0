"""``torch.distributed.constants``."""

from .world import default_pg_timeout

default_pg_nccl_timeout = default_pg_timeout
