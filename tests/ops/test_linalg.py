"""Linear algebra beside what cases.py drives: singular matrices, equal eigenvalues, kinks, results by name, errors."""
import mpmath
import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

import cgrad as cg
from cgrad.linalg import LinAlgError


def leaf(data):
    return cg.tensor(np.array(data, np.float64), requires_grad=True)


def grad(y, x, **kwargs):
    return cg.autograd.grad(y, (x,), **kwargs)[0]


def array(x):
    return np.array(x.detach().numpy())


BATCH = np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])
NOT_FINITE = np.array([[1.0, np.nan], [np.nan, 1.0]])


# ------------------------------------------------------------------------------------------------------ singular matrices
@pytest.mark.parametrize(("call", "message"), [
    (lambda: cg.linalg.inv(np.zeros((2, 2))), "inv: the 2 x 2 matrix is singular"),
    (lambda: cg.linalg.inv(BATCH), "inv: the 2 x 2 matrix in entry 1 of the batch is singular"),
    (lambda: cg.linalg.inv(BATCH[None]), r"inv: the 2 x 2 matrix in entry \(0, 1\) of the batch is singular"),
    (lambda: cg.linalg.solve(BATCH, np.ones((2, 1))), "solve: the 2 x 2 matrix in entry 1 of the batch is singular"),
    (lambda: cg.linalg.matrix_power(BATCH, -2), "matrix_power: the 2 x 2 matrix in entry 1"),
    (lambda: cg.linalg.tensorinv(np.zeros((4, 2, 2)), 1), "tensorinv: the 4 x 4 matrix is singular"),
    (lambda: cg.linalg.inv_ex(BATCH, check_errors=True), "inv_ex: the 2 x 2 matrix in entry 1"),
    (lambda: cg.linalg.cholesky(np.diag([1.0, 4.0, -1.0, -2.0])), "cholesky: the 4 x 4 matrix is not positive definite: its leading minor of order 3 is"),
    (lambda: cg.linalg.eigvalsh(np.diag([np.nan, 1.0, 1.0])), "eigvalsh: the 3 x 3 matrix holds NaN or infinity"),
    (lambda: cg.linalg.eigh(np.full((3, 3), np.inf)), "eigh: the 3 x 3 matrix holds NaN or infinity"),
    (lambda: cg.linalg.svdvals(np.diag([1.0, -np.inf, 1.0])), "svdvals: the 3 x 3 matrix holds NaN or infinity"),
    (lambda: cg.linalg.eigh(NOT_FINITE), "eigh: the 2 x 2 matrix holds NaN or infinity"),
    (lambda: cg.linalg.svd(np.stack([np.eye(2), NOT_FINITE])), "svd: the 2 x 2 matrix in entry 1 of the batch holds NaN or infinity"),
    (lambda: cg.linalg.pinv(NOT_FINITE), "pinv: the 2 x 2 matrix holds NaN"),
    (lambda: cg.linalg.matrix_rank(NOT_FINITE), "matrix_rank: the 2 x 2 matrix holds NaN"),
    (lambda: cg.linalg.solve_triangular(np.diag([1.0, 2.0, 0.0]), np.ones(3), upper=False), "solve_triangular: .* is singular: element 2 of its diagonal is 0"),
    (lambda: grad(cg.linalg.slogdet(x := leaf(np.zeros((2, 2))))[1], x), "slogdet, derivative: the 2 x 2 matrix is singular"),
])
def test_lapack_says_which_matrix_it_refuses(call, message):
    with pytest.raises(LinAlgError, match=message) as error:
        call()
    assert isinstance(error.value, np.linalg.LinAlgError) and isinstance(error.value, RuntimeError)


def test_codes_in_place_of_errors():
    spd = np.diag([1.0, 2.0, 3.0])
    l, info = cg.linalg.cholesky_ex(np.stack([spd, np.diag([1.0, -2.0, 3.0]), spd]))
    assert info.dtype == cg.int32
    assert_array_equal(array(info), [0, 2, 0])
    assert_allclose(array(l)[[0, 2]], np.sqrt([spd, spd]))
    assert np.isnan(array(l)[1]).all()
    inverse, info = cg.linalg.inv_ex(np.stack([spd, np.diag([1.0, 0.0, 3.0])]))
    assert_array_equal(array(info), [0, 2])
    assert_allclose(array(inverse)[0], np.diag([1, 1 / 2, 1 / 3]))
    assert cg.linalg.inv_ex(np.zeros((0, 0))).info.item() == 0
    assert np.isnan(array(cg.linalg.cholesky_ex(NOT_FINITE).L)).any()
    x = leaf(BATCH)
    assert_allclose(array(grad(cg.linalg.inv_ex(x).inverse[0].sum(), x))[[0, 2]], [-np.ones((2, 2)), np.zeros((2, 2))])


@pytest.mark.parametrize(("matrix", "cofactors"), [
    ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[-3, 6, -3], [6, -12, 6], [-3, 6, -3]]),
    ([[1, 2], [2, 4]], [[4, -2], [-2, 1]]),
    ([[1, 1, 1], [1, 1, 1], [1, 1, 1]], np.zeros((3, 3))),
    ([[0, 0], [0, 0]], np.zeros((2, 2))),
    ([[0]], [[1]]),
    ([[1, 0, 0], [0, 1, 0], [0, 0, 1e-12]], np.diag([1e-12, 1e-12, 1])),
])
def test_the_slope_of_a_vanishing_determinant_is_that_of_the_polynomial(matrix, cofactors):
    x = leaf(matrix)
    assert_allclose(array(grad(cg.linalg.det(x), x)), cofactors, atol=2e-14)
    along = np.arange(1.0, x.size + 1).reshape(x.shape)
    _, tangent = cg.func.jvp(cg.linalg.det, (x.detach(),), (cg.tensor(along),))
    assert_allclose(tangent.item(), (np.array(cofactors) * along).sum(), atol=1e-13)
    both = leaf([np.array(matrix, float), np.eye(len(matrix))])
    assert_allclose(array(grad(cg.linalg.det(both).sum(), both)), [cofactors, np.eye(len(matrix))], atol=2e-14)
    inside = cg.func.vmap(cg.func.grad(cg.linalg.det))(both.detach())
    assert_allclose(array(inside), [cofactors, np.eye(len(matrix))], atol=2e-14)


def test_the_second_derivative_of_a_vanishing_determinant():
    """d2 det / dx00 dx11 of a 3 x 3 matrix is x22, and so on: the determinant is a polynomial."""
    data = np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])
    hessian = array(cg.func.hessian(cg.linalg.det)(cg.tensor(data)))
    signs = {(0, 1, 2): 1, (1, 2, 0): 1, (2, 0, 1): 1, (0, 2, 1): -1, (1, 0, 2): -1, (2, 1, 0): -1}
    want = np.zeros((3, 3, 3, 3))
    for order, sign in signs.items():
        for i in range(3):
            for j in range(3):
                if i != j:
                    k = 3 - i - j
                    want[i, order[i], j, order[j]] += sign * data[k, order[k]]
    assert_allclose(hessian, want, atol=1e-12)


def test_logarithms_of_determinants():
    assert cg.logdet(cg.zeros(2, 2)).item() == -np.inf
    assert np.isnan(cg.logdet(cg.tensor([[0.0, 1.0], [1.0, 0.0]])).item())
    sign, logabsdet = cg.linalg.slogdet(np.eye(400) * -10.0)
    assert sign.item() == 1 and logabsdet.item() == pytest.approx(400 * np.log(10), rel=1e-14)
    x = leaf(-10.0 * np.eye(401))
    result = cg.linalg.slogdet(x)
    assert result.sign.item() == -1
    assert_allclose(array(grad(result.logabsdet, x)), -0.1 * np.eye(401), rtol=1e-14)


def test_condition_numbers_of_singular_matrices_are_infinite():
    for p in (None, 2, 1, np.inf, "fro"):
        assert_array_equal(array(cg.linalg.cond(BATCH[:2], p))[1], np.inf if p is not None and p != 2 else np.nan)
    assert_allclose(array(cg.linalg.cond(BATCH[:2], "fro")), [2, np.inf])
    assert cg.linalg.cond(np.diag([1.0, 0.0])).item() == np.inf


# --------------------------------------------------------------------------------------------------------- decompositions
def test_only_one_triangle_is_read():
    spd = np.array([[4.0, 2.0], [2.0, 3.0]])
    low, up = spd.copy(), spd.copy()
    low[0, 1] = up[1, 0] = np.nan
    l = np.linalg.cholesky(spd)
    assert_allclose(array(cg.linalg.cholesky(low)), l)
    assert_allclose(array(cg.linalg.cholesky(up, upper=True)), l.T)
    assert_allclose(array(cg.linalg.eigh(up, "U").eigenvalues), np.linalg.eigvalsh(spd))
    assert_allclose(array(cg.linalg.eigvalsh(low)), np.linalg.eigvalsh(spd))
    for upper, part in ((False, np.tril), (True, np.triu)):
        noisy = np.where(part(np.ones((3, 3))) == 0, np.nan, 2.0)
        x = leaf(noisy)
        out = cg.linalg.solve_triangular(x, np.ones(3), upper=upper)
        assert_allclose(array(out), np.linalg.solve(part(np.full((3, 3), 2.0)), np.ones(3)))
        assert np.isfinite(array(grad(out.sum(), x))).all()


def test_gradients_of_functions_of_symmetric_matrices_are_symmetric():
    spd = leaf([[4.0, 2.0, 0.5], [2.0, 3.0, 0.1], [0.5, 0.1, 1.0]])
    weights = cg.tensor(np.arange(9.0).reshape(3, 3))
    for y in (cg.linalg.cholesky(spd) * weights, cg.linalg.eigh(spd)[1] * weights, cg.linalg.eigh(spd)[0] * weights, cg.linalg.eigvalsh(spd) * weights):
        g = array(grad(y.sum(), spd))
        assert_allclose(g, g.T, rtol=1e-14)


def test_equal_eigenvalues_and_singular_values():
    """The values have slopes, and so have functions of the matrix; single vectors have none."""
    x = leaf(np.eye(3))
    assert_allclose(array(grad(cg.linalg.eigvalsh(x).sum(), x)), np.eye(3), atol=1e-15)
    assert_allclose(array(grad((cg.linalg.eigh(x).eigenvalues ** 2).sum(), x)), 2 * np.eye(3), atol=1e-15)
    assert_allclose(array(grad(cg.linalg.svdvals(x).sum(), x)), np.eye(3), atol=1e-15)
    assert_allclose(array(grad(cg.linalg.svd(x).S.sum(), x)), np.eye(3), atol=1e-15)
    assert_allclose(array(grad(cg.linalg.matrix_norm(x, "nuc"), x)), np.eye(3), atol=1e-15)
    assert not np.isfinite(array(grad(cg.linalg.eigh(x)[1][0, 0], x))).all()
    assert not np.isfinite(array(grad(cg.linalg.svd(x)[0][0, 0], x))).all()
    _, tangent = cg.func.jvp(cg.linalg.eigvalsh, (x.detach(),), (cg.tensor(np.diag([1.0, 2.0, 3.0])),))
    assert tangent.sum().item() == pytest.approx(6)


def test_what_full_matrices_adds_has_no_gradient():
    x = leaf(np.arange(6.0).reshape(3, 2) + np.eye(3, 2))
    u = cg.linalg.svd(x).U
    assert u.shape == (3, 3)
    assert_array_equal(array(grad(u[:, 2].sum(), x)), 0)
    full = grad((cg.linalg.svd(x).U[:, :2] ** 2)[0].sum(), x)
    assert_allclose(array(full), array(grad((cg.linalg.svd(x, full_matrices=False).U ** 2)[0].sum(), x)), rtol=1e-13)


def test_modes_of_qr():
    tall, wide = np.arange(6.0).reshape(3, 2) + np.eye(3, 2), np.arange(6.0).reshape(2, 3) + np.eye(2, 3)
    for data in (tall, wide):
        for mode in ("reduced", "complete"):
            q, r = cg.linalg.qr(data, mode)
            want = np.linalg.qr(data, mode)
            assert_allclose(array(q), want.Q, atol=1e-14)
            assert_allclose(array(r), want.R, atol=1e-14)
        q, r = cg.linalg.qr(data, "r")
        assert q.size == 0
        assert_allclose(array(r), np.linalg.qr(data, "r"), atol=1e-14)
        x = leaf(data)
        assert_allclose(array(grad(cg.linalg.qr(x, "r").R.sum(), x)), array(grad(cg.linalg.qr(x).R.sum(), x)), atol=1e-14)
    x = leaf(wide)
    assert_allclose(array(grad(cg.linalg.qr(x, "complete").Q[0, 0], x)), array(grad(cg.linalg.qr(x).Q[0, 0], x)), atol=1e-14)
    x = leaf(tall)
    with pytest.raises(RuntimeError, match="qr: with mode='complete' and more rows than columns"):
        grad(cg.linalg.qr(x, "complete").R.sum(), x)
    with pytest.raises(RuntimeError, match="mode='reduced'"):
        cg.func.jvp(lambda x: cg.linalg.qr(x, "complete")[0], (x.detach(),), (x.detach(),))


def test_results_have_names_everywhere():
    x = cg.tensor(np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert cg.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert cg.linalg.qr(x)._fields == ("Q", "R")
    assert cg.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert cg.linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert cg.func.vmap(cg.linalg.svd)(cg.stack([x, x])).S.shape == (2, 2)
    out, tangent = cg.func.jvp(cg.linalg.eigh, (x,), (x,))
    assert_allclose(array(tangent.eigenvalues), array(out.eigenvalues), rtol=1e-14)


def test_integers_become_the_default_float():
    x = np.array([[2, 1], [1, 3]])
    for function in (cg.linalg.inv, cg.linalg.det, cg.linalg.cholesky, cg.linalg.eigvalsh, cg.linalg.svdvals, cg.linalg.matrix_norm, cg.linalg.pinv):
        assert function(x).dtype == cg.float32
    assert cg.linalg.solve(x.astype(np.float32), x.astype(np.float64)).dtype == cg.float64
    assert cg.linalg.solve_triangular(x.astype(np.float32), x.astype(np.float64), upper=True).dtype == cg.float64
    a, b = cg.tensor(x.astype(np.float32), requires_grad=True), leaf(x)
    cg.linalg.solve(a, b).sum().backward()
    assert a.grad.dtype == cg.float32 and b.grad.dtype == cg.float64


def test_products_of_integers_keep_their_dtype():
    x = np.array([[200, 100], [3, 4]], np.uint8)
    for function, reference in ((cg.vecdot, np.vecdot), (cg.matmul, np.matmul), (cg.kron, np.kron)):
        got, want = function(x, x), reference(x, x)
        assert got.dtype == want.dtype
        assert_array_equal(array(got), want)


def test_large_triangular_systems_go_by_blocks():
    rng = np.random.default_rng(0)
    n = 201
    x, y = np.tril(rng.standard_normal((n, n))) / n + np.eye(n), rng.standard_normal((n, 3))
    assert_allclose(array(cg.linalg.solve_triangular(x, y, upper=False)), np.linalg.solve(x, y), rtol=1e-11, atol=1e-12)
    assert_allclose(array(cg.linalg.solve_triangular(x.T, y, upper=True)), np.linalg.solve(x.T, y), rtol=1e-11, atol=1e-12)


def test_lu_of_large_singular_and_empty_matrices():
    rng = np.random.default_rng(2)
    for shape in ((150, 150), (150, 90), (90, 150)):
        data = rng.standard_normal(shape)
        for got, want in zip(cg.linalg.lu(data), scipy.linalg.lu(data)):
            assert_allclose(array(got), want, rtol=1e-10, atol=1e-11)
    singular = np.array([[1.0, 2, 3], [4, 5, 6], [0, 0, 0]])
    p, l, u = cg.linalg.lu(np.stack([singular, np.zeros((3, 3))]))
    assert_allclose(array(p @ l @ u), [singular, np.zeros((3, 3))], atol=1e-15)
    assert not array(u)[:, 2].any()
    for shape in ((0, 0), (2, 0), (0, 2), (0, 2, 2)):
        p, l, u = cg.linalg.lu(np.zeros(shape))
        assert p.shape == (*shape[:-1], shape[-2]) and l.shape == (*shape[:-1], min(shape[-2:])) and u.shape == (*shape[:-2], min(shape[-2:]), shape[-1])
    x = leaf(singular)
    with pytest.raises(LinAlgError, match="is singular"):
        grad(cg.linalg.lu(x).U.sum(), x)
    with pytest.raises(LinAlgError, match="is singular"):
        cg.linalg.lu_solve(*cg.linalg.lu_factor(singular), np.ones(3))
    assert np.isnan(array(cg.linalg.lu_factor(NOT_FINITE).LU)).any()


# ---------------------------------------------------------------------------------------------- least squares, exponential
def test_least_squares():
    rng = np.random.default_rng(1)
    for shape in ((5, 3), (3, 5), (4, 4)):
        for y in (rng.standard_normal(shape[0]), rng.standard_normal((shape[0], 2))):
            x = rng.standard_normal(shape)
            got, want = cg.linalg.lstsq(x, y), np.linalg.lstsq(x, y)
            assert_allclose(array(got.solution), want[0], rtol=1e-10, atol=1e-12)
            assert_allclose(array(got.residuals), want[1], rtol=1e-10, atol=1e-12)
            assert got.rank.item() == want[2]
            assert_allclose(array(got.singular_values), want[3], rtol=1e-12)
    x = np.outer([1.0, 2, 3], [1.0, 1])
    got, want = cg.linalg.lstsq(x, np.array([1.0, 2, 4])), np.linalg.lstsq(x, np.array([1.0, 2, 4]))
    assert_allclose(array(got.solution), want[0], rtol=1e-12)
    assert got.rank.item() == 1 and got.residuals.size == 0


def test_the_pseudo_inverse_counts_what_its_tolerances_say():
    x = np.diag([1.0, 1e-3, 1e-8])
    assert_allclose(array(cg.linalg.pinv(x)), np.diag([1.0, 1e3, 1e8]))
    assert_allclose(array(cg.linalg.pinv(x, rtol=1e-5)), np.diag([1.0, 1e3, 0]))
    assert_allclose(array(cg.linalg.pinv(x, atol=1e-2)), np.diag([1.0, 0, 0]))
    assert_allclose(array(cg.linalg.pinv(np.diag([1.0, -1e-3, -1e-8]), rtol=1e-5, hermitian=True)), np.diag([1.0, -1e3, 0]))
    assert_array_equal(array(cg.linalg.matrix_rank(np.stack([x, x]), rtol=cg.tensor(np.array([1e-5, 1e-2])))), [2, 1])
    assert cg.linalg.matrix_rank(np.diag([1.0, -1.0, 0.0]), hermitian=True).item() == 2
    assert cg.linalg.pinv(np.zeros((2, 3))).tolist() == np.zeros((3, 2)).tolist()


def test_the_exponential_of_a_matrix():
    with mpmath.workdps(40):
        for data in ([[0.0, 1.0], [-1.0, 0.0]], [[-49.0, 24.0], [-64.0, 31.0]], [[1.0, 1e3], [0.0, -1.0]], [[1e-9, 2e-9], [0.0, 3e-9]], [[30.0, 2.0], [1.0, -30.0]]):
            want = np.array(mpmath.expm(mpmath.matrix(data)).tolist(), float)
            assert_allclose(array(cg.linalg.matrix_exp(np.array(data))), want, rtol=1e-10, atol=1e-13 * np.abs(want).max())
    out = array(cg.linalg.matrix_exp(np.stack([NOT_FINITE, np.zeros((2, 2)), np.full((2, 2), np.inf)])))
    assert np.isnan(out[[0, 2]]).all()
    assert_array_equal(out[1], np.eye(2))
    assert cg.linalg.matrix_exp(cg.eye(2)).dtype == cg.float32


# ------------------------------------------------------------------------------------------------------------------ kinks
def test_gradients_of_norms_at_kinks():
    x = leaf(np.zeros((2, 2)))
    for ord_ in ("fro", 1, np.inf, -1, -np.inf):
        assert_array_equal(array(grad(cg.linalg.matrix_norm(x, ord_), x)), 0)
    assert_array_equal(array(grad(cg.linalg.norm(x), x)), 0)
    x = leaf([[1.0, -1.0], [1.0, 1.0]])
    assert_allclose(array(grad(cg.linalg.matrix_norm(x, 1), x)), [[0.5, -0.5], [0.5, 0.5]])
    x = leaf([[0.0, 0.0], [1.0, 1.0]])
    assert_array_equal(array(grad(cg.cdist(x, x.detach()).sum(), x))[0], -np.array([1, 1]) / np.sqrt(2))
    assert_array_equal(array(grad(cg.dist(x, x.detach()), x)), 0)


def test_a_norm_over_two_axes_is_that_of_matrices_only_in_linalg():
    x = np.arange(12.0).reshape(2, 3, 2)
    assert_allclose(array(cg.linalg.norm(x, 2, axis=(1, 2))), np.linalg.norm(x, 2, (1, 2)))
    assert_allclose(array(cg.norm(x, 2, dim=(1, 2))), np.linalg.vector_norm(x, axis=(1, 2)))
    assert_allclose(array(cg.tensor(x).norm(dim=1, keepdim=True)), np.linalg.vector_norm(x, axis=1, keepdims=True))


# -------------------------------------------------------------------------------------------------------------- diagonals
def test_diagonals_are_views():
    x = cg.zeros(3, 4, dtype="float64")
    x.diagonal(1)[:] = 5
    assert_array_equal(array(x), np.eye(3, 4, 1) * 5)
    a = leaf(np.ones((2, 2)))
    b = a * 1
    b.diagonal().mul_(3)
    assert_array_equal(array(grad((b * cg.tensor(np.array([[1.0, 2], [3, 4]]))).sum(), a)), [[3, 2], [3, 12]])
    assert cg.diagonal(cg.zeros(2, 3), 10 ** 30).shape == (0,)
    assert cg.diagonal(cg.zeros(2, 3), -(10 ** 30)).shape == (0,)
    assert_array_equal(array(cg.linalg.diagonal(np.arange(8).reshape(2, 2, 2))), [[0, 3], [4, 7]])
    assert_array_equal(array(cg.diagonal(np.arange(8).reshape(2, 2, 2))), [[0, 6], [1, 7]])


def test_a_new_diagonal_hides_what_was_there():
    x = leaf([[np.inf, 1.0], [2.0, np.nan]])
    out = cg.diagonal_scatter(x, cg.tensor(np.array([3.0, 4.0])))
    assert_array_equal(array(out), [[3, 1], [2, 4]])
    assert_array_equal(array(grad(out.sum(), x)), [[0, 1], [1, 0]])


# ----------------------------------------------------------------------------------------------------------------- errors
X = np.arange(24.0).reshape(2, 3, 4)
SQUARE = np.arange(9.0).reshape(3, 3)
ERRORS = [
    (lambda: cg.linalg.inv(X), r"inv: x must be square in its last two axes, got shape \(2, 3, 4\)"),
    (lambda: cg.linalg.det(np.ones(3)), r"det: x must have at least 2 axes, a matrix or a batch of them; got shape \(3,\)"),
    (lambda: cg.linalg.svd(1.0), "svd: x must have at least 2 axes"),
    (lambda: cg.linalg.solve(SQUARE, np.ones(4)), r"solve: a right-hand side of shape \(4,\) does not fit a matrix of shape \(3, 3\); it should be a vector of length 3"),
    (lambda: cg.linalg.solve(SQUARE, np.ones((2, 4, 1))), "solve: a right-hand side"),
    (lambda: cg.linalg.solve(SQUARE, 1.0), "solve: a right-hand side"),
    (lambda: cg.linalg.lstsq(X, np.ones(5)), "lstsq: a right-hand side"),
    (lambda: cg.linalg.solve_triangular(SQUARE, np.ones(3)), "upper"),
    (lambda: cg.linalg.eigh(SQUARE, "X"), 'eigh: UPLO is "L" or "U"'),
    (lambda: cg.linalg.qr(SQUARE, "full"), 'qr: mode is "reduced", "complete" or "r", got \'full\''),
    (lambda: cg.linalg.lu(SQUARE, pivot=False), "lu: rows are always exchanged"),
    (lambda: cg.linalg.lu_solve(SQUARE, np.array([1, 2, 4]), np.ones(3)), "lu_solve: pivots are numbers of rows, from 1 to 3; got 1 to 4"),
    (lambda: cg.linalg.lu_solve(SQUARE, np.array([1, 2]), np.ones(3)), r"lu_solve: pivots must be integers of shape \(3,\), got int64 of shape \(2,\)"),
    (lambda: cg.linalg.matrix_power(SQUARE, 1.5), "matrix_power: n must be an integer, got 1.5"),
    (lambda: cg.linalg.matrix_norm(SQUARE, 3), 'matrix_norm: ord must be "fro", "nuc"'),
    (lambda: cg.linalg.matrix_norm(np.ones(3)), "matrix_norm: x must have at least 2 axes"),
    (lambda: cg.linalg.matrix_norm(X, axis=(0, 0)), "matrix_norm: axis 0 is named twice"),
    (lambda: cg.linalg.norm(X, 2), r"norm: with ord=2 and no axis, x must be 1-d or 2-d, got shape \(2, 3, 4\)"),
    (lambda: cg.linalg.norm(X, "fro", 1), "norm: ord='fro' is for matrices"),
    (lambda: cg.norm(X, "x"), 'norm: p must be a number, "fro" or "nuc"'),
    (lambda: cg.norm(X, "nuc"), 'norm: p="nuc" needs two axes'),
    (lambda: cg.linalg.multi_dot([SQUARE]), "multi_dot: needs at least 2 matrices, got 1"),
    (lambda: cg.linalg.multi_dot([SQUARE, SQUARE[:2]]), "multi_dot: matrices 0 and 1 of shapes"),
    (lambda: cg.linalg.multi_dot([SQUARE, SQUARE[0], SQUARE]), "multi_dot: matrix 1 must be 2-d"),
    (lambda: cg.linalg.cross(SQUARE[:, :2], SQUARE[:, :2]), "cross: vectors must have length 3 along axis -1"),
    (lambda: cg.linalg.tensorinv(X, 1), "tensorinv: the first 1 axes .* have 2 elements, the others 12"),
    (lambda: cg.linalg.tensorsolve(X, SQUARE), "tensorsolve: x of shape"),
    (lambda: cg.linalg.vander(1.0, -1), "vander: N must not be negative, got -1"),
    (lambda: cg.linalg.householder_product(SQUARE, np.ones(4)), "householder_product: x of shape"),
    (lambda: cg.linalg.pinv(SQUARE, rtol="x"), "pinv: rtol must be a number or a tensor, got str"),
    (lambda: cg.linalg.cond(np.ones((0, 0))), "cond: a matrix without elements"),
    (lambda: cg.diagonal(np.ones(3)), "diagonal: a diagonal needs at least 2 axes, the tensor has 1"),
    (lambda: cg.diagonal(X, 0, 1, 1), "diagonal: axis1 and axis2 are both axis 1"),
    (lambda: cg.diagonal(X, 0, 3, 1), "diagonal: axis1 3 is out of range"),
    (lambda: cg.diag(X), "diag: takes a vector or a matrix"),
    (lambda: cg.diag_embed(cg.tensor(1.0)), "diag_embed: needs at least one axis"),
    (lambda: cg.diagonal_scatter(SQUARE, np.ones(2)), r"diagonal_scatter: src of shape \(2,\) does not fit the diagonal, which has shape \(3,\)"),
    (lambda: cg.block_diag(X), "block_diag: a block has at most 2 axes"),
    (lambda: cg.trace(np.ones(3)), "trace: a diagonal needs at least 2 axes"),
    (lambda: cg.cdist(SQUARE, SQUARE[:, :2]), "cdist: rows of shapes .* differ in length"),
    (lambda: cg.renorm(SQUARE, 2, 0, -1.0), "renorm: maxnorm must not be negative"),
    (lambda: cg.renorm(SQUARE[0], 2, 0, 1.0), "renorm: needs at least 2 axes"),
    (lambda: cg.addmv(np.ones(4), SQUARE, SQUARE[0]), r"addmv: x of shape \(4,\) does not broadcast|broadcast"),
    (lambda: cg.addbmm(SQUARE, X, X), "addbmm: the batches or the inner lengths differ"),
    (lambda: cg.fft.fftfreq(0), "fftfreq: n must be positive, got 0"),
    (lambda: cg.fft.rfftfreq(4, 0), "rfftfreq: the spacing"),
    (lambda: cg.fft.fftshift(X, 5), "fftshift: axis 5 is out of range"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS, ids=[str(i) for i in range(len(ERRORS))])
def test_errors_name_the_operation_and_the_values(call, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        call()


def test_what_needs_complex_numbers_says_so():
    for module, name in ((cg.linalg, "eig"), (cg.linalg, "eigvals"), (cg.fft, "fft"), (cg.fft, "irfft2"), (cg.fft, "hfft")):
        with pytest.raises(AttributeError, match=f"{name}'; .*complex dtypes do not exist yet"):
            getattr(module, name)
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        cg.fft.x


@pytest.mark.parametrize(("data", "order", "value", "slope"), [
    *[([0.0, 0.0], p, 0.0, [0.0, 0.0]) for p in (2, 3, 1, np.inf, 0.5, -0.5, -1, -2)],
    ([4.0, 0.0], 0.5, 4.0, [1.0, 0.0]), ([4.0, 0.0], -1, 0.0, [0.0, 0.0]), ([-3.0, 4.0], -2, 2.4, [-0.512, 0.216]),
])
def test_vector_norms_of_any_order_have_finite_slopes_at_zero(data, order, value, slope):
    x = cg.tensor(np.array(data), requires_grad=True)
    y = cg.linalg.vector_norm(x, order)
    y.backward()
    np.testing.assert_allclose(y.item(), value, rtol=1e-14)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-12)
    assert np.isnan(cg.linalg.vector_norm(cg.tensor([np.nan, 0.0]), order).item())
