"""Warnings name the user's line, however deep in the library they arise."""

from __future__ import annotations

import os
import re
import warnings

import pytest

import rushlight as torch
from rushlight.ops import old_orders

F = torch.nn.functional
WARNED = {
    "cuda.amp.GradScaler": lambda: torch.cuda.amp.GradScaler(),
    "cuda.amp.autocast": lambda: torch.cuda.amp.autocast(),
    "amp.autocast": lambda: torch.amp.autocast("cuda"),
    "amp.autocast of float64": lambda: torch.autocast("cpu", dtype=torch.float64),
    "cpu.amp.autocast": lambda: torch.cpu.amp.autocast(),
    "pin_memory": lambda: list(torch.utils.data.DataLoader([1, 2], pin_memory=True)),
    "old order": lambda: torch.zeros(2).add(1, torch.zeros(2)),
    "old order in place": lambda: torch.zeros(2).add_(1, torch.zeros(2)),
    "old order of a function": lambda: torch.addcmul(torch.zeros(2), 1, torch.zeros(2), torch.zeros(2)),
    "out": lambda: torch.add(torch.zeros(2), 1, out=torch.zeros(3)),
    "softmax": lambda: F.softmax(torch.zeros(2, 3)),
    "Softmax": lambda: torch.nn.Softmax()(torch.zeros(2, 3)),
    "mse_loss": lambda: F.mse_loss(torch.zeros(2), torch.zeros(1)),
    "MSELoss": lambda: torch.nn.MSELoss()(torch.zeros(2), torch.zeros(1)),
    "size_average": lambda: torch.nn.MSELoss(size_average=False),
    "var": lambda: torch.zeros(1).var(),
    "var_mean": lambda: torch.var_mean(torch.zeros(1)),
    "grad of a non-leaf": lambda: (torch.zeros(2, requires_grad=True) * 2).grad,
    "detect_anomaly": lambda: torch.autograd.detect_anomaly(),
    "scheduler before optimizer": lambda: _scheduler().step(),
    "default tensor type": lambda: torch.set_default_tensor_type("torch.FloatTensor"),
    "typed storage": lambda: torch.zeros(2).storage(),
    "mask of bytes": lambda: torch.zeros(2)[torch.zeros(2, dtype=torch.uint8)],
    "Function": lambda: torch.autograd.Function(),
    "T of three dimensions": lambda: torch.zeros(2, 3, 4).T,
    "Dropout": lambda: torch.nn.LSTM(2, 2, dropout=0.5),
}


def _scheduler():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    return torch.optim.lr_scheduler.StepLR(optimizer, 1)


@pytest.mark.parametrize("name", WARNED)
def test_warnings_name_the_users_line(name, monkeypatch):
    monkeypatch.setattr(torch.errors, "_TOLD", set())
    monkeypatch.setattr(old_orders, "_told", [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARNED[name]()
    assert caught
    assert {os.path.basename(w.filename) for w in caught} == {os.path.basename(__file__)}


def test_nobody_counts_frames():
    """All warnings are given by ``errors.warn_user``, which looks for the line."""
    root = os.path.dirname(torch.__file__)
    counted = []
    for folder, _, files in os.walk(root):
        for file in files:
            path = os.path.join(folder, file)
            if file.endswith(".py") and path != torch.errors.__file__:
                with open(path, encoding="utf-8") as text:
                    counted += [path] * len(re.findall(r"warnings\.warn\(", text.read()))
    assert counted == []
