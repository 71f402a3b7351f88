"""What data parallelism costs on many ranks: formulas for an all-reduce, and a simulation of a backward whose buckets are sent meanwhile.

    python benchmarks/mpi/model.py                          tables: messages and backwards measured by measure.py beside the model, then 2 to 1,024 ranks
    python benchmarks/mpi/model.py --svg FILE               the pictures of docs/background/data-parallel.md

A message of n bytes takes alpha + n * beta seconds between two ranks, whichever they are (the sum of what arrives is part of beta).  The formulas are those
of Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005).
"""
import argparse
import json
from math import ceil, inf, log2
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Network(NamedTuple):
    alpha: float                   # seconds for any message
    beta: float                    # seconds for each byte
    window: float = 256 << 10      # bytes that go on their way without MPI being called again: what the buffers of a socket hold

    def time(self, n):
        return self.alpha + n * self.beta


NETWORKS = {"10 Gbit/s Ethernet": Network(25e-6, 1 / 1.1e9), "100 Gbit/s InfiniBand": Network(2e-6, 1 / 11e9, inf)}


# ------------------------------------------------------------------------------------------- an all-reduce: [bytes of the messages of each of its rounds]
def recursive_doubling(p, n):
    """Everything to a partner, log2(p) times: fewest rounds, for short messages."""
    return [n] * ceil(log2(p))


def rabenseifner(p, n):
    """Halves, quarters, ... are summed (reduce-scatter), then put together again (all-gather)."""
    halving = [n / 2**k for k in range(1, ceil(log2(p)) + 1)]
    return halving + halving[::-1]


def ring(p, n):
    """A p-th to the neighbour, 2 (p - 1) times: every link is busy all the time, but the rounds are many."""
    return [n / p] * (2 * (p - 1))


def all_reduce(p, n, net):
    """The rounds of the fastest, and their time."""
    if p == 1:
        return [], 0.0
    rounds = min((algorithm(p, n) for algorithm in (recursive_doubling, rabenseifner, ring)), key=lambda rounds: sum(map(net.time, rounds)))
    return rounds, sum(map(net.time, rounds))


# ------------------------------------------------------------------------------------------- a backward
def buckets_of(sizes, limit):
    """[(bytes, number of the gradient that fills it)] of gradients of these sizes, in the order in which they come."""
    buckets, size = [], 0
    for k, n in enumerate(sizes):
        size += n
        if size >= limit or k == len(sizes) - 1:
            buckets.append((size, k))
            size = 0
    return buckets


def simulate(p, seconds, sizes, net, limit=1 << 20, progress="thread"):
    """The time from the start of backward until all averages are there.

    Gradient k comes `seconds[k]` after the one before and has `sizes[k]` bytes.  Buckets go over the network one after the other.  With `progress`
    "thread" a round follows the one before at once; with "hooks" MPI goes on only when a gradient comes, or after backward, and then as far as the window
    of the network; with "end" all is sent after backward.
    """
    ready, t = [], 0.0
    for s in seconds:
        t += s
        ready.append(t)
    backward = t
    free = 0.0                             # when the network is
    for size, last in buckets_of(sizes, limit):
        free = max(free, backward if progress == "end" else ready[last])
        rounds, duration = all_reduce(p, size, net)
        if progress != "hooks":
            free += duration
            continue
        for n in rounds:
            pieces = max(ceil(n / net.window), 1)
            for _ in range(pieces):
                free += net.time(n) / pieces
                if free < backward:
                    free = min(r for r in ready if r >= free)
    return max(free, backward)


# ------------------------------------------------------------------------------------------- measured points
def fit(messages, p):
    """The network that explains two of the measured messages best: the shortest gives alpha, one of 4 MiB beta."""
    short, long = messages["4"], messages[str(1 << 22)]
    alpha = short / ceil(log2(p))
    return Network(alpha, max(long - 2 * ceil(log2(p)) * alpha, 0) / ((1 << 22) * 2 * (p - 1) / p))


def beside_measured(points):
    networks = {}
    for point in points:
        p = point["ranks"]
        net = networks.setdefault(point["network"], fit(point["messages"], p))       # from the fewest ranks; the others are foretold
        print(f"\n{point['network']}, {p} ranks: alpha {1e6 * net.alpha:.1f} us, {1e-9 / net.beta:.2f} GB/s")
        print(f"{'bytes':>12s} {'measured us':>12s} {'model us':>12s}")
        for n, seconds in point["messages"].items():
            print(f"{n:>12s} {1e6 * seconds:12.1f} {1e6 * all_reduce(p, int(n), net)[1]:12.1f}")
        alone, n_layers = point["steps"]["without exchange"], 6
        sizes = [4 * point["parameters"] / n_layers] * n_layers
        for way, progress in [("all at the end", "end"), ("buckets", "hooks"), ("buckets and a thread", "thread")]:
            model = simulate(p, [alone / n_layers] * n_layers, sizes, net, progress=progress)
            print(f"{way:>25s}: measured {1e3 * point['steps'][way]:6.1f} ms, model {1e3 * model:6.1f} ms (without exchange {1e3 * alone:.1f})")


# ------------------------------------------------------------------------------------------- what it says for many ranks
LAYERS, SECONDS, BYTES = 6, 0.19, 25.2e6           # the network of measure.py: a backward of 1,024 rows on one core
RANKS = [2**k for k in range(1, 11)]


def efficiency(p, net, limit=1 << 20, progress="thread", seconds=SECONDS, layers=LAYERS, size=BYTES):
    """The share of its time that a rank computes, where forward takes half as long as backward."""
    spent = simulate(p, [seconds / layers] * layers, [size / layers] * layers, net, limit, progress)
    return 1.5 * seconds / (0.5 * seconds + spent)


def foretold():
    for name, net in NETWORKS.items():
        print(f"\n{name}: share of the time that a rank computes (%)")
        print(f"{'ranks':>25s} " + " ".join(f"{p:5d}" for p in RANKS))
        for title, options in [("all at the end", {"progress": "end"}), ("buckets", {"progress": "hooks"}), ("buckets and a thread", {}),
                               ("the same, 128 rows", {"seconds": SECONDS / 8})]:
            print(f"{title:>25s} " + " ".join(f"{100 * efficiency(p, net, **options):5.1f}" for p in RANKS))


def pyplot():
    """matplotlib, set so that `save` can put its pictures into a page."""
    import matplotlib as mpl
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "cgrad", "svg.fonttype": "none", "font.family": "sans-serif"})
    import matplotlib.pyplot as plt
    return plt


def save(figure, path):
    """An SVG in the colours of the text around it."""
    figure.savefig(path, metadata={"Date": None}, transparent=True)
    text = path.read_text()
    path.write_text(text[text.index("<svg"):].replace("<svg ", '<svg fill="currentColor" ', 1).replace("#000000", "currentColor"))


def draw(path):
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained")
    for (name, net), color in zip(NETWORKS.items(), ("#4c78a8", "#f58518")):
        for progress, style, what in [("thread", "-", "buckets, thread"), ("hooks", "--", "buckets"), ("end", ":", "at the end")]:
            left.semilogx(RANKS, [100 * efficiency(p, net, progress=progress) for p in RANKS], style, color=color, base=2, label=f"{name}: {what}")
    left.set(xlabel="ranks", ylabel="share of the time that a rank computes (%)", ylim=(70, 100.5), title="25 MB of gradients, backward of 190 ms")
    left.set_xticks(RANKS[::3], RANKS[::3])
    left.legend(fontsize=8, frameon=False, loc="lower left")
    limits = [2**k for k in range(14, 26)]
    net, count, seconds = NETWORKS["10 Gbit/s Ethernet"], 1600, 0.06
    for p, color in zip((4, 32, 256, 1024), ("#9ecae9", "#4c78a8", "#f58518", "#e45756")):
        spent = [1e3 * (simulate(p, [seconds / count] * count, [BYTES / count] * count, net, limit) - seconds) for limit in limits]
        right.loglog(limits, spent, color=color, label=f"{p} ranks")
    right.axvline(1 << 20, color="grey", linewidth=0.8, linestyle="--")
    right.set(xlabel="bucket_bytes (dashed: the default)", ylabel="ms that backward takes longer", title="1,600 gradients in 60 ms, 25 MB, 10 Gbit/s")
    right.set_xticks([1 << 14, 1 << 17, 1 << 20, 1 << 23], ["16 KiB", "128 KiB", "1 MiB", "8 MiB"])
    right.legend(fontsize=8, frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=Path, default=HERE / "points.json", help="what measure.py has written")
    parser.add_argument("--svg", type=Path)
    options = parser.parse_args()
    if options.svg:
        draw(options.svg)
        return
    if options.points.exists():
        beside_measured(json.loads(options.points.read_text()))
    foretold()


if __name__ == "__main__":
    main()
