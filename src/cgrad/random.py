"""Random numbers: generators, seeds, and tensors drawn from them.  Everything is defined in ops/random.py."""
from cgrad.ops.random import (
    Generator, bernoulli, default_generator, exponential, fork_rng, get_rng_state, initial_seed, manual_seed, multinomial, normal, rand,
    rand_like, randint, randint_like, randn, randn_like, randperm, seed, set_rng_state, uniform,
)

__all__ = [
    "Generator", "bernoulli", "default_generator", "exponential", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
    "set_rng_state", "uniform",
]
