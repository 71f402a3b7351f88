"""How often a thread drew random numbers: an Op whose forward draws cannot be repeated (see ops/op.py)."""
import threading

_thread = threading.local()


def count():
    """The number of this thread's draws so far."""
    return getattr(_thread, "draws", 0)


def bump():
    """Note a draw."""
    _thread.draws = count() + 1
