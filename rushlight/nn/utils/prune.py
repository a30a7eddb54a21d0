"""Pruning: parameters with a mask of zeros, ``weight = weight_orig * weight_mask``, applied before every forward."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod

from ...ops import cat, ones_like, rand, rand_like, topk, zeros_like
from ...tensor import Tensor

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


def __dir__():
    return __all__


class BasePruningMethod(ABC):
    """A way to choose what is pruned: ``compute_mask(t, default_mask)``, and a ``PRUNING_TYPE`` that says of what."""

    _tensor_name: str

    def __call__(self, module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The new mask for ``t``, of which ``default_mask`` is pruned already."""

    def apply_mask(self, module) -> Tensor:
        """The pruned tensor, of the original and the mask."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune ``module.<name>``, on top of what is pruned already."""
        existing = [
            h for h in module._forward_pre_hooks.values() if isinstance(h, BasePruningMethod) and h._tensor_name == name
        ]
        if len(existing) > 1:
            raise AssertionError(f"Avoid having multiple pruning hooks on the same tensor {name} in module {module}.")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        method = _combined(module, existing, method)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if not isinstance(method, PruningContainer):
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            module.register_buffer(name + "_mask", method.compute_mask(importance_scores, default_mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not isinstance(method, PruningContainer):
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The pruned copy of a tensor."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        return t * self.compute_mask(importance_scores, ones_like(t) if default_mask is None else default_mask)

    def remove(self, module) -> None:
        """Make the pruned tensor a parameter again, for good."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _combined(module, existing, method):
    """With what pruned the tensor before: the method together with it, in one container that takes its place."""
    if not existing:
        return method
    before = existing[0]
    for key, hook in list(module._forward_pre_hooks.items()):
        if hook is before:
            del module._forward_pre_hooks[key]
    container = before if isinstance(before, PruningContainer) else PruningContainer(before)
    container._tensor_name = method._tensor_name
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Several methods on one tensor, the later ones on what the earlier left."""

    def __init__(self, *args) -> None:
        self._pruning_methods: tuple = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            if args:
                self._tensor_name = args[0]._tensor_name
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method) -> None:
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        part = _still_there(method, mask)
        new = mask.clone()
        new[part] = method.compute_mask(t[part], default_mask=mask[part])
        return new


def _still_there(method, mask: Tensor):
    """The index of what is not pruned yet: single elements, or whole channels along the method's dimension."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        others = [d for d in range(mask.ndim) if d != method.dim % mask.ndim]
        keep = mask.sum(dim=others) != 0
        return (slice(None),) * (method.dim % mask.ndim) + (keep,)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.ndim
    raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


class Identity(BasePruningMethod):
    """Prunes nothing; makes the names of pruning."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask


class _Amount(BasePruningMethod):
    """Methods that prune an amount: a fraction (float), or a number (int) of elements or channels."""

    def __init__(self, amount) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _number(self, size: int) -> int:
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


class RandomUnstructured(_Amount):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        count = self._number(t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[topk(rand_like(t).view(-1), k=count).indices] = 0
        return mask


class L1Unstructured(_Amount):
    """Prunes the elements nearest to zero."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        count = self._number(t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[topk(t.abs().view(-1), k=count, largest=False).indices] = 0
        return mask


class _Structured(_Amount):
    """Methods that prune whole channels along ``dim``."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        _validate_pruning_dim(t, self.dim)
        count = self._number(t.shape[self.dim])
        if not count:
            return default_mask
        mask = zeros_like(t)
        index = [slice(None)] * t.ndim
        index[self.dim] = self._kept(t, t.shape[self.dim] - count)
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)

    def _kept(self, t, count: int):
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def _kept(self, t, count: int):
        return topk(rand(t.shape[self.dim]), k=count, largest=True).indices


class LnStructured(_Structured):
    """Prunes the channels of the smallest norm of order ``n``."""

    def __init__(self, amount, n, dim=-1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t, count: int):
        return topk(_compute_norm(t, self.n, self.dim), k=count, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask) -> None:
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# -- functions -------------------------------------------------------------------------------------------------------


def identity(module, name):
    """Pruning's names (``_orig``, ``_mask``) without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune elements at random."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements nearest to zero.

    >>> layer = nn.utils.prune.l1_unstructured(rushlight.nn.Linear(2, 2), "weight", amount=1)
    >>> int((layer.weight == 0).sum())
    1
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune channels along ``dim`` at random."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the channels along ``dim`` that have the smallest norm of order ``n``."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune by a mask."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs) -> None:
    """Prune several (module, name) pairs together, as if they were one tensor."""
    if not isinstance(parameters, (list, tuple)):
        parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevant = cat([scores.get((m, n), getattr(m, n)).view(-1) for m, n in parameters])
    masks = cat([getattr(m, n + "_mask", ones_like(getattr(m, n))).view(-1) for m, n in parameters])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found type {method.PRUNING_TYPE}'
        )
    final, place = container.compute_mask(relevant, masks), 0
    for module, name in parameters:
        t = getattr(module, name)
        custom_from_mask(module, name, mask=final[place : place + t.numel()].view_as(t))
        place += t.numel()


def remove(module, name):
    """Make a pruned tensor a parameter again, with its zeros."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module) -> bool:
    """Is anything in the module, or below it, pruned?"""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())


# -- checks ----------------------------------------------------------------------------------------------------------


def _validate_pruning_amount_init(amount) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _validate_pruning_dim(t, dim: int) -> None:
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _compute_norm(t, n, dim: int):
    others = [d for d in range(t.ndim) if d != dim % t.ndim]
    return t.norm(p=n, dim=others)
