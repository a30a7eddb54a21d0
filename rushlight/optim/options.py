"""The checks of options that optimizers share, by the option's name: each is written once, with PyTorch's words."""

from __future__ import annotations

from ..tensor import Tensor

__all__: list[str] = []


def checked(**options) -> dict:
    """The options as they stand in ``defaults``, in the order given; those named in the table below are checked."""
    for name, check in _CHECKS.items():
        if name in options:
            check(name, options[name])
    return options


def check_lr(name: str, lr) -> None:
    check_one_element(lr)
    if not lr >= 0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_one_element(lr) -> None:
    if isinstance(lr, Tensor) and lr._array.size != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_not_negative(name: str, value) -> None:
    if not value >= 0:
        raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def check_betas(name: str, betas) -> None:
    for i in range(2):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_rho(name: str, rho) -> None:
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"Invalid rho value: {rho}")


def check_etas(name: str, etas) -> None:
    if not 0.0 < etas[0] < 1.0 < etas[1]:
        raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")


def check_fused(fused, foreach, differentiable) -> None:
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


# In PyTorch's order: of several wrong options the first is named.
_CHECKS = {
    "lr": check_lr,
    "lr_decay": check_not_negative,
    "rho": check_rho,
    "etas": check_etas,
    "eps": check_not_negative,
    "betas": check_betas,
    "momentum": check_not_negative,
    "weight_decay": check_not_negative,
    "momentum_decay": check_not_negative,
    "initial_accumulator_value": check_not_negative,
}
