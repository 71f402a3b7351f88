"""Train a convolutional network in the style of LeNet-5 to read handwritten digits
===================================================================================

The data are the 1,797 real digits that come with scikit-learn, 8 by 8 pixels each, of which a fifth is held out.  LeNet was made for
images four times as large in each direction; here two convolutions with a pool between them see the digits enlarged to 16 by 16.  In
training each digit is moved by up to a pixel, so that the network sees it at many places.

Run it: ``python examples/lenet.py``
"""
import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F


class LeNet(nn.Module):
    """Convolutions find strokes, then their combinations; three linear layers read the digit off them."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 120), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, 10),
        )

    def forward(self, images):
        return self.classifier(self.features(images))


def load(seed):
    """Images of shape (N, 1, 8, 8) with values in [0, 1], labels as integers; a fifth of both held out."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    parts = train_test_split(images, digits.target, test_size=0.2, random_state=seed, stratify=digits.target)
    return [cg.tensor(part) for part in parts]


def moved(images):
    """The batch moved by the same random step, of -1, 0 or 1 pixels along each axis."""
    down, right = cg.randint(0, 3, (2,)).tolist()
    return F.pad(images, (1, 1, 1, 1))[:, :, down:down + 8, right:right + 8]


def share_read(model, images, labels):
    """The share of images read correctly."""
    model.eval()
    with cg.no_grad():
        return (model(images).argmax(axis=1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    cg.manual_seed(options.seed)
    train_images, test_images, train_labels, test_labels = load(options.seed)
    model = LeNet()
    print(model.summary(train_images[:1]), "\n")
    optimizer = cg.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=1e-2)
    schedule = cg.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    started = time.perf_counter()
    for epoch in range(1, options.epochs + 1):
        model.train()
        total = 0.0
        for batch in cg.randperm(len(train_images)).split(options.batch_size):
            loss = F.cross_entropy(model(moved(train_images[batch])), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        schedule.step()
        share = share_read(model, test_images, test_labels)
        print(f"epoch {epoch:3d}   loss {total / len(train_images):.4f}   held-out digits read correctly {share:.2%}")
    print(f"trained in {time.perf_counter() - started:.1f} s; reads {share:.2%} of the held-out digits")


if __name__ == "__main__":
    main()
