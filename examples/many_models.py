"""Many small models on many cores: a hundred networks that read digits, trained in four ways
==========================================================================================

Each network of the ensemble starts from its own seed and draws its own batches.  `train` trains one of them; a plain loop, threads and
joblib's processes call it for each.  `train_together` trains all of them as one batched model by `vmap`.  All four give the same networks.

Run it: ``python examples/many_models.py``
"""
import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from joblib import Parallel, delayed
from sklearn.datasets import load_digits

import cgrad as cg
from cgrad import func, nn
from cgrad.nn import functional as F


def make(seed, width):
    cg.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def batches(x, y, seed, steps, size):
    """Rows of the data that one network sees, drawn from a stream of its own."""
    order = cg.randint(0, len(x), (steps, size), generator=cg.Generator(seed))
    return x[order], y[order]


def train(model, seed, x, y, steps, size):
    """One network; it is returned because a process has trained a copy."""
    optimizer = cg.optim.Adam(model.parameters(), lr=0.01)
    for rows, classes in zip(*batches(x, y, seed, steps, size)):
        loss = F.cross_entropy(model(rows), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def train_together(models, x, y, steps, size):
    """All networks: each parameter is stacked along a new axis, and each operation computes for all of them."""
    parameters, buffers = func.stack_module_state(models)
    optimizer = cg.optim.Adam(parameters.values(), lr=0.01)

    def loss_of_one(parameters, rows, classes):
        return F.cross_entropy(func.functional_call(models[0], (parameters, buffers), rows), classes)

    all_rows, all_classes = map(cg.stack, zip(*(batches(x, y, seed, steps, size) for seed in range(len(models)))))
    for step in range(steps):
        losses = func.vmap(loss_of_one)(parameters, all_rows[:, step], all_classes[:, step])
        optimizer.zero_grad()
        losses.sum().backward()                            # a network's gradient comes from its own loss alone
        optimizer.step()
    for k, model in enumerate(models):
        model.load_state_dict({name: value[k] for name, value in parameters.items()})
    return models


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="of Adam (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="rows a step (default: %(default)s)")
    parser.add_argument("--width", type=int, default=32, help="of the hidden layer (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="threads or processes (default: one for each core)")
    options = parser.parse_args()

    data = load_digits()
    x, y = cg.tensor(data.data / 16, dtype=cg.float32), cg.tensor(data.target)
    x, y, held_out, answers = x[300:], y[300:], x[:300], y[:300]
    arguments = x, y, options.steps, options.batch_size
    seeds = range(options.models)

    def loop(models):
        return [train(model, seed, *arguments) for model, seed in zip(models, seeds)]

    def threads(models):
        with cg.threads(1), ThreadPoolExecutor(options.jobs) as pool:          # the other cores are taken by the other networks
            return list(pool.map(lambda model, seed: train(model, seed, *arguments), models, seeds))

    def processes(models):
        # joblib tells its processes to use one thread each, where there are as many as cores
        return Parallel(options.jobs)(delayed(train)(model, seed, *arguments) for model, seed in zip(models, seeds))

    def vmap(models):
        return train_together(models, *arguments)

    Parallel(options.jobs)(delayed(abs)(0) for _ in range(options.jobs))       # start the processes
    first = None
    for way in (loop, threads, processes, vmap):
        models = [make(seed, options.width) for seed in seeds]
        start = perf_counter()
        models = way(models)
        seconds = perf_counter() - start
        first = first or models
        apart = max((p - q).abs().max().item() for one, other in zip(first, models) for p, q in zip(one.parameters(), other.parameters()))
        print(f"{way.__name__:10} {seconds:6.2f} s, parameters differ from the loop's by {apart:.1e}")

    with cg.no_grad():
        scores = cg.stack([F.softmax(model(held_out), -1) for model in models])
    one = (scores.argmax(-1) == answers).double().mean().item()
    together = (scores.mean(0).argmax(-1) == answers).double().mean().item()
    print(f"a network reads {one:.1%} of the held-out digits, the mean of all {together:.1%}")


if __name__ == "__main__":
    main()
