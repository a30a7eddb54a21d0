"""Result dtypes, values and refusals of two operands of any dtypes and kinds: the table of promotion.py."""

from __future__ import annotations

import promotion


def test_operands_of_all_dtypes_and_kinds(thorough):
    compared, rows = promotion.differences(dtypes=promotion.DTYPES if thorough else promotion.SOME)
    assert compared > 10_000
    assert not rows, "\n".join(f"{row}: {pairs[:3]}" for row, pairs in sorted(rows.items()))
