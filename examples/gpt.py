"""Train a small GPT to write Python's reference manual, character by character
===============================================================================

The text is what ``help()`` knows of Python's topics (0.4 million characters, a part of every Python).  Each block mixes the characters
so far by causal attention, then thinks about each of them alone; the last tenth of the text is held out.

Run it: ``python examples/gpt.py``
"""
import argparse
import math
import time
from pathlib import Path
from pydoc_data.topics import topics

import matplotlib as mpl

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F

mpl.use("Agg")     # draw into a file; no display needed
import matplotlib.pyplot as plt


class Block(nn.Module):
    """Attention to the characters so far, then two linear layers; each adds to what is there."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        n, length, width = x.shape
        q, k, v = (part.reshape(n, length, self.heads, -1).transpose(1, 2) for part in self.query_key_value(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(mixed.transpose(1, 2).reshape(n, length, width))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.think(self.norm2(x)))


class GPT(nn.Module):
    """Scores of the next character at each place of texts of shape (N, length)."""

    def __init__(self, n_characters, context, width, heads, layers, dropout):
        super().__init__()
        self.context = context
        self.characters = nn.Embedding(n_characters, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, n_characters, bias=False)
        self.scores.weight = self.characters.weight           # one table for reading and writing
        self.apply(self.start)
        for block in self.blocks:                             # so that the sum over all blocks starts as large as one
            for layer in (block.project, block.think[2]):
                nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, text):
        x = self.characters(text) + self.places.weight[:text.shape[1]]
        return self.scores(self.norm(self.blocks(x)))


def batch_of(text, n, context):
    """Pieces of the text from random places, and the same one character further on."""
    starts = cg.randint(0, len(text) - context, (n, 1))
    pieces = text[starts + cg.arange(context + 1)]
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model, batch):
    inputs, targets = batch
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def held_out_loss(model, text, n, batches=10):
    model.eval()
    with cg.no_grad():
        return sum(loss_of(model, batch_of(text, n, model.context)).item() for _ in range(batches)) / batches


def write(model, text, length, temperature):
    """The text with `length` more characters, drawn one after the other from the model's probabilities."""
    model.eval()
    with cg.no_grad():
        for _ in range(length):
            scores = model(text[:, -model.context:])[:, -1] / temperature
            text = cg.concat([text, cg.multinomial(F.softmax(scores, -1), 1)], axis=1)
    return text


def draw(losses, held_out, path):
    """The learning curve as a PNG."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(range(1, len(losses) + 1), losses, color="tab:blue", alpha=0.4, label="training")
    axes.plot(*zip(*held_out, strict=True), color="tab:orange", marker="o", label="held out")
    axes.set(xlabel="step", ylabel="cross-entropy (nats per character)", title="A small GPT reads Python's manual")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--context", type=int, default=96)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--length", type=int, default=400, help="characters to write at the end (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--png", type=Path, default=Path("gpt.png"), help="where the learning curve goes (default: %(default)s)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    cg.manual_seed(options.seed)
    manual = "\n".join(topics[name] for name in sorted(topics))
    characters = sorted(set(manual))
    number = {character: i for i, character in enumerate(characters)}
    text = cg.tensor([number[character] for character in manual])
    training, held_out = text.split([len(text) * 9 // 10, len(text) - len(text) * 9 // 10])

    model = GPT(len(characters), options.context, options.width, heads=4, layers=options.layers, dropout=0.1)
    print(f"{sum(p.size for p in model.parameters()):,} parameters, {len(training):,} characters to learn from, {len(held_out):,} held out")
    optimizer = cg.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.99), weight_decay=0.1)
    warmup = min(100, options.steps // 10)
    schedule = cg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / (warmup + 1), 0.5 + 0.5 * math.cos(math.pi * step / options.steps)))
    losses, tests, started = [], [], time.perf_counter()
    for step in range(1, options.steps + 1):
        model.train()
        loss = loss_of(model, batch_of(training, options.batch_size, options.context))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % max(1, options.steps // 10) == 0:
            tests.append((step, held_out_loss(model, held_out, options.batch_size)))
            print(f"step {step:5d}   loss {losses[-1]:.3f}   held out {tests[-1][1]:.3f}   {time.perf_counter() - started:.0f} s", flush=True)
    draw(losses, tests, options.png)
    print(f"learning curve: {options.png.resolve()}\n")
    start = cg.tensor([[number[character] for character in "The "]])
    print("".join(characters[i] for i in write(model, start, options.length, temperature=0.8)[0].tolist()))


if __name__ == "__main__":
    main()
