"""detect_anomaly: the first NaN or infinity is found where it arises, with the line that made it."""
import threading

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import detect_anomaly, is_anomaly_enabled, set_detect_anomaly

HERE = __file__


def leaf(data, dtype="float64"):
    return cg.tensor(np.array(data, dtype), requires_grad=True)


class RootPlus(cg.Op):
    def forward(self, x):
        self.x = x
        return cg.sqrt(x), x + 1

    def backward(self, grads):
        return grads[0] / (2 * cg.sqrt(self.x))


def test_a_gradient_that_becomes_nan_names_the_operation_and_the_line():
    x = leaf([1.0, 0.0])
    with detect_anomaly():
        y = (cg.sqrt(x) * 0.0).sum()
        with pytest.raises(RuntimeError, match=r"^sqrt: backward made NaN in the gradient of input 0 \(1 of 2 elements, the first at \(1,\)\)") as error:
            y.backward()
    assert HERE in str(error.value) and "y = (cg.sqrt(x) * 0.0).sum()" in str(error.value)
    assert "test_a_gradient_that_becomes_nan" in str(error.value)
    assert x.grad is None


def test_a_result_that_becomes_nan_stops_forward():
    x = leaf([[1.0, -1.0], [2.0, 3.0]])
    with detect_anomaly():
        with pytest.raises(RuntimeError, match=r"^log: made NaN in its result \(1 of 4 elements, the first at \(0, 1\)\), given input 0 of shape \(2, 2\) "
                                               r"from -1 to 3\. It was recorded in .*line \d+"):
            cg.log(x)
        assert cg.log(x.detach())[0, 1].isnan().item()        # what is not recorded is not checked
    with detect_anomaly(forward=False):
        cg.log(x)


def test_nan_that_was_there_before_is_nobodys_fault():
    x = leaf([np.nan, 1.0])
    with detect_anomaly():
        y = x * 2
        with pytest.raises(RuntimeError, match="^maximum: backward|^sin: backward"):
            cg.sin(y).sum().backward()


def test_infinities_count_if_asked():
    x = leaf([0.0, 1.0])
    with detect_anomaly():
        y = cg.log(x)
    assert y[0].item() == -np.inf
    with detect_anomaly(inf=True), pytest.raises(RuntimeError, match=r"log: made an infinity in its result \(1 of 2 elements, the first at \(0,\)\)"):
        cg.log(x)
    with detect_anomaly(forward=False, inf=True), pytest.raises(RuntimeError, match="log: backward made an infinity in the gradient of input 0"):
        cg.log(x).sum().backward()


def test_scalars_numbers_and_several_inputs():
    x = leaf(0.0)
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"divide: made NaN in its result, given input 0 = 0; input 1 0\.0\."):
        x / 0.0


def test_own_operations_and_several_results():
    x = leaf([-1.0])
    with detect_anomaly(), pytest.raises(RuntimeError, match=r"RootPlus: made NaN in result 0 \(1 of 1 elements"):
        RootPlus()(x)
    x = leaf([0.0])
    with detect_anomaly():
        root, _ = RootPlus()(x)
        with pytest.raises(RuntimeError, match="RootPlus: backward made NaN in the gradient of input 0"):
            (root * 0.0).sum().backward()


def test_a_graph_recorded_outside_says_what_is_missing():
    x = leaf([0.0])
    y = (cg.sqrt(x) * 0.0).sum()
    with detect_anomaly(), pytest.raises(RuntimeError, match="run the forward pass inside detect_anomaly, too"):
        y.backward()


def test_batches_and_duals_are_looked_into():
    x = cg.tensor([[1.0], [-1.0]], requires_grad=True)
    with detect_anomaly(), pytest.raises(RuntimeError, match="log: made NaN"):
        cg.func.vmap(cg.log)(x)
    with detect_anomaly(), pytest.raises(RuntimeError, match="sqrt: backward made NaN"):
        cg.func.grad(lambda x: (cg.sqrt(x) * 0.0).sum())(cg.tensor([0.0]))


def test_the_switch_is_of_the_thread_and_goes_off_again():
    x = leaf([-1.0])
    seen = []

    def other():
        seen.append(is_anomaly_enabled())
        seen.append(cg.log(x)[0].isnan().item())

    with detect_anomaly():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with detect_anomaly(forward=False):
            cg.log(x)
        with pytest.raises(RuntimeError):
            cg.log(x)
    assert seen == [False, True]
    assert not is_anomaly_enabled()
    assert cg.log(x).grad_fn.source is None
    set_detect_anomaly(True, inf=True)
    try:
        assert is_anomaly_enabled()
        with pytest.raises(RuntimeError):
            cg.log(x)
        assert (x * 2).grad_fn.source[0] == HERE
    finally:
        set_detect_anomaly(False)
    assert not is_anomaly_enabled()


def test_sound_computations_pass_with_right_gradients():
    x = leaf([1.0, 2.0])
    with detect_anomaly(inf=True):
        (g,) = cg.autograd.grad((cg.exp(x) * x).sum(), x, create_graph=True)
        g.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]) * ([3.0, 4.0]))
