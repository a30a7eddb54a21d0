"""Values and gradients at 0, ±inf and nan: the table of special_points.py has no row that is not explained."""

from __future__ import annotations

import pytest
import special_points


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_operator_at_special_points(dtype):
    compared, lines, _ = special_points.differences((dtype,))
    assert compared > 1500
    assert not lines, "\n".join(lines)


def test_no_explanation_is_stale():
    _, _, needed = special_points.differences()
    stale = [entry for entry in special_points.KEPT if entry not in needed]
    assert not stale
