"""Data sets and functions that workers are sent; apart from the tests, so that processes need not load pytest."""
import os
import random
import time

import numpy as np

import cgrad as cg
from cgrad.data import Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"i": i, "square": np.full((3,), i * i, np.float32), "name": str(i), "half": cg.tensor([i / 2], dtype=cg.bfloat16)}


class Noise(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return i, cg.rand((), generator=get_worker_info().generator)


class AllNoise(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return i, cg.rand(()), np.random.rand(), random.random()       # noqa: NPY002


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Wrong(Dataset):
    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i < 3:
            return i
        if self.what == "error":
            raise KeyError(f"no file {i}")
        if self.what == "odd error":
            raise OddError(i, "more")
        if self.what == "exit":
            os._exit(3)
        if self.what == "slow":
            time.sleep(30)
        if self.what == "cannot be sent":
            return lambda: i
        raise StopIteration


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from range(first, self.n, step)


def set_seed(number):
    cg.manual_seed(number)


def divide_by_zero(_):
    return 1 / 0
