"""Modules as functions of their parameters."""

from __future__ import annotations

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with some of its parameters and buffers replaced."""
    from ..nn.utils.stateless import _functional_call

    dicts = parameter_and_buffer_dicts
    merged = dicts if isinstance(dicts, dict) else {k: v for d in dicts for k, v in d.items()}
    return _functional_call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """The parameters, and the buffers, of several models of one class, each stacked along a new first dimension."""
    from ..ops import stack

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = [dict(m.named_parameters()) for m in models], [dict(m.named_buffers()) for m in models]
    stacked = {name: stack([p[name] for p in parameters]).detach() for name in parameters[0]}
    for name, first in parameters[0].items():
        stacked[name].requires_grad_(first.requires_grad)
    return stacked, {name: stack([b[name] for b in buffers]).detach() for name in buffers[0]}


def replace_all_batch_norm_modules_(root):
    """Let every BatchNorm of a module normalize by its batch alone: running statistics would be written in place.

    >>> rushlight.func.replace_all_batch_norm_modules_(rushlight.nn.BatchNorm1d(2)).track_running_stats
    False
    """
    from ..nn.layers.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
