"""``testing.assert_close`` accepts and refuses what PyTorch's does, in the same words where numbers differ."""

from __future__ import annotations

import pytest
import torch

import rushlight

PAIRS = {
    "equal": (lambda t: ([t.tensor([1.0, 2.0])] * 2, {})),
    "within": (lambda t: ((t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0000005])), {})),
    "apart": (lambda t: ((t.tensor([1.0, 2.0]), t.tensor([1.0, 2.5])), {})),
    "tolerance": (lambda t: ((t.tensor([1.0, 2.0]), t.tensor([1.0, 2.5])), {"rtol": 0.5, "atol": 0.0})),
    "table": (lambda t: ((t.arange(6.0).view(2, 3), t.arange(6.0).view(2, 3) * 1.25), {})),
    "integers": (lambda t: ((t.tensor([1, 2, 3]), t.tensor([1, 5, 3])), {})),
    "booleans": (lambda t: ((t.tensor([True, False]), t.tensor([True, True])), {})),
    "dtype": (lambda t: ((t.tensor([1.0]), t.tensor([1.0], dtype=t.float64)), {})),
    "dtype ignored": (lambda t: ((t.tensor([1.0]), t.tensor([1.0], dtype=t.float64)), {"check_dtype": False})),
    "shape": (lambda t: ((t.ones(2), t.ones(3)), {})),
    "nan": (lambda t: ((t.tensor([float("nan")]), t.tensor([float("nan")])), {})),
    "equal nan": (lambda t: ((t.tensor([float("nan")]), t.tensor([float("nan")])), {"equal_nan": True})),
    "numbers": (lambda t: ((1.0, 1.5), {})),
    "lists": (lambda t: (([t.ones(2), t.zeros(2)], [t.ones(2), t.ones(2)]), {})),
    "lengths": (lambda t: (([1.0], [1.0, 2.0]), {})),
    "dicts": (lambda t: (({"a": t.ones(1)}, {"a": t.ones(1)}), {})),
    "keys": (lambda t: (({"a": t.ones(1)}, {"b": t.ones(1)}), {})),
}


def outcome(package, case):
    (actual, expected), options = PAIRS[case](package)
    try:
        package.testing.assert_close(actual, expected, **options)
    except AssertionError as error:
        return str(error)
    return None


@pytest.mark.parametrize("case", PAIRS)
def test_assert_close(case):
    ours, theirs = outcome(rushlight, case), outcome(torch, case)
    assert (ours is None) == (theirs is None), (ours, theirs)
    if theirs is not None and case not in ("keys", "nan", "lists", "lengths"):
        assert ours == theirs


def test_one_tolerance_is_refused():
    for package in (torch, rushlight):
        with pytest.raises(ValueError):
            package.testing.assert_close(package.ones(1), package.ones(1), rtol=1e-3)
