"""`cgrad.data` under PyTorch's name."""
from cgrad.data import *  # noqa: F403
from cgrad.data import __all__ as __all__
