"""Train a small network to read handwritten digits
===================================================

The data are the 1,797 real digits that come with scikit-learn: 8 by 8 pixels, drawn by 43 people.  A fifth of them is held out
and never trained on; the score printed after each epoch is the share of those that the network reads correctly.

Run it: ``python examples/digits.py``
"""
import argparse
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import cgrad as cg
from cgrad import nn

mpl.use("Agg")     # draw into a file; no display needed
import matplotlib.pyplot as plt

SHADES = " .:-=+*#%@"


def load(seed):
    """Images in [0, 1] as float32 rows of 64 pixels, labels as integers; a fifth of both held out, every digit in proportion."""
    digits = load_digits()
    images = (digits.data / 16).astype(np.float32)
    parts = train_test_split(images, digits.target, test_size=0.2, random_state=seed, stratify=digits.target)
    return [cg.tensor(part) for part in parts]


def build():
    """Two hidden layers; dropout, on the pixels as well, keeps so few examples from being learned by heart."""
    return nn.Sequential(
        nn.Dropout(0.1),
        nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.4),
        nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


def train_epoch(model, optimizer, images, labels, batch_size, bar):
    """One pass over the training data in random order; the mean loss."""
    model.train()
    loss_of = nn.CrossEntropyLoss()
    order = cg.randperm(len(images))
    total = 0.0
    for start in range(0, len(images), batch_size):
        batch = order[start:start + batch_size]
        loss = loss_of(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
        bar.update()
    return total / len(images)


def predict(model, images):
    model.eval()                       # dropout off
    with cg.no_grad():                 # nothing to differentiate: record nothing
        return model(images).argmax(axis=1)


def score(model, images, labels):
    """The share of images read correctly."""
    return (predict(model, images) == labels).float().mean().item()


def show(images, labels, guesses, count):
    """A few digits side by side, drawn in characters, with what the network says."""
    pictures = [["".join(SHADES[round(float(v) * 9)] * 2 for v in row) for row in image.numpy().reshape(8, 8)] for image in images[:count]]
    captions = []
    for guess, label in zip(guesses.tolist()[:count], labels.tolist()[:count], strict=True):
        captions.append(f"read {guess}" if guess == label else f"read {guess}, is {label}")
    for lines in zip(*pictures, strict=True):
        print("   ".join(lines))
    print("   ".join(f"{caption:^16}" for caption in captions))


def draw(losses, scores, path):
    """The learning curve as a PNG: loss and held-out error over epochs."""
    epochs = range(1, len(losses) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.semilogy(epochs, losses, color="tab:blue")
    left.set(xlabel="epoch", ylabel="cross-entropy", title="Training loss")
    right.plot(epochs, [100 * s for s in scores], color="tab:orange")
    right.axhline(97, color="grey", linewidth=0.8, linestyle="--")
    right.set(xlabel="epoch", ylabel="read correctly (%)", title=f"Held-out digits: {100 * scores[-1]:.1f} % at the end")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--png", type=Path, default=Path("digits.png"), help="where the learning curve goes (default: %(default)s)")
    options = parser.parse_args()
    if options.epochs < 1 or options.batch_size < 1:
        parser.error("--epochs and --batch-size must be at least 1")

    cg.manual_seed(options.seed)
    train_images, test_images, train_labels, test_labels = load(options.seed)
    model = build()
    optimizer = cg.optim.Adam(model.parameters(), lr=options.lr)
    print(model)
    print(f"{sum(p.size for p in model.parameters()):,} parameters, {len(train_images)} digits to learn from, {len(test_images)} held out")

    losses, scores = [], []
    batches = -(-len(train_images) // options.batch_size)
    started = time.perf_counter()
    with tqdm(total=options.epochs * batches, unit="batch") as bar:
        for epoch in range(1, options.epochs + 1):
            for group in optimizer.param_groups:
                group["lr"] = options.lr * (1 - (epoch - 1) / options.epochs)     # steps get smaller towards the end
            losses.append(train_epoch(model, optimizer, train_images, train_labels, options.batch_size, bar))
            scores.append(score(model, test_images, test_labels))
            bar.write(f"epoch {epoch:3d}   loss {losses[-1]:.4f}   held-out digits read correctly {scores[-1]:.2%}")
    print(f"trained in {time.perf_counter() - started:.1f} s; reads {scores[-1]:.2%} of the held-out digits\n")

    show(test_images, test_labels, predict(model, test_images), count=5)
    draw(losses, scores, options.png)
    print(f"\nlearning curve: {options.png.resolve()}")


if __name__ == "__main__":
    main()
