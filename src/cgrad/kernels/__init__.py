"""Kernels: numbers only.  No Tensor, no derivative; everything below `dispatch` runs without the GIL.

Start with table.pxd (the contract), then scalar.pxi (formulas), elementwise.pxi (loops), iterate.pyx (the n-d walk).
"""
import os

# OpenMP's threads wait for work by spinning, for milliseconds, unless told otherwise while the library is loaded.  On a busy
# machine the spinners take the cores from whoever has work: at the same load the 95th percentile of a 2-thread call here was
# 7.4 ms spinning and 0.17 ms sleeping; sleeping costs about 8 us more per call on an idle one, which the break-even in
# parallel.pyx includes.  The variable is taken back at once: it is meant for our own pool, not for child processes.  It has no
# effect if the process has loaded the same OpenMP library before us.
_ours = "OMP_WAIT_POLICY" not in os.environ
if _ours:
    os.environ["OMP_WAIT_POLICY"] = "passive"
try:
    from cgrad.kernels import parallel  # noqa: F401  (loads OpenMP)
finally:
    if _ours:
        del os.environ["OMP_WAIT_POLICY"]
