"""Arguments mutated from PyTorch's samples: a fixed slice of what ``fuzz_calls.py`` does with any seed and count."""

from __future__ import annotations

import fuzz_calls
import pytest
import torch

import rushlight

# Of 150 calls from seed 7: counts that only get smaller.
AT_MOST = {"accepted": 5, "refused": 1, "different": 0, "slow": 0, "chained": 0}


def test_bad_input_ends_as_in_pytorch():
    tally, found = fuzz_calls.run(150, 7)
    shown = "\n".join(f"{kind} {name}({call}): {text}" for _, kind, name, text, call in found)
    assert all(tally[kind] <= most for kind, most in AT_MOST.items()), f"{tally}\n{shown}"


# Wrong arguments, given to every method that writes in place. PyTorch's parser has its word before the method looks.
CALLS = [(("a",), {}), ((), {}), (tuple(range(9)), {}), ((), {"foo": 1}), ((1, "a"), {}), ((None, "a"), {})]
AT_LEAST, AT_MOST_OTHER = 654, 14  # of 844 TypeErrors: as many texts agree, and so many are no TypeErrors here


def _methods():
    names = [n for n in dir(torch.Tensor) if n.endswith("_") and n[0] != "_" and hasattr(rushlight.Tensor, n)]
    return [n for n in names if n not in ("apply_", "map_", "map2_", "module_load", "share_memory_", "resize_", "set_")]


def _refusal(library, method, args, kwargs) -> tuple:
    try:
        getattr(library.ones(2, 3), method)(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    return ("no error",)


def test_methods_called_with_wrong_arguments_say_what_pytorch_says():
    agreed, other_kinds = 0, []
    for method in _methods():
        for args, kwargs in CALLS:
            theirs = _refusal(torch, method, args, kwargs)
            if theirs[0] == "TypeError":
                ours = _refusal(rushlight, method, args, kwargs)
                agreed += theirs == ours
                if theirs[0] != ours[0]:
                    other_kinds.append((method, args, kwargs, theirs, ours))
    assert agreed >= AT_LEAST
    assert len(other_kinds) <= AT_MOST_OTHER, other_kinds


@pytest.mark.parametrize(
    "method, args, kwargs",
    [
        ("mul_", ("a",), {}),
        ("mul_", (), {}),
        ("fmod_", ("a",), {}),
        ("fmod_", (1, "a"), {}),
        ("gt_", (), {"foo": 1}),
        ("not_equal_", (), {"other": "a"}),
        ("masked_fill_", ("a", 1), {}),
        ("index_fill_", (0, "a", 1), {}),
        ("abs_", (1,), {}),
        ("arctanh_", (), {"foo": 1}),
        ("lcm_", (1, 2), {}),
        ("hypot_", ("a",), {}),
        ("logsumexp", (0, "a"), {}),
        ("clamp_", ("a", "b"), {}),
    ],
)
def test_texts_of_refused_calls(method, args, kwargs):
    theirs, ours = (_refusal(library, method, args, kwargs) for library in (torch, rushlight))
    assert theirs == ours
