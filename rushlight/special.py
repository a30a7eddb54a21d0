"""``torch.special``: the special functions under SciPy's names.

>>> rushlight.special.expit(rushlight.tensor([0.]))
tensor([0.5000])
"""

from __future__ import annotations

from .ops.special import published as _published

_functions = _published()
globals().update(_functions)
__all__ = sorted(_functions)


def __dir__():
    return __all__
