"""DataLoader: mini-batches of a data set, in order or at random, made in the loop or by workers beside it.

Its parts: `sampler.py` gives the order, `fetch.py` makes a batch, `worker.py` does it elsewhere.
"""
from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Literal, Protocol, TypeVar

import cgrad as cg
from cgrad.data.fetch import END, Fetcher, is_stream
from cgrad.data.sampler import BatchSampler, RandomSampler, SequentialSampler, Shuffler
from cgrad.data.worker import Pool, ProcessWorker, Task, ThreadWorker

__all__ = ["DataLoader"]

T = TypeVar("T", covariant=True)


class _Samples(Protocol[T]):
    def __getitem__(self, index: Any, /) -> T: ...


class DataLoader(Generic[T]):
    """Iterate over a data set in mini-batches.

    Parameters
    ----------
    dataset : Dataset, IterableDataset, or anything with ``len`` and integer indexing, or only with ``iter``
    batch_size : int or None, default 1
        None gives single samples, without a batch axis.
    shuffle : bool, default False
        A new random order for every pass.
    sampler : iterable of int, optional
        The order of the samples; not together with `shuffle`.
    batch_sampler : iterable of list of int, optional
        The samples of each batch; instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    num_workers : int, default 0
        How many workers make batches ahead; 0 makes each when it is asked for.
    collate_fn : callable, optional
        Makes a batch of a list of samples; the default is `default_collate`, or the data set's own ``gather``.  Without a batch size it is
        called with single samples, by default `default_convert`.
    pin_memory, pin_memory_device, in_order
        Accepted for compatibility; batches always come in order.
    drop_last : bool, default False
        Leave out a last batch that is not full (with a stream, of each worker).
    timeout : float, default 0
        Seconds to wait for a batch of a worker; 0 waits as long as it takes.
    worker_init_fn : callable, optional
        Called in each worker at its start, with its number.
    multiprocessing_context : str or context of multiprocessing, optional
        How processes are started, ``"forkserver"`` (the default on Linux), ``"spawn"`` or ``"fork"``.
    generator : Generator, optional
        Where the order comes from; default: the generator of `cgrad.manual_seed`.
    prefetch_factor : int, default 2
        How many batches each worker makes ahead.
    persistent_workers : bool, default False
        Keep the workers for the next pass.
    workers : {"thread", "process"}, optional
        Threads start at once and share the memory; they run beside each other as far as reading files, NumPy and cgrad go.  Processes also
        run Python code beside each other; the data set is sent to each.  Default: threads, or processes with `multiprocessing_context`.
    seed : int, optional
        Makes a generator of its own.

    Raises
    ------
    ValueError, TypeError
        Options that don't go together.
    TimeoutError
        While iterating, if a batch takes longer than `timeout`.

    Notes
    -----
    Batches of a `TensorDataset` are slices (views), or one gather for each tensor when shuffled.

    The order and the batches are the same for any number of workers (of a stream, the order is that of the parts the workers take), also if
    samples draw random numbers from ``get_worker_info().generator``, or in processes from the generators of cgrad, NumPy and Python: each
    batch has a seed of its own.  An error in a data set arrives with the number of the sample and the worker's traceback in its notes.
    `state_dict` says how far a pass is.

    Examples
    --------
    >>> import cgrad as cg
    >>> loader = cg.data.DataLoader(cg.data.TensorDataset(cg.arange(5)), batch_size=2, shuffle=True, seed=0)
    >>> len(loader)
    3
    >>> sorted(i for x, in loader for i in x.tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(self, dataset: _Samples[T] | Iterable[T], batch_size: int | None = 1, shuffle: bool | None = None, sampler: Iterable[Any] | None = None,
                 batch_sampler: Iterable[Any] | None = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
                 pin_memory: bool = False, drop_last: bool = False, timeout: float = 0, worker_init_fn: Callable[[int], Any] | None = None,
                 multiprocessing_context: Any = None, generator: cg.Generator | None = None, *, prefetch_factor: int | None = None,
                 persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
                 workers: Literal["thread", "process"] | None = None, seed: int | None = None):
        if not hasattr(dataset, "__getitem__") and not hasattr(dataset, "__iter__"):
            raise TypeError(f"DataLoader: dataset must have samples, by __getitem__ or __iter__; got {dataset!r:.80}")
        for name, value, method in (("sampler", sampler, "__iter__"), ("batch_sampler", batch_sampler, "__iter__"), ("collate_fn", collate_fn, "__call__"),
                                    ("worker_init_fn", worker_init_fn, "__call__")):
            if value is not None and not hasattr(value, method):
                raise TypeError(f"DataLoader: {name} must be {'a function' if method == '__call__' else 'iterable'}, got {value!r:.80}")
        if generator is not None and not isinstance(generator, cg.Generator):
            raise TypeError(f"DataLoader: generator must be a cgrad.Generator or None, got {type(generator).__name__}")
        if seed is not None and generator is not None:
            raise ValueError("DataLoader: give a seed or a generator, not both")
        if shuffle and sampler is not None:
            raise ValueError("DataLoader: a sampler fixes the order, so shuffle must be False")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError("DataLoader: a batch_sampler fixes the batches, so batch_size, shuffle, sampler and drop_last must be left out")
        if is_stream(dataset) and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(f"DataLoader: {type(dataset).__name__} is a stream, whose order cannot be chosen; "
                             "shuffle, sampler and batch_sampler must be left out")
        if batch_sampler is None and batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1):
            raise ValueError(f"DataLoader: batch_size must be a positive int or None, got {batch_size!r}")
        if batch_size is None and drop_last:
            raise ValueError("DataLoader: drop_last needs a batch_size")
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, workers, multiprocessing_context)
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = bool(shuffle)
        self.drop_last = drop_last
        self.collate_fn = collate_fn
        self.generator = generator if seed is None else cg.Generator(seed)
        self.num_workers = num_workers
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.workers = workers or ("thread" if multiprocessing_context is None else "process")
        if sampler is None and not is_stream(dataset):
            sampler = RandomSampler(dataset, generator=self.generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, bool(drop_last))
        self.batch_sampler = batch_sampler
        self._pool: Pool | None = None
        self._epoch = 0             # the number of the latest pass
        self._position = 0          # batches that it has given
        self._running = False
        self._resuming = False
        self._latest: object = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None, "_latest": None}        # a copy starts workers of its own

    def __len__(self) -> int:
        if is_stream(self.dataset):
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)      # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if not self._resuming:
            self._epoch += 1
            self._position = 0
        self._running, self._resuming = True, False
        fetcher = Fetcher(self.dataset, self.collate_fn, self.batch_size, self.drop_last)
        tasks = self._tasks()
        batches: Iterator[Any]
        if fetcher.is_stream:
            batches = itertools.islice(self._batches(fetcher, tasks), self._position, None)     # there is no other way to its middle
        else:
            batches = self._batches(fetcher, itertools.islice(tasks, self._position, None))
        self._latest = this = object()
        return self._counted(batches, this)

    def _counted(self, batches: Iterator[Any], this: object) -> Iterator[Any]:
        """The batches, while `state_dict` is kept up to date unless a later pass has begun."""
        for batch in batches:
            if self._latest is this:
                self._position += 1
            yield batch
        if self._latest is this:
            self._running, self._position = False, 0

    def _tasks(self) -> Iterator[Task]:
        """What is to be made, batch by batch; the order is drawn here."""
        source: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        pieces = itertools.repeat(None) if source is None else source.pieces() if type(source) is BatchSampler else iter(source)
        seed = (self.generator or cg.random.default_generator()).initial_seed() + (self._epoch << 40)
        return (Task(0, (seed + number) % 2**64, piece) for number, piece in enumerate(pieces))

    def _batches(self, fetcher: Fetcher, tasks: Iterator[Task]) -> Iterator[Any]:
        if self.num_workers:
            return self._made_ahead(fetcher, tasks)
        return itertools.takewhile(lambda batch: batch is not END, (fetcher(task.index) for task in tasks))

    def _made_ahead(self, fetcher: Fetcher, tasks: Iterator[Task]) -> Iterator[Any]:
        """Batches made by workers: they are asked in turn, and answer in the same turn."""
        pool = self._pool if self._pool is not None and self._pool.close.alive else self._start(fetcher)
        self._pool = pool if self.persistent_workers else None
        pool.number_of_pass += 1
        active, asked = deque(pool.workers), deque[Any]()

        def ask() -> None:
            task = next(tasks, None) if active else None
            if task is not None:
                active[0].put(task._replace(number_of_pass=pool.number_of_pass))
                asked.append(active[0])
                active.rotate(-1)

        keep = False
        try:
            for _ in range(self.prefetch_factor * self.num_workers):
                ask()
            while asked:
                worker = asked.popleft()
                batch = pool.collect(worker, self.timeout)
                if batch is END and worker in active:
                    active.remove(worker)
                ask()
                if batch is not END:
                    yield batch
            keep = self.persistent_workers
        except GeneratorExit:                   # the loop was left early
            keep = self.persistent_workers
        finally:
            if not keep:
                pool.close()

    def _start(self, fetcher: Fetcher) -> Pool:
        work = (self.num_workers, fetcher, self.worker_init_fn)
        if self.workers == "thread":
            return Pool([ThreadWorker(i, *work) for i in range(self.num_workers)])
        context = self.multiprocessing_context
        if context is None or isinstance(context, str):
            import multiprocessing
            methods = multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context(context or ("forkserver" if "forkserver" in methods else "spawn"))
        pool = Pool([])
        try:
            for i in range(self.num_workers):
                pool.workers.append(ProcessWorker(context, i, *work))
        except BaseException:
            pool.close()
            raise
        return pool

    def _shuffler(self) -> Shuffler | None:
        source = self.sampler if self.batch_sampler is None else self.batch_sampler
        while source is not None and not isinstance(source, Shuffler):
            source = getattr(source, "sampler", None)
        return source

    def state_dict(self) -> dict[str, Any]:
        """How far the latest pass is, to go on there with `load_state_dict` in another process.

        Batches count when the loop receives them.  The state of a generator of its own is part of it, that of `cgrad.manual_seed` is not: save
        `cgrad.random.get_rng_state` beside it.

        Returns
        -------
        dict
            Numbers and at most one tensor.

        Examples
        --------
        >>> import cgrad as cg
        >>> def loader():
        ...     return cg.data.DataLoader(cg.arange(6), batch_size=2, shuffle=True, seed=0)
        >>> one, other = loader(), loader()
        >>> passing = iter(one)
        >>> _ = next(passing)
        >>> other.load_state_dict(one.state_dict())
        >>> [x.tolist() for x in other] == [x.tolist() for x in passing]
        True
        """
        shuffler = self._shuffler()
        generator = self.generator if shuffler is None else shuffler.generator
        return {"epoch": self._epoch, "position": self._position, "running": self._running,
                "seed": shuffler.seed if shuffler is not None and self._running else None,
                "generator": None if generator is None else generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass be the rest of the one that `state_dict` came from.

        A sampler of one's own must give the same order again.  A stream is gone through up to the place.

        Parameters
        ----------
        state_dict : dict
            Of a loader of the same data set with the same options, except those about workers.

        Raises
        ------
        ValueError
            It is no such state, or this loader draws its order otherwise; nothing is changed then.
        """
        try:
            epoch, position, running, seed, state = (state_dict[key] for key in ("epoch", "position", "running", "seed", "generator"))
        except (KeyError, TypeError):
            raise ValueError("load_state_dict: expected a dict that state_dict of a DataLoader made") from None
        shuffler = self._shuffler()
        generator = self.generator if shuffler is None else shuffler.generator
        if (seed is not None and shuffler is None) or (generator is None) != (state is None):
            raise ValueError("load_state_dict: the state comes from a loader with another sampler, shuffle or generator")
        if generator is not None:
            generator.set_state(state)
        if shuffler is not None:
            shuffler.repeat(seed)
        self._epoch, self._position, self._running, self._resuming = int(epoch), int(position), bool(running), bool(running)
        self._latest = None


def _check_workers(num_workers: Any, timeout: Any, prefetch_factor: Any, persistent: Any, workers: Any, context: Any) -> None:
    if not isinstance(num_workers, int) or isinstance(num_workers, bool) or num_workers < 0:
        raise ValueError(f"DataLoader: num_workers must be an int of at least 0, got {num_workers!r}")
    if not timeout >= 0:
        raise ValueError(f"DataLoader: timeout must be at least 0 seconds, got {timeout!r}")
    if prefetch_factor is not None and (not isinstance(prefetch_factor, int) or prefetch_factor < 1):
        raise ValueError(f"DataLoader: prefetch_factor must be a positive int, got {prefetch_factor!r}")
    if num_workers == 0 and (timeout or prefetch_factor is not None or persistent):
        raise ValueError("DataLoader: timeout, prefetch_factor and persistent_workers need num_workers")
    if workers not in (None, "thread", "process"):
        raise ValueError(f"DataLoader: workers must be 'thread' or 'process', got {workers!r}")
    if workers == "thread" and context is not None:
        raise ValueError("DataLoader: a multiprocessing_context needs workers='process'")
