"""Workers, which make batches beside the loop: threads of this process or processes of their own.

Each worker makes its batches in the order it was asked for them, and the loop asks and collects in turn, so that nothing has to be put in
order.  A process receives its tasks in a thread, which also notices that the main process has gone; batches come back through a socket,
the memory of tensors and arrays beside the pickle (protocol 5), without being copied into it.  Next: `loader.py`.
"""
from __future__ import annotations

import copy
import os
import pickle
import queue
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import cgrad as cg
from cgrad.data.fetch import Fetcher

__all__ = ["Pool", "ProcessWorker", "Task", "ThreadWorker", "WorkerInfo", "get_worker_info"]

_PATIENCE = 2.0         # seconds that a worker has for the batch it is at when it is stopped
_here = threading.local()


class WorkerInfo(NamedTuple):
    """What a data set can know about the worker it is used in: see `get_worker_info`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.data.WorkerInfo(id=0, num_workers=2, dataset=[1, 2], generator=cg.Generator(7)).seed
    7
    """

    id: int
    num_workers: int
    dataset: Any
    generator: cg.Generator

    @property
    def seed(self) -> int:
        """The seed of the batch."""
        return self.generator.initial_seed()


class Task(NamedTuple):
    """A batch to be made: the pass it belongs to, the seed of its random numbers, and what `Fetcher` takes."""

    number_of_pass: int
    seed: int
    index: Any


class Result(NamedTuple):
    """What became of a task: a batch (or END, at the end of a stream), or the error it ended in."""

    number_of_pass: int
    batch: Any
    error: BaseException | None


def get_worker_info() -> WorkerInfo | None:
    """Which worker of a `DataLoader` this is; None outside of workers.

    Returns
    -------
    WorkerInfo or None
        ``id`` and ``num_workers``, ``dataset``, and ``generator``: random numbers of its own, started from a ``seed`` for each batch, so that
        they don't depend on the number of workers.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Count(cg.data.IterableDataset):
    ...     def __iter__(self):
    ...         info = cg.data.get_worker_info()
    ...         return iter(range(6) if info is None else range(info.id, 6, info.num_workers))
    >>> loader = cg.data.DataLoader(Count(), batch_size=2, num_workers=2)
    >>> [batch.tolist() for batch in loader]
    [[0, 2], [1, 3], [4], [5]]
    """
    return getattr(_here, "info", None)


def _work(number: int, num_workers: int, fetcher: Fetcher, init: Callable[[int], Any] | None, seed_all: bool,
          receive: Callable[[], Task | None], send: Callable[[Result], None]) -> None:
    """The life of a worker: for each task a `Result`."""
    generator, fetcher = cg.Generator(0), copy.copy(fetcher)        # threads share the data set, but not where they are in a stream
    _here.info = WorkerInfo(number, num_workers, fetcher.dataset, generator)
    started, current = init is None, None
    while (task := receive()) is not None:
        try:
            if not started:
                init(number)                    # type: ignore[misc]
                started = True
            if task.number_of_pass != current:
                fetcher.restart()
                current = task.number_of_pass
            generator.manual_seed(task.seed)
            if seed_all:
                _seed_all(task.seed)
            result = Result(task.number_of_pass, fetcher(task.index), None)
        except BaseException as error:
            error.add_note(f"DataLoader: this happened in worker {number}")
            result = Result(task.number_of_pass, None, error)
        send(result)
        del result


def _seed_all(seed: int) -> None:
    """Random numbers of a process of its own: cgrad's, Python's and NumPy's."""
    import random

    import numpy as np
    cg.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)                # noqa: NPY002


class ThreadWorker:
    """A worker in a thread of this process."""

    def __init__(self, number: int, *work: Any):
        self.number = number
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Result] = queue.SimpleQueue()
        self.thread = threading.Thread(target=_work, args=(number, *work, False, self.tasks.get, self.results.put), daemon=True,
                                       name=f"DataLoader worker {number}")
        self.thread.start()

    def put(self, task: Task) -> None:
        """Ask for a batch."""
        self.tasks.put(task)

    def get(self, timeout: float | None) -> Result:
        """The next result."""
        try:
            return self.results.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError from None

    def stop(self) -> None:
        """Ask it to end after the batch it is at."""
        while True:
            try:
                self.tasks.get_nowait()
            except queue.Empty:
                break
        self.tasks.put(None)

    def join(self) -> None:
        """Wait until it has ended; one that takes too long is left alone and dies with the process."""
        if threading.current_thread() is not self.thread:       # in which the collector may have found the loader
            self.thread.join(_PATIENCE)


class ProcessWorker:
    """A worker in a process of its own."""

    def __init__(self, context: Any, number: int, *work: Any):
        self.number = number
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_process, args=(theirs, cg.get_default_dtype(), number, *work), daemon=True, name=f"DataLoader worker {number}")
        try:
            self.process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self.connection.close()
            raise TypeError(f"DataLoader: the data set, collate_fn or worker_init_fn cannot be sent to a process ({error}); define what they "
                            "are made of at the top of a module, or use workers='thread'") from error
        finally:
            theirs.close()

    def put(self, task: Task | None) -> None:
        """Ask for a batch, or with None for the end."""
        try:
            self.connection.send(task)
        except OSError:
            pass                                # it has died, which `get` reports

    def get(self, timeout: float | None) -> Result:
        """The next result."""
        from multiprocessing.connection import wait
        ready = wait([self.connection, self.process.sentinel], timeout)
        if not ready:
            raise TimeoutError
        try:
            if self.connection in ready:
                return _receive(self.connection)
        except (EOFError, ConnectionError):
            pass
        self.process.join(_PATIENCE)
        raise RuntimeError(f"DataLoader: worker {self.number} (process {self.process.pid}) has ended with exit code {self.process.exitcode} "
                           "before its batch was made; was it out of memory, or does the script lack "
                           "if __name__ == '__main__': around what it starts?")

    def stop(self) -> None:
        """Ask it to end after the batch it is at, which nobody will receive."""
        self.put(None)
        self.connection.close()

    def join(self) -> None:
        """Wait until it has ended; one that takes too long is killed."""
        self.process.join(_PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()


def _process(connection: Any, default_dtype: Any, *work: Any) -> None:
    """The main function of a process."""
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # Ctrl-C is the main process's to handle, which then closes the connection
    cg.set_num_threads(1)                               # the workers share the cores
    cg.set_default_dtype(default_dtype)
    tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, tasks), daemon=True).start()
    try:
        _work(*work, True, tasks.get, lambda message: _send(connection, message))
    except OSError:
        pass                                            # nobody is there to receive


def _listen(connection: Any, tasks: queue.SimpleQueue[Task | None]) -> None:
    """Take in tasks, however far the worker is behind, until the end is asked for or the main process has gone; then the worker may
    finish its batch, but not longer."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait
    parent = parent_process().sentinel          # type: ignore[union-attr]
    try:
        while parent not in wait([connection, parent]):
            task = connection.recv()
            if task is None:
                break
            tasks.put(task)
    except (EOFError, OSError):
        pass
    while not tasks.empty():
        tasks.get_nowait()
    tasks.put(None)
    time.sleep(_PATIENCE)
    os._exit(1)


def _send(connection: Any, result: Result) -> None:
    buffers: list[pickle.PickleBuffer] = []
    error = result.error
    try:
        if error is not None:
            error.add_note("".join(traceback.format_exception(error)))      # a traceback is not pickled
            pickle.loads(pickle.dumps(error))                               # and some errors can be, but not be read again
        data = pickle.dumps(result, 5, buffer_callback=buffers.append)
    except Exception as problem:
        text = f"DataLoader: a batch of a worker cannot be sent ({problem!r})" if error is None else "".join(traceback.format_exception(error))
        buffers, data = [], pickle.dumps(result._replace(batch=None, error=RuntimeError(text)))
    parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    connection.send([part.nbytes for part in parts])
    for part in parts:
        connection.send_bytes(part)


def _receive(connection: Any) -> Result:
    parts = []
    for nbytes in connection.recv():
        memory = cg.empty((nbytes,), dtype=cg.uint8).numpy()        # from the cache of tensors, whose pages are warm
        connection.recv_bytes_into(memory)
        parts.append(memory)
    result: Result = pickle.loads(parts[0], buffers=parts[1:])
    return result


class Pool:
    """The workers of a loader, which are stopped by `close`, when nobody needs them, or at the end of the program."""

    def __init__(self, workers: list[Any]):
        self.workers = workers
        self.number_of_pass = 0
        self.close = weakref.finalize(self, _close, workers)

    def collect(self, worker: Any, timeout: float) -> Any:
        """The next batch of a worker."""
        while True:
            try:
                result = worker.get(timeout or None)
            except TimeoutError:
                raise TimeoutError(f"DataLoader: worker {worker.number} has not made its batch within {timeout} s") from None
            if result.number_of_pass == self.number_of_pass:        # else it belongs to a pass that was broken off
                break
        if result.error is None:
            return result.batch
        try:
            raise result.error
        finally:
            del result                          # its traceback refers to this frame


def _close(workers: list[Any]) -> None:
    for worker in workers:
        worker.stop()
    for worker in workers:
        worker.join()
