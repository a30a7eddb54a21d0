"""Averages of a model's weights over training: SWA and EMA."""

from __future__ import annotations

import itertools
import math
from copy import deepcopy

from ..autograd.mode import no_grad
from ..nn import Module
from ..ops import PUBLIC
from ..tensor import Tensor
from .lr_scheduler import LRScheduler, _per_group

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def __dir__():
    return __all__


def get_ema_avg_fn(decay=0.999):
    """``average · decay + current · (1 - decay)``."""
    _check_decay(decay)

    @no_grad()
    def update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return update


def get_swa_avg_fn():
    """The plain mean of all models seen."""

    @no_grad()
    def update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def get_ema_multi_avg_fn(decay=0.999):
    """``get_ema_avg_fn`` for a whole list at once, in place."""
    return _for_list(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn():
    """``get_swa_avg_fn`` for a whole list at once, in place."""
    return _for_list(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are running averages of the model's; ``update_parameters`` adds one more.

    ``use_buffers`` averages buffers too; otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", PUBLIC["tensor"](0, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model) -> None:
        """Take the model's present weights into the average."""
        own, new = self._tensors(self), self._tensors(model)
        with no_grad():
            if self.n_averaged == 0:
                for average, value in zip(own, new):
                    average.copy_(value.detach().to(average.device))
            else:
                self._average(own, [v.detach().to(a.device) for a, v in zip(own, new)])
            if not self.use_buffers:
                for mine, theirs in zip(self.module.buffers(), model.buffers()):
                    mine.copy_(theirs.detach().to(mine.device))
            self.n_averaged += 1

    def _tensors(self, model) -> list:
        model = model.module if model is self else model
        return list(itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())

    def _average(self, own, new) -> None:
        if self.multi_avg_fn is not None:
            self.multi_avg_fn(own, new, self.n_averaged)
        elif self.avg_fn is None:
            get_swa_multi_avg_fn()(own, new, self.n_averaged)
        else:
            for average, value in zip(own, new):
                average.copy_(self.avg_fn(average.detach(), value, self.n_averaged.to(average.device)))


@no_grad()
def update_bn(loader, model, device=None) -> None:
    """Compute the batch-norm statistics of ``model`` afresh in one pass over ``loader``."""
    from ..nn.modules.batchnorm import _BatchNorm

    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = {m: m.momentum for m in norms}
    was_training = model.training
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # a plain mean over the batches
    model.train()
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for m, momentum in momenta.items():
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals each group's rate to ``swa_lr`` in ``anneal_epochs`` epochs and keeps it there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1) -> None:
        for group, rate in zip(optimizer.param_groups, _per_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._done(step - 1)
        now = self._done(step)
        # The rate annealing started from, found back from the rate before this step.
        starts = [
            group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            for group in self.optimizer.param_groups
        ]
        return [group["swa_lr"] * now + start * (1 - now) for group, start in zip(self.optimizer.param_groups, starts)]

    def _done(self, step) -> float:
        """How far annealing is, from 0 to 1."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2


def _for_list(average):
    @no_grad()
    def update(averaged, current, num_averaged):
        for mine, value in zip(averaged, current):
            mine.copy_(average(mine, value, num_averaged))

    return update


def _check_decay(decay) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
