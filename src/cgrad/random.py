"""Random numbers: generators, seeds, and tensors drawn from them.  Everything is defined in ops/generator.py and ops/random.py."""
from cgrad.ops.define import open_doors
from cgrad.ops.generator import Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from cgrad.ops.random import (
    bernoulli, exponential, multinomial, normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm, uniform,
)

__all__ = [
    "Generator", "bernoulli", "default_generator", "exponential", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
    "set_rng_state", "uniform",
]

open_doors(globals())
