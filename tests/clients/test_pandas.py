"""pandas takes tensors for columns and operands, and gives them back; a Series is no part of a graph."""
import numpy as np
import pytest

import cgrad as cg

pd = pytest.importorskip("pandas")

V = np.array([3.0, 1.0, 2.0])


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "requires_grad"])
def test_columns_from_tensors(tracked):
    v = cg.tensor(V, requires_grad=tracked)
    m = cg.stack([v, 2 * v], axis=1)
    assert pd.Series(v).tolist() == V.tolist() and pd.Series(v).dtype == np.float64
    assert pd.DataFrame(m, columns=["a", "b"])["b"].tolist() == (2 * V).tolist()
    assert pd.DataFrame({"a": v, "b": 1.0}).a.tolist() == V.tolist()
    frame = pd.DataFrame({"a": V})
    frame["b"] = 2 * v
    assert frame.b.sum() == 2 * V.sum() and frame.groupby(np.array([0, 1, 0])).b.mean().tolist() == [5.0, 2.0]
    frame.loc[0, "b"] = 0.0                        # the frame has memory of its own, or copies before it writes
    assert v.tolist() == V.tolist()


def test_indices_from_tensors():
    series = pd.Series(V, index=[0, 1, 2])
    assert series.iloc[cg.tensor([2, 0])].tolist() == [2.0, 3.0] and pd.Index(cg.tensor([4, 5])).tolist() == [4, 5]


def test_tensors_from_columns():
    frame = pd.DataFrame({"a": [1.0, None], "b": [3, 4]})
    assert cg.tensor(frame["b"]).tolist() == [3, 4] and cg.tensor(frame["b"]).dtype is cg.int64
    assert np.array_equal(cg.tensor(frame).numpy(), [[1.0, 3.0], [np.nan, 4.0]], equal_nan=True)
    with pytest.raises(TypeError, match="not supported"):
        cg.tensor(pd.Series(["x"]))
    with pytest.raises(TypeError, match="datetime64"):
        cg.tensor(pd.date_range("2020", periods=2))


def test_operators_give_series():
    series, v = pd.Series(V), cg.tensor(V)
    for out, want in ((series + v, 2 * V), (v * series, V * V), (v - series, 0 * V), (np.exp(series), np.exp(V))):
        assert isinstance(out, pd.Series) and out.tolist() == want.tolist()
    recorded = series.to_numpy() * cg.tensor(V, requires_grad=True)        # by way of the array, the tensor decides
    assert isinstance(recorded, cg.Tensor) and recorded.requires_grad
    assert pd.Series(V, dtype=cg.float32).dtype == np.float32 and series.astype(cg.int64).tolist() == [3, 1, 2]
