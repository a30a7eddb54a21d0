"""``DTensor``: a tensor whose array lies in pieces on the devices of a mesh.

Any tensor with such an array is a DTensor, whatever made it: an operator, a gradient, ``zeros_like``. How it lies is
read from the array. So operators, autograd, modules and optimizers work on it as they are; XLA puts in the
communication.
"""

from __future__ import annotations

import numpy as np

from ...autograd import overriding
from ...autograd.function import Function
from ...engine import SPREAD
from ...tensor import Size, Tensor, wrap
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, current_mesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


class _DTensorType(type):
    """Makes ``isinstance(t, DTensor)`` true for every tensor whose array is spread."""

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and instance._array.__class__ is SPREAD.array


class DTensor(Tensor, metaclass=_DTensorType):
    """A tensor over a mesh. Made by ``distribute_tensor`` or ``DTensor.from_local``."""

    __torch_function__ = overriding.disabled

    def __new__(cls, *args, **kwargs):
        raise TypeError("a DTensor is made by distribute_tensor() or DTensor.from_local()")

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements=None, *, run_check: bool = False,
        shape=None, stride=None, grad_placements=None,
    ) -> Tensor:  # fmt: skip
        """The tensor of which each process has ``local_tensor``; ``shape``, if the parts are not of one size.

        The gradient is laid as ``grad_placements`` says, by default as this tensor, before each process gets its part.
        """
        mesh = device_mesh or current_mesh()
        placements = _checked(placements, mesh, local_tensor.ndim)
        if grad_placements is not None:
            grad_placements = _checked(grad_placements, mesh, local_tensor.ndim)
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        if shape is not None:
            shape = tuple(shape)
            _check_part(local_tensor, shape, mesh, placements)
        return _FromTorchTensor.apply(local_tensor, mesh, placements, shape, run_check, grad_placements)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How it lies along each dimension of the mesh."""
        self._sync()
        return placements_of(self._array)

    @property
    def device_mesh(self) -> DeviceMesh:
        return self._array.mesh

    @property
    def _local_tensor(self) -> Tensor:
        return wrap(_local(self))

    def to_local(self, *, grad_placements=None) -> Tensor:
        """This process's part; its gradient is laid as ``grad_placements`` says, by default as this tensor."""
        if grad_placements is not None:
            grad_placements = _checked(grad_placements, self.device_mesh, self.ndim)
        return _ToTorchTensor.apply(self, grad_placements, False)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements=None, *, async_op: bool = False, forward_dtype=None,
        backward_dtype=None,
    ) -> Tensor:  # fmt: skip
        """The same tensor, laid as ``placements`` says."""
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placements = _checked(placements, mesh, self.ndim)
        for old, new in zip(self.placements, placements):
            if new.is_partial() and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old} to {new}, redistributing to Partial is for internal use only!"
                )
        return Redistribute.apply(self, mesh, placements)

    def full_tensor(self, *, grad_placements=None) -> Tensor:
        """All of it, as an ordinary tensor in every process."""
        everywhere = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        if grad_placements is not None:
            grad_placements = _checked(grad_placements, self.device_mesh, self.ndim)
        return _ToTorchTensor.apply(everywhere, grad_placements, True)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements=None, *, src_data_rank: int | None = 0
) -> Tensor:
    """``tensor`` as a DTensor, laid as ``placements`` says: the first rank's, unless ``src_data_rank`` is None."""
    mesh = device_mesh or current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    given, placements = placements, _checked(placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to another, {mesh}.")
        if tensor.placements != tuple(placements):
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements "
                f"{given}. do you want to call `redistribute` instead?"
            )
        return tensor
    if tensor.is_meta:  # what has no values yet gets its place, and zeros until to_empty() and an initialization
        zeros = np.broadcast_to(np.zeros((), tensor.dtype.numpy), tensor.shape)
        made = wrap(_engine().laid_out(zeros, how_of(placements, mesh), mesh))
        return made.requires_grad_() if tensor.requires_grad else made
    values = tensor.detach().clone()
    if src_data_rank is not None:
        for dim in range(mesh.ndim):
            group = mesh._groups[dim] if mesh._groups is not None else None
            if group is not None and group.size() > 1:
                broadcast(values, group=group, group_src=0)
    made = wrap(_engine().laid_out(_numpy(values), how_of(placements, mesh), mesh))
    return made.requires_grad_() if tensor.requires_grad else made


def distribute_module(module, device_mesh: DeviceMesh | None = None, partition_fn=None, input_fn=None, output_fn=None):
    """``module`` with DTensors for parameters; what ``partition_fn(name, module, mesh)`` leaves is replicated."""
    from ...nn.parameter import Parameter

    mesh = device_mesh or current_mesh()

    def replicate(part) -> None:
        for name, p in part._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                part._parameters[name] = Parameter(distribute_tensor(p.detach(), mesh), p.requires_grad)
        for name, b in part._buffers.items():
            if b is not None and not isinstance(b, DTensor):
                part._buffers[name] = distribute_tensor(b.detach(), mesh)

    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate(part)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda mod, inputs: input_fn(mod, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda mod, inputs, outputs: output_fn(mod, outputs, mesh))
    return module


# -- in the graph ------------------------------------------------------------------------------------------------------


class _ToTorchTensor(Function):
    """A DTensor -> this process's part of it, or with ``plain`` the values of a replicated one."""

    @staticmethod
    def forward(ctx, input, grad_placements, plain):
        array = input._array
        ctx.shape, ctx.mesh = array.shape, array.mesh
        ctx.how = _without_parts(array.how) if grad_placements is None else how_of(grad_placements, array.mesh)
        return wrap(_local(input, plain))

    @staticmethod
    def backward(ctx, grad):
        return wrap(_joined(grad, ctx.how, ctx.mesh, ctx.shape)), None, None


class _FromTorchTensor(Function):
    """This process's part -> the DTensor."""

    @staticmethod
    def forward(ctx, input, mesh, placements, shape, run_check, grad_placements):
        how = how_of(placements, mesh)
        if run_check:
            input = input.clone()
            for dim, placement in enumerate(placements):
                if placement.is_replicate() and mesh.get_group(dim).size() > 1:
                    broadcast(input, group=mesh.get_group(dim), group_src=0)
        ctx.how = _without_parts(how) if grad_placements is None else how_of(grad_placements, mesh)
        ctx.mesh = mesh
        ctx.plain = not isinstance(input, DTensor)
        return wrap(_joined(input, how, mesh, shape))

    @staticmethod
    def backward(ctx, grad):
        laid = wrap(_engine().lay(grad._array, ctx.how, ctx.mesh))
        return wrap(_local(laid, plain=ctx.plain and _is_local(ctx.mesh))), None, None, None, None, None


class Redistribute(Function):
    """A DTensor -> the same, laid anew."""

    @staticmethod
    def forward(ctx, input, mesh, placements):
        ctx.how, ctx.mesh = _without_parts(input._array.how), input._array.mesh
        return wrap(_engine().lay(input._array, how_of(placements, mesh, input._array), mesh))

    @staticmethod
    def backward(ctx, grad):
        return wrap(_engine().lay(grad._array, ctx.how, ctx.mesh)), None, None


def _check_part(local: Tensor, shape: tuple, mesh: DeviceMesh, placements) -> None:
    """Between processes each has to bring the part that is its own, for none has room for another."""
    if _is_local(mesh) or isinstance(local, DTensor):
        return
    expected, _ = compute_local_shape_and_global_offset(shape, mesh, placements)
    if tuple(local.shape) != tuple(expected):
        raise RuntimeError(
            f"DTensor.from_local: of a tensor of shape {shape}, laid as {placements} over {mesh}, this process has a "
            f"part of shape {tuple(expected)}, but local_tensor has shape {tuple(local.shape)}"
        )


# -- between placements and arrays -------------------------------------------------------------------------------------


def how_of(placements, mesh: DeviceMesh, array=None) -> tuple:
    """The engine's word for placements; along axes that are not the mesh's own, as ``array`` lies."""
    how: list = [None] * len(mesh.grid.axis_names)
    if array is not None and array.grid == mesh.grid:
        how = list(array.how)
    for placement, axes in zip(placements, mesh._axes):
        for axis in axes:
            how[axis] = placement.dim if isinstance(placement, Shard) else getattr(placement, "reduce_op", None)
    return tuple(how)


def placements_of(array) -> tuple[Placement, ...]:
    found = []
    for axes in array.mesh._axes:
        how = array.how[axes[0]]
        found.append(Replicate() if how is None else Partial(how) if isinstance(how, str) else Shard(how))
    return tuple(found)


def _checked(placements, mesh: DeviceMesh, ndim: int) -> tuple[Placement, ...]:
    """One placement for each dimension of the mesh; replicated, if none are given."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}."
        )
    found = []
    for placement in placements:
        if not isinstance(placement, Placement):
            raise RuntimeError(
                f"Trying to distribute to an unsupported placement {placement!r}; use Shard or Replicate"
            )
        if isinstance(placement, Shard):
            if not -max(ndim, 1) <= placement.dim < max(ndim, 1):
                raise AssertionError(f"Sharding dim {placement.dim} greater than tensor ndim {ndim}")
            placement = Shard(placement.dim % max(ndim, 1))
        found.append(placement)
    return tuple(found)


def _without_parts(how: tuple) -> tuple:
    """A gradient is never left in parts."""
    return tuple(None if isinstance(h, str) else h for h in how)


def _engine():
    from ...engine.spread import namespace

    return namespace


def _is_local(mesh: DeviceMesh) -> bool:
    from ...engine.spread.array import is_local

    return is_local(mesh.grid)


def _local(t: Tensor, plain: bool = False):
    from ...engine.spread import pieces

    t._sync()
    return _engine().to_numpy(t._array) if plain else pieces.local(t._array)


def _joined(t: Tensor, how: tuple, mesh: DeviceMesh, shape):
    from ...engine.spread import pieces

    t._sync()
    part = t._array if isinstance(t, DTensor) else _numpy(t)
    return pieces.joined(part, how, mesh, shape)


def _numpy(t: Tensor) -> np.ndarray:
    """Its values; in a trace what stands for them."""
    from ...engine import namespace_of

    t._come_home()
    xp = namespace_of(t._array)
    return t._array if t._array.__class__ is np.ndarray or xp.is_traced(t._array) else xp.to_numpy(t._array)


def text(t: Tensor) -> str:
    """How a DTensor prints."""
    local = wrap(_local(t, plain=_is_local(t._array.mesh)))
    if t.requires_grad and t.is_leaf and not getattr(t, "_is_param", False):
        local.requires_grad_()
    shown = repr(local.item()) if local.ndim == 0 else repr(local)
    return f"DTensor(local_tensor={shown}, device_mesh={t._array.mesh}, placements={placements_of(t._array)})"


# -- what only a DTensor has -------------------------------------------------------------------------------------------


class _OfSpread:
    """An attribute of DTensor that a tensor has while its array is spread; not a second look at every missing name."""

    def __init__(self, name: str, found):
        self._name, self._found = name, found

    def __get__(self, tensor, owner):
        if tensor is not None and tensor._array.__class__ is SPREAD.array:
            return self._found.__get__(tensor, DTensor)
        what = f"type object '{owner.__name__}'" if tensor is None else f"'{owner.__name__}' object"
        raise AttributeError(f"{what} has no attribute '{self._name}'", name=self._name, obj=tensor)


for _name, _value in list(vars(DTensor).items()):
    if not _name.startswith("__") and not hasattr(Tensor, _name):
        setattr(Tensor, _name, _OfSpread(_name, _value))


def compute_local_shape_and_global_offset(global_shape, mesh: DeviceMesh, placements) -> tuple[Size, Size]:
    """(the shape of this process's part, where in the whole it begins)."""
    from ...engine.spread import pieces

    placements = _checked(placements, mesh, len(global_shape))
    size, offset = pieces.shape_and_offset(tuple(global_shape), how_of(placements, mesh), mesh)
    return Size(size), Size(offset)
