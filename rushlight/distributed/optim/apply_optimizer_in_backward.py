"""Optimizers that step while backward goes on: a gradient is used when it is there, and let go."""

from __future__ import annotations

__all__: list[str] = []


def _apply_optimizer_in_backward(optimizer_class, params, optimizer_kwargs: dict, register_hook: bool = True) -> None:
    """Give each parameter an optimizer of its own, which steps as soon as its gradient has been added up.

    Gradients are None after backward. Without ``register_hook`` nothing steps: that is left to the caller.
    """
    for p in params:
        if not hasattr(p, "_in_backward_optimizers"):
            p._in_backward_optimizers, p._optimizer_classes, p._optimizer_kwargs = [], [], []
        p._optimizer_classes.append(optimizer_class)
        p._optimizer_kwargs.append(optimizer_kwargs)
        p._in_backward_optimizers.append(optimizer_class([p], **optimizer_kwargs))
        if register_hook and len(p._in_backward_optimizers) == 1:
            p.register_post_accumulate_grad_hook(_step)


def _step(p) -> None:
    for optimizer in p._in_backward_optimizers:
        optimizer.step()
    p.grad = None


def _get_in_backward_optimizers(module) -> list:
    """The optimizers of a module's parameters, for checkpoints."""
    return [o for p in module.parameters() for o in getattr(p, "_in_backward_optimizers", [])]
