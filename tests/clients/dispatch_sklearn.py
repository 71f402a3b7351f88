"""scikit-learn with array_api_dispatch on tensors: estimators, preprocessing, metrics.  Run by test_dispatch.py."""
import numpy as np
import pytest

import cgrad as cg

pytest.importorskip("sklearn")

from sklearn import config_context, datasets, metrics, model_selection, pipeline, preprocessing  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402

X, Y = datasets.load_iris(return_X_y=True)
Z, YES = X[:, 0] / 10, (Y > 0).astype(np.int64)


@pytest.fixture(autouse=True)
def dispatch():
    with config_context(array_api_dispatch=True):
        yield


ESTIMATED = {
    "standard": lambda x, y: preprocessing.StandardScaler().fit_transform(x), "minmax": lambda x, y: preprocessing.MinMaxScaler().fit_transform(x),
    "maxabs": lambda x, y: preprocessing.MaxAbsScaler().fit_transform(x), "normalizer": lambda x, y: preprocessing.Normalizer().fit_transform(x),
    "polynomial": lambda x, y: preprocessing.PolynomialFeatures(2).fit_transform(x), "labels": lambda x, y: preprocessing.LabelBinarizer().fit_transform(y),
    "ridge": lambda x, y: Ridge(solver="svd").fit(x, x[:, 0]).predict(x), "ridge classifier": lambda x, y: RidgeClassifier(solver="svd").fit(x, y).predict(x),
    "logistic": lambda x, y: LogisticRegression(max_iter=1000).fit(x, y).predict(x), "bayes": lambda x, y: GaussianNB().fit(x, y).predict_proba(x),
    "discriminant": lambda x, y: LinearDiscriminantAnalysis().fit(x, y).predict(x), "pca": lambda x, y: abs(PCA(2, svd_solver="full").fit_transform(x)),
    "pipeline": lambda x, y: pipeline.make_pipeline(preprocessing.StandardScaler(), Ridge(solver="svd")).fit(x, x[:, 1]).predict(x),
    "cross": lambda x, y: model_selection.cross_val_predict(Ridge(solver="svd"), x, x[:, 0]),
    "euclidean": lambda x, y: metrics.pairwise.euclidean_distances(x[:9], x[9:20]), "rbf": lambda x, y: metrics.pairwise.rbf_kernel(x[:9]),
}


@pytest.mark.parametrize("name", ESTIMATED)
def test_estimators_give_tensors(name):
    out = ESTIMATED[name](cg.tensor(X), cg.tensor(Y))
    assert isinstance(out, cg.Tensor)
    np.testing.assert_allclose(out.numpy(), ESTIMATED[name](X, Y), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["minmax", "maxabs", "euclidean", "rbf"])
def test_gradients_flow_where_it_is_all_arithmetic(name):
    x = cg.tensor(np.random.default_rng(0).normal(size=(20, 4)), requires_grad=True)
    assert ESTIMATED[name](x, None).requires_grad
    assert cg.autograd.gradcheck(lambda x: ESTIMATED[name](x, None), x, rtol=1e-3, atol=1e-5, fast_mode=True)


def test_what_overwrites_values_that_backward_needs_says_so():
    out = ESTIMATED["normalizer"](cg.tensor(X, requires_grad=True), None)
    with pytest.raises(RuntimeError, match="in place"):
        out.sum().backward()


METRICS = {
    "accuracy": lambda y, b, s: metrics.accuracy_score(y, y), "f1": lambda y, b, s: metrics.f1_score(y, y, average="macro"),
    "precision": lambda y, b, s: metrics.precision_score(b, b), "log loss": lambda y, b, s: metrics.log_loss(b, s),
    "brier": lambda y, b, s: metrics.brier_score_loss(b, s), "auc": lambda y, b, s: metrics.roc_auc_score(b, s),
    "average precision": lambda y, b, s: metrics.average_precision_score(b, s), "mse": lambda y, b, s: metrics.mean_squared_error(s, s * s),
    "mae": lambda y, b, s: metrics.mean_absolute_error(s, s * s), "r2": lambda y, b, s: metrics.r2_score(s, s * s),
    "median": lambda y, b, s: metrics.median_absolute_error(s, s * s), "hamming": lambda y, b, s: metrics.hamming_loss(y, y),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_numbers(name):
    assert METRICS[name](cg.tensor(Y), cg.tensor(YES), cg.tensor(Z)) == pytest.approx(METRICS[name](Y, YES, Z))


def test_splits_of_tensors():
    train, test, labels, _ = model_selection.train_test_split(cg.tensor(X), cg.tensor(Y), random_state=0)
    assert isinstance(train, cg.Tensor) and train.shape[0] == labels.shape[0] and train.shape[0] + test.shape[0] == len(X)
