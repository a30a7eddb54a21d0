"""``state_dict`` and ``load_state_dict``: a module's tensors by path, out and in."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..autograd.mode import no_grad
from ..errors import warn_user
from ..tensor import Size, Tensor
from .parameter import Parameter, is_lazy

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # PyTorch's name for it, which libraries import
NEVER_CALLED = (
    "Reached a code path in Module.{}_extra_state() that should never be called. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


def save(module: Module, destination, prefix: str, keep_vars: bool):
    """What ``Module.state_dict`` does. The children are asked through their own ``state_dict``: people override it."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    hooks = module._hooks
    if hooks is not None:
        for hook in list(hooks.state_dict_pre_hooks.values()):
            hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
    if hooks is not None:
        for hook in list(hooks.state_dict_hooks.values()):
            replaced = hook(module, destination, prefix, local_metadata)
            if replaced is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = replaced
    return destination


def load(module: Module, state_dict, strict: bool, assign: bool) -> _IncompatibleKeys:
    """What ``Module.load_state_dict`` does: load all that fits, then complain about what did not."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)  # hooks may edit it
    if metadata is not None:
        state_dict._metadata = metadata  # type: ignore[attr-defined]
    report = _IncompatibleKeys([], [])
    errors: list[str] = []
    _load(module, state_dict, "", metadata, assign, report, errors)
    if strict:
        complaints = [
            f"{what} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". "
            for what, keys in zip(("Missing", "Unexpected"), report)
            if keys
        ]
        errors = complaints + errors
    if errors:
        listed = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    return report


def _load(module: Module, state_dict, prefix: str, metadata, assign: bool, report, errors) -> None:
    """Load ``module`` from the keys under ``prefix``, then its children, then tell its hooks."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(
        state_dict, prefix, local_metadata, True, report.missing_keys, report.unexpected_keys, errors
    )
    parts: dict[str, dict] = {name: {} for name in module._modules}
    for key, value in state_dict.items():
        name, dot, _ = key[len(prefix) :].partition(".")
        if dot and name in parts and key.startswith(prefix):
            parts[name][key] = value
    for name, child in module._modules.items():
        if child is not None:
            _load(child, parts[name], prefix + name + ".", metadata, assign, report, errors)
    if module._hooks is not None:
        for hook in list(module._hooks.load_state_dict_post_hooks.values()):
            if hook(module, report) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )


def load_own(module: Module, state_dict, prefix: str, local_metadata, strict: bool, lists, takes_extra: bool) -> None:
    """Bring in what belongs to this module alone; ``lists`` are those of missing and unexpected keys and of errors."""
    missing_keys, unexpected_keys, error_msgs = lists
    if module._hooks is not None:
        for hook in list(module._hooks.load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    own: dict[str, Tensor] = {name: p for name, p in module._parameters.items() if p is not None}
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            own[name] = buffer
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, target in own.items():
        key = prefix + name
        if key in state_dict:
            error = _load_one(module, name, key, target, state_dict[key], assign)
            if error is not None:
                error_msgs.append(error)
        elif strict:
            missing_keys.append(key)
    extra = prefix + _EXTRA_STATE_KEY_SUFFIX
    if takes_extra:
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing_keys.append(extra)
    elif strict and extra in state_dict:
        unexpected_keys.append(extra)
    if strict:
        unexpected_keys.extend(k for k in state_dict if k != extra and _is_unexpected(module, k, prefix, own))


def _is_unexpected(module: Module, key: str, prefix: str, own: dict) -> bool:
    if not key.startswith(prefix):
        return False
    name, dot, _ = key[len(prefix) :].partition(".")
    return name not in (module._modules if dot else own)


def _load_one(module: Module, name: str, key: str, target: Tensor, value, assign: bool) -> str | None:
    """Bring one tensor in; what was wrong with it, if something was."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
            f"checkpoint but received {type(value)}"
        )
    if is_lazy(target):
        if is_lazy(value) and not assign:
            return None  # neither has values yet
    else:
        if target.ndim == 0 and value.shape == (1,):
            value = value[0]  # scalars were saved with one dimension before PyTorch 0.4
        if value.shape != target.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {target.shape}."
            )
    try:
        with no_grad():
            if assign:
                _assign_one(module, name, target, value)
            else:
                target.copy_(value)
    except Exception as error:
        have = Size(target._array.shape)  # not target.shape, which a lazy one refuses
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {have} and whose '
            f"dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
        )
    return None


def _assign_one(module: Module, name: str, target: Tensor, value: Tensor) -> None:
    if isinstance(target, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(target.requires_grad)
        else:
            value = Parameter(value, requires_grad=target.requires_grad)
    setattr(module, name, value)


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"

    __str__ = __repr__


def positional(args, destination, prefix, keep_vars):
    """The arguments of ``state_dict`` where some were given by position, which is deprecated."""
    warn_user(
        "Positional args are being deprecated, use kwargs instead. Refer to "
        "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
        FutureWarning,
    )
    given = dict(zip(("destination", "prefix", "keep_vars"), args))
    return (
        destination if destination is not None else given.get("destination"),
        prefix or given.get("prefix", ""),
        keep_vars or given.get("keep_vars", False),
    )
