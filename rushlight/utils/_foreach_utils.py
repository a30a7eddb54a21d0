"""Lists of tensors by device and dtype, as optimizers that work on whole lists take them."""

from __future__ import annotations

__all__: list[str] = []


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False) -> dict:
    """(device, dtype) of the first list's tensors -> the parts of all lists that go with them, and their places.

    Lists beside the first are as long or empty; they may hold None.
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("_group_tensors_by_device_and_dtype: the first list of tensors is missing or empty")
    first = tensorlistlist[0]
    if any(len(tensors) not in (0, len(first)) for tensors in tensorlistlist):
        raise RuntimeError(
            f"_group_tensors_by_device_and_dtype: each list must be empty or as long as the first ({len(first)}), not "
            f"{[len(tensors) for tensors in tensorlistlist]}"
        )
    places: dict = {}
    for i, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but the "
                f"{i}-th Tensor is not."
            )
        places.setdefault((tensor.device, tensor.dtype), []).append(i)
    return {
        kind: ([[tensors[i] for i in chosen] if tensors else [] for tensors in tensorlistlist], chosen * with_indices)
        for kind, chosen in places.items()
    }
