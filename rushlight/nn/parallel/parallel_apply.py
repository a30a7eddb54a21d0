"""Modules on several devices, each called with inputs of its own."""

from __future__ import annotations

__all__ = ["parallel_apply"]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Each module of its own inputs. They are started in turn; devices work at the same time."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    return [m(*(i if isinstance(i, tuple) else (i,)), **k) for m, i, k in zip(modules, inputs, kwargs_tup)]
