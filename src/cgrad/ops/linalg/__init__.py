"""Linear algebra: operations on the matrices of the last two axes; leading axes are batches.

The numbers come from NumPy's LAPACK (core/forward/lapack.py), the derivatives are written here with cgrad's own functions, so that any
order nests.  Start with decompositions.py; then solving.py, norms.py, products.py.  The public module is cgrad/linalg.py.
"""
