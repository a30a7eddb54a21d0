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
AT_LEAST, AT_MOST_OTHER = 662, 14  # of 844 TypeErrors: as many texts agree, and so many are no TypeErrors here


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


# The same of methods that write nothing, and of functions: how many texts are PyTorch's own, of 2,091 and 3,006.
SKIPPED = {"apply", "map", "map2", "share_memory", "backward", "register_hook", "storage", "tolist", "numpy", "new"}
AT_LEAST_PLAIN = {"methods": 1050, "functions": 1710}


def _plain(kind: str) -> list[str]:
    theirs, ours = (torch.Tensor, rushlight.Tensor) if kind == "methods" else (torch, rushlight)
    names = [n for n in dir(theirs) if n[0] != "_" and hasattr(ours, n) and n not in SKIPPED]
    if kind == "methods":
        away = ("cuda", "xpu", "ipu", "hpu", "mtia", "module_load")
        return [n for n in names if not n.endswith("_") and callable(getattr(theirs, n)) and n not in away]
    builtin = [n for n in names if type(getattr(theirs, n)).__name__ == "builtin_function_or_method"]
    return [n for n in builtin if not n.startswith(("get_", "set_", "is_", "init"))]


def _refused(library, kind, name, args, kwargs) -> tuple:
    if kind == "methods":
        return _refusal(library, name, args, kwargs)
    try:
        getattr(library, name)(*(args if args[:1] == ("a",) else (library.ones(2, 3), *args)), **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    return ("no error",)


@pytest.mark.parametrize("kind", AT_LEAST_PLAIN)
@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_of_what_writes_nothing(kind):
    agreed = 0
    for name in _plain(kind):
        for args, kwargs in CALLS:
            theirs = _refused(torch, kind, name, args, kwargs)
            agreed += theirs[0] == "TypeError" and theirs == _refused(rushlight, kind, name, args, kwargs)
    assert agreed >= AT_LEAST_PLAIN[kind]


@pytest.mark.parametrize("call", ["x.add('a', x)", "x.atan2()", "x.mul(x, x)", "torch.allclose(x)", "torch.mul(x)"])
def test_texts_of_refused_plain_calls(call):
    texts = []
    for library in (torch, rushlight):
        with pytest.raises(TypeError) as error:
            eval(call, {"torch": library, "x": library.ones(2)})
        texts.append(str(error.value))
    assert texts[0] == texts[1]


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
