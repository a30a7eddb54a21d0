"""A logger that writes to standard error."""

from __future__ import annotations

import logging
import os
import sys

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of that name, by default of the module that asks; its level is that of ``LOGLEVEL``, or WARNING."""
    found = logging.getLogger(name or sys._getframe(1).f_globals.get("__name__"))
    found.setLevel(os.environ.get("LOGLEVEL", "WARNING"))
    return found
