"""The first draws of every random function, size and dtype are PyTorch's: the table of random_streams.py."""

from __future__ import annotations

import random_streams


def test_every_random_function_draws_what_pytorch_draws():
    count, lines = random_streams.differences()
    assert count > 1000
    assert not lines, "\n".join(lines)
