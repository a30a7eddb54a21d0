"""Modules whose parameters get their shapes from the first input."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..autograd.mode import no_grad
from .parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Put before a Module class: ``initialize_parameters(*inputs)`` runs before the first forward.

    Afterwards the module becomes a ``cls_to_become``, if that is set, and nothing lazy is left of it.
    """

    cls_to_become: type | None = None

    if TYPE_CHECKING:  # the Module class that this is put before

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Materialize the parameters for these inputs."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Is a parameter or buffer of this module still without a shape?"""
        return any(is_lazy(t) for t in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _lazy_load_hook(self, state_dict, prefix, *_) -> None:
        """Give what has no shape yet the shape it has in the state that is being loaded."""
        for name, target in itertools.chain(self._parameters.items(), self._buffers.items()):
            value = state_dict.get(prefix + name)
            if is_lazy(target) and value is not None and not is_lazy(value):
                with no_grad():
                    target.materialize(value.shape)

    def _replicate_for_data_parallel(self):
        if self.has_uninitialized_params():
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
                "correctly initialize the modules"
            )
        return super()._replicate_for_data_parallel()
