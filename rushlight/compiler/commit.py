"""A step is done or it is not, whatever interrupts it.

A program is given the buffers that it writes: once it has started, the old values are gone and the new ones are its
outputs. An exception that comes from outside (Ctrl-C, a signal handler, ``PyThreadState_SetAsyncExc``) can come after
any bytecode, also between the call that returns the outputs and the one that stores them. So there is no bytecode in
between: ``list.extend`` over a ``starmap`` calls the program and stores what it returns, all inside C (``Run``). From
then on the outputs are found in the ``Run``, and putting them into their places (``finish``) may be interrupted and
done again by whoever is next to look: the call itself on its way out, or a reader of one of the tensors.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
from itertools import starmap

# One for all compiled functions: two may share state, which a trace fills with tracers and a program gives away.
LOCK = threading.RLock()
# Held while a program runs and its outputs find their places; readers in other threads wait for that.
RUNNING = threading.RLock()


class Run:
    """One execution: ``outputs`` is empty, or holds what the program returned; ``commit(run)`` puts that in place."""

    __slots__ = ("arguments", "arrays", "call", "commit", "outputs", "results")

    def __init__(self, commit, arguments, arrays, call):
        self.commit, self.arguments, self.arrays, self.call = commit, arguments, arrays, call
        self.outputs, self.results = [], None

    def execute(self, function, inputs) -> None:
        """``function(*inputs)``; it must not run Python code, or an exception may come in the midst of it."""
        self.outputs.extend(starmap(function, (inputs,)))

    def execute_apart(self, function, inputs) -> None:
        """The same in a thread of its own, where no signal arrives: for a function that does run Python code."""
        apart(lambda: self.execute(function, inputs))

    def finish(self) -> None:
        """Put the outputs in their places; to do so once more changes nothing."""
        if self.outputs:
            self.commit(self)


def apart(work) -> None:
    """Run ``work()`` in another thread, to its end even if this one is interrupted meanwhile."""
    done, started, finished = _thread.allocate_lock(), [], []
    done.acquire()

    def body():
        try:
            finished.append((work(), None))
        except BaseException as error:
            finished.append((None, error))
        finally:
            done.release()

    def wait():
        while started and not finished:
            done.acquire(timeout=1)

    try:
        started.extend(starmap(_thread.start_new_thread, ((body, ()),)))
        wait()
    except BaseException:
        insist(wait)
        raise
    ((_, error),) = finished
    if error is not None:
        raise error


def insist(work) -> None:
    """Do ``work()``, again from its start whenever it is interrupted; exceptions of its own come out in the end."""
    for _ in range(9):
        with contextlib.suppress(BaseException):
            work()
            return
    work()
