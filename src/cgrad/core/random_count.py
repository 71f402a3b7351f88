"""How often random numbers were drawn: an Op whose forward draws cannot be repeated (see ops/op.py)."""

_draws = 0


def count():
    """The number of draws so far."""
    return _draws


def bump():
    """Note a draw."""
    global _draws
    _draws += 1
