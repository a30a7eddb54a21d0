"""``torch.ops.aten`` for the tables."""

from __future__ import annotations

from ...autograd import dispatching

__all__ = ["aten", "detached", "in_place"]


class _Aten:
    """``torch.ops.aten``, which stands in a higher layer."""

    def __getattr__(self, name: str):
        from ...library import namespace

        return getattr(namespace("aten"), name)


aten = _Aten()


def in_place(overload):
    """``aten.add_.Tensor`` for ``aten.add.Tensor``."""
    packet = overload.overloadpacket
    if overload.namespace != "aten":
        raise NotImplementedError(f"{packet.__name__}: this operator has no form in place for __torch_dispatch__")
    return getattr(getattr(aten, packet._opname + "_"), overload._overloadname)


def detached(t):
    """``t.detach()`` as a call that is handed over."""
    return t if t is None else dispatching.send(aten.detach.default, (t,), {})
