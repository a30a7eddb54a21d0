"""What ``to``, ``half``, ``cuda`` and the like do to a module's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import dtypes
from ..autograd.mode import no_grad
from ..device import device as Device
from ..errors import warn_user
from ..tensor import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []


def converter(*args, **kwargs):
    """The function of a tensor that ``Module.to(*args, **kwargs)`` applies."""
    device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype.is_complex:
            warn_user(
                "Complex modules are a new feature under active development whose design may change, and some "
                "modules might not work as expected when using complex tensors as parameters or buffers. Please "
                "file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a "
                "complex module does not work as expected."
            )

    def convert(t: Tensor) -> Tensor:
        wanted = dtype if t.is_floating_point() or t.is_complex() else None
        if t.is_meta and device is not None and device.type != "meta":
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                "torch.nn.Module.to() when moving module from meta to a different device."
            )
        if memory_format is not None and t.dim() in (4, 5):
            return t.to(device, wanted, non_blocking, memory_format=memory_format)
        return t.to(device, wanted, non_blocking)

    return convert


def convert_parameter(module: Module, name: str, parameter: Parameter, fn) -> None:
    """Give a parameter the values ``fn`` makes of it, and its gradient likewise."""
    from .. import __future__ as future

    with no_grad():
        data = fn(parameter)
        grad = None if parameter._grad is None else fn(parameter._grad)
    if future.get_overwrite_module_params_on_conversion():
        module._parameters[name] = parameter = Parameter(data, parameter.requires_grad)
        if grad is not None:
            parameter._grad = grad.requires_grad_(False)
    else:
        parameter.data = data
        if grad is not None and parameter._grad is not None and grad is not parameter._grad:
            parameter._grad.data = grad


def _parse_to(*args, device=None, dtype=None, non_blocking=False, memory_format=None, copy=False):
    """(device, dtype, non_blocking, memory_format) of the forms ``to`` takes; also ``to(other_tensor)``."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
        device, dtype = other.device, other.dtype
    else:
        if rest and (rest[0] is None or isinstance(rest[0], (str, int, Device))) and not isinstance(rest[0], bool):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], dtypes.dtype)):
            dtype = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        non_blocking = rest.pop(0)
    if len(rest) and isinstance(rest[0], bool):  # copy: a module is always converted in place
        rest.pop(0)
    if rest:
        raise TypeError(
            "to() received an invalid combination of arguments - got "
            f"({', '.join(type(a).__name__ for a in args)}), but expected one of: (device, dtype, non_blocking), "
            "(dtype, non_blocking), (tensor, non_blocking)"
        )
    return None if device is None else Device(device), dtype, non_blocking, memory_format


def no_device(name: str):
    raise AssertionError(f"Torch not compiled with {name.upper()} enabled: rushlight runs on cpu, xla, cuda and tpu")
