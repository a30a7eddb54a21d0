"""``torch.distributed.elastic``: what programs use of it. Launchers are ``rushlight launch`` and ``torchrun``."""

from __future__ import annotations

from ...compat import missing as _missing

__getattr__ = _missing(__name__)
