"""``pytest -p rushlight.pytest_plugin``: the tests' ``import torch`` imports rushlight."""

from .compat import install

install()
