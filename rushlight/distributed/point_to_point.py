"""From one process to another: ``send``, ``recv`` and what stands around them."""

from __future__ import annotations

import hashlib
import queue
import threading

import numpy as np

from ..tensor import Tensor
from . import world
from .collectives import check_tensor, flat, store
from .errors import DistBackendError
from .work import Work, apart, done
from .world import GroupMember, get_global_rank, is_outside, rank_in, refuse_outside, the

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Start to send to one process. The values are copied: ``tensor`` may be written at once."""
    check_tensor(tensor, "tensor")
    if is_outside(group, "isend"):
        return None
    group = the(group)
    target = rank_in(group, dst, group_dst, "send")
    if target == group.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    mail, me, to = _mail(), group.ranks[group.rank()], group.ranks[target]
    mail.send(_number(group, me, to, tag, _count(group, me, to, tag)), _plain(tensor))
    return done([tensor])


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Start to receive from one process; with none named, from whichever sends first."""
    check_tensor(tensor, "tensor")
    if is_outside(group, "irecv"):
        return None
    group = the(group)
    me = group.ranks[group.rank()]
    mail, x = _mail(), _plain(tensor)
    if src is None and group_src is None:
        return _from_anyone(mail, tensor, x, group, tag)
    source = group.ranks[rank_in(group, src, group_src, "recv")]
    if source == me:
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    waiting = _early.pop((group.number, source, tag), None)
    if waiting is None:
        waiting = _Letter(mail, group, source, tag, x)
    label = f"recv of rank {me} from rank {source}"
    work = apart(label, waiting.wait, lambda found: _deliver(tensor, found), [tensor], group.seconds())
    work._source = source
    return work


def send(tensor, dst=None, group=None, tag=0, group_dst=None) -> None:
    """Send to one process."""
    refuse_outside(group)
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None) -> int:
    """Receive into ``tensor``; from whom it came."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One ``isend`` or ``irecv`` for ``batch_isend_irecv``."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        if group == GroupMember.NON_GROUP_MEMBER:
            self.group, self.peer, self.group_peer = group, peer, -1
            return
        self.group = the(group)
        self.group_peer = rank_in(self.group, peer, group_peer, op.__name__[1:])
        self.peer = get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        where = f"group_src={self.group.rank()}, group_dst={self.group_peer}"
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, {where},  {self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list) -> list[Work]:
    """Start several sends and receives; a ``Work`` for each, but those of groups that this process is not in."""
    if not p2p_op_list[0:1]:
        raise IndexError("list index out of range")
    for op in p2p_op_list:
        if not isinstance(op, P2POp):
            raise ValueError(
                "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
            )
    works = [op.op(op.tensor, group=op.group, tag=op.tag, **_peer(op)) for op in p2p_op_list]
    return [work for work in works if work is not None]


def _peer(op: P2POp) -> dict:
    return {"group_dst" if op.op is isend else "group_src": op.group_peer}


# -- how it goes -------------------------------------------------------------------------------------------------------


class _Letter:
    """A message that is on its way to this process, or will be."""

    def __init__(self, mail, group, source: int, tag: int, x: np.ndarray):
        me = group.ranks[group.rank()]
        number = _number(group, source, me, tag, _count(group, source, me, tag))
        self.source, self.size, self.dtype, self.label = (
            source,
            x.size,
            x.dtype,
            f"recv of rank {me} from rank {source}",
        )
        self._got: queue.SimpleQueue = queue.SimpleQueue()
        self._anyone: queue.SimpleQueue | None = None
        threading.Thread(target=self._fetch, args=(mail, number), name=self.label, daemon=True).start()

    def tell(self, anyone: queue.SimpleQueue) -> None:
        """Have ``anyone`` get this letter when it is there."""
        self._anyone = anyone
        if not self._got.empty():
            anyone.put(self)

    def wait(self) -> np.ndarray:
        found = self._got.get()
        if isinstance(found, Exception):
            world._world.failed = True
            raise DistBackendError(f"{self.label} failed: {found}")
        return found

    def _fetch(self, mail, number: int) -> None:
        try:
            if self.source not in mail.addresses:
                store = world._world.store.clone()  # waiting for it holds up nobody else who asks the store
                mail.addresses[self.source] = store.get(f"rushlight/mail/{self.source}").decode()
            self._got.put(mail.fetch(mail.addresses[self.source], number, self.size, self.dtype))
        except Exception as error:
            self._got.put(error)
        if self._anyone is not None:
            self._anyone.put(self)


_early: dict = {}  # letters that a receive from anyone began to fetch, and another one's came first


def _from_anyone(mail, tensor: Tensor, x, group, tag) -> Work:
    first: queue.SimpleQueue = queue.SimpleQueue()
    for source in group.ranks:
        if source != group.ranks[group.rank()]:
            key = (group.number, source, tag)
            if key not in _early:
                _early[key] = _Letter(mail, group, source, tag, x)
            _early[key].tell(first)

    def run():
        letter = first.get()
        while _early.get((group.number, letter.source, tag)) is not letter:
            letter = first.get()  # told twice
        del _early[(group.number, letter.source, tag)]
        work._source = letter.source
        return letter.wait()

    label = f"recv of rank {group.rank()} from any rank"
    work = Work(label, run, lambda found: _deliver(tensor, found), [tensor], group.seconds())
    threading.Thread(target=work.carry, name=label, daemon=True).start()
    return work


def _deliver(tensor: Tensor, found: np.ndarray) -> None:
    store(tensor, found.view(np.dtype(tensor._array.dtype)))


def _plain(tensor: Tensor) -> np.ndarray:
    """The values as bytes in the host's memory: messages have no dtype of their own."""
    return np.asarray(flat(tensor)).view(np.uint8)


def _mail():
    """This process's post; others find it in the store."""
    if world._world.mail is None:
        from ..engine.xla.collectives import Mail

        mail = Mail(world._world.host)
        _early.clear()
        world._world.store.set(f"rushlight/mail/{the(None).rank()}", mail.address())
        world._world.mail = mail
    return world._world.mail


def _count(group, source: int, target: int, tag: int) -> int:
    key = (group.number, source, target, tag)
    world._world.counts[key] = world._world.counts.get(key, 0) + 1
    return world._world.counts[key]


def _number(group, *what: int) -> int:
    digest = hashlib.blake2b(repr((group.number, *what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
