"""Data sets, mini-batches, splits."""
from collections import defaultdict, namedtuple

import numpy as np
import pytest

import cgrad as cg
from cgrad.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": float(i), "y": (i, cg.tensor([i * i]))}


def pairs(n):
    return TensorDataset(cg.arange(2 * n).reshape(n, 2), cg.arange(n))


def test_tensor_dataset():
    data = TensorDataset(np.arange(6.0).reshape(3, 2), [0, 1, 2])
    assert len(data) == 3
    x, y = data[-1]
    assert x.tolist() == [4.0, 5.0] and y.item() == 2 and x.dtype == cg.float64
    with pytest.raises(IndexError):
        data[3]
    for bad, text in [((), "at least one"), ((cg.zeros(2), cg.zeros(3)), r"\(2,\).*\(3,\)"), ((cg.tensor(1.0),), r"\(\)")]:
        with pytest.raises(ValueError, match=text):
            TensorDataset(*bad)


def test_batches_in_order_are_views():
    data = pairs(5)
    batches = list(DataLoader(data, batch_size=2))
    assert [y.tolist() for _, y in batches] == [[0, 1], [2, 3], [4]]
    assert [x.shape for x, _ in batches] == [(2, 2), (2, 2), (1, 2)]
    data.tensors[1][0] = 99
    assert batches[0][1].tolist() == [99, 1]


@pytest.mark.parametrize("n", [0, 1, 4, 5])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_length_is_the_number_of_batches(n, drop_last, shuffle):
    for data in (pairs(n), Squares(n)):
        loader = DataLoader(data, batch_size=2, drop_last=drop_last, shuffle=shuffle)
        batches = list(loader)
        assert len(batches) == len(loader) == (n // 2 if drop_last else -(-n // 2))


def test_shuffling_keeps_rows_together_and_covers_everything():
    loader = DataLoader(pairs(100), batch_size=7, shuffle=True)
    cg.manual_seed(0)
    seen, again = [], []
    for out in (seen, again):
        for x, y in loader:
            np.testing.assert_array_equal(x.numpy()[:, 0], 2 * y.numpy())
            out += y.tolist()
    assert sorted(seen) == list(range(100)) == sorted(again) and seen != again


def test_shuffling_repeats_with_the_seed():
    def order(**options):
        return [i for _, y in DataLoader(pairs(20), batch_size=3, shuffle=True, **options) for i in y.tolist()]

    assert order(seed=1) == order(seed=1) != order(seed=2)
    assert order(generator=cg.Generator(1)) == order(seed=1)
    cg.manual_seed(5)
    first = order()
    cg.manual_seed(5)
    assert order() == first
    state = cg.rand(3).tolist()
    cg.manual_seed(5)
    order()
    order(seed=9)                    # a generator of its own leaves the default one alone
    assert cg.rand(3).tolist() == state


def test_samples_of_any_structure_are_collated():
    batch = next(iter(DataLoader(Squares(5), batch_size=3)))
    assert batch["x"].tolist() == [0.0, 1.0, 2.0] and batch["y"][0].tolist() == [0, 1, 2] and batch["y"][1].shape == (3, 1)
    assert isinstance(batch["y"], tuple)


def test_collate():
    Point = namedtuple("Point", "x y")
    out = default_collate([Point(1, np.ones(2)), Point(2, np.zeros(2))])
    assert isinstance(out, Point) and out.x.tolist() == [1, 2] and out.y.shape == (2, 2)
    names, flags = default_collate([["a", True], ["b", False]])
    assert names == ["a", "b"] and flags.tolist() == [True, False] and flags.dtype == cg.bool
    counts = default_collate([defaultdict(int, a=1), defaultdict(int, a=2)])
    assert counts["a"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="keys"):
        default_collate([{"a": 1}, {"b": 1}])
    with pytest.raises(TypeError, match="set"):
        default_collate([{1}, {2}])
    with pytest.raises(ValueError, match="lengths"):
        default_collate([(1, 2), (1,)])


def test_collate_functions_and_samplers():
    loader = DataLoader(Squares(6), batch_size=2, sampler=[5, 0, 3], collate_fn=lambda samples: [s["x"] for s in samples])
    assert list(loader) == [[5.0, 0.0], [3.0]] and len(loader) == 2
    assert [y.tolist() for _, y in DataLoader(pairs(6), batch_size=2, sampler=[5, 0, 3])] == [[5, 0], [3]]
    assert [[p[1].item() for p in batch] for batch in DataLoader(pairs(3), batch_size=2, collate_fn=list)] == [[0, 1], [2]]


def test_single_samples():
    loader = DataLoader(pairs(3), batch_size=None)
    assert [y.item() for _, y in loader] == [0, 1, 2] and len(loader) == 3


def test_a_list_is_a_data_set():
    assert [b.tolist() for b in DataLoader([3.0, 4.0, 5.0], batch_size=2)] == [[3.0, 4.0], [5.0]]


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"batch_size": 2.0}, {"batch_size": True}, {"num_workers": -1}, {"shuffle": True, "sampler": [0]},
                                     {"batch_size": None, "drop_last": True}, {"seed": 0, "generator": cg.Generator(0)}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match="DataLoader"):
        DataLoader(pairs(3), **options)


def test_subsets():
    part = Subset(pairs(5), [4, 0, 2])
    assert len(part) == 3 and part[1][1].item() == 0
    assert [y.tolist() for _, y in DataLoader(part, batch_size=2)] == [[4, 0], [2]]
    assert sorted(i for _, y in DataLoader(part, batch_size=2, shuffle=True) for i in y.tolist()) == [0, 2, 4]
    nested = Subset(part, cg.tensor([2, 1]))
    assert [y.tolist() for _, y in DataLoader(nested, batch_size=2)] == [[2, 0]]
    assert DataLoader(Subset(Squares(5), [1, 3]), batch_size=2).__iter__().__next__()["x"].tolist() == [1.0, 3.0]


def test_random_split():
    parts = random_split(pairs(10), [7, 3], generator=cg.Generator(0))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    assert random_split(pairs(10), [7, 3], generator=cg.Generator(0))[0].indices == parts[0].indices
    assert [len(p) for p in random_split(pairs(10), [0.25, 0.25, 0.5])] == [3, 2, 5]
    assert [len(p) for p in random_split(pairs(10), [1.0])] == [10]
    for bad in ([7, 4], [-1, 11], [0.5, 0.4], [5.5, 4.5]):
        with pytest.raises(ValueError, match="random_split"):
            random_split(pairs(10), bad)


def test_a_data_set_needs_getitem():
    class Empty(Dataset):
        pass

    with pytest.raises(NotImplementedError, match="Empty"):
        Empty()[0]
