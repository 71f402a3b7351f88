"""Views of any strides, and other functions on arrays where more than a value counts."""
import itertools
import math

import mpmath
import numpy as np
import pytest

import cgrad as cg
import cgrad.nn.functional as F
from cgrad.func import grad, jvp, vjp, vmap


def test_as_strided_never_leaves_the_memory():
    x = cg.arange(20)[2:18]
    assert x.as_strided((2,), (1,)).tolist() == [2, 3]                           # starts where x does
    assert x.as_strided((2,), (1,), 0).tolist() == [0, 1]                        # counts from the start of the memory
    assert x.as_strided((2,), (-19,), 19).tolist() == [19, 0]
    for shape, strides, offset in (((2,), (18,), None), ((21,), (1,), 0), ((2,), (-1,), 0), ((1,), (1,), 20), ((1,), (1,), -1), ((2,), (1 << 62,), 0),
                                   ((1 << 40, 1 << 40), (0, 0), 0)):
        with pytest.raises(ValueError, match="as_strided.*memory"):
            x.as_strided(shape, strides, offset)
    assert x.as_strided((0, 5), (1, 1), 99).shape == (0, 5)
    for shape, strides in (((2, 2), (1,)), ((-1,), (1,))):
        with pytest.raises(ValueError, match="a length"):
            x.as_strided(shape, strides)


def test_as_strided_refuses_elements_that_would_have_no_gradient():
    x = cg.arange(6.0).reshape(2, 3).requires_grad_()
    every_other = x[:, ::2]
    with pytest.raises(ValueError, match="none of the tensor"):
        every_other.as_strided((3,), (1,))
    assert every_other.detach().as_strided((3,), (1,)).tolist() == [0, 1, 2]
    every_other.as_strided((2, 2), (3, 0)).sum().backward()                      # elements 0 and 3, twice each
    assert x.grad.tolist() == [[2, 0, 0], [2, 0, 0]]


LAYOUTS = {
    "C order": lambda x: x, "Fortran order": lambda x: x.T, "backward": lambda x: x[::-1], "both backward": lambda x: x[::-1, ::-1],
    "with gaps": lambda x: x[::2, 1:], "transposed with gaps": lambda x: x.T[1:, ::2], "one column": lambda x: x[:, 1:2],
}


def seen(shape, strides, view, offset):
    """Which element (in C order) of an array of a layout a view of it shows at each place."""
    element_at = {sum(i * s for i, s in zip(at, strides)): k for k, at in enumerate(np.ndindex(*shape))}
    return np.array([element_at[offset + sum(i * s for i, s in zip(at, view[1]))] for at in np.ndindex(*view[0])]).reshape(view[0])


@pytest.mark.parametrize("name", LAYOUTS)
def test_as_strided_counts_in_the_layout_of_the_tensor_in_every_derivative(name):
    rng = np.random.default_rng(0)
    x = LAYOUTS[name](cg.tensor(rng.standard_normal((4, 6))))
    rows, columns = x.shape
    first, second = x.strides
    for view in (((rows, columns), (first, second)), ((columns, rows), (second, first)), ((2, rows), (0, first)), ((rows - 1, 2), (first, first))):
        at = seen(x.shape, x.strides, view, 0)
        t, g = rng.standard_normal(x.shape), rng.standard_normal(view[0])

        def f(x, view=view):
            return cg.as_strided(x, *view)
        np.testing.assert_array_equal(f(x).numpy(), x.numpy().ravel()[at])
        for tangent in (cg.tensor(t), cg.tensor(np.asfortranarray(t)), LAYOUTS["backward"](cg.tensor(t[::-1].copy()))):
            value, pushed = jvp(f, (x,), (tangent,))
            np.testing.assert_array_equal(value.numpy(), x.numpy().ravel()[at])
            np.testing.assert_array_equal(pushed.numpy(), t.ravel()[at])
        np.testing.assert_allclose(jvp(lambda x, f=f: f(x) ** 2, (x,), (cg.tensor(t),))[1].numpy(),
                                   (((x + 1e-6 * cg.tensor(t)).numpy().ravel()[at]) ** 2 - (x - 1e-6 * cg.tensor(t)).numpy().ravel()[at] ** 2) / 2e-6, rtol=1e-7)
        pulled = np.zeros(x.shape)
        np.add.at(pulled.reshape(-1), at, g)
        np.testing.assert_allclose(vjp(f, x)[1](cg.tensor(g)).numpy(), pulled, rtol=1e-14)
        tracked = x.detach().requires_grad_()
        (f(tracked) * cg.tensor(g)).sum().backward()
        np.testing.assert_allclose(tracked.grad.numpy(), pulled, rtol=1e-14)
        np.testing.assert_allclose(jvp(vjp(lambda x, f=f: (f(x) ** 3), x)[1], (cg.tensor(g),), (cg.tensor(g),))[1].detach().numpy(),
                                   np.bincount(at.ravel(), (g * 3 * x.numpy().ravel()[at] ** 2).ravel(), x.size).reshape(x.shape), rtol=1e-13)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", LAYOUTS)
def test_as_strided_of_an_example_of_a_batch(name, axis):
    """As in a loop over the examples."""
    rng = np.random.default_rng(1)
    batch = cg.tensor(rng.standard_normal((4, 6, 3)))
    batch = cg.moveaxis(LAYOUTS[name](batch[..., 0].expand(3, 4, 6).clone()[2]).expand(3, *LAYOUTS[name](batch[..., 0]).shape) * cg.tensor(
        [[[1.0]], [[2.0]], [[3.0]]]), 0, axis)
    batch = cg.tensor(np.asfortranarray(batch.numpy())) if "gaps" in name else batch
    examples = [batch.select(axis, k) for k in range(3)]
    (rows, columns), (first, second) = examples[0].shape, examples[0].strides

    def f(x):
        return cg.as_strided(x, (columns, rows), (second, first))
    np.testing.assert_array_equal(vmap(f, in_axes=axis)(batch).numpy(), [f(x).numpy() for x in examples])
    weights = cg.tensor(rng.standard_normal((columns, rows)))
    slopes = vmap(grad(lambda x: (f(x) * weights).sum()), in_axes=axis)(batch)
    np.testing.assert_array_equal(slopes.numpy(), [grad(lambda x: (f(x) * weights).sum())(x).numpy() for x in examples])
    tangent = cg.tensor(rng.standard_normal(batch.shape))
    pushed = vmap(lambda x, t: jvp(f, (x,), (t,))[1], in_axes=axis)(batch, tangent)
    np.testing.assert_array_equal(pushed.numpy(), [tangent.select(axis, k).numpy().T for k in range(3)])


def test_as_strided_shows_no_tangent_and_no_example_that_is_not_there():
    x = cg.arange(6.0).reshape(2, 3)[:, ::2]
    with pytest.raises(ValueError, match="none of the tensor that carries a tangent .* would have no gradient"):
        jvp(lambda x: x.as_strided((3,), (1,)), (x,), (cg.ones_like(x),))
    with pytest.raises(ValueError, match="none of an example of a batch"):
        vmap(lambda x: x.as_strided((3,), (1,)))(x)


def test_unfold_of_elements_in_one_place():
    """Each has a slope of its own, as soon as somebody asks for slopes."""
    w = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = cg.ones(1, dtype=cg.float64).expand(4)
    leaf = x.detach().requires_grad_()
    (leaf.unfold(0, 2, 1) * cg.tensor(w)).sum().backward()
    assert leaf.grad.tolist() == [1, 5, 9, 6]
    t = cg.tensor([1.0, 2.0, 3.0, 4.0], dtype=cg.float64)
    assert jvp(lambda x: x.unfold(0, 2, 1), (x,), (t,))[1].tolist() == [[1, 2], [2, 3], [3, 4]]


def test_windows_that_overlap_are_not_written_into():
    windows = cg.arange(5).unfold(0, 3, 1)
    for write in (lambda: windows.add_(1), lambda: windows.__setitem__(0, 1), lambda: windows.copy_(windows.clone())):
        with pytest.raises((RuntimeError, ValueError), match="one place"):
            write()
    apart = cg.arange(6)
    apart.unfold(0, 2, 3).add_(10)
    assert apart.tolist() == [10, 11, 2, 13, 14, 5]


def test_unfold_in_another_layout_and_in_a_graph_with_writes():
    x = cg.tensor(np.arange(12.0).reshape(3, 4).T, requires_grad=True)
    assert (x.unfold(0, 2, 2).detach().numpy() == np.lib.stride_tricks.sliding_window_view(x.detach().numpy(), 2, 0)[::2]).all()
    y = x * 1
    y.unfold(0, 2, 2).mul_(cg.tensor([1.0, 3.0], dtype="float64"))
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [3, 3, 3], [1, 1, 1], [3, 3, 3]]
    with pytest.raises(ValueError, match="unfold"):
        x.unfold(0, 5, 1)
    with pytest.raises(ValueError, match="unfold"):
        x.unfold(0, 2, 0)


# mpmath 1.3 with 50 digits
@pytest.mark.parametrize(("a", "x", "lower", "upper"), [
    (0.5, 1e-300, 1.1283791670955126e-150, 1.0), (1e-5, 2.0, 0.9999995109872543, 4.890127457242878e-07), (300.0, 200.0, 2.7114684433431115e-11, 0.9999999999728854),
    (1e6, 1004000.0, 0.9999676545526865, 3.234544731347768e-05), (1e6, 994000.0, 9.178900262302024e-10, 0.99999999908211), (1e300, 1.0, 0.0, 1.0), (1.0, 1e300, 1.0, 0.0),
])
def test_incomplete_gamma_far_from_the_middle(a, x, lower, upper):
    a, x = cg.tensor(a, dtype="float64"), cg.tensor(x, dtype="float64")
    np.testing.assert_allclose(cg.igamma(a, x).item(), lower, rtol=1e-12)
    np.testing.assert_allclose(cg.igammac(a, x).item(), upper, rtol=1e-12)


def test_incomplete_gamma_at_the_edges():
    inf, nan = np.inf, np.nan
    a = cg.tensor([0.0, 0, 1, inf, 1, inf, -1, 1, nan, 1, 5e-324], dtype="float64")
    x = cg.tensor([0.0, 1, 0, 1, inf, inf, 1, -1, 1, nan, 1], dtype="float64")
    np.testing.assert_allclose(cg.igamma(a, x).numpy(), [nan, 1, 0, 0, 1, nan, nan, nan, nan, nan, 1], rtol=1e-14)
    np.testing.assert_array_equal(cg.igammac(a, x).numpy()[:10], [nan, 0, 1, 1, 0, nan, nan, nan, nan, nan])
    for f in (cg.igamma, cg.igammac):
        shape = a[:10].clone().requires_grad_(True)
        f(shape, x[:10]).sum().backward()
        expected = [nan, -0.21938393439552026, 0, 0, 0, nan, nan, nan, nan, nan]       # -E1(1) for the shape 0
        np.testing.assert_allclose(shape.grad.numpy(), np.array(expected) * (1 if f is cg.igamma else -1), rtol=1e-13)


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 2.5, 10.0, 60.0, 500.0])
@pytest.mark.parametrize("ratio", [0.3, 0.8, 1.0, 1.05, 1.5, 3.0])
def test_incomplete_gamma_by_its_shape(shape, ratio):
    bound = shape * ratio
    for f, ends in ((cg.igamma, (0, bound)), (cg.igammac, (bound, mpmath.inf))):
        with mpmath.workdps(420):       # differences of numbers that are all but 1
            h = mpmath.mpf(10) ** -100
            up, down = (mpmath.gammainc(mpmath.mpf(shape) + s * h, *ends, regularized=True) for s in (1, -1))
            expected = float((up - down) / (2 * h))
        x = cg.tensor(shape, dtype="float64", requires_grad=True)
        f(x, cg.tensor(bound, dtype="float64")).backward()
        np.testing.assert_allclose(x.grad.item(), expected, rtol=1e-11)


def test_incomplete_gamma_by_a_large_shape():
    for shape, bound in ((19999.0, 20100.0), (20001.0, 19800.0), (20001.0, 20001.0), (30000.0, 30900.0)):
        with mpmath.workdps(60):
            first, second = (float(mpmath.diff(lambda a: mpmath.gammainc(a, 0, bound, regularized=True), mpmath.mpf(shape), n)) for n in (1, 2))     # noqa: B023
        x = cg.tensor(shape, dtype="float64", requires_grad=True)
        slope, = cg.autograd.grad(cg.igamma(x, cg.tensor(bound, dtype="float64")), x, create_graph=True)
        np.testing.assert_allclose(slope.item(), first, rtol=1e-10)
        np.testing.assert_allclose(cg.autograd.grad(slope, x)[0].item(), second, rtol=1e-5, atol=1e-15)
    # towards a normal distribution of variance x; and the number of terms does not follow x or y without end
    x = cg.tensor([1e12, 1e160, 1.0, 1e160, 100.0, 1e200], dtype="float64", requires_grad=True)
    cg.igamma(x, cg.tensor([1e12, 1.0, 1e160, 1e160, 1e10, 1e-200], dtype="float64")).sum().backward()
    normal = [-1 / math.sqrt(2 * math.pi * a) for a in (1e12, 1e160)]
    np.testing.assert_allclose(x.grad.numpy(), [normal[0], 0, 0, normal[1], 0, 0], rtol=1e-12)


def test_incomplete_gamma_of_two_operands():
    assert cg.igamma(2, cg.ones(1, dtype="float64")).dtype == cg.float64


def test_gradient_checks_what_it_is_told():
    x = cg.ones(2, 3)
    for arguments, options in (((x,), dict(edge_order=2)), ((x,), dict(edge_order=3)), ((x, 1, 2, 3), {}), ((x,), dict(axis=(0, 0))), ((cg.ones(()),), dict(axis=0)),
                               ((x, cg.ones(3)), {})):
        with pytest.raises(ValueError, match="gradient"):
            cg.gradient(*arguments, **options)
    assert isinstance(np.gradient(cg.ones(3)), cg.Tensor)                         # NumPy's own gives one array for one axis
    by_name = cg.gradient(x, spacing=[0.5, cg.tensor([0.0, 1.0, 3.0])])
    assert [g.tolist() for g in by_name] == [g.tolist() for g in cg.gradient(x, 0.5, cg.tensor([0.0, 1.0, 3.0]))]
    places = cg.tensor([0.0, 1.0, 3.0], dtype="float64", requires_grad=True)
    assert cg.autograd.gradcheck(lambda p: cg.gradient(cg.tensor([1.0, 5.0, 2.0], dtype="float64"), p, edge_order=2)[0], (places,))


def test_shapes_that_do_not_fit_are_named():
    for call in (lambda: cg.sum_to_size(cg.ones(2, 3), (2, 2)), lambda: cg.sum_to_size(cg.ones(3), (1, 3, 1)), lambda: cg.vsplit(cg.ones(3), 1),
                 lambda: cg.hsplit(cg.ones(2, 3), 2), lambda: cg.dsplit(cg.ones(2, 3), 1), lambda: cg.hsplit(cg.tensor(1), 1),
                 lambda: cg.constant_pad_nd(cg.ones(2), (1,)), lambda: cg.constant_pad_nd(cg.ones(2), (1, 1, 1, 1)), lambda: cg.split_with_sizes(cg.ones(2), [1])):
        with pytest.raises(ValueError, match=r"\w+: .*\d"):
            call()


def test_circular_padding_goes_round_what_is_left():
    x = cg.arange(4)[None, None]
    assert F.pad(x, (-1, 2), mode="circular").flatten().tolist() == [1, 2, 3, 1, 2]
    assert F.pad(x, (2, -1), mode="circular").flatten().tolist() == [1, 2, 0, 1, 2]


def test_other_spellings_of_pytorch():
    assert cg.tril_indices(2, 2, dtype=cg.int32).dtype == cg.triu_indices(2, dtype=cg.int32).dtype == cg.int32
    assert cg.logspace(0, 3, 4, 2).tolist() == [1, 2, 4, 8]
    assert cg.add(cg.tensor([1], dtype=cg.uint8), 1, alpha=2).dtype == cg.uint8
    assert cg.rsub(cg.tensor([1], dtype=cg.uint8), 3).tolist() == [2]
    assert cg.ones(3).unfold(dimension=0, size=2, step=1).shape == (2, 2)


def test_constants_and_ranges_pass_gradients_to_tensors_they_are_made_of():
    t = cg.tensor(2.0, dtype="float64", requires_grad=True)
    for function, want in ((lambda t: cg.full((2, 3), t), 6), (lambda t: cg.full_like(cg.ones(4), t), 4), (lambda t: cg.linspace(t, 5, 4), 2),
                           (lambda t: cg.linspace(0, t, 4, endpoint=False), 1.5), (lambda t: cg.logspace(0, t, 2), np.log(10) * 100),
                           (lambda t: cg.logspace(0, 2, 3, t), 5)):
        grad, = cg.autograd.grad(function(t).sum(), t)
        np.testing.assert_allclose(grad.item(), want, rtol=1e-6)
        np.testing.assert_allclose(function(t).detach().numpy(), function(t.detach()).numpy(), rtol=1e-6)
    assert cg.func.vmap(lambda v: cg.linspace(v, 1, 3))(cg.tensor([0.0, 3.0])).tolist() == [[0, 0.5, 1], [3, 2, 1]]
    for call in (lambda: cg.arange(t), lambda: cg.pad(cg.ones(2), 1, constant_values=t), lambda: cg.random.uniform(0, t, size=2)):
        with pytest.raises(TypeError, match="leave the graph"):
            call()


def test_calls_that_can_only_be_mistakes():
    for call, error in ((lambda: cg.roll(cg.ones(3), ()), ValueError), (lambda: cg.roll(cg.ones(2, 3), (1, 2), 0), ValueError),
                        (lambda: cg.roll(cg.ones(2, 3), (1,), (0, 1)), ValueError), (lambda: cg.mean(cg.ones(2), dtype=cg.int64), TypeError)):
        with pytest.raises(error):
            call()


def test_half_open_linspace_is_a_closed_one_without_its_end():
    for n in (1, 2, 3, 7, 10):
        assert cg.linspace(-0.3, 1.1, n, endpoint=False, dtype="float64").tolist() == cg.linspace(-0.3, 1.1, n + 1, dtype="float64")[:-1].tolist()


NAN = float("nan")


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: cg.insert(cg.arange(3), 4, 0), IndexError, "use -3 to 3"), (lambda: cg.insert(cg.arange(3), [0.5], 0), TypeError, "integers"),
    (lambda: cg.insert(cg.arange(3), 0, 0.5), TypeError, None), (lambda: cg.insert(cg.arange(3), [0, 1], cg.arange(3)), ValueError, None),
    (lambda: cg.delete(cg.arange(3), 3), IndexError, "use -3 to 2"), (lambda: cg.delete(cg.arange(3), cg.tensor([True])), ValueError, "mask"),
    (lambda: cg.trim_zeros(cg.zeros(2, 2)), ValueError, "vector"), (lambda: cg.trim_zeros(cg.zeros(2), "x"), ValueError, "'fb'"),
    (lambda: cg.put_along_axis(cg.zeros(2), cg.tensor([2]), 1.0, 0), IndexError, None), (lambda: cg.put_along_axis(cg.zeros(2), cg.tensor([2]), 1.0, None), IndexError, "2 places"),
    (lambda: cg.fill_diagonal(cg.zeros(2), 1.0), ValueError, "matrix"), (lambda: cg.fill_diagonal(cg.zeros(2, 2, 3), 1.0), ValueError, "all as long"),
    (lambda: cg.convolve(cg.zeros(0), cg.zeros(1)), ValueError, "not empty"), (lambda: cg.convolve(cg.zeros(2), cg.zeros(1), "odd"), ValueError, "mode"),
    (lambda: cg.interp(1.0, [0.0, 1.0, 0.5], [1.0, 2.0, 3.0]), ValueError, "increase"), (lambda: cg.interp(1.0, [0.0], [1.0, 2.0]), ValueError, "one length"),
    (lambda: cg.interp(1.0, [0.0], [1.0], period=0), ValueError, "period"), (lambda: cg.vander(cg.zeros(2, 2)), ValueError, "vector"),
    (lambda: cg.polyval(cg.zeros(2, 2), 1.0), ValueError, "coefficients"), (lambda: cg.polyfit(cg.zeros(2), cg.zeros(3), 1), ValueError, "a value for each"),
    (lambda: cg.polyfit(cg.zeros(2), cg.zeros(2), 1, w=cg.ones(3)), ValueError, "a weight"), (lambda: cg.average(cg.zeros(2, 3), weights=cg.ones(2)), ValueError, "do not belong"),
    (lambda: cg.nanargmax(cg.tensor([NAN, NAN])), ValueError, "nothing but NaN"), (lambda: cg.unravel_index(cg.tensor(6), (2, 3)), IndexError, "6 places"),
    (lambda: cg.unravel_index(cg.tensor(0.5), (2, 3)), TypeError, "integers"), (lambda: cg.ravel_multi_index((cg.tensor(3),), (2, 3)), ValueError, "each axis"),
    (lambda: cg.ravel_multi_index((cg.tensor(0), cg.tensor(3)), (2, 3)), IndexError, "3 places"), (lambda: cg.geomspace(-1, 1, 3), ValueError, "one sign"),
    (lambda: cg.ones(2).is_nonzero(), ValueError, "one element"), (lambda: cg.tri(-1), ValueError, "negative"),
])
def test_array_functions_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_writes_in_place_reach_views_and_graphs():
    x = cg.zeros(3, 3)
    assert cg.fill_diagonal(x, 2.0) is x
    x[1:].fill_diagonal_(5.0)
    assert x.tolist() == [[2, 0, 0], [5, 2, 0], [0, 5, 2]]
    value = cg.tensor(3.0, requires_grad=True)
    y = cg.ones(2, 2, requires_grad=True) * 1
    cg.put_along_axis(y, cg.tensor([[1], [0]]), value, 1)
    y.sum().backward()
    assert value.grad.item() == 2 and y.tolist() == [[1, 3], [3, 1]]
    with pytest.raises(RuntimeError, match="leaf"):
        cg.fill_diagonal(cg.ones(2, 2, requires_grad=True), 0.0)


def test_nothing_but_nan():
    x = cg.tensor([[NAN, NAN], [1.0, NAN]], requires_grad=True)
    assert np.array_equal(cg.nanmax(x, 1).detach().numpy(), [NAN, 1], equal_nan=True) and cg.nanmin(x).item() == 1
    cg.nanmax(x, 1).sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 0]]
    whole = cg.tensor([3, 1, 2], dtype=cg.int32)
    for name in ("nanmax", "nanmin", "nanprod", "nancumsum", "nancumprod", "nanargmax", "nanargmin"):
        ours, numpys = getattr(cg, name)(whole), getattr(np, name)(whole.numpy())
        assert ours.dtype == numpys.dtype and ours.tolist() == numpys.tolist()


def test_more_spellings():
    x = cg.array([[1.0, -2.0], [0.0, 3.0]])
    assert x.copy() is not x and x.H.tolist() == x.mH.tolist() == x.T.tolist() == x.adjoint().tolist() and x.real is x
    assert cg.identity(2).tolist() == [[1, 0], [0, 1]] and cg.around(cg.tensor(2.5)).item() == 2 and cg.tri(2, 3, 1).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert x[1].storage_offset() == 2 and x.nelement() == cg.numel(x) == 4 and x.ndimension() == 2 and x.cpu() is x
    assert not x.is_complex() and x.is_signed() and not cg.zeros(1, dtype=cg.uint8).is_signed() and cg.tensor(1).is_nonzero() and cg.is_floating_point(x)
    np.testing.assert_allclose(cg.geomspace(-2, -32, 5).numpy(), [-2, -4, -8, -16, -32], rtol=1e-7)
    end = cg.tensor(32.0, dtype="float64", requires_grad=True)
    cg.geomspace(2, end, 5, dtype="float64").sum().backward()
    np.testing.assert_allclose(end.grad.item(), sum(k / 4 * 2 * 16 ** (k / 4) / 32 for k in range(5)), rtol=1e-12)
    for method, want in (("tril_", [[1, 0], [0, 3]]), ("cumsum_", [[1, -2], [1, 1]]), ("nan_to_num_", [[1, -2], [0, 3]])):
        y = x.clone()
        assert getattr(y, method)(*[0] * (method == "cumsum_")) is y and y.tolist() == want
    y = x.clone()
    assert y.atan2_(cg.ones(2, 2)) is y and y.tolist() == cg.atan2(x, cg.ones(2, 2)).tolist()


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.1, 0.7), (-1e308, 1e308), (1.0, 1.0 + 1e-12), (0.0, 5e-324)])
def test_histogram_counts_by_the_edges_themselves(low, high):
    x = np.concatenate([cg.linspace(low, high, n, dtype="float64").numpy() for n in (31, 8)] + [[NAN, np.inf, -np.inf]])
    with np.errstate(over="ignore"):
        x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])
    counts, edges = cg.histogram(cg.tensor(x), 7, (low, high))
    edges = edges.numpy()
    want = [((x >= a) & ((x < b) if k < 6 else (x <= b))).sum() for k, (a, b) in enumerate(itertools.pairwise(edges))]
    assert counts.tolist() == want and cg.histc(cg.tensor(x), 7, low, high).tolist() == want


def test_tangents_are_cast_to_the_dtype_of_their_tensors_as_gradients_are():
    value, slope = cg.func.jvp(lambda x: x * 2, (cg.ones(2),), (cg.ones(2, dtype="float64"),))
    assert slope.dtype == cg.float32 and slope.tolist() == [2, 2]


@pytest.mark.parametrize(("shape", "mask"), [((1,), (0,)), ((3,), (0,)), ((2, 3), (0, 3)), ((2, 3), (2, 0)), ((2, 3), (0,)), ((0, 3), (0, 3))])
def test_a_mask_without_elements_selects_nothing(shape, mask):
    x, empty = cg.ones(shape, requires_grad=True), np.zeros(mask, bool)
    out = x[cg.tensor(empty)]
    assert out.shape == np.ones(shape)[empty].shape
    out.sum().backward()
    assert x.grad.shape == shape and not x.grad.any()
    y = cg.ones(shape)
    y[cg.tensor(empty)] = 5.0
    assert y.tolist() == np.ones(shape).tolist()
    with pytest.raises(IndexError, match="does not fit"):
        cg.ones(2, 3)[cg.zeros(0, 2, dtype=cg.bool)]
