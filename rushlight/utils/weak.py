"""Tables keyed by objects themselves, not by what they equal, which go when the objects go: for tensors as keys."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from typing import Any

from ..tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that equals those to the very same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other) -> bool:
        mine, yours = self(), other()
        return mine is yours if mine is not None and yours is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dict whose keys are told apart by identity, and leave when nothing else holds them."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data: Any = {}
        self.ref_type, myself = ref_type, weakref.ref(self)

        def remove(gone) -> None:
            table = myself()
            if table is not None:
                table.data.pop(gone, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __setitem__(self, key, value) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __delitem__(self, key) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # nothing that can be held weakly
            return False

    def __iter__(self):
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        return list(self.data)

    def copy(self):
        return type(self)(self)

    __copy__ = copy

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other):
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
