"""`cgrad.checkpoint` under PyTorch's name."""
from cgrad.autograd import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
