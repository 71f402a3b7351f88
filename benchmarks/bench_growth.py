"""How cost and memory grow with the graph: flat per operation, linear in all.  `python -m benchmarks.bench_growth FILE.png` draws it."""
import resource
import sys
import time

import cgrad as cg

from .common import tensors

LENGTHS = [10, 100, 1_000, 10_000, 100_000, 1_000_000]


def chain(x, length):
    for _ in range(length):
        x = x * 1.0
    return x


def figures(length):
    """(recording, backward) in nanoseconds for each operation of a chain, the best of several."""
    (x,) = tensors(1, (), requires_grad=True)
    record, back = [], []
    for _ in range(max(3, min(200, 300_000 // length))):
        start = time.perf_counter()
        y = chain(x, length)
        middle = time.perf_counter()
        y.backward()
        record.append(middle - start)
        back.append(time.perf_counter() - middle)
        x.grad = None
    return min(record) * 1e9 / length, min(back) * 1e9 / length


def bytes_of_node(length):
    """Growth of the resident memory for each node of a chain whose rules keep nothing but a number."""
    (x,) = tensors(1, (), requires_grad=True)
    chain(x, length // 2)                        # what dead nodes leave for reuse is freed below
    cg.memory.trim()
    before = resident()
    y = chain(x, length)
    after = resident()
    del y
    return (after - before) / length


def resident():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        raise NotImplementedError("resident memory is read from /proc") from None


class Growth:
    """One operation of a chain of n, recorded and sent back."""
    params = [LENGTHS]
    param_names = ["length"]
    unit = "ns"
    timeout = 300

    def track_record(self, length):
        return figures(length)[0]

    def track_backward(self, length):
        return figures(length)[1]

    track_record.unit = track_backward.unit = "ns"


class NodeMemory:
    """Memory of a recorded operation."""
    params = [[100_000, 1_000_000]]
    param_names = ["length"]

    def track_bytes(self, length):
        return bytes_of_node(length)

    track_bytes.unit = "bytes"


def draw(path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    record, back = zip(*(figures(n) for n in LENGTHS), strict=True)
    lengths = [n for n in LENGTHS if n >= 100_000]
    nodes = [bytes_of_node(n) for n in lengths]
    for row in zip(LENGTHS, record, back, strict=True):
        print("{:>9} operations: {:6.0f} ns recorded, {:6.0f} ns backward, for each".format(*row))
    for row in zip(lengths, nodes, strict=True):
        print("{:>9} operations: {:6.0f} bytes for each".format(*row))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.semilogx(LENGTHS, record, "o-", label="recorded")
    left.semilogx(LENGTHS, back, "s-", label="backward")
    left.set(xlabel="operations in the graph", ylabel="ns for each operation", ylim=(0, None), title="time")
    left.legend()
    right.bar([f"{n:,}" for n in lengths], nodes, width=0.4)
    right.axhline(200, color="gray", linestyle="--", linewidth=1)
    right.set(xlabel="operations in the graph", ylabel="bytes for each node", ylim=(0, 240), title="memory of the tape")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "growth.png")
