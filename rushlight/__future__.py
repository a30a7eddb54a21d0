"""PyTorch's switches for how ``Module.to`` and ``load_state_dict`` replace parameters."""

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether ``module.to(…)`` makes new Parameters instead of giving the old ones new data."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Accepted: here a conversion never needs to swap, a parameter can take data of any kind."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    return _swap
