"""Kernels: numbers only.  No Tensor, no derivative; everything below `dispatch` runs without the GIL.

Start with table.pxd (the contract), then scalar.pxi (formulas), maps.pxi and elementwise.pxi (loops), iterate.pyx (the n-d walk).
"""
