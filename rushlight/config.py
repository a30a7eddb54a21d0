"""Process-wide settings that ops read; each has a public setter elsewhere."""

from __future__ import annotations

from .device import cpu, device

default_device: device = cpu  # set_default_device, ``with device(...)``
