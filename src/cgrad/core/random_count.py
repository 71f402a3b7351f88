"""How often a thread drew random numbers: an Op whose forward draws cannot be repeated (see ops/op.py)."""
import threading


class ThisThread(threading.local):
    """The number of draws so far."""

    draws = 0


this_thread = ThisThread()


def bump():
    """Note a draw."""
    this_thread.draws += 1
