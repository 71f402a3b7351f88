"""profile: time and memory of each operation, module and line of code, forward and backward, as a table or a trace."""
from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import threading
from time import perf_counter_ns
from typing import NamedTuple

from cgrad.core.source import users_line
from cgrad.core import engine, inplace, watchers
from cgrad.core.apply import watch_operators
from cgrad.core.door import Door, watch_calls
from cgrad.core.storage import memory_reset_peak, memory_stats
from cgrad.core.tensor import Tensor
from cgrad.nn.module import Module
from cgrad.ops import PUBLIC
from cgrad.ops.op import Op
from cgrad.show.kept import size_text
from cgrad.show.table import html_table, text_table

__all__ = ["ProfileTable", "ProfileRow", "profile"]

BY = ("op", "module", "line")
_running = threading.Lock()


class ProfileRow(NamedTuple):
    """What one operation, module or line took: seconds of its own in forward and backward, and in all with what was called in it; the
    bytes that live more after its calls than before, without those of what was called in it; the most that one call needed at a time."""

    name: str
    calls: int
    forward: float
    backward: float
    total: float
    nbytes: int
    peak: int


class Event(NamedTuple):
    """A piece of time of one thread, in nanoseconds; `kind` is "call", "module", "backward" (one rule) or "pass" (a whole backward).

    `own` is what counts for `ops[-1]`, None inside a rule of backward, to whose time it belongs.
    """

    kind: str
    ops: tuple[str, ...]
    modules: tuple[str, ...]
    line: tuple[str, int, str] | None
    start: int
    duration: int
    own: int | None
    nbytes: int
    peak: int
    live: int
    shapes: list
    thread: int


class Frame:
    """A call that goes on, and what is known of what happened in it."""

    kind: str
    ops: tuple[str, ...]
    modules: tuple[str, ...]
    root: Module | None
    line: tuple[str, int, str] | None
    shapes: list
    inside: bool                     # a rule of backward
    start: int
    before: int                      # bytes that lived then
    peak_outside: int
    children: int                    # nanoseconds of calls in it
    bytes_inside: int
    boundary: int                    # of a pass: where the rule began that runs
    nested: int                      # and the nanoseconds of whole passes in that


class Thread(threading.local):
    """The calls that go on in a thread, outermost first, and its number in the system, by which `names` gets its name."""

    def __init__(self, names):
        self.stack, self.id = [], threading.get_native_id()
        names[self.id] = threading.current_thread().name


class profile:
    """Measure the time and memory of every operation in a block, forward and backward, by operation, module and line of code.

    A context manager; the block may be entered again, which adds to what was measured. Printing shows the table by operation.

    Raises
    ------
    RuntimeError
        If another profile is on.

    Notes
    -----
    Calls are timed from outside by the clock, with or without ``no_grad``: public functions, methods and operators of tensors, own
    operations (`Op`) and modules. The times of a row are its own: what was called inside an operation has rows of its own, so that the sum of all rows is the
    time spent in cgrad, and ``total`` has both. A backward is cut where its rules end: each node's backward time is that of its rules and
    of adding up what came before; the rest (finding the way, writing ``.grad``) is the row ``backward``. What a checkpoint computes again
    counts as its backward. Making tensors (``zeros``,
    ``randn``), indexing what has no graph and steps of optimizers are not seen.

    Watching costs a few microseconds a call, which small operations show; nothing is paid when no profile is on. All threads are seen,
    each with its own calls; memory is that of the process.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.ones((100, 100), requires_grad=True)
    >>> with cg.profile() as p:
    ...     cg.exp(x * 2.0).sum().backward()
    >>> sorted((row.name, row.calls) for row in p.by("op"))
    [('backward', 1), ('exp', 1), ('multiply', 1), ('sum', 1)]
    >>> print(p)                                                            # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    operation  calls  forward  backward  total  memory  peak
    ...
    >>> p.save("trace.json")                                                                    # doctest: +SKIP
    """

    def __init__(self):
        self.seconds = 0.0
        self.peak_bytes = 0
        self.events = []
        self._nodes = {}             # sequence number of a node -> (modules, line); the node itself would keep memory alive
        self._paths = {}             # module that was called first -> the paths of its parts
        self._threads = {}           # number -> name
        self._thread = Thread(self._threads)

    def __enter__(self):
        functions = _functions()
        if not _running.acquire(blocking=False):
            raise RuntimeError("profile: another profile is on; two cannot measure at a time")
        self._passes = {Tensor.__dict__["backward"], engine.run_backward}
        self._plain_calls = {Module: Module.__call__, Op: Op.__call__}
        Module.__call__, Op.__call__ = self._watched(Module, "module"), self._watched(Op, "call")
        watchers.add("record", self._recorded)
        watchers.add("gradient", self._gradient)
        watch_operators(self)
        inplace.watch_inplace_operators(self)
        watch_calls([*functions, *self._passes], self)
        self._peak_outside = memory_stats()["peak_bytes"]
        memory_reset_peak()
        self._start = perf_counter_ns()
        return self

    def __exit__(self, *exc):
        self.seconds += (perf_counter_ns() - self._start) / 1e9
        peak = memory_stats()["peak_bytes"]
        self.peak_bytes = max(self.peak_bytes, peak)
        memory_reset_peak(max(peak, self._peak_outside))
        watch_calls((), None)
        inplace.watch_inplace_operators(None)
        watch_operators(None)
        watchers.remove("gradient", self._gradient)
        watchers.remove("record", self._recorded)
        for kind, plain in self._plain_calls.items():
            kind.__call__ = plain
        _running.release()

    # ------------------------------------------------------------------ what is measured
    def _enter(self, function, args):
        """A call begins."""
        if function in self._passes:
            self._open("pass", "backward", ())
        else:
            self._open("call", function.__name__, args)

    def _open(self, kind, name, args, module=None):
        stack = self._thread.stack
        outer = stack[-1] if stack else None
        frame = Frame()
        frame.kind, frame.shapes = kind, [list(x.shape) for x in args if isinstance(x, Tensor)]
        frame.root = outer.root if outer else module
        frame.modules, ops = (outer.modules, outer.ops) if outer else ((), ())
        if kind == "module":
            frame.root, frame.ops = frame.root or module, ops
            frame.modules += (self._title(frame.root, module),)
        else:
            frame.ops = (*ops, name)
        frame.line = outer.line if outer and outer.kind != "module" else users_line()
        frame.inside = outer is not None and (outer.inside or outer.kind == "pass")
        frame.children = frame.bytes_inside = frame.nested = 0
        stats = memory_stats()
        frame.before, frame.peak_outside = stats["live_bytes"], stats["peak_bytes"]
        memory_reset_peak()
        stack.append(frame)
        frame.start = frame.boundary = perf_counter_ns()

    def _leave(self):
        """The call that began last ends."""
        end = perf_counter_ns()
        stats = memory_stats()
        stack = self._thread.stack
        frame = stack.pop()
        memory_reset_peak(max(stats["peak_bytes"], frame.peak_outside))
        duration, change = end - frame.start, stats["live_bytes"] - frame.before
        own = duration - frame.children - frame.nested if frame.kind == "pass" or not frame.inside else None
        self._note(frame.kind, frame, frame.start, duration, own, change - frame.bytes_inside, stats["peak_bytes"] - frame.before, stats["live_bytes"])
        if frame.kind == "pass" and frame.inside:
            outer = next(outer for outer in reversed(stack) if outer.kind == "pass")
            outer.nested += duration
            outer.bytes_inside += change
        elif stack and not frame.inside:
            stack[-1].children += duration
            stack[-1].bytes_inside += change

    def _note(self, kind, place, start, duration, own, nbytes, peak, live):
        self.events.append(Event(kind, place.ops, place.modules, place.line, start, duration, own, nbytes, peak, live, place.shapes,
                                 self._thread.id))

    def _recorded(self, node, inputs, results):
        stack = self._thread.stack
        self._nodes[node.sequence_number] = (stack[-1].modules, stack[-1].line) if stack else ((), users_line())

    def _gradient(self, node, i, g):
        """A rule ends; it began where the one before it ended."""
        stack = self._thread.stack
        if not stack or stack[-1].kind != "pass":
            return
        end, frame, rule = perf_counter_ns(), stack[-1], Frame()
        rule.ops, rule.shapes = (node.name,), [list(g.shape)]
        rule.modules, rule.line = self._nodes.get(node.sequence_number, ((), node.source))
        duration = end - frame.boundary
        self._note("backward", rule, frame.boundary, duration, duration - frame.nested, 0, 0, memory_stats()["live_bytes"])
        frame.children += duration
        frame.nested, frame.boundary = 0, perf_counter_ns()

    def _watched(self, owner, kind):
        plain = self._plain_calls[owner]

        @functools.wraps(plain)
        def call(instance, *args, **kwargs):
            self._open(kind, type(instance).__name__, args, instance if kind == "module" else None)
            try:
                return plain(instance, *args, **kwargs)
            finally:
                self._leave()
        return call

    def _title(self, root, module):
        """Sequential, Sequential.0: Linear."""
        if root not in self._paths:
            self._paths[root] = {part: path for path, part in root.named_modules()}
        path, name = self._paths[root].get(module), type(module).__name__
        return f"{type(root).__name__}.{path}: {name}" if path else name

    # ------------------------------------------------------------------ what is shown
    def by(self, what):
        """The rows of a table, longest own time first.

        Parameters
        ----------
        what : {"op", "module", "line"}

        Returns
        -------
        ProfileTable
        """
        if what not in BY:
            raise ValueError(f"profile.by: expected one of {', '.join(map(repr, BY))}, got {what!r}")
        found = {}
        for event in self.events:
            if event.own is None or what == "op" and event.kind == "module":
                continue
            names = _names(event, what)
            for name in dict.fromkeys(names):
                found.setdefault(name, [0, 0, 0, 0, 0, 0])[3] += event.own
            row = found[names[-1]]
            row[0] += _is_call(event, what)
            row[1 if event.kind in ("call", "module") else 2] += event.own
            row[4] += event.nbytes
            row[5] = max(row[5], event.peak)
        rows = [ProfileRow(name, calls, forward / 1e9, backward / 1e9, total / 1e9, nbytes, peak)
                for name, (calls, forward, backward, total, nbytes, peak) in found.items()]
        return ProfileTable(what, sorted(rows, key=lambda row: -row.forward - row.backward), self.seconds)

    def save(self, path):
        """Write a trace in the Trace Event Format, which https://ui.perfetto.dev and chrome://tracing show.

        Parameters
        ----------
        path : str or path-like
        """
        pid, start = os.getpid(), min((event.start for event in self.events), default=0)
        out = [{"name": "process_name", "ph": "M", "pid": pid, "args": {"name": "cgrad"}}]
        out += [{"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}} for tid, name in self._threads.items()]
        for event in sorted(self.events, key=lambda event: (event.start, -event.duration)):          # what is around another event comes first
            name = event.modules[-1] if event.kind == "module" else event.ops[-1] + " backward" * (event.kind == "backward")
            args = {"shapes": event.shapes, "bytes": event.nbytes}
            if event.line:
                args["line"] = f"{event.line[0]}:{event.line[1]}"
            end = (event.start + event.duration - start) / 1e3
            out.append({"name": name, "cat": event.kind, "ph": "X", "ts": (event.start - start) / 1e3, "dur": event.duration / 1e3,
                        "pid": pid, "tid": event.thread, "args": args})
            out.append({"name": "live", "ph": "C", "ts": end, "pid": pid, "tid": event.thread, "args": {"bytes": event.live}})
        with open(path, "w") as file:
            json.dump({"traceEvents": out, "displayTimeUnit": "ms"}, file)

    def __repr__(self):
        return repr(self.by("op"))

    def _repr_html_(self):
        return self.by("op")._repr_html_()


class ProfileTable:
    """Rows of a profile: a sequence of `ProfileRow`, longest own time first, that prints as a table.

    Attributes
    ----------
    rows : list of ProfileRow
    seconds : float
        How long the profile was on.
    """

    def __init__(self, what, rows, seconds):
        self.rows, self.seconds, self._what = rows, seconds, what

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def _table(self):
        rows = [(row.name, str(row.calls), *map(_time_text, (row.forward, row.backward, row.total)), _signed(row.nbytes), size_text(row.peak))
                for row in self.rows]
        forward, backward = sum(row.forward for row in self.rows), sum(row.backward for row in self.rows)
        return [({"op": "operation"}.get(self._what, self._what), "calls", "forward", "backward", "total", "memory", "peak"), *rows,
                ("in all", "", *map(_time_text, (forward, backward, forward + backward)), "", ""),
                ("elsewhere", "", "", "", _time_text(max(self.seconds - forward - backward, 0.0)), "", "")]

    def __repr__(self):
        return text_table(self._table())

    def _repr_html_(self):
        return html_table(self._table())


def _names(event, what):
    """The rows that a piece of time belongs to, the last of which is its own."""
    if what == "op":
        return event.ops
    if what == "module":
        return event.modules or ("(outside)",)
    return (f"{os.path.basename(event.line[0])}:{event.line[1]}" if event.line else "(not known)",)


def _is_call(event, what):
    """Whether a piece of time counts as a call of its row."""
    if what == "module":
        return event.kind == "module"
    return event.kind in ("call", "pass") and (len(event.ops) == 1 if what == "line" else event.ops[-2:-1] != event.ops[-1:])


def _functions():
    """The functions of operations: public ones, and those that only operations call."""
    for name in ("nn.functional", "linalg", "fft", "special"):
        importlib.import_module(f"cgrad.{name}")
    compiled = type(PUBLIC["where"])
    places = ("cgrad.core", "cgrad.ops", "cgrad.nn", "cgrad.linalg", "cgrad.fft", "cgrad.special")
    owners = [Tensor, *(module for name, module in list(sys.modules.items()) if name.startswith(places))]
    return {f for owner in owners for f in vars(owner).values() if isinstance(f, Door) or type(f) is compiled and hasattr(f, "primitive")}


def _time_text(seconds):
    return f"{seconds * 1e3:.3f} ms"


def _signed(nbytes):
    return "-" * (nbytes < 0) + size_text(abs(nbytes))
