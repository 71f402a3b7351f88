"""Linear algebra: decompositions, solutions, norms and products of matrices.

Matrices are the last two axes of a tensor, all leading axes are batches.  The names are those of the Array API standard and of
``torch.linalg``; what they mean is in the docstrings.  Everything is defined in ops/linalg and ops/matmul.py.
"""
from cgrad.core.arguments import as_tensor
from cgrad.core.forward.lapack import LinAlgError
from cgrad.ops.triangles import diagonal_number
from cgrad.ops.define import open_doors
from cgrad.ops.diagonal import _diagonal, _two_axes, trace
from cgrad.ops.linalg.decompositions import (
    cholesky, cholesky_ex, eigh, eigvalsh, qr, svd, svdvals,
)
from cgrad.ops.linalg.lu import lu, lu_factor, lu_solve
from cgrad.ops.linalg.matrices import linalg as _linalg
from cgrad.ops.linalg.norms import cond, matrix_norm, norm
from cgrad.ops.linalg.products import cross, householder_product, matrix_exp, matrix_power, multi_dot, vander
from cgrad.ops.linalg.solving import (
    det, inv, inv_ex, logdet, lstsq, matrix_rank, pinv, slogdet, solve, tensorinv, tensorsolve,
)
from cgrad.ops.linalg.triangular import solve_triangular
from cgrad.ops.matmul import matmul, outer, tensordot, vecdot
from cgrad.ops.shape import matrix_transpose
from cgrad.ops.softmax import vector_norm

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "householder_product", "inv", "inv_ex",
    "logdet", "lstsq", "lu", "lu_factor", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve",
    "trace", "vander", "vecdot", "vector_norm",
]


@_linalg
def diagonal(x, offset=0, axis1=-2, axis2=-1):
    """The diagonal of each matrix of the last two axes.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    offset : int, optional
        Which diagonal: positive above the main one, negative below.
    axis1, axis2 : int, optional
        The axes of rows and columns (PyTorch's ``dim1=``, ``dim2=``).

    Returns
    -------
    Tensor
        A view, with the diagonal along its last axis.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        For less than two axes, or the same one twice.

    Notes
    -----
    `cgrad.diagonal` takes the first two axes.  Gradient: ``g`` on the diagonal of zeros.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linalg.diagonal(cg.tensor([[[1, 2], [3, 4]]]))
    tensor([[1, 4]])
    """
    x = as_tensor("diagonal", x)
    return _diagonal(x, diagonal_number(offset), _two_axes("diagonal", axis1, axis2, x.ndim))


def _hint(name):
    return ("; eigenvalues of matrices that are not symmetric are complex, and complex dtypes do not exist yet; use eigh or eigvalsh for symmetric "
            "matrices") if name in ("eig", "eigvals") else ""


open_doors(globals(), hint=_hint)
