"""Look inside a model: ``summary`` (a table), ``graph`` (a picture), ``watch`` (a page about a training run)."""

from .graph import Picture, graph
from .summary import Summary, summary
from .watch import Watch, compare, watch

__all__ = ["Picture", "Summary", "Watch", "compare", "graph", "summary", "watch"]


def __dir__():
    return __all__
