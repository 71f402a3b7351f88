"""What scripts ask before they choose a device. There is no GPU here, and seeds of GPUs seed nothing.

Examples
--------
>>> import cgrad as cg
>>> cg.device("cuda" if cg.cuda.is_available() else "cpu").type
'cpu'
"""

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """False: cgrad computes on the CPU."""
    return False


def device_count() -> int:
    """0: cgrad computes on the CPU."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing; `cgrad.manual_seed` seeds random numbers."""


def manual_seed_all(seed: int) -> None:
    """Does nothing; `cgrad.manual_seed` seeds random numbers."""
