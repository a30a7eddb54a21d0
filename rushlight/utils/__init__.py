"""Helpers around the library: hooks' handles, checkpointing, data loading."""

from . import checkpoint, hooks
