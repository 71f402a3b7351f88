"""Data parallelism on MPI: several processes learn to read handwritten digits together
====================================================================================

Each process takes its share of every batch; gradients are averaged while backward goes on, each process keeps its share of Adam's state, and
all of them end with the same bits.  A checkpoint can be gone on with by another number of processes.  The data are the 1,797 digits that come with
scikit-learn.

Run it: ``mpiexec -n 2 python examples/mpi_digits.py`` (with mpi4py, and an MPI such as that of ``pip install mpich``)
"""
import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import cgrad as cg
from cgrad import distributed, nn


def load(seed):
    """Images in [0, 1] as float32 rows of 64 pixels, labels as integers; a fifth of both held out.  The same on every rank."""
    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    return [cg.tensor(part) for part in train_test_split(images, digits.target, test_size=0.2, random_state=seed, stratify=digits.target)]


def build():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def train_epoch(model, optimizer, loader):
    """One pass over this rank's share; the mean loss over the examples of all ranks."""
    model.train()
    loss_of = nn.CrossEntropyLoss()
    total, count = 0.0, 0
    with model.join(optimizer.step):                   # shares may differ by one batch
        for images, labels in loader:
            loss = loss_of(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item() * len(labels), count + len(labels)
    total, count = distributed.all_reduce(cg.tensor([total, count], dtype="float64")).tolist()
    return total / count


def score(model, images, labels):
    """The share of images read correctly; every rank reads some of them."""
    model.eval()
    own = slice(distributed.get_rank(), None, distributed.get_world_size())
    with cg.no_grad():
        right = (model(images[own]).argmax(axis=1) == labels[own]).sum()
    return distributed.all_reduce(right).item() / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, help="a .npz file that is written after each epoch, and gone on with if it is there")
    options = parser.parse_args()

    comm = distributed.init(timeout=120)
    cg.manual_seed(options.seed + comm.rank)           # dropout draws differently on each rank; parameters are those of rank 0
    train_images, test_images, train_labels, test_labels = load(options.seed)
    data = cg.data.TensorDataset(train_images, train_labels)
    sampler = cg.data.DistributedSampler(data, seed=options.seed, pad=False)
    loader = cg.data.DataLoader(data, batch_size=max(options.batch_size // comm.size, 1), sampler=sampler)
    model = distributed.DataParallel(build(), average="examples")
    optimizer = distributed.ShardedOptimizer(cg.optim.Adam(model.parameters(), lr=options.lr))

    done = 0
    if options.checkpoint and options.checkpoint.exists():
        state = cg.load(options.checkpoint)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epochs"]

    def say(text):
        if comm.rank == 0:
            print(text, flush=True)

    parameters = sum(p.size for p in model.parameters())
    say(f"{comm.size} rank{'s' * (comm.size > 1)}, {parameters:,} parameters, {len(data)} digits, {len(sampler)} of them on rank 0")
    started = time.perf_counter()
    for epoch in range(done, options.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(model, optimizer, loader)
        say(f"epoch {epoch + 1:3d}   loss {loss:.4f}   held-out digits read correctly {score(model, test_images, test_labels):.2%}")
        if options.checkpoint:
            distributed.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epoch + 1}, options.checkpoint)
    say(f"trained in {time.perf_counter() - started:.1f} s; reads {score(model, test_images, test_labels):.2%} of the held-out digits")


if __name__ == "__main__":
    main()
