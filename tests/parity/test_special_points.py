"""Values and gradients at 0, ±inf and nan: the table of special_points.py has no row that is not explained."""

from __future__ import annotations

import pytest
import special_points


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_operator_at_special_points(dtype):
    compared, lines = special_points.differences((dtype,))
    assert compared > 1500
    assert not lines, "\n".join(lines)
