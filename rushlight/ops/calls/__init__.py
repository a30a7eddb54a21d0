"""Operators as calls of PyTorch's ``aten``: what ``__torch_dispatch__`` is shown, and what those calls compute.

Tables by the name of an operator here:

    EXPANSIONS  operators that PyTorch has as several: functions that call those, above autograd
    CALLS       (overload, its arguments) of the one call that an operator is
    GRADIENTS   backward passes that PyTorch has calls for: relu's is ``aten.threshold_backward``

An operator without an entry is shown under a name of its own, ``rushlight.name.default``: it can be called as it is.
``FUNCTIONS`` are no operators here, ``zeros_like`` say, but calls there. ``BODIES`` are the calls that torch has no
function for. Nothing of this is imported before somebody dispatches.
"""

from .backward import GRADIENTS
from .bodies import BODIES
from .forward import CALLS, lowered
from .functions import FUNCTIONS, handed_over
from .several import EXPANSIONS
from .space import aten, detached, in_place

__all__ = [
    "BODIES",
    "CALLS",
    "EXPANSIONS",
    "FUNCTIONS",
    "GRADIENTS",
    "aten",
    "detached",
    "handed_over",
    "in_place",
    "lowered",
]
