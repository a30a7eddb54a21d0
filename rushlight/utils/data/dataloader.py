"""The DataLoader: batches of a dataset, in this process or made ahead by worker processes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import multiprocessing
import os
import signal
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection as connections
from typing import Any, Generic, TypeVar

from ...autograd import mode
from ...errors import warn_user
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import IterableFetcher, MapFetcher
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_collate_fn_t = Callable[[list], Any]
_CHECK_EVERY = 5.0  # seconds after which a silent worker is looked at
_JOIN = 5.0  # seconds that a worker has to end by itself

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _DatasetKind:
    Map, Iterable = 0, 1


class DataLoader(Generic[T_co]):
    """Batches of a dataset, shuffled or not, loaded here or by ``num_workers`` processes.

    >>> _ = rushlight.manual_seed(0)
    >>> for batch in rushlight.utils.data.DataLoader(range(5), batch_size=2, shuffle=True):
    ...     print(batch)
    tensor([1, 4])
    tensor([2, 3])
    tensor([0])

    ``pin_memory`` is accepted and changes nothing: XLA copies from any memory.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.num_workers = dataset, num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.timeout = pin_memory, pin_memory_device, timeout
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if self._dataset_kind == _DatasetKind.Iterable:
            _check_stream_options(shuffle, sampler, batch_sampler)
        _check_batch_options(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = (
            batch_size,
            drop_last,
            sampler,
            batch_sampler,
        )
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn, self.persistent_workers = collate_fn, persistent_workers
        self._IterableDataset_len_called: int | None = None  # of an IterableDataset, once somebody asked for len()
        self._iterator: _MultiProcessingDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self):
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context) -> None:
        self.__multiprocessing_context = None if context is None else _checked_context(context, self.num_workers)

    def __setattr__(self, name, value) -> None:
        if name in _FIXED and self.__dict__.get("_DataLoader__initialized"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if not self.persistent_workers:
            self.check_worker_number_rationality()
            return _MultiProcessingDataLoaderIter(self)
        if self._iterator is None or not self._iterator.is_running():
            self.check_worker_number_rationality()
            self._iterator = _MultiProcessingDataLoaderIter(self)
        else:
            self._iterator.begin(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _default_sampler(self, shuffle, generator):
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        return RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)

    def check_worker_number_rationality(self) -> None:
        """Warn about more workers than the machine has processors."""
        try:
            most = len(os.sched_getaffinity(0))
        except AttributeError:
            most = os.cpu_count() or self.num_workers
        if self.num_workers > most:
            warn_user(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary."
            )


class _InfiniteConstantSampler(Sampler):
    """What stands for indices with a stream: only their number counts."""

    def __iter__(self):
        return itertools.repeat(None)


# -- iterators -------------------------------------------------------------------------------------------------------


def _fetcher_of(loader):
    """A function that makes a fetcher, to be called where the samples are loaded."""
    # Other people's loaders, as fastai's, need only have a loader's attributes.
    kind = IterableFetcher if loader._dataset_kind == _DatasetKind.Iterable else MapFetcher
    return functools.partial(kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)


def _check_pinning() -> None:
    from ...accelerator import is_available

    if not is_available():
        start = "'pin_memory' argument is set as true but no accelerator is found"
        warn_user(f"{start}, then device pinned memory won't be used.")


class _BaseDataLoaderIter:
    """One pass over a loader: what both kinds share."""

    def __init__(self, loader: DataLoader) -> None:
        if loader.pin_memory:
            _check_pinning()
        self._begin(loader)
        # PyTorch draws the workers' seed first, even without workers, so the shuffling after it is the same.
        self._base_seed = draw_seed(loader.generator)

    def _begin(self, loader: DataLoader) -> None:
        self._loader_length = functools.partial(len, loader._index_sampler)
        self._sampler_iter = iter(loader._index_sampler)
        self._stream_length = loader._IterableDataset_len_called
        self._dataset, self._num_workers = loader.dataset, loader.num_workers
        self._num_yielded = 0

    def __iter__(self):
        return self

    def __len__(self) -> int:
        return self._loader_length()

    def __next__(self):
        if mode.active and mode.state.profile is not None:
            name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
            batch = mode.state.profile.range(name, self._next)
        else:
            batch = self._next()
        self._num_yielded += 1
        if self._stream_length is not None and self._num_yielded > self._stream_length:
            self._warn_length()
        return batch

    def _warn_length(self) -> None:
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._stream_length}(when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warn_user(text)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads each batch when it is asked for."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._fetch = _fetcher_of(loader)().fetch

    def _next(self):
        return self._fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has worker processes load batches ahead; batch i is loaded by worker i modulo their number.

    Each worker answers in the order it was asked, so the next batch in order is the next answer of a known worker.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._timeout, self._persistent = loader.timeout, loader.persistent_workers
        self._in_order, self._most_asked = loader.in_order, loader.prefetch_factor or 0
        self._epoch = 0
        self._workers = _start_workers(loader, self._base_seed)
        # Ends the workers when this iterator is gone, and at the latest when the interpreter ends.
        self._stop = weakref.finalize(self, _stop_workers, self._workers, os.getpid())
        self._ask_ahead()

    def is_running(self) -> bool:
        return self._stop.alive

    def begin(self, loader: DataLoader) -> None:
        """Start the next pass with the same workers."""
        self._begin(loader)
        self._epoch += 1
        self._ask_ahead()

    def _ask_ahead(self) -> None:
        self._asked = 0  # number of the next request
        self._waiting: dict[int, int] = {}  # by number of the request: the worker, in order
        self._live = set(range(len(self._workers)))  # workers whose stream has not ended
        self._turn = itertools.cycle(range(len(self._workers)))
        for _ in range(self._most_asked * len(self._workers)):
            self._ask()

    def _ask(self) -> None:
        """Send the next indices to the worker whose turn it is."""
        try:
            indices = next(self._sampler_iter)
        except StopIteration:
            return
        free = self._live if self._in_order else {w for w in self._live if self._asked_of(w) < self._most_asked}
        worker = next((w for w in itertools.islice(self._turn, len(self._workers)) if w in free), None)
        if worker is None:
            return
        with contextlib.suppress(OSError):  # it has died: said when its batch is due
            _worker_module().send(self._workers[worker].connection, (self._epoch, self._asked, indices))
        self._waiting[self._asked] = worker
        self._asked += 1

    def _asked_of(self, worker: int) -> int:
        return sum(w == worker for w in self._waiting.values())

    def _next(self):
        if not self.is_running():
            raise StopIteration
        try:
            return self._next_batch()
        except (KeyboardInterrupt, SystemExit):
            self._stop()
            raise

    def _next_batch(self):
        worker_module = _worker_module()
        while self._waiting:
            number, worker, batch = self._receive()
            self._waiting.pop(number)
            if isinstance(batch, str) and batch == worker_module.STREAM_ENDED:
                self._forget(worker)
                self._ask()
                continue
            self._ask()
            if isinstance(batch, worker_module.ExceptionWrapper):
                batch.reraise()
            return batch
        if not self._persistent:
            self._stop()
        raise StopIteration

    def _forget(self, worker: int) -> None:
        """A stream has ended: what was asked ahead of its worker will not come as batches."""
        self._live.discard(worker)
        self._waiting = {number: w for number, w in self._waiting.items() if w != worker}

    def _receive(self) -> tuple:
        """The next answer of this pass: (number, worker, batch)."""
        while True:
            worker = self._wait()
            try:
                epoch, number, batch = _worker_module().receive(self._workers[worker].connection)
            except (EOFError, OSError, RuntimeError):  # RuntimeError: the descriptor that belongs to it did not come
                self._fail(worker)
            if epoch == self._epoch and number in self._waiting:  # else left over from a pass or stream that ended
                return number, worker, batch

    def _wait(self) -> int:
        """The worker that has an answer: with ``in_order`` the one whose turn it is, else whichever comes first."""
        wanted = [next(iter(self._waiting.values()))] if self._in_order else list(set(self._waiting.values()))
        places = {self._workers[w].connection: w for w in wanted}
        while True:
            ready = connections.wait(list(places), self._timeout or _CHECK_EVERY)
            if ready:
                return places[ready[0]]
            for w in wanted:  # its end of the socket may still be held by a process that it started
                if _ended(self._workers[w].process):
                    self._fail(w)
            if self._timeout:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")

    def _fail(self, worker: int):
        """End all workers, and say that this one died and of what."""
        _ended(self._workers[worker].process, _JOIN)
        dead = [w.process for w in self._workers if _ended(w.process)]
        self._stop()
        pids = ", ".join(str(process.pid) for process in dead)
        cause = None
        code = self._workers[worker].process.exitcode
        if code is not None and code < 0:
            name = signal.strsignal(-code)
            cause = RuntimeError(
                f"DataLoader worker (pid {self._workers[worker].process.pid}) is killed by signal: {name}. "
            )
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause


# -- worker processes ------------------------------------------------------------------------------------------------


class _Worker:
    __slots__ = ("connection", "process")

    def __init__(self, process, connection) -> None:
        self.process, self.connection = process, connection


def _start_workers(loader: DataLoader, base_seed: int) -> list[_Worker]:
    context = loader.multiprocessing_context or multiprocessing.get_context()
    forked = context.get_start_method() == "fork"
    workers: list[_Worker] = []
    try:
        for i in range(loader.num_workers):
            arguments = (_fetcher_of(loader), loader.dataset, base_seed, i, loader.num_workers)
            with _signals_later() as mask:
                ours, theirs = context.Pipe()
                inherited = [ours, *(worker.connection for worker in workers)] if forked else []
                given = (theirs, inherited, mask, *arguments, loader.worker_init_fn)
                process = context.Process(target=_worker_module().worker_loop, args=given, daemon=True)
                process.start()
                theirs.close()  # its last copy is then the worker's, and its end tells that the worker died
                workers.append(_Worker(process, ours))
    except BaseException:
        _stop_workers(workers, os.getpid())
        raise
    return workers


@contextlib.contextmanager
def _signals_later():
    """Ctrl-C while a process starts comes when it has: Python would lose pipes it was making. Gives the old mask.

    So it does while one is reaped: interrupted between the system's answer and its note of it, Python would take a
    process for alive that is gone.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield None
        return
    handled = {s for s in signal.valid_signals() if callable(signal.getsignal(s))}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, handled)  # raises what came a moment before, and has blocked the next
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _stop_workers(workers: list[_Worker], owner: int) -> None:
    """Have all workers end; those that hang are terminated."""
    if os.getpid() != owner:  # a process forked from the owner collects its copy of the iterator
        return
    for worker in workers:
        with contextlib.suppress(OSError):  # it has ended already
            _worker_module().send(worker.connection, None)
        worker.connection.close()
    for process in [worker.process for worker in workers]:
        if _ended(process, _JOIN):
            continue
        process.terminate()
        if not _ended(process, _JOIN):  # it ignores that
            process.kill()
            with _signals_later():
                process.join()


def _ended(process, seconds: float = 0) -> bool:
    """Has it, or will it within so many seconds?"""
    ending = connections.wait([process.sentinel], seconds)
    with _signals_later():
        if ending:
            process.join()
        return not process.is_alive()


def _worker_module():
    """Imported when workers are used: it needs ``multiprocessing``'s machinery."""
    from ._utils import worker

    return worker


def get_worker_info():
    """In a worker process: its ``id``, ``num_workers``, ``seed`` and ``dataset``. In the main process: None."""
    return _worker_module().get_worker_info()


# -- arguments -------------------------------------------------------------------------------------------------------


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream_options(shuffle, sampler, batch_sampler) -> None:
    given = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None and value is not False:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _check_batch_options(batch_size, shuffle, sampler, batch_sampler, drop_last) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context, num_workers: int):
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start "
            f"method, but got multiprocessing_context={context}"
        )
    return context
