"""``functionalize``: a function that writes in place, seen as one that does not."""

from __future__ import annotations

import functools

__all__ = ["functionalize"]


def functionalize(func, *, remove="mutations"):
    """``func`` itself: its results, and what it wrote into its arguments, are those of the same program without writes.

    >>> rushlight.func.functionalize(lambda x: x.clone().add_(1))(rushlight.zeros(2))
    tensor([1., 1.])

    Differs from PyTorch: nothing is rewritten, so a dispatch mode still sees the writes. There is no graph here that
    would have to be without them: ``compile`` traces values, not memory.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are "
            "'mutations' and 'mutations_and_views'."
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapped
