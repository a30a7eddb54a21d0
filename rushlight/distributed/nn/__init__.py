"""``torch.distributed.nn``: collectives that gradients pass through."""

from .functional import *
