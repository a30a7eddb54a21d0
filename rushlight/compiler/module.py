"""What ``compile`` makes of a module."""

from __future__ import annotations

from ..nn.module import Module


class OptimizedModule(Module):
    """A module whose call is compiled. The original is ``_orig_mod``; whatever else one asks for is asked of it."""

    def __init__(self, module: Module, compiled):
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = compiled
        self.training = module.training

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def train(self, mode: bool = True):
        super().train(mode)
        return self

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce__(self):
        return _compile_again, (self._orig_mod,)


def _compile_again(module):
    from . import compile

    return compile(module)
