"""In-place writes: recorded, through views, refused where they cannot be right."""
import numpy as np
import pytest

import cgrad as cg


def leaf(data):
    return cg.tensor(np.array(data, dtype=np.float64), requires_grad=True)


def test_recorded_on_a_whole_tensor():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2.0
    y += x
    y *= 3.0
    y -= 1.0
    y /= 2.0
    y.sum().backward()
    assert x.grad.tolist() == [4.5] * 3 and y.tolist() == [4.0, 8.5, 13.0]


def test_setitem_splits_the_gradient():
    x, v = leaf([1.0, 2.0, 3.0, 4.0]), leaf(10.0)
    y = x * 2.0
    y[1:3] = v
    y[::-1].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0, 2.0] and v.grad.item() == 2.0


def test_a_write_through_a_view_reaches_the_base():
    x, w = leaf([1.0, 2.0, 3.0, 4.0]), leaf([5.0, 6.0])
    y = x * 1.0
    y[1:3].mul_(w)
    assert y.tolist() == [1.0, 10.0, 18.0, 4.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 2 * 10 * 5, 2 * 18 * 6, 8.0]
    assert w.grad.tolist() == [2 * 10 * 2.0, 2 * 18 * 3.0]


def test_a_write_to_the_base_reaches_its_views():
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1.0
    view = y[1:]
    y *= 3.0
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]


def test_views_of_views_transposed_and_reversed():
    x, w = leaf(np.arange(12.0).reshape(3, 4)), leaf(2.0)
    y = x + 0.0
    view = y.T[::-1][1:3]
    view *= w
    want = np.arange(12.0).reshape(3, 4)
    want.T[::-1][1:3] *= 2
    np.testing.assert_array_equal(y.detach().numpy(), want)
    y.sum().backward()
    mask = np.ones((3, 4))
    mask.T[::-1][1:3] = 2
    np.testing.assert_array_equal(x.grad.numpy(), mask)
    assert w.grad.item() == np.arange(12.0).reshape(3, 4).T[::-1][1:3].sum()


def test_writing_tracked_values_into_plain_memory():
    w = leaf([1.0, 2.0])
    out = cg.zeros(2, 2, dtype=cg.float64)
    row = out[0]
    assert not row.requires_grad
    out[1] = w
    row += w * 3.0
    assert out.requires_grad and row.requires_grad
    out.sum().backward()
    assert w.grad.tolist() == [4.0, 4.0]


def test_a_fortran_ordered_base():
    x = leaf(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    y = x.T.clone().T
    y[:, 1] *= 5.0
    (y * cg.tensor(np.arange(6.0).reshape(2, 3))).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 5, 2], [3, 20, 5]])


def test_second_order_through_writes():
    x = leaf([1.0, 2.0])
    y = x * x
    y[0] = x[1] ** 3
    (g,) = cg.autograd.grad((y * y).sum(), (x,), create_graph=True)
    # y = (b**3, b**2): d/db (b**6 + b**4) = 6 b**5 + 4 b**3
    assert g.tolist() == [0.0, 6 * 32 + 4 * 8]
    (h,) = cg.autograd.grad(g[1], (x,))
    assert h.tolist() == [0.0, 30 * 16 + 12 * 4]


@pytest.mark.parametrize("change", [
    lambda x: x.add_(1.0), lambda x: x.__setitem__(0, 9.0), lambda x: x.zero_(), lambda x: x[0].mul_(2.0), lambda x: x.copy_(x.detach() + 1.0),
], ids=["add_", "setitem", "zero_", "view", "copy_"])
def test_a_tracked_leaf_is_left_alone(change):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf tensor that requires grad"):
        change(x)
    assert x.tolist() == [1.0, 2.0] and x.is_leaf and x._version == 0
    with cg.no_grad():
        change(x)
    assert x.is_leaf and x.requires_grad and x.tolist() != [1.0, 2.0]


def test_shapes_and_dtypes_that_do_not_fit_change_nothing():
    x = cg.ones(2)
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        x += cg.ones(3, 2)
    n = cg.tensor([1, 2])
    with pytest.raises(TypeError, match="float32"):
        n += 0.5
    with pytest.raises(TypeError):
        n += cg.ones(2)
    assert x.tolist() == [1.0, 1.0] and n.tolist() == [1, 2]


def test_elements_that_share_a_place_are_not_written():
    x = cg.zeros(3).broadcast_to((2, 3))
    with pytest.raises(RuntimeError, match="several elements in one place"):
        x += 1.0
    assert x.tolist() == [[0.0] * 3] * 2


def test_overlapping_source_and_target():
    a = np.arange(9.0).reshape(3, 3)
    x = cg.tensor(a)
    x += x.T
    np.testing.assert_array_equal(x.numpy(), a + a.T)
    y = cg.tensor(np.arange(6.0))
    y[1:] = y[:-1]
    assert y.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_every_write_counts_a_version():
    x = cg.zeros(3)
    seen = [x._version]
    for change in (lambda: x.add_(1.0), lambda: x.fill_(2.0), lambda: x[:2].zero_(), lambda: x.__setitem__(0, 1.0), lambda: x.exp_()):
        change()
        seen.append(x._version)
    assert seen == sorted(set(seen))


def test_in_place_under_forward_mode():
    def f(x):
        y = x * 1.0
        y *= x
        y[0] = x[1] ** 3
        return y

    x, v = cg.tensor([2.0, 3.0], dtype=cg.float64), cg.tensor([1.0, 1.0], dtype=cg.float64)
    value, tangent = cg.func.jvp(f, (x,), (v,))
    assert value.tolist() == [27.0, 9.0] and tangent.tolist() == [27.0, 6.0]


def test_a_mask_that_is_false_everywhere_changes_nothing():
    x = leaf([1.0, 4.0])
    y = x.sqrt()                                     # keeps its result
    y[y < 0] = 1.0
    y[y < 0] = cg.zeros(1, dtype=cg.float64)
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match="does not broadcast"):
        y[y < 0] = cg.zeros(3, dtype=cg.float64)
    with pytest.raises(RuntimeError, match="leaf"):
        x[x < 0] = 1.0
    constant = cg.zeros(2, dtype=cg.float64)
    out = x * constant
    constant[constant > 0] = 1.0                     # nor where nothing is recorded
    out.sum().backward()
    v = leaf(2.0)
    z = constant * 1.0
    z[z > 0] = v                                     # a value that is tracked is recorded all the same
    z.sum().backward()
    assert v.grad.item() == 0.0


@pytest.mark.parametrize("change", [lambda y: y.logical_not_(), lambda y: y.logical_or_(y), lambda y: y.copy_(cg.ones(2, dtype=cg.bool))],
                         ids=["logical_not_", "logical_or_", "copy_ of bools"])
@pytest.mark.parametrize("part", [lambda y: y, lambda y: y.T[:1]], ids=["whole", "view"])
def test_what_has_no_slope_cuts_off_what_was_there(change, part):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 3.0
    change(part(y))
    want = np.array([[1.0, 2.0], [3.0, 4.0]])
    part(want)[...] = 0
    (y * cg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cg.float64)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 3 * want)


def test_what_has_no_slope_in_forward_mode_and_in_a_batch():
    def f(x):
        y = x * 3.0
        y.logical_not_()
        return y + x

    x = cg.tensor([1.0, 2.0], dtype=cg.float64)
    assert cg.func.jvp(f, (x,), (cg.ones_like(x),))[1].tolist() == [1.0, 1.0]
    assert cg.func.vmap(cg.func.grad(f))(x).tolist() == [1.0, 1.0]
    assert cg.func.vmap(lambda x: cg.func.jvp(f, (x,), (cg.ones_like(x),))[1])(x).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x.reshape(3, 1), lambda x: x.T], ids=["slice", "reshape", "T"])
def test_a_view_made_outside_the_graph_does_not_make_its_leaf_a_result(view):
    w = leaf(2.0)
    x = leaf([1.0, 2.0, 3.0])
    with cg.no_grad():
        seen = view(x)
    plain = cg.zeros(3, dtype=cg.float64)
    before = view(plain)
    plain.requires_grad_()
    for base, v in ((x, seen), (plain, before)):
        was = base.tolist()
        for write in (lambda v: v.mul_(w), lambda v: v.__setitem__(0, w), lambda v: v.copy_(w)):
            with pytest.raises(RuntimeError, match="view of a leaf tensor that requires grad"):
                write(v)
        assert base.is_leaf and base.tolist() == was and base._version == 0


@pytest.mark.parametrize("name", ["lerp", "addcmul", "addcdiv"])
def test_an_argument_may_be_the_tensor_that_is_written(name):
    got, want = [], []
    for inplace in (True, False):
        x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        y = x * 1.0
        for args in (lambda y: (w, y), lambda y: (y, y), lambda y: (y[:], w)):
            y = getattr(y, name + "_" * inplace)(*args(y))
        if name != "lerp":
            y = getattr(y, name + "_" * inplace)(w, y, value=3)
        (y * w).sum().backward()
        (got if inplace else want).extend([y.tolist(), x.grad.tolist(), w.grad.tolist()])
    assert got == want


def test_data_of_another_tensor_counts_as_a_change():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (x * w).sum()
    with cg.no_grad():
        x.add_(1.0)                                  # version 1; what comes has version 0, as x had when it was saved
    x.data = cg.zeros(2, dtype=cg.float64)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_a_reshape_that_copies_is_no_view():
    x, s = leaf([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), leaf(7.0)
    y = (x * 2.0).T
    flat = y.flatten()                                # no strides can express it
    flat[::2].fill_(s)
    weights = cg.tensor(np.arange(1.0, 7.0))
    (flat * weights).sum().backward()
    # flat is (x00, x10, x01, x11, x02, x12) * 2, of which the 1st, 3rd and 5th are overwritten
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [4.0, 8.0, 12.0]] and s.grad.item() == 9.0
    y = (x * 2.0).T
    flat = y.reshape(-1)
    y.mul_(3.0)
    assert flat.tolist() == [0.0, 6.0, 2.0, 8.0, 4.0, 10.0] and flat.grad_fn.name == "reshape"


@pytest.mark.parametrize("view", [
    lambda x: x.unfold(0, 2, 1).unfold(0, 2, 1), lambda x: x.unfold(0, 3, 1).unfold(2, 2, 1).unfold(0, 2, 2),
    lambda x: x.unsqueeze(0).expand(3, 5, 2).unfold(0, 2, 1), lambda x: x.unfold(1, 2, 1).unfold(0, 4, 1).as_strided((2, 2), (1, 2)),
    lambda x: x.broadcast_to((2, 5, 2)).as_strided((2, 5), (0, 2)),
], ids=["windows of windows", "three times", "of an expanded tensor", "as_strided of windows", "as_strided of an expanded tensor"])
def test_views_of_views_whose_elements_share_places(view):
    x = leaf(np.random.default_rng(3).standard_normal((5, 2)))
    weights = np.random.default_rng(4).standard_normal(view(x).shape)
    places = view(cg.arange(10).reshape(5, 2)).numpy()                        # which element of x each one is
    wanted = np.zeros(10)
    np.add.at(wanted, places, weights)
    (g,) = cg.autograd.grad((view(x * 1.0) * cg.tensor(weights)).sum(), x)
    np.testing.assert_allclose(g.numpy().reshape(-1), wanted, rtol=1e-13, atol=1e-14)
    assert cg.autograd.gradcheck(lambda x: view(x * 1.0) ** 2, x)
    assert cg.autograd.gradgradcheck(lambda x: view(x * 1.0) ** 3, x)


def test_writing_over_a_leaf_through_an_alias_keeps_its_second_derivative():
    x = leaf([1.0, 2.0])
    y = x.detach()
    y *= x                                           # x ** 2 in value, x times a constant for the tape
    y /= leaf([2.0, 4.0])
    (g,) = cg.autograd.grad((y * y).sum(), (x,), create_graph=True)
    assert g.tolist() == [2 * 0.5 * 0.5, 2 * 1.0 * 0.5]     # 2 y (c / w), with c = (1, 2) and w = (2, 4)
    (h,) = cg.autograd.grad(g.sum(), (x,))
    assert h.tolist() == [2 * 0.5 ** 2, 2 * 0.5 ** 2]
    x = leaf([1.0, 2.0])
    y = x.detach()
    y /= x
    (g,) = cg.autograd.grad(y.sum(), (x,), create_graph=True)
    (h,) = cg.autograd.grad(g.sum(), (x,))
    assert g.tolist() == [-1.0, -0.5] and h.tolist() == [2.0, 0.5]      # of c / x with c = (1, 2)


def test_a_write_that_is_rounded_keeps_what_it_overwrites():
    x, w = cg.tensor([1.0, 2.0], requires_grad=True), leaf([3.0, 4.0])
    y = x * 1
    y *= w
    assert y.dtype == cg.float32
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0] and w.grad.tolist() == [1.0, 2.0]
