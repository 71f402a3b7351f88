"""Samplers, and what data sets are made of others."""
import itertools

import numpy as np
import pytest

import cgrad as cg
from cgrad.data import (
    BatchSampler, ChainDataset, ConcatDataset, DataLoader, DistributedSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler, StackDataset, Subset,
    SubsetRandomSampler, TensorDataset, WeightedRandomSampler,
)


def seeded(seed=0):
    return cg.Generator(seed)


def test_sequential_and_random():
    assert list(SequentialSampler(range(4))) == [0, 1, 2, 3] and len(SequentialSampler("ab")) == 2
    sampler = RandomSampler(range(50), generator=seeded())
    one, two = list(sampler), list(sampler)
    assert sorted(one) == sorted(two) == list(range(50)) and one != two
    assert list(RandomSampler(range(50), generator=seeded())) == one
    assert all(type(i) is int for i in one)
    cg.manual_seed(3)
    first = list(RandomSampler(range(50)))
    cg.manual_seed(3)
    assert list(RandomSampler(range(50))) == first
    assert list(RandomSampler([])) == []


def test_random_with_replacement_and_a_number():
    more = list(RandomSampler(range(5), num_samples=12, generator=seeded()))
    assert [sorted(more[i:i + 5]) for i in (0, 5)] == [list(range(5))] * 2 and len(more) == 12
    assert len(list(RandomSampler(range(5), num_samples=2))) == 2 == len(RandomSampler(range(5), num_samples=2))
    drawn = list(RandomSampler(range(5), replacement=True, num_samples=1000, generator=seeded()))
    assert len(drawn) == 1000 and set(drawn) == set(range(5)) and min(map(drawn.count, range(5))) > 120
    assert len(list(RandomSampler(range(5), replacement=True))) == 5
    for bad in (-1, 2.0, True):
        with pytest.raises(ValueError, match="num_samples"):
            RandomSampler(range(5), num_samples=bad)
    with pytest.raises(TypeError, match="generator"):
        RandomSampler(range(5), generator=np.random.default_rng())


def test_subsets_and_weights():
    for indices in ([9, 4, 6], cg.tensor([9, 4, 6]), range(4, 10, 2)):
        assert sorted(SubsetRandomSampler(indices, seeded())) == sorted(int(i) for i in indices)
    drawn = list(WeightedRandomSampler([1, 0, 3], 4000, generator=seeded()))
    assert set(drawn) == {0, 2} and 2800 < drawn.count(2) < 3200
    assert sorted(WeightedRandomSampler(cg.tensor([1.0, 2.0, 3.0]), 3, replacement=False)) == [0, 1, 2]
    with pytest.raises(ValueError, match="one axis"):
        WeightedRandomSampler([[1.0]], 1)


def test_shares_of_several_processes():
    for n, ranks in [(10, 3), (9, 3), (2, 4), (0, 2)]:
        for shuffle in (False, True):
            orders = {}
            for options in ({}, {"drop_last": True}, {"pad": False}):
                shares = [DistributedSampler(range(n), ranks, r, shuffle=shuffle, seed=7, **options) for r in range(ranks)]
                lists = [list(s) for s in shares]
                assert [*map(len, lists)] == [*map(len, shares)]
                together = [i for row in itertools.zip_longest(*lists) for i in row if i is not None]
                orders[str(options)] = together
            everything = orders["{'pad': False}"]
            assert sorted(everything) == list(range(n)) and (shuffle or everything == list(range(n)))
            assert orders["{'drop_last': True}"] == everything[:n // ranks * ranks]
            padded = orders["{}"]
            assert padded == [everything[k % n] for k in range(-(-n // ranks) * ranks)]


def test_batches_of_all_shares_are_those_of_one_process():
    def batches(ranks, size):
        loaders = [DataLoader(range(48), batch_size=size, sampler=DistributedSampler(range(48), ranks, r, seed=1)) for r in range(ranks)]
        return [sorted(i for part in parts for i in part.tolist()) for parts in zip(*loaders)]
    assert batches(1, 12) == batches(2, 6) == batches(4, 3)


def test_epochs_and_beginnings_in_the_middle():
    one, two = (DistributedSampler(range(20), 2, r) for r in (0, 1))
    first = list(one)
    one.set_epoch(1)
    assert list(one) != first and list(one) == list(one)
    one.set_epoch(0)
    assert list(one) == first
    whole = [i for pair in zip(one, two) for i in pair]
    rest = [DistributedSampler(range(20), 3, r, pad=False) for r in range(3)]
    for sampler in rest:
        sampler.set_epoch(0, start=8)
    assert [i for row in itertools.zip_longest(*rest) for i in row if i is not None] == whole[8:]
    with pytest.raises(ValueError, match="start must be from 0 to the 20 samples"):
        one.set_epoch(0, start=21)
    with pytest.raises(ValueError, match="rank must be from 0 to 1"):
        DistributedSampler(range(20), 2, 2)
    with pytest.raises(RuntimeError, match=r"call cgrad.distributed.init\(\) first"):
        DistributedSampler(range(20))


def test_batches_of_a_sampler():
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]] and len(BatchSampler(range(5), 2, True)) == 2
    assert list(BatchSampler(range(5), 2, False))[-1] == [4] and len(BatchSampler(range(5), 2, False)) == 3
    endless = BatchSampler(itertools.count(), 3, False)
    assert next(iter(endless)) == [0, 1, 2]
    for size, drop in [(0, False), (True, False), (2, 1)]:
        with pytest.raises(ValueError, match="BatchSampler"):
            BatchSampler(range(5), size, drop)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [0, 1, 4, 5])
def test_slices_of_the_order_are_the_batches(n, drop_last):
    for make in (lambda: SequentialSampler(range(n)), lambda: RandomSampler(range(n), generator=seeded()), lambda: list(range(n))):
        pieces = [p.tolist() if isinstance(p, cg.Tensor) else list(p) for p in BatchSampler(make(), 2, drop_last).pieces()]
        assert pieces == list(BatchSampler(make(), 2, drop_last))


def test_samplers_of_ones_own():
    class Evens(Sampler):
        def __iter__(self):
            return iter(range(0, 10, 2))

    class Pairs:
        def __iter__(self):
            return iter([[0, 9], [3]])

        def __len__(self):
            return 2

    assert [b.tolist() for b in DataLoader(cg.arange(10), batch_size=2, sampler=Evens())] == [[0, 2], [4, 6], [8]]
    loader = DataLoader(cg.arange(10), batch_sampler=Pairs())
    assert [b.tolist() for b in loader] == [[0, 9], [3]] and len(loader) == 2
    loader = DataLoader(cg.arange(10), batch_sampler=BatchSampler(RandomSampler(range(10), generator=seeded()), 4, False))
    assert [b.shape[0] for b in loader] == [4, 4, 2]
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(Sampler())


def test_data_sets_of_others():
    a, b = TensorDataset(cg.arange(3)), TensorDataset(cg.arange(3) + 10)
    both = a + b
    assert isinstance(both, ConcatDataset) and [both[i][0].item() for i in range(-6, 6)] == [0, 1, 2, 10, 11, 12] * 2
    assert [x.tolist() for x, in DataLoader(both, batch_size=4)] == [[0, 1, 2, 10], [11, 12]]
    for bad in (6, -7):
        with pytest.raises(IndexError, match="6"):
            both[bad]
    with pytest.raises(ValueError, match="at least one"):
        ConcatDataset([])

    side = StackDataset(a, b)
    assert len(side) == 3 and side[1][1][0].item() == 11
    (x,), (y,) = next(iter(DataLoader(side, batch_size=2)))
    assert x.tolist() == [0, 1] and y.tolist() == [10, 11]
    named = StackDataset(x=a, y=["p", "q", "r"])
    batch = next(iter(DataLoader(named, batch_size=2)))
    assert batch["x"][0].tolist() == [0, 1] and batch["y"] == ["p", "q"]
    for args, kwargs in [((), {}), ((a,), {"b": b}), ((a, [1]), {})]:
        with pytest.raises(ValueError, match="StackDataset"):
            StackDataset(*args, **kwargs)

    class Count(IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

        def __len__(self):
            return self.n

    chain = Count(2) + Count(3)
    assert isinstance(chain, ChainDataset) and list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(TypeError, match="ChainDataset"):
        ConcatDataset([Count(2)])
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(IterableDataset())


def test_a_tensor_is_a_data_set():
    x = cg.arange(12).reshape(6, 2)
    assert [b.shape for b in DataLoader(x, batch_size=4)] == [(4, 2), (2, 2)]
    assert next(iter(DataLoader(Subset(x, [5, 0]), batch_size=2))).tolist() == [[10, 11], [0, 1]]
    assert sorted(i for b in DataLoader(x, batch_size=4, shuffle=True) for i in b[:, 0].tolist()) == [0, 2, 4, 6, 8, 10]
