"""What all tests share: a fixed seed, and settings that a test may change put back."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

import rushlight

# A machine that is busy is slow, and no test asserts a time.
settings.register_profile("rushlight", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rushlight")


# Files of tests that take many seconds each: with several processes the last one to start is waited for.
LONG = {"test_mesh", "test_types", "test_distributed", "test_distributed_compile", "test_examples", "test_programs"}


def pytest_configure():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has those in the background ignore it
    # Processes that share an output write to it when they end, each in one piece, unless Python is told otherwise.
    os.environ.pop("PYTHONUNBUFFERED", None)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(scope="session")
def thorough():
    """Whether ``RUSHLIGHT_PARITY=all`` asks for the long form of the tests that have one."""
    return os.environ.get("RUSHLIGHT_PARITY") == "all"


@pytest.fixture(autouse=True)
def _reproducible():
    """Start every test from the same random state, default dtype and grad mode."""
    rushlight.manual_seed(0)
    dtype, grad = rushlight.get_default_dtype(), rushlight.is_grad_enabled()
    yield
    rushlight.set_default_dtype(dtype)
    rushlight.set_grad_enabled(grad)


@pytest.fixture
def by_xla(monkeypatch):
    """What is compiled is a program of XLA's, however small it is."""
    monkeypatch.setattr("rushlight.compiler.score.MOST", 0)


@pytest.fixture(params=["played", "xla"])
def either_way(request):
    """A small compiled program is played, or one of XLA's."""
    if request.param == "xla":
        request.getfixturevalue("by_xla")
