"""Every operation, forward and backward in one place, in plain Python.

Start with elementwise.py (what an entry looks like), then define.py (what becomes of it) and op.py (the same as a class).
"""

from cgrad.ops import generator, wiring  # wiring imports every op file and connects the core to them
from cgrad.ops.define import PUBLIC
from cgrad.ops.op import Op

__all__ = ["PUBLIC", "Op"]

for _name in generator.__all__:
    PUBLIC[_name] = getattr(generator, _name)
