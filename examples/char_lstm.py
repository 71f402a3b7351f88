"""Train an LSTM to write descriptions of data sets, character by character
===========================================================================

The text are the descriptions that come with scikit-learn's data sets.  It is laid out as rows side by side and read from left to right,
some characters at a time; the state at the end of one step is where the next begins, but gradients stop there (truncated backpropagation
through time).

Run it: ``python examples/char_lstm.py``
"""
import argparse
import math
import time
from importlib import resources
from pathlib import Path

import matplotlib as mpl

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F

mpl.use("Agg")     # draw into a file; no display needed
import matplotlib.pyplot as plt


class CharacterModel(nn.Module):
    """Scores of the next character at each place of texts of shape (N, length), and the state of the LSTM after them."""

    def __init__(self, n_characters, width, layers, dropout):
        super().__init__()
        self.characters = nn.Embedding(n_characters, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.scores = nn.Linear(width, n_characters)

    def forward(self, text, state=None):
        out, state = self.lstm(self.characters(text), state)
        return self.scores(self.dropout(out)), state


def load():
    """All descriptions as one string."""
    folder = resources.files("sklearn.datasets") / "descr"
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.iterdir(), key=lambda path: path.name) if path.name.endswith(".rst"))


def read(model, text, length, optimizer=None):
    """The mean loss over texts of shape (N, total), `length` characters at a time; with an optimizer a step is made after each."""
    model.train(optimizer is not None)
    total, steps, state = 0.0, 0, None
    for start in range(0, text.shape[1] - length, length):
        piece = text[:, start:start + length + 1]
        scores, state = model(piece[:, :-1], state)
        state = tuple(part.detach() for part in state)           # gradients stop here
        loss = F.cross_entropy(scores.flatten(0, 1), piece[:, 1:].flatten())
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        total, steps = total + loss.item(), steps + 1
    return total / steps


def write(model, start, length, temperature):
    """`length` characters after those of `start`, of shape (1, n); the state goes along, so each is one step of the LSTM."""
    model.eval()
    scores, state = model(start)
    written = []
    for _ in range(length):
        character = cg.multinomial(F.softmax(scores[:, -1] / temperature, -1), 1)
        written.append(character.item())
        scores, state = model(character, state)
    return written


def draw(losses, held_out, path):
    """The learning curve as a PNG."""
    epochs = range(1, len(losses) + 1)
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(epochs, losses, color="tab:blue", marker="o", label="training")
    axes.plot(epochs, held_out, color="tab:orange", marker="o", label="held out")
    axes.set(xlabel="epoch", ylabel="cross-entropy (nats per character)", title="An LSTM reads descriptions of data sets")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rows", type=int, default=16, help="rows into which the text is cut (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=48, help="characters between two stops of the gradient (default: %(default)s)")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--length", type=int, default=400, help="characters to write at the end (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--png", type=Path, default=Path("char_lstm.png"), help="where the learning curve goes (default: %(default)s)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    cg.manual_seed(options.seed)
    prose = load()
    characters = sorted(set(prose))
    number = {character: i for i, character in enumerate(characters)}
    text = cg.tensor([number[character] for character in prose])
    n_training = len(text) * 9 // 10
    training, held_out = (part[:len(part) // rows * rows].reshape(rows, -1) for part, rows in
                          ((text[:n_training], options.rows), (text[n_training:], 4)))

    model = CharacterModel(len(characters), options.width, options.layers, dropout=0.2)
    print(f"{sum(p.size for p in model.parameters()):,} parameters, {training.size:,} characters to learn from, {held_out.size:,} held out")
    optimizer = cg.optim.Adam(model.parameters(), lr=options.lr)
    schedule = cg.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.epochs)
    losses, tests, started = [], [], time.perf_counter()
    for epoch in range(1, options.epochs + 1):
        losses.append(read(model, training, options.steps, optimizer))
        schedule.step()
        with cg.no_grad():
            tests.append(read(model, held_out, options.steps))
        print(f"epoch {epoch:3d}   loss {losses[-1]:.3f}   held out {tests[-1]:.3f} ({tests[-1] / math.log(2):.2f} bits per character)   "
              f"{time.perf_counter() - started:.0f} s", flush=True)
    draw(losses, tests, options.png)
    print(f"learning curve: {options.png.resolve()}")
    with cg.no_grad():
        start = cg.tensor([[number[character] for character in "The "]])
        print("\nThe " + "".join(characters[i] for i in write(model, start, options.length, temperature=0.7)))


if __name__ == "__main__":
    main()
