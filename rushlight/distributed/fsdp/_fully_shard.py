"""``fully_shard``: a module's parameters are cut over a mesh, gathered for its forward, and their gradients reduced.

The parameters that one call of ``fully_shard`` takes are a unit: one program gathers all of them, one reduces all their
gradients. In the graph a unit is one node between the parts, which are the module's parameters, and the gathered
tensors, which forward sees in their place.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np

from ...autograd.function import Function
from ...autograd.graph import saved_tensors_hooks, surroundings
from ...autograd.mode import no_grad, state
from ...autograd.variable import Variable
from ...autograd.views import put
from ...dtypes import dtype as Dtype
from ...errors import warn_user
from ...nn.module import Module
from ...ops.public import PUBLIC
from ...tensor import Tensor, wrap
from ..device_mesh import DeviceMesh, current_mesh
from ..tensor.dtensor import DTensor, distribute_tensor
from ..tensor.placement_types import Replicate, Shard

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which parameters are gathered, gradients reduced, and outputs given."""

    param_dtype: Dtype | None = None
    reduce_dtype: Dtype | None = None
    output_dtype: Dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts stay where they are computed with."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts are kept in the host's memory; on CPUs they are there already."""

    pin_memory: bool = True


class UnshardHandle:
    """What ``unshard(async_op=True)`` returns; the gathering is done."""

    def wait(self) -> None:
        pass


def fully_shard(
    module, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn=None, mp_policy: MixedPrecisionPolicy | None = None, offload_policy=None, ignored_params=None,
    dp_mesh_dims=None,
):  # fmt: skip
    """Cut the parameters of ``module`` that no inner call has cut, over ``mesh``: its last dimension, if it has two.

    Call it for the layers first, then for the model: each call makes one unit that is gathered together.
    Differs from PyTorch: ``dp_mesh_dims`` is refused.
    """
    if dp_mesh_dims is not None:
        raise NotImplementedError(
            "fully_shard: dp_mesh_dims is not here; give the part of the mesh that cuts, mesh=mesh['dp']"
        )
    from ...nn import ModuleDict, ModuleList

    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for one in modules:
        if isinstance(one, (ModuleList, ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        if isinstance(one, FSDPModule):
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. fully_shard has "
                f"already been applied to the following module:\n{one}"
            )
    mesh = mesh or current_mesh()
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    size = mesh.size(mesh.ndim - 1)
    if type(reshard_after_forward) is int and size % reshard_after_forward:
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {size}, not {reshard_after_forward}"
        )
    policy = mp_policy or MixedPrecisionPolicy()
    unit = Unit(modules, mesh, reshard_after_forward, shard_placement_fn, policy, set(ignored_params or ()))
    unit.kind = _parameter_class()
    for one in modules:
        one.__class__ = _class_of(type(one))
        one.__dict__["_fsdp_unit"] = unit
    first, last = modules[0], modules[-1]
    first.register_forward_pre_hook(unit.enter, prepend=True, with_kwargs=True)
    last.register_forward_hook(unit.leave, always_call=True)
    return module


class FSDPModule:
    """What ``fully_shard`` adds to a module's class."""

    _fsdp_unit: Unit

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather this module's parameters, until ``reshard()``."""
        self._fsdp_unit.gather()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Put the parts back in the place of gathered parameters."""
        self._fsdp_unit.put_back()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward reduces gradients; without, they add up until one does."""
        for unit in self._units(recurse):
            unit.syncs = requires_gradient_sync

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What summed gradients are divided by, if not the number of processes."""
        self._fsdp_unit.factor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """``set_gradient_divide_factor`` by its older name."""
        warn_user("Use `set_gradient_divide_factor` instead", DeprecationWarning)
        self.set_gradient_divide_factor(factor)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        for unit in self._units(recurse):
            unit.frees = reshard_after_forward

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward exchanges gradients between replicas (a mesh of two dimensions); without, they add up.

        Differs from PyTorch: what adds up is not cut over the processes of a replica until then.
        """
        for unit in self._units(recurse):
            unit.all_reduces = requires_all_reduce

    def set_all_reduce_hook(self, hook, *, stream=None) -> None:
        """Have ``hook(gradients)`` change this process's part of this module's reduced gradients, all in a row.

        Differs from PyTorch: they are divided by then, and not padded. ``stream`` changes nothing.
        """
        if stream is not None and self._fsdp_unit.mesh.ndim > 1:
            raise ValueError("stream cannot be set when using native HSDP")
        self._fsdp_unit.hook = hook

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> None:  # fmt: skip
        """Whether parameters without a gradient in this process take part with zeros, as others may have one."""
        for unit in self._units(recurse):
            unit.unused_too = reduce_scatter_unused_params

    def reset_iter_state(self) -> None:
        """After an error in forward or backward: parameters are cut again, and gradients not yet reduced forgotten."""
        for unit in self._units(True):
            unit.put_back()
            unit.waiting = {}

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Changes nothing: gradients are reduced when they are there, and nothing waits for the last."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Changes nothing: parts are back in place after forward, and gathered tensors go with the graph."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Changes nothing: backward gathers only what it needs."""

    def set_modules_to_forward_prefetch(self, modules) -> None:
        """Changes nothing but when is communicated, which XLA orders."""

    def set_modules_to_backward_prefetch(self, modules) -> None:
        """Changes nothing but when is communicated, which XLA orders."""

    def set_post_optim_event(self, event) -> None:
        """Changes nothing: gathering sees what was written before it."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Changes nothing: how means travel is XLA's to say."""

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Changes nothing: it lets NCCL do two things at a time."""

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Changes nothing: buffers are XLA's."""
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}")
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be at least 1, got {max_input_buffers}")

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Changes nothing: buffers are XLA's."""

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """Changes nothing: buffers are XLA's."""

    def set_custom_all_gather(self, comm) -> None:
        """Not here: an error."""
        raise NotImplementedError("set_custom_all_gather: XLA gathers parameters; code of one's own cannot")

    def set_custom_reduce_scatter(self, comm) -> None:
        """Not here: an error."""
        raise NotImplementedError("set_custom_reduce_scatter: XLA reduces gradients; see set_all_reduce_hook")

    def _units(self, recurse: bool):
        return units_of(self.modules() if recurse else [self])  # type: ignore[attr-defined]  # it is a Module too


def register_fsdp_forward_method(module, method_name: str) -> None:
    """Have another method of the module gather its parameters, as forward does."""
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name)
    setattr(module, method_name, lambda *args, **kwargs: module._fsdp_unit.around(method, args, kwargs))


def share_comm_ctx(modules: list) -> None:
    """Changes nothing: it has several models share a GPU's streams."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {module}")


_classes: dict[type, type] = {}


def _class_of(kind: type) -> type:
    """The module's class, with ``FSDPModule``'s methods."""
    if kind not in _classes:
        _classes[kind] = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
    return _classes[kind]


@dataclass
class Place:
    """A parameter of a unit, and how it lies."""

    sites: list  # (module, name) where it stands
    parameter: Tensor
    how: tuple
    open_how: tuple  # how it lies gathered
    mesh: DeviceMesh
    inner: DeviceMesh | None  # the mesh that it still lies on when it is gathered
    shape: tuple


class Unit:
    """Parameters that are gathered and reduced together."""

    def __init__(self, modules, mesh, frees, place, policy, ignored):
        self.modules, self.mesh, self.policy = modules, mesh, policy
        self.frees = frees is not False  # gathered again for backward, where they are only saved for it
        self.syncs = self.all_reduces = True
        self.factor, self.hook, self.unused_too = None, None, False
        self.sends = None  # what reduces gradients in XLA's place: see FullyShardedDataParallel.register_comm_hook
        self.kind: type = Tensor  # the class of gathered tensors
        self.waiting: dict[int, Tensor] = {}  # gradients not yet reduced, by the number of their parameter
        self.gathered: list[Tensor] | None = None
        self.again: _Again | None = None
        self.hooks = None
        self.root_of_inputs = _is_local(mesh) and mesh.size() > 1
        found = parameters_of(modules, ignored)
        self.sites = [sites for _, sites in found]  # where gathered tensors stand
        self.places = self.laid(found, place)
        for one in self.places:
            put_at(one.sites, one.parameter)

    def laid(self, found: list, place) -> list[Place]:
        """What parameters become that were ``found``, each with its sites."""
        return [self._cut(p, sites, place) for p, sites in found]

    def _cut(self, p, sites, place) -> Place:
        dim = place(p) if place is not None else None
        shard = dim if dim is not None else Shard(0)
        if isinstance(p, DTensor):
            laid, how, open_how, inner = _cut_again(p, self.mesh, shard.dim)
        else:
            laid = cut_rows(p, self.mesh, shard)
            how, inner = laid._array.how, None
            open_how = tuple(None for _ in how)
        made = _parameter_class()(laid, p.requires_grad)
        return Place(sites, made, how, open_how, laid._array.mesh, inner, laid._array.shape)

    # -- around forward --------------------------------------------------------------------------------------------

    def enter(self, module, args, kwargs):
        self.gather()
        if self.root_of_inputs:
            args, kwargs = _map((args, kwargs), lambda t: _spread_input(t, self.mesh))
        if self.policy.param_dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = _map((args, kwargs), lambda t: _cast(t, self.policy.param_dtype))
        return args, kwargs

    def leave(self, module, inputs, output):
        if self.again is not None:
            _map(output, self.again.before)
        self.put_back()
        if self.policy.output_dtype is not None:
            output = _map(output, lambda t: _cast(t, self.policy.output_dtype))
        return output

    def around(self, function, args, kwargs):
        """``function(*args, **kwargs)`` with gathered parameters."""
        args, kwargs = self.enter(None, args, kwargs)
        output = None
        try:
            output = function(*args, **kwargs)
        finally:
            output = self.leave(None, args, output)
        return output

    def gather(self) -> None:
        """Have gathered tensors stand in the place of the parameters."""
        if self.gathered is not None or not self.places:
            return
        self._adopt()
        again = _Again(self)
        made = _Gather.apply(self, again, *[place.parameter for place in self.places])
        for t in made:
            t.__class__ = self.kind
        self.gathered = list(made)
        _open.append(self)
        self.show(made)
        if self.frees and not _is_traced(made[0]):  # in a program XLA decides what is kept, and what is gathered again
            self.again, self.hooks = again, saved_tensors_hooks(again.packed(made), _unpack)
            self.hooks.__enter__()

    def show(self, gathered) -> None:
        """Have these stand where the module looks for its parameters."""
        for sites, t in zip(self.sites, gathered):
            put_at(sites, t)

    def hide(self) -> None:
        """Have the parts stand there again."""
        for place in self.places:
            put_at(place.sites, place.parameter)

    def open(self, wholes: list[Tensor]) -> None:
        """Have whole parameters stand in the place of the parts, to be looked at and changed."""
        self.show(wholes)

    def close(self) -> list[Tensor]:
        """Have the parts stand there again; returns what stood there."""
        found = [module._parameters[name] for ((module, name), *_) in self.sites]
        self.hide()
        return found

    def _adopt(self) -> None:
        """Parameters that were put in the place of ours since, as ``load_state_dict(assign=True)`` does."""
        for place in self.places:
            module, name = place.sites[0]
            now = module._parameters[name]
            if now is place.parameter:
                continue
            if not self.fits(now, place):
                p = place.parameter
                how = f"{p.placements} of {p.device_mesh}" if isinstance(p, DTensor) else tuple(p.shape)
                raise ValueError(
                    f"{name} of {type(module).__name__} was replaced after fully_shard by a tensor that does not lie "
                    f"as the parameter did ({how})"
                )
            self.take(now, place)

    def take(self, t: Tensor, place: Place) -> None:
        """Have ``t`` be the parameter."""
        place.parameter = t
        put_at(place.sites, t)

    def fits(self, t: Tensor, place: Place) -> bool:
        """Does ``t`` lie as the parameter that it replaces?"""
        return isinstance(t, DTensor) and t._array.how == place.how and t._array.grid == place.mesh.grid

    def put_back(self) -> None:
        if self.hooks is not None:
            hooks, self.hooks, self.again = self.hooks, None, None
            hooks.__exit__(None, None, None)
        if self.gathered is not None:
            self.gathered = None
            _open.remove(self)
            self.hide()

    # -- parts and wholes ------------------------------------------------------------------------------------------

    def spread(self, parts) -> list:
        """The arrays over the mesh that parameters are."""
        for p in parts:
            p._sync()
        return [p._array for p in parts]

    def wholes(self) -> list[Tensor]:
        """Whole parameters, copies, made by all processes together."""
        return [place.parameter.detach().full_tensor().clone() for place in self.places]  # type: ignore[attr-defined]

    def trained(self) -> list[bool]:
        return [place.parameter.requires_grad for place in self.places]

    def whole_gradients(self) -> list[Tensor | None]:
        grads = [place.parameter.grad for place in self.places]
        return [None if g is None else g.full_tensor() for g in grads]  # type: ignore[attr-defined]

    def write(self, wholes: list[Tensor]) -> None:
        """Have parameters the values of whole ones, of which every process takes its part."""
        with no_grad():
            for place, t in zip(self.places, wholes):
                p = place.parameter
                p.copy_(distribute_tensor(t.detach(), p.device_mesh, p.placements, src_data_rank=None))  # type: ignore[attr-defined]

    def whole(self, arrays: list) -> list[Tensor]:
        """The gathered tensors of the parts."""
        from ...engine.spread import namespace, pieces

        dtype = None if self.policy.param_dtype is None else self.policy.param_dtype.numpy
        laid = namespace.lay_all(arrays, [place.open_how for place in self.places], dtype)
        found = []
        for array, place in zip(laid, self.places):
            inner = place.inner
            found.append(wrap(pieces.local(array) if inner is None else pieces.onto(array, place.open_how, inner)))
        return found

    def reduced(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        """The parts' gradients, of the gradients of the gathered tensors in all processes."""
        from ...engine.spread import namespace, pieces

        waiting = dict(self.waiting)
        for i, g in enumerate(grads):
            if g is not None:
                waiting[i] = waiting[i] + g if i in waiting else g
        if not self.syncs or (self.mesh.ndim > 1 and not self.all_reduces):
            self.waiting = waiting
            return [None] * len(grads)
        if self.waiting:
            self.waiting = {}
        if self.unused_too:
            for i, place in enumerate(self.places):
                if i not in waiting and place.parameter.requires_grad:
                    waiting[i] = self._nothing(i)
        numbers = sorted(waiting)
        if not numbers:
            return [None] * len(grads)
        found: list[Tensor | None] = [None] * len(grads)
        if self.sends is not None:
            for i, t in zip(numbers, self._sent([waiting[i] for i in numbers], [self.places[i] for i in numbers])):
                found[i] = t
            return found
        reduced_over, joined = {a for axes in self.mesh._axes for a in axes}, []
        for i in numbers:
            place = self.places[i]
            mesh, open_how, inner = place.mesh, place.open_how, place.inner
            parts = tuple("avg" if h is None and a in reduced_over else h for a, h in enumerate(open_how))
            g = waiting[i] if self.policy.reduce_dtype is None else waiting[i].to(self.policy.reduce_dtype)
            g._sync()
            if inner is None:
                joined.append(pieces.joined(g._array, parts, mesh, place.shape))
            elif mesh.grid == inner.grid:
                joined.append(g._array)
            else:
                joined.append(pieces.onto(namespace.lay(g._array, open_how), parts, mesh))
        dtype = self.places[0].parameter._array.dtype
        laid = namespace.lay_all(joined, [self.places[i].how for i in numbers], dtype)
        for i, array in zip(numbers, laid):
            found[i] = wrap(array) if self.factor is None else wrap(array) * (self._processes() / self.factor)
        if self.hook is not None:
            self._change_by_hook([t for t in found if t is not None])
        return found

    def _nothing(self, i: int) -> Tensor:
        """Zeros, as a gradient of gathered tensor ``i``."""
        from ...engine.spread import namespace

        place, given = self.places[i], self.policy.param_dtype
        zeros = np.zeros(place.shape, place.parameter._array.dtype if given is None else given.numpy)
        return wrap(zeros if place.inner is None else namespace.laid_out(zeros, place.open_how, place.inner))

    def _change_by_hook(self, gradients: list[Tensor]) -> None:
        """Give this process's parts to the hook, in one row, and take them back."""
        parts = [g._local_tensor for g in gradients]  # type: ignore[attr-defined]  # DTensors
        row, at = PUBLIC["cat"]([part.reshape(-1) for part in parts]), 0
        self.hook(row)  # type: ignore[misc]
        for g, part in zip(gradients, parts):
            values = row[at : at + part.numel()].reshape(part.shape)
            at += part.numel()
            put(g, DTensor.from_local(values, g.device_mesh, g.placements, shape=g.shape, stride=g.stride())._array)

    def _sent(self, gradients: list[Tensor], places: list[Place]) -> list[Tensor]:
        """The parts' gradients, as a communication hook makes them of all gradients in one row.

        The row is what processes get of it, one after the other, each with zeros to the same length.
        """
        cat, count = PUBLIC["cat"], self.mesh.size(self.mesh.ndim - 1)
        dtype = self.policy.reduce_dtype or gradients[0].dtype
        cuts = [_equal_parts(g.to(dtype), place, count) for g, place in zip(gradients, places)]
        row = cat([part.reshape(-1) for parts in zip(*cuts) for part in parts])
        if count == 1:  # nothing is cut
            self.sends(row)  # type: ignore[misc]
            mine = row
        else:
            mine = PUBLIC["zeros"](row.numel() // count, dtype=dtype)
            self.sends(row, mine)  # type: ignore[misc]
        found, at = [], 0
        for (part, *_), place in zip(cuts, places):
            values = mine[at : at + part.numel()].reshape(part.shape)
            at += part.numel()
            found.append(_own_part(values.to(place.parameter.dtype), place))
        return found

    def _processes(self) -> int:
        return self.mesh.size() // self.mesh.part().size()


_open: list[Unit] = []  # units that are gathered now


def _gathered_again(function):
    """For ``checkpoint``: a context in which the units that ``function`` finds gathered now are so again."""
    units = list(_open)
    if isinstance(function, Module):
        inside = set(function.modules())
        units = [unit for unit in units if any(m in inside for sites in unit.sites for m, _ in sites)]

    @contextlib.contextmanager
    def around():
        closed = [unit for unit in units if unit.gathered is None]
        for unit in closed:
            unit.gather()
        try:
            yield
        finally:
            for unit in reversed(closed):
                unit.put_back()

    return around


surroundings.append(_gathered_again)


class _Gather(Function):
    """The parts of a unit -> its gathered tensors; gradients come back reduced."""

    @staticmethod
    def forward(ctx, unit, again, *parts):
        ctx.unit, ctx.again = unit, again
        ctx.set_materialize_grads(False)  # a parameter that was not used has no gradient, as in PyTorch
        return tuple(unit.whole(unit.spread(parts)))

    @staticmethod
    def backward(ctx, *grads):
        ctx.again.forget()
        return (None, None, *ctx.unit.reduced(list(grads)))


class _Again:
    """The gathered tensors of a unit in backward, in the place of those that one forward saved.

    They are gathered when the first gradient of an output arrives, needed or not: what is needed depends on the way
    that forward went, which may be another one in each process, and gathering takes all of them.
    """

    def __init__(self, unit: Unit):
        self.unit = unit
        self.wholes: list[Tensor] | None = None

    def packed(self, made):
        """What saves (self, number) for each of the gathered tensors, and others as they are."""
        numbers = {id(t._array): i for i, t in enumerate(made)}
        return lambda t: (self, numbers[id(t._array)]) if id(t._array) in numbers else t

    def before(self, output: Tensor) -> Tensor:
        """Gather before backward goes on from this output."""
        if output.requires_grad:
            output.register_hook(lambda g: self.gather())
        return output

    def gather(self) -> None:
        if self.wholes is None and self.unit.gathered is None:
            self.wholes = self.unit.whole(self.unit.spread([place.parameter for place in self.unit.places]))
            if state.running is not None:
                Variable._execution_engine.queue_callback(self.forget)  # of a unit that is not trained, say

    def forget(self) -> None:
        self.wholes = None


def _unpack(saved):
    if not isinstance(saved, tuple):
        return saved
    again, number = saved
    again.gather()
    found = again.unit.gathered if again.wholes is None else again.wholes
    return found[number]


# -- which parameters, and how they lie --------------------------------------------------------------------------------


def parameters_of(modules, ignored) -> list:
    """(parameter, [(module, name) where it stands]) of what no inner unit has."""
    found: dict = {}
    stack = list(modules)
    while stack:
        part = stack.pop(0)
        if "_fsdp_unit" in part.__dict__:
            continue
        for name, p in part._parameters.items():
            if p is not None and p not in ignored:
                found.setdefault(id(p), (p, []))[1].append((part, name))
        stack[:0] = [child for child in part._modules.values() if child is not None]
    return list(found.values())


def units_of(modules) -> list[Unit]:
    """The units of these modules, each once."""
    found = [m.__dict__["_fsdp_unit"] for m in modules if "_fsdp_unit" in m.__dict__]
    return list(dict.fromkeys(found))


def put_at(sites: list, t: Tensor) -> None:
    for module, name in sites:
        module._parameters[name] = t


def cut_rows(t: Tensor, mesh: DeviceMesh, shard: Shard | None = None) -> Tensor:
    """A tensor that all processes have, cut over the mesh's last dimension: along its rows, or as ``shard`` says."""
    placements = [Replicate()] * (mesh.ndim - 1) + [(shard or Shard(0)) if t.ndim else Replicate()]
    return distribute_tensor(t.detach(), mesh, placements, src_data_rank=None)


def _parameter_class() -> type:
    from ...nn.parameter import Parameter

    return Parameter


def _equal_parts(g: Tensor, place: Place, count: int) -> list[Tensor]:
    """A gradient cut as its parameter is, with zeros where the last parts are shorter or none."""
    if place.inner is not None:
        raise NotImplementedError("register_comm_hook: not with parameters that tensor parallelism has cut")
    dim = next((h for h in place.how if h is not None), None)
    if dim is None:
        return [g] * count
    size = -(-g.shape[dim] // count)
    lacking = list(g.shape)
    lacking[dim] = size * count - g.shape[dim]
    return list(PUBLIC["cat"]([g, g.new_zeros(lacking)], dim).split(size, dim))


def _own_part(values: Tensor, place: Place) -> Tensor:
    """What a process got of a gradient, with padding -> the DTensor."""
    from ...engine.spread import pieces

    shape, _ = pieces.shape_and_offset(place.shape, place.how, place.mesh)
    return wrap(pieces.joined(values[tuple(map(slice, shape))].numpy(), place.how, place.mesh, place.shape))


def _cut_again(p: Tensor, mesh: DeviceMesh, dim: int):
    """A parameter that tensor parallelism has cut along another dimension of the mesh, cut along this one too."""
    from ...engine.spread import namespace, pieces

    array, root = p._array, mesh._get_root_mesh()
    both = root if root.ndim == mesh.ndim + array.mesh.ndim else root[_names(root, mesh, array.mesh)]
    inner = array.mesh
    axis = mesh._axes[-1]
    how = tuple(dim if a in axis else h for a, h in enumerate(array.how))
    laid = pieces.onto(array, array.how, both) if both.grid != array.grid else namespace.lay(array, array.how, both)
    return wrap(namespace.lay(laid, how)), how, array.how, inner


def _names(root, mesh, inner) -> tuple[str, ...]:
    wanted = {*(mesh.mesh_dim_names or ()), *(inner.mesh_dim_names or ())}
    return tuple(name for name in root.mesh_dim_names or () if name in wanted)


def _is_traced(t: Tensor) -> bool:
    from ...engine.spread.array import is_traced

    return is_traced(t._array)


def _is_local(mesh: DeviceMesh) -> bool:
    from ...engine.spread.array import is_local

    return is_local(mesh.grid)


def _spread_input(t: Tensor, mesh: DeviceMesh):
    """One process feeds all devices: its batch is cut over them, where it can be."""
    if isinstance(t, DTensor) or not t.ndim or t.shape[0] % mesh.size():
        return t
    return DTensor.from_local(t, mesh, [Shard(0)] * mesh.ndim)


def _cast(t: Tensor, dtype):
    return t.to(dtype) if t.is_floating_point() else t


def _map(value, function):
    """``value`` with ``function(t)`` in the place of each tensor in it."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        made = [_map(part, function) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {name: _map(part, function) for name, part in value.items()}
    return value
