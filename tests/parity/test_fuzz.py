"""A fixed part of the random programs of ``fuzz.py``; by hand it takes any seed and number."""

from __future__ import annotations

import fuzz
import pytest


@pytest.mark.parametrize("family", sorted(fuzz.FAMILIES))
def test_random_programs_agree(family):
    count, found = fuzz.search(400, seed=1, family=family, seconds=10)
    new = {text: how for text, how in found.items() if not fuzz.documented(text, how)}
    assert count and not new, "\n\n".join(f"{text}\n{how}" for text, how in new.items())
