"""SciPy's array-API functions on tensors: NumPy's values, and the gradient flows.  Run by test_dispatch.py."""
import numpy as np
import pytest
from scipy import cluster, differentiate, integrate, signal, spatial, special, stats

import cgrad as cg

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 4))
P, W = np.abs(A) + 0.1, RNG.normal(size=64)

RECORDED = {
    "logsumexp": lambda t, p, w: special.logsumexp(t, axis=1),
    "softmax": lambda t, p, w: special.softmax(t, axis=1), "log_softmax": lambda t, p, w: special.log_softmax(t, axis=0),
    "xlogy": lambda t, p, w: special.xlogy(p, p + 1), "xlog1py": lambda t, p, w: special.xlog1py(p, p), "expit": lambda t, p, w: special.expit(t),
    "logit": lambda t, p, w: special.logit(p / 10), "erf": lambda t, p, w: special.erf(t), "erfc": lambda t, p, w: special.erfc(t),
    "ndtr": lambda t, p, w: special.ndtr(t), "log_ndtr": lambda t, p, w: special.log_ndtr(t), "ndtri": lambda t, p, w: special.ndtri(p / 10),
    "gammaln": lambda t, p, w: special.gammaln(p), "digamma": lambda t, p, w: special.digamma(p), "entr": lambda t, p, w: special.entr(p),
    "rel_entr": lambda t, p, w: special.rel_entr(p, p + 1), "i0": lambda t, p, w: special.i0(t), "sinc": lambda t, p, w: special.sinc(t),
    "zscore": lambda t, p, w: stats.zscore(t), "entropy": lambda t, p, w: stats.entropy(p), "moment": lambda t, p, w: stats.moment(t, order=3),
    "skew": lambda t, p, w: stats.skew(t), "kurtosis": lambda t, p, w: stats.kurtosis(t), "variation": lambda t, p, w: stats.variation(p),
    "gmean": lambda t, p, w: stats.gmean(p), "hmean": lambda t, p, w: stats.hmean(p), "pmean": lambda t, p, w: stats.pmean(p, 2),
    "sem": lambda t, p, w: stats.sem(t), "tmean": lambda t, p, w: stats.tmean(t), "tvar": lambda t, p, w: stats.tvar(t),
    "ttest_1samp": lambda t, p, w: stats.ttest_1samp(t, 0.1).statistic, "ttest_ind": lambda t, p, w: stats.ttest_ind(t, 2 * p).statistic,
    "ttest_rel": lambda t, p, w: stats.ttest_rel(t, t * p).statistic, "pearsonr": lambda t, p, w: stats.pearsonr(w, w * w).statistic,
    "jarque_bera": lambda t, p, w: stats.jarque_bera(w).statistic, "bartlett": lambda t, p, w: stats.bartlett(t[:, 0], p[:, 1]).statistic,
    "f_oneway": lambda t, p, w: stats.f_oneway(t, p).statistic, "chisquare": lambda t, p, w: stats.chisquare(p).statistic,
    "circmean": lambda t, p, w: stats.circmean(p), "iqr": lambda t, p, w: stats.iqr(t), "lmoment": lambda t, p, w: stats.lmoment(w),
    "trim_mean": lambda t, p, w: stats.trim_mean(w, 0.1),
    "trapezoid": lambda t, p, w: integrate.trapezoid(t, dx=0.5),
    "cumulative_trapezoid": lambda t, p, w: integrate.cumulative_trapezoid(t), "whiten": lambda t, p, w: cluster.vq.whiten(t),
    "rotation": lambda t, p, w: spatial.transform.Rotation.from_rotvec(t[:, :3]).as_matrix(),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name):
    leaves = [cg.tensor(x, requires_grad=True) for x in (A, P, W)]
    out = RECORDED[name](*leaves)
    assert isinstance(out, cg.Tensor) and out.requires_grad
    np.testing.assert_allclose(out.detach().numpy(), RECORDED[name](A, P, W), rtol=1e-9, atol=1e-12)
    if name != "circmean":                # takes an angle by atan2 and a modulus: the derivative is right, finite differences may jump
        assert cg.autograd.gradcheck(lambda *leaves: RECORDED[name](*leaves), leaves, rtol=1e-3, atol=1e-5)


# Results that do not depend smoothly on the tensors, or that SciPy computes on arrays, outside of the graph.
PLAIN = {
    "rankdata": lambda t, w: stats.rankdata(t, axis=1), "mannwhitneyu": lambda t, w: stats.mannwhitneyu(w, 2 * w).statistic,
    "wilcoxon": lambda t, w: stats.wilcoxon(w).statistic, "kruskal": lambda t, w: stats.kruskal(w, 2 * w).statistic,
    "spearmanr": lambda t, w: stats.spearmanr(w, w ** 3).statistic, "detrend": lambda t, w: signal.detrend(w), "medfilt": lambda t, w: signal.medfilt(w),
    "savgol": lambda t, w: signal.savgol_filter(w, 5, 2), "wiener": lambda t, w: signal.wiener(w, 3),
    "convolve": lambda t, w: signal.convolve(w, w[:5], method="direct"), "pdist": lambda t, w: spatial.distance.pdist(t),
    "vq": lambda t, w: cluster.vq.vq(t, t[:2])[0], "linkage": lambda t, w: cluster.hierarchy.linkage(t),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain(name):
    out = PLAIN[name](cg.tensor(A), cg.tensor(W))
    np.testing.assert_allclose(np.asarray(out), PLAIN[name](A, W), rtol=1e-9, atol=1e-12)


def test_what_overwrites_values_that_backward_needs_says_so():
    with pytest.raises(RuntimeError, match="in place"):
        special.logsumexp(cg.tensor(A, requires_grad=True), b=cg.tensor(P)).backward()


def test_what_scipy_calls_back():
    one = cg.tensor(1.0, dtype=cg.float64)
    assert differentiate.derivative(cg.exp, one).df.item() == pytest.approx(np.e)
    area = integrate.tanhsinh(cg.exp, 0 * one, one)
    assert area.integral.item() == pytest.approx(np.e - 1)
    whole = integrate.cubature(lambda x: cg.exp(x.sum(-1)), cg.zeros(2, dtype=cg.float64), cg.ones(2, dtype=cg.float64))
    assert whole.estimate.item() == pytest.approx((np.e - 1) ** 2)
    assert isinstance(signal.windows.hann(5, xp=cg), cg.Tensor)
