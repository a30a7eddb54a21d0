"""``__torch_function__`` beside PyTorch, for every function of ``torch.overrides.get_testing_overrides()``.

    python tests/parity/hooks.py               functions that differ, then how many were compared
    python tests/parity/hooks.py softmax       only those whose name contains one of these

Each function is called with the first of some guesses at its arguments for which PyTorch hands it to the hook of a
subclass; here the same call must reach the hook as the same function, with the subclass among its arguments.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
import warnings

import torch

import rushlight

GUESSES = (lambda x: x, lambda x: 1, lambda x: [x, x], lambda x: (1,), lambda x: None)
# Not asked for: constants of the class (every tensor here is strided and dense), names of sparse, nested and quantized
# tensors and of vendors' devices, and what PyTorch keeps for its own C++ side.
KEPT = """
is_xpu is_ipu is_mps is_mtia is_maia is_nested is_mkldnn is_quantized is_sparse is_sparse_csr is_vulkan layout
_indices _nnz _values _dimI _dimV _to_dense to_mkldnn smm sspaddmm hspmm sparse_resize_ sparse_resize_and_clear_
resize_as_sparse_ _sparse_mask_projection indices_copy values_copy crow_indices_copy col_indices_copy
ccol_indices_copy row_indices_copy _nested_tensor_size _nested_tensor_storage_offsets _nested_tensor_strides
choose_qparams_optimized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix quantized_max_pool1d quantized_max_pool2d
quantized_max_pool3d batch_norm_backward_elemt batch_norm_elemt batch_norm_stats batch_norm_update_stats
native_norm _sym_int _post_accumulate_grad_hooks _cdata _clear_non_serializable_cached_data name index
__cuda_array_interface__
"""


def hooked(library):
    """A subclass that notes what it is asked, and answers nothing."""

    class Hooked(library.Tensor):
        log: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if _holds(args, cls) or _holds((kwargs or {}).values(), cls):
                cls.log.append(func)

    return Hooked


def _holds(values, cls) -> bool:
    return any(isinstance(v, cls) or (isinstance(v, (list, tuple)) and _holds(v, cls)) for v in values)


OURS, THEIRS = hooked(rushlight), hooked(torch)


def asked(name, library, cls, guesses):
    """What the hook was asked first, by name; None if it was not. Methods and properties are those of the subclass."""
    x = library.ones(2, 2).as_subclass(cls)
    cls.log.clear()
    with contextlib.suppress(Exception):
        _called(name, library, x, [guess(x) for guess in guesses])
    if not cls.log:
        return None
    given = library.overrides.resolve_name(cls.log[0])
    return name if given == name or cls.log[0] is _look(library, name) else given or repr(cls.log[0])


def _called(name, library, x, args):
    if not name.startswith("torch.Tensor."):
        return _look(library, name)(*args)
    parts = name.split(".")[2:]
    found = getattr(x, parts[0])
    return found(*args[1:]) if len(parts) == 1 else found


def calls(name, dummy):
    """Guesses at the arguments of a function, by the signature of its stand-in in PyTorch's table."""
    required = [
        p
        for p in inspect.signature(dummy).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(required) > 7:
        return [(GUESSES[0],) * len(required), (GUESSES[0], *[GUESSES[1]] * (len(required) - 1))]
    if name.startswith("torch.Tensor.__r"):
        return [(GUESSES[0], GUESSES[1])]  # 1 - x: Python asks the other operand first where that is a tensor
    choices = [GUESSES if i < 4 else GUESSES[:2] for i in range(len(required))]
    return itertools.islice(itertools.product(*choices), 300)


def differences(parts=()):
    """(how many functions were compared, {name: what was asked here})."""
    compared, found = 0, {}
    for function, dummy in torch.overrides.get_testing_overrides().items():
        name = torch.overrides.resolve_name(function)
        if name is None or (parts and not any(p in name for p in parts)):
            continue
        for guesses in calls(name, dummy):
            if asked(name, torch, THEIRS, guesses) == name:
                break
        else:
            continue
        compared += 1
        answer = asked(name, rushlight, OURS, guesses) if exists(name) else "missing"
        if answer != name and name.removesuffix(".__get__").rpartition(".")[2] not in KEPT.split():
            found[name] = answer
    return compared, found


def _look(library, name):
    found = library
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def exists(name) -> bool:
    return _look(rushlight, name.removesuffix(".__get__")) is not None


def main(argv=None) -> int:
    warnings.simplefilter("ignore")
    compared, found = differences(sys.argv[1:] if argv is None else argv)
    for name, ours in found.items():
        print(f"{name}: {ours}")
    print(f"{compared} functions, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
