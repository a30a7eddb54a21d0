"""A fixed part of the random programs of ``fuzz.py``; by hand it takes any seed and number."""

from __future__ import annotations

import fuzz
import pytest

# What PyTorch refuses in the last line of a program, or refuses with another kind of error: operands that share memory
# with what is written, tensors without dimensions or elements. Dtypes that its kernels lack are NotImplementedError.
REFUSED = (
    "index_add_", "__iadd__", "add_(", "sub_(", "copy_", "F.silu", "repeat_interleave", "index_select",
    "permute(*range", "gather(", "squeeze_()", "transpose_(", "einsum", "kron",
)  # fmt: skip
OTHER_DTYPES = ("kron", "median()")  # of what has no elements, or of two halves


def known(text: str, how: str) -> bool:
    last = text.splitlines()[-1]
    if "'error'" not in how and "'backward'" not in how:
        return any(word in last for word in OTHER_DTYPES)
    return "NotImplementedError" in how or any(word in last for word in REFUSED)


@pytest.mark.parametrize("family", sorted(fuzz.FAMILIES))
def test_random_programs_agree(family):
    count, found = fuzz.search(400, seed=1, family=family, seconds=10)
    new = {text: how for text, how in found.items() if not known(text, how)}
    assert count and not new, "\n\n".join(f"{text}\n{how}" for text, how in new.items())
