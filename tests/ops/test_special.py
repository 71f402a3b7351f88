"""What the rows of cases.py cannot say of the special functions: errors, names, derivatives of high order at 0."""
import math

import mpmath
import numpy as np
import pytest

import cgrad as cg


def derivatives(function, x, n):
    """The first n derivatives at x, by n times backward."""
    x = cg.tensor(np.array(x), requires_grad=True)
    y, found = function(x), []
    for _ in range(n):
        (y,) = cg.autograd.grad(y, (x,), create_graph=True)
        found.append(y.item())
    return found


def test_quotients_have_all_their_derivatives_at_0():
    assert derivatives(cg.sinc, 0.0, 4) == pytest.approx([0, -math.pi**2 / 3, 0, math.pi**4 / 5])
    assert derivatives(cg.special.i1, 0.0, 5) == pytest.approx([1 / 2, 0, 3 / 8, 0, 5 / 16])
    assert derivatives(cg.special.i0, 0.0, 4) == pytest.approx([0, 1 / 2, 0, 3 / 8])


def test_tails_keep_their_slopes():
    assert derivatives(cg.special.log_ndtr, -1e4, 2) == pytest.approx([1e4, -1], rel=1e-3)
    assert derivatives(cg.special.log_ndtr, 60.0, 2) == [0, 0]


def test_names():
    from cgrad import special
    assert special.psi is cg.digamma and special.gammaln is cg.lgamma and special.expit is cg.sigmoid
    assert special.multigammaln(cg.tensor([2.0]), 1).item() == 0
    assert set(special.__all__) <= set(dir(special))
    x = cg.tensor([0.5])
    assert x.erfinv().item() == cg.erfinv(x).item() and x.logit(eps=0.1).item() == 0


@pytest.mark.parametrize("exponent", [1.05, 1.5, 2.0, 3.7, 10.0, 40.0])
def test_zeta_by_its_exponent(exponent):
    for y in (0.05, 0.5, 1.0, 3.3, 25.0):
        x = cg.tensor(exponent, dtype="float64", requires_grad=True)
        cg.special.zeta(x, y).backward()
        with mpmath.workdps(50):
            expected = float(mpmath.zeta(exponent, y, 1))
        np.testing.assert_allclose(x.grad.item(), expected, rtol=1e-12)


@pytest.mark.parametrize("wrong", [lambda x: cg.polygamma(-1, x), lambda x: cg.mvlgamma(x, 0)])
def test_orders_out_of_range(wrong):
    with pytest.raises(ValueError, match="order|dimension"):
        wrong(cg.ones(2))
    for function in (lambda: cg.polygamma(1.5, cg.ones(2)), lambda: cg.gcd(cg.ones(2), cg.ones(2))):
        with pytest.raises(TypeError):
            function()


def test_numbers_at_the_ends_of_the_range():
    tiny = np.finfo(np.float64).smallest_subnormal
    x = cg.tensor(np.array([tiny, 1.5e308, 3.0, 0.0, -0.0, np.inf, np.nan]))
    mantissa, exponent = cg.frexp(x)
    want = np.frexp(x.numpy())
    np.testing.assert_array_equal(mantissa.numpy(), want[0])
    np.testing.assert_array_equal(exponent.numpy()[:5], want[1][:5])
    assert exponent.dtype == cg.int32
    np.testing.assert_array_equal(cg.ldexp(mantissa, exponent).numpy(), x.numpy())
    np.testing.assert_array_equal(cg.ldexp(cg.tensor(np.array([tiny, 1e300])), cg.tensor([2000, -2000])).numpy(), [np.ldexp(tiny, 2000), np.ldexp(1e300, -2000)])
    np.testing.assert_array_equal(cg.nextafter(cg.tensor(np.array([0.0, 1.0, np.inf])), cg.tensor(np.array(-1.0))).numpy(),
                                  np.nextafter([0.0, 1.0, np.inf], -1.0))
