"""Flat parameters: a unit whose parameters are one, all in a row, of which each process has an equal part.

What optimizers, gradients and names see is that part, an ordinary tensor with zeros at the row's end. Gathered, the row
is cut into tensors of the parameters' own shapes, which modules find under their own names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...autograd.mode import no_grad
from ...nn.parameter import Parameter
from ...ops.public import PUBLIC
from ...tensor import Size, Tensor
from ..tensor.dtensor import DTensor, _joined, how_of
from ..tensor.placement_types import Replicate, Shard
from ._fully_shard import Place, Unit, cut_rows

__all__ = ["FlatParameter", "FlatUnit"]

FLAT = "_flat_param"


class _FlatType(type(Parameter)):  # type: ignore[misc]  # one that mypy cannot see
    """Makes ``isinstance(p, FlatParameter)`` true for the parameters of flat units."""

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_flat_param", False)


class FlatParameter(Parameter, metaclass=_FlatType):  # type: ignore[misc]  # it has no instances of its own
    """A process's part of all parameters of a unit; made by ``FullyShardedDataParallel`` only."""

    if TYPE_CHECKING:
        _unit: FlatUnit
        _fqns: list[str]
        _shapes: tuple
        _numels: tuple[int, ...]

    def __new__(cls, *args, **kwargs):
        raise TypeError("a FlatParameter is made by FullyShardedDataParallel(use_orig_params=False)")


class FlatUnit(Unit):
    """A unit of one flat parameter, that stands in the wrapped module as ``_flat_param``."""

    def laid(self, found: list, place) -> list[Place]:
        self.is_open, self.shapes = False, [tuple(p.shape) for p, _ in found]
        self.blanks: list[Tensor] = []
        if not found:
            return []
        first = found[0][0]
        _check([p for p, _ in found])
        self.lengths = [math.prod(shape) for shape in self.shapes]
        count = self.mesh.size(self.mesh.ndim - 1)
        self.length, self.part = sum(self.lengths), -(-sum(self.lengths) // count)
        with no_grad():
            flat: Any = Parameter(self.flattened([p.detach() for p, _ in found]), first.requires_grad)
        flat._is_flat_param, flat._unit, flat._part_of = True, self, self.mesh  # the last is for compiled functions
        flat._shapes, flat._numels = tuple(Size(shape) for shape in self.shapes), tuple(self.lengths)
        module = self.modules[0]
        names = {id(part): name for name, part in module.named_modules()}
        flat._fqns = [".".join(filter(None, (names[id(m)], name))) for _, ((m, name), *_) in found]
        for p, sites in found:
            self.blanks.append(PUBLIC["empty"](p.shape, dtype=p.dtype, device="meta"))
            for part, name in sites:
                del part._parameters[name]
        self.placements = [Replicate()] * (self.mesh.ndim - 1) + [Shard(0)]
        how = how_of(self.placements, self.mesh)
        made = Place([(module, FLAT)], flat, how, (None,) * len(how), self.mesh, None, (self.part * count,))
        self._name(self.blanks)
        return [made]

    @property
    def flat(self) -> Tensor:
        return self.places[0].parameter

    # -- where tensors stand ---------------------------------------------------------------------------------------

    def show(self, gathered) -> None:
        if not self.is_open:
            self._name(gathered)

    def hide(self) -> None:
        if not self.is_open:
            self._name(self.blanks)

    def _name(self, tensors) -> None:
        """Have tensors stand under the parameters' names, as plain attributes: only the flat one is a parameter."""
        for sites, t in zip(self.sites, tensors):
            for module, name in sites:
                module.__dict__[name] = t

    def open(self, wholes: list[Tensor]) -> None:
        self._adopt()
        self.is_open = True
        for sites, whole in zip(self.sites, wholes):
            for module, name in sites:
                module.__dict__.pop(name, None)
                module._parameters[name] = whole
        for module, name in self.places[0].sites:
            del module._parameters[name]

    def close(self) -> list[Tensor]:
        found = super().close()
        self.is_open = False
        for sites in self.sites:
            for module, name in sites:
                module._parameters.pop(name, None)
        for place in self.places:
            for module, name in place.sites:
                module._parameters[name] = place.parameter
        self._name(self.blanks if self.gathered is None else self.gathered)
        return found

    def fits(self, t: Tensor, place: Place) -> bool:
        return t is not None and tuple(t.shape) == (self.part,)

    def take(self, t: Tensor, place: Place) -> None:
        t.__dict__.update(place.parameter.__dict__)  # what makes it a FlatParameter
        super().take(t, place)

    # -- parts and wholes ------------------------------------------------------------------------------------------

    def spread(self, parts) -> list:
        return [_joined(p, place.how, self.mesh, place.shape) for p, place in zip(parts, self.places)]

    def whole(self, arrays: list) -> list[Tensor]:
        return self._cut_up(super().whole(arrays)[0])

    def reduced(self, grads: list[Tensor | None]) -> list[Tensor | None]:
        given = next((g for g in grads if g is not None), None)
        if given is None:
            return super().reduced([None])
        filled = [given.new_zeros(shape) if g is None else g for g, shape in zip(grads, self.shapes)]
        (part,) = super().reduced([self._row(filled)])
        return [None if part is None else part._local_tensor]  # type: ignore[attr-defined]  # a DTensor

    def wholes(self) -> list[Tensor]:
        return self.unflattened(self.flat.detach()) if self.places else []

    def write(self, wholes: list[Tensor]) -> None:
        if wholes:
            with no_grad():
                self.flat.copy_(self.flattened(wholes))

    def trained(self) -> list[bool]:
        return [place.parameter.requires_grad for place in self.places for _ in self.sites]

    def whole_gradients(self) -> list[Tensor | None]:
        raise NotImplementedError("with_grads=True, use_orig_params=False is not supported yet; set use_orig_params")

    def unflattened(self, part: Tensor) -> list[Tensor]:
        """What all processes have of a row, in the parameters' shapes: copies."""
        row = DTensor.from_local(part, self.mesh, self.placements).full_tensor()  # type: ignore[attr-defined]
        return [t.clone() for t in self._cut_up(row)]

    def flattened(self, wholes: list[Tensor]) -> Tensor:
        """This process's part of a row of whole tensors: a copy."""
        rank = self.mesh.get_local_rank(self.mesh.ndim - 1)
        return self._row(wholes)[rank * self.part : (rank + 1) * self.part].clone()

    def local(self, t: Tensor) -> Tensor:
        """The flat parameter, or what is like it, as a DTensor without what is only there to make parts equal."""
        own = min(max(self.length - self.mesh.get_local_rank(self.mesh.ndim - 1) * self.part, 0), self.part)
        return DTensor.from_local(t[:own], self.mesh, self.placements, shape=(self.length,), stride=(1,))

    def padded(self, t: Tensor) -> Tensor:
        """What ``local`` made, back."""
        part = t._local_tensor if isinstance(t, DTensor) else t  # type: ignore[attr-defined]
        return PUBLIC["cat"]([part, part.new_zeros(self.part - part.numel())])

    # -- an optimizer's state --------------------------------------------------------------------------------------

    def entries(self, entry: dict) -> list[dict]:
        """What an optimizer keeps for the flat parameter, for each parameter: cut along rows; of the rest, copies."""
        found: list[dict] = [{} for _ in self.sites]
        for key, value in entry.items():
            is_part = isinstance(value, Tensor) and tuple(value.shape) == (self.part,)
            each = [cut_rows(t, self.mesh) for t in self.unflattened(value)] if is_part else [value] * len(found)
            for own, part in zip(found, each):  # a step that several parameters had together would count each of them
                own[key] = part.clone() if isinstance(part, Tensor) and not is_part else part
        return found

    def entry(self, entries: list[dict]) -> dict:
        """What ``entries`` made, whole or cut, back."""
        found = {}
        for key in dict.fromkeys(key for own in entries for key in own):
            values = [own[key] for own in entries]
            if all(isinstance(t, Tensor) and tuple(t.shape) == shape for t, shape in zip(values, self.shapes)):
                found[key] = self.flattened([t.full_tensor() if isinstance(t, DTensor) else t for t in values])
            else:
                found[key] = values[0]
        return found

    def _row(self, wholes: list[Tensor]) -> Tensor:
        padding = self.part * self.mesh.size(self.mesh.ndim - 1) - self.length
        return PUBLIC["cat"]([*[t.reshape(-1) for t in wholes], wholes[0].new_zeros(padding)])

    def _cut_up(self, row: Tensor) -> list[Tensor]:
        parts = row[: self.length].split(self.lengths)
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes)]


def _check(parameters: list[Tensor]) -> None:
    """One row has one dtype, and is trained or not."""
    first = parameters[0]
    for p in parameters:
        if isinstance(p, DTensor):
            raise NotImplementedError(
                "FullyShardedDataParallel: parameters that are DTensors need use_orig_params=True"
            )
        if p.dtype is not first.dtype:
            raise ValueError(f"Must flatten tensors with uniform dtype but got {first.dtype} and {p.dtype}")
        if p.requires_grad is not first.requires_grad:
            raise ValueError("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")
