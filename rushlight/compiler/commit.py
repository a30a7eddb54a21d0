"""A step is done or it is not, whatever interrupts it.

A program is given the buffers that it writes: once it has started, the old values are gone and the new ones are its
outputs. An exception that comes from outside (Ctrl-C, a signal handler, ``PyThreadState_SetAsyncExc``) can come after
any bytecode, also between the call that returns the outputs and the one that stores them. So there is no bytecode in
between: ``list.extend`` over a ``starmap`` calls the program and stores what it returns, all inside C (``Run``). From
then on the outputs are found in the ``Run``, and putting them into their places (``finish``) may be interrupted and
done again by whoever is next to look: the call itself on its way out, or a reader of one of the tensors.

A step is not lost either, whoever looks on: who gives a group of tensors to a program, and who takes a tensor out of
one, holds ``RUNNING``, so other threads wait. A signal handler does not wait, for it runs in the midst of the call. If
it takes a tensor out before the program has the buffers, it takes back the inputs too (``cancel``): then the list that
``starmap`` goes through is empty, nothing runs, and the call begins anew with what the handler has left. A handler that
comes whenever it does so does not hold it up for ever: after some attempts the call runs eagerly.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
from itertools import starmap

# One for all compiled functions: two may share state, which a trace fills with tracers and a program gives away.
LOCK = threading.RLock()
# Held while tensors are gathered for a program, it runs, and its outputs find their places; and by who takes one out.
RUNNING = threading.RLock()


class Run:
    """One execution: ``outputs`` is empty, or holds what the program returned; ``commit(run)`` puts that in place.

    ``inputs`` holds what the program is given, and is empty before that is known, and once it is taken back. ``lost``
    is the error of whoever wants new values: the program has failed, and has what it was given.
    """

    __slots__ = ("arguments", "arrays", "call", "commit", "inputs", "lost", "outputs", "results", "wait")

    def __init__(self, commit, arguments, arrays, call):
        self.commit, self.arguments, self.arrays, self.call = commit, arguments, arrays, call
        self.inputs: list[tuple] = []
        self.outputs, self.results, self.wait = [], None, None
        self.lost: Exception | None = None

    def execute(self, function) -> None:
        """``function(*inputs)``; it must not run Python code, or an exception may come in the midst of it."""
        self.outputs.extend(starmap(function, self.inputs))

    def execute_apart(self, function) -> None:
        """The same in a thread of its own, where no signal arrives: for a function that does run Python code."""
        thread = Apart(lambda: self.execute(function))
        self.wait = thread.wait  # a signal handler that needs the outputs waits too
        thread.run()

    def execute_asked(self, asked) -> None:
        """The same in the thread of ``asked``, a call that fills ``outputs``, which has a time limit."""
        self.wait = asked.wait
        try:
            asked.start()
            asked.wait()
        except BaseException:
            insist(asked.wait)
            raise
        asked.result()

    def finish(self) -> None:
        """Put the outputs in their places; to do so once more changes nothing."""
        if self.wait is not None:
            self.wait()
        if self.outputs:
            self.commit(self)
        elif self.lost is not None:
            raise self.lost.with_traceback(None)

    def cancel(self) -> bool:
        """Take the inputs back, if the program does not have them yet."""
        if not self.outputs:
            self.inputs.clear()
        return not self.outputs


class Apart:
    """``work()`` in another thread, to its end even if this one is interrupted meanwhile."""

    def __init__(self, work):
        self._work, self._done = work, _thread.allocate_lock()
        self._started: list[int] = []
        self._finished: list[BaseException | None] = []

    def run(self) -> None:
        self._done.acquire()
        try:
            self._started.extend(starmap(_thread.start_new_thread, ((self._body, ()),)))
            self.wait()
        except BaseException:
            insist(self.wait)
            raise
        (error,) = self._finished
        if error is not None:
            raise error

    def wait(self) -> None:
        while self._started and not self._finished:
            if self._done.acquire(timeout=1):
                self._done.release()

    def _body(self) -> None:
        try:
            self._work()
            self._finished.append(None)
        except BaseException as error:
            self._finished.append(error)
        finally:
            self._done.release()


def insist(work) -> None:
    """Do ``work()``, again from its start whenever it is interrupted; exceptions of its own come out in the end."""
    for _ in range(9):
        with contextlib.suppress(BaseException):
            work()
            return
    work()
