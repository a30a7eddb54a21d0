"""Arguments mutated from PyTorch's samples: a fixed slice of what ``fuzz_calls.py`` does with any seed and count."""

from __future__ import annotations

import fuzz_calls

# Of 150 calls from seed 7: counts that only get smaller.
AT_MOST = {"accepted": 5, "refused": 1, "different": 0, "slow": 0, "chained": 0}


def test_bad_input_ends_as_in_pytorch():
    tally, found = fuzz_calls.run(150, 7)
    shown = "\n".join(f"{kind} {name}({call}): {text}" for _, kind, name, text, call in found)
    assert all(tally[kind] <= most for kind, most in AT_MOST.items()), f"{tally}\n{shown}"
