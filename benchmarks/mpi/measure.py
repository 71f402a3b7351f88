"""What data parallelism costs on this machine, measured: messages, steps, and a picture of one backward.

    mpiexec -n 2 python benchmarks/mpi/measure.py                   messages and steps, as a table
    mpiexec -n 2 python benchmarks/mpi/measure.py --json FILE       the same added to FILE, for model.py
    mpiexec -n 2 python benchmarks/mpi/measure.py --trace FILE      one backward for chrome://tracing or Perfetto, and FILE with .svg
    python benchmarks/mpi/measure.py --alone                        DataParallel on one rank against the bare module

Ways of a step take turns, so that a busy machine shifts all of them alike.
"""
import argparse
import itertools
import json
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from model import pyplot, save

import cgrad as cg
from cgrad import distributed, nn

SIZES = [4, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24]        # bytes


def layers(width, depth):
    cg.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())])


class Traced(distributed.DataParallel):
    """Notes when buckets are sent and when they are there: [name, start, end]."""

    def __init__(self, module, **options):
        super().__init__(module, **options)
        self.spans = []

    def _note(self):
        with self._lock:
            done = self._group.MPI.Request.Testsome(self._requests) or []
        now = time.perf_counter()
        for k in done:
            self.spans[k][2] = now

    def _ready(self, i, p):
        self.hooks.append(time.perf_counter())
        return super()._ready(i, p)

    def _send(self, weight):
        self.spans.append([f"bucket {self._sent}", time.perf_counter(), None])
        super()._send(weight)

    def _progress(self):
        self._note()

    def _finish(self, weight=None):
        self.end = time.perf_counter()
        while self._sent < len(self._buckets):
            self._send(1)
        while any(end is None for _, _, end in self.spans):
            self._note()
            os.sched_yield()
        super()._finish(weight)


def message_times(comm, repeats=15):
    """{bytes: fastest seconds of a non-blocking all-reduce that is asked for its end}."""
    found = {}
    for size in SIZES:
        send, receive, best = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32), np.inf
        for _ in range(repeats):
            comm.Barrier()
            start = time.perf_counter()
            request = comm.Iallreduce(send, receive)
            while not request.Test():
                if comm.size > os.cpu_count():
                    os.sched_yield()
            best = min(best, comm.allreduce(time.perf_counter() - start, op=max))
        found[size] = best
    return found


def add(points, point):
    """Put a point beside the others; of two for the same network and ranks the fastest times are kept."""
    for old in points:
        if (old["network"], old["ranks"]) == (point["network"], point["ranks"]):
            for kind in ("messages", "steps"):
                old[kind] = {key: min(seconds, old[kind].get(key, seconds)) for key, seconds in point[kind].items()}
            return
    points.append(point)


def backward_time(net, x, comm):
    net.zero_grad()
    loss = net(x).square().mean()
    comm.Barrier()
    start = time.perf_counter()
    loss.backward()
    return comm.allreduce(time.perf_counter() - start, op=max)


def step_times(comm, width, depth, rows, repeats):
    """{way: fastest seconds of one backward}, and the number of parameters."""
    x = cg.randn((rows, width))
    ways = {
        "without exchange": layers(width, depth),
        "all at the end": distributed.DataParallel(layers(width, depth), bucket_bytes=1 << 40),
        "buckets": distributed.DataParallel(layers(width, depth)),
        "buckets and a thread": distributed.DataParallel(layers(width, depth), progress_thread=True),
    }
    times = {way: [] for way in ways}
    for turn in range(repeats + 2):
        for way, net in ways.items():
            seconds = backward_time(net, x, comm)
            if turn >= 2:
                times[way].append(seconds)
    return {way: min(seconds) for way, seconds in times.items()}, sum(p.size for p in ways["buckets"].parameters())


def trace(comm, width, depth, rows, thread):
    """The spans of the fastest of some backwards on all ranks, in seconds from its start."""
    net, x, best = Traced(layers(width, depth), progress_thread=thread), cg.randn((rows, width)), None
    for turn in range(12):
        net.zero_grad()
        loss = net(x).square().mean()
        net.spans, net.hooks = [], []
        comm.Barrier()
        start = time.perf_counter()
        loss.backward()
        stop = time.perf_counter()
        seconds = comm.allreduce(stop - start, op=max)
        if turn >= 2 and (best is None or seconds < best[0]):
            spans = [[name, a - start, b - start] for name, a, b in net.spans]
            best = seconds, {"hooks": [t - start for t in net.hooks], "backward": net.end - start, "end": stop - start, "spans": spans}
    return comm.gather(best[1], root=0)


def write_trace(path, panels):
    """Chrome's format: microseconds; a process for each way and rank, backward and each bucket on lines of their own."""
    events = []
    for process, (title, rank, found) in enumerate([(title, rank, found) for title, ranks in panels.items() for rank, found in enumerate(ranks)]):
        def event(name, line, start, end, process=process):
            events.append({"name": name, "ph": "X", "pid": process, "tid": line, "ts": start * 1e6, "dur": (end - start) * 1e6})
        events.append({"name": "process_name", "ph": "M", "pid": process, "args": {"name": f"{title}: rank {rank}"}})
        times = [0.0, *found["hooks"]]
        for k, (start, end) in enumerate(itertools.pairwise(times)):
            event(f"gradient {k}", 0, start, end)
        event("wait, write averages", 0, found["backward"], found["end"])
        for line, (name, start, end) in enumerate(found["spans"]):
            event(name, 1 + line, start, end)
    path.write_text(json.dumps({"traceEvents": events}))


def draw_trace(path, panels):
    """A panel for each way; in it the backward of each rank, and below it its buckets from the moment they are sent until they are there."""
    figure, all_axes = pyplot().subplots(len(panels), 1, figsize=(9, 3.1 * len(panels)), sharex=True, layout="constrained")
    for axes, (title, ranks) in zip(all_axes, panels.items()):
        labels, y = {}, 0.0
        for rank, found in enumerate(ranks):
            times = 1e3 * np.array([0.0, *found["hooks"], found["backward"]])
            axes.barh(y, np.diff(times) - 0.004 * times[-1], left=times[:-1], height=0.9, color="#4c78a8")
            axes.barh(y, 1e3 * (found["end"] - found["backward"]), left=times[-1], height=0.9, color="#bbbbbb")
            labels[y] = f"rank {rank}: backward"
            for k, (_, start, end) in enumerate(found["spans"]):
                axes.barh(y - 0.85 - 0.4 * k, 1e3 * (end - start), left=1e3 * start, height=0.34, color=("#f58518", "#eeae6b")[k % 2])
            y -= 0.85 + 0.4 * len(found["spans"])
            labels[y + 0.2 * len(found["spans"]) + 0.2] = "its buckets"
            y -= 0.7
        axes.set_yticks(list(labels), list(labels.values()))
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    all_axes[-1].set_xlabel("milliseconds from the start of backward (grey: waiting for the rest, writing the averages)")
    save(figure, path)


def alone(repeats=200):
    """The step of `mlp_mnist_step` (784-256-128-10, 128 rows, Adam) by the bare module and by DataParallel on one rank, in turns."""
    rng = np.random.default_rng(5)
    x, y = cg.tensor(rng.standard_normal((128, 784)).astype(np.float32)), cg.tensor(rng.integers(0, 10, 128))

    def step_of(wrap):
        cg.manual_seed(0)
        net = wrap(nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)))
        optimizer = cg.optim.Adam(net.parameters(), lr=1e-3)

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        return step

    steps, times = [step_of(lambda net: net), step_of(distributed.DataParallel)], [[], []]
    for _ in range(repeats):
        for step, seconds in zip(steps, times):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
    for name, pick in (("fastest", min), ("median", np.median)):
        bare, wrapped = map(pick, times)
        print(f"{name}: bare {1e6 * bare:.0f} us, DataParallel on one rank {1e6 * wrapped:.0f} us, ratio {wrapped / bare:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--network", default="shared memory", help="what the points are filed under")
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    comm = distributed.init(timeout=120)
    sizes = options.width, options.depth, options.rows
    if options.alone:
        alone()
    elif options.trace:
        panels = {title: trace(comm, *sizes, thread) for title, thread in
                  [("MPI works when a gradient is ready", False), ("a thread keeps MPI at work", True)]}
        if comm.rank == 0:
            write_trace(options.trace, panels)
            draw_trace(options.trace.with_suffix(".svg"), panels)
    else:
        messages = message_times(comm, options.repeats)
        steps, parameters = step_times(comm, *sizes, options.repeats)
        if comm.rank == 0:
            print(f"{comm.size} ranks, {options.network}")
            for size, seconds in messages.items():
                print(f"  all-reduce of {size:9d} bytes {1e6 * seconds:10.1f} us")
            for way, seconds in steps.items():
                print(f"  backward, {way:21s} {1e3 * seconds:7.1f} ms")
            if options.json:
                points = json.loads(options.json.read_text()) if options.json.exists() else []
                add(points, {"network": options.network, "ranks": comm.size, "messages": {str(k): v for k, v in messages.items()}, "steps": steps,
                             "parameters": parameters})
                options.json.write_text(json.dumps(points, indent=1))


if __name__ == "__main__":
    main()
