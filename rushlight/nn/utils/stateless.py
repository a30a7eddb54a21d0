"""Calling a module with other tensors in the places of its parameters and buffers."""

from __future__ import annotations

import contextlib

from ...config import epoch
from ...errors import warn_user
from ...tensor import Tensor
from ..module import Module

__all__ = ["functional_call"]


def __dir__():
    return __all__


def functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Deprecated: use ``rushlight.func.functional_call``."""
    warn_user(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False):
    """Within the block the module has the given tensors; what forward put in their places is in the dict afterwards."""
    wanted = _with_tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        _check_names(module, wanted)
    places = {name: _place(module, name) for name in wanted}
    before = {name: table.get(key, _ABSENT) for name, (table, key) in places.items()}
    for name, (table, key) in places.items():
        table[key] = wanted[name]
    epoch.value += 1
    try:
        yield
    finally:
        for name, (table, key) in places.items():
            if name in parameters_and_buffers and key in table:
                parameters_and_buffers[name] = table[key]
            if before[name] is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = before[name]
        epoch.value += 1


_ABSENT = object()


def _place(module, name: str) -> tuple[dict, str]:
    """The table that holds a module's tensor, and its key there."""
    path, _, key = name.rpartition(".")
    owner = module.get_submodule(path) if path else module
    for table in (owner._parameters, owner._buffers):
        if key in table:
            return table, key
    return owner.__dict__, key


def _swap_tensor(module, name: str, tensor, allow_missing: bool = False):
    """Put ``tensor`` in a module's place of that name, parameter or not, and give back what was there."""
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if not (tensor is _ABSENT or tensor is None or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    table, key = _place(module, name)
    before = table.get(key, _ABSENT)
    if before is _ABSENT:
        before = getattr(module, name, _ABSENT)
        if before is _ABSENT and not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not (before is _ABSENT or before is None or isinstance(before, Tensor)):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is _ABSENT:
        del table[key]
    else:
        table[key] = tensor
    epoch.value += 1
    return before


def _with_tied(module, given: dict) -> dict:
    """The given tensors also under the other names that their places have in the module."""
    names_of: dict[int, list[str]] = {}
    for named in (module.named_parameters, module.named_buffers):
        for name, t in named(remove_duplicate=False):
            names_of.setdefault(id(t), []).append(name)
    result = dict(given)
    for names in names_of.values():
        present = [name for name in names if name in given]
        if len({id(given[name]) for name in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(present)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if present:
            result.update(dict.fromkeys(names, given[present[0]]))
    return result


def _check_names(module, given: dict) -> None:
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    names |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    problems = []
    for title, wrong in (("Unexpected", given.keys() - names), ("Missing", names - given.keys())):
        if wrong:
            problems.append(f"{title} key(s): {', '.join(map(repr, sorted(wrong)))}.")
    if problems:
        lines = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")
