"""Special functions under the names of PyTorch's and SciPy's modules of this name.

The functions themselves, with their formulas and gradients, are in ``ops/special.py``, ``ops/gamma.py`` and ``ops/elementwise.py``.
"""
from cgrad.ops.arithmetic import logaddexp
from cgrad.ops.define import open_doors
from cgrad.ops.elementwise import erf, erfc, exp2, expm1, log1p, round
from cgrad.ops.elementwise import logsigmoid as log_expit
from cgrad.ops.elementwise import sigmoid as expit
from cgrad.ops.gamma import digamma, igamma, igammac, lgamma, mvlgamma, polygamma, zeta
from cgrad.ops.softmax import log_softmax, logsumexp, softmax
from cgrad.ops.special import entr, erfcx, erfinv, i0, i0e, i1, i1e, log_ndtr, logit, ndtr, ndtri, sinc, xlog1py, xlogy

gammainc = igamma
gammaincc = igammac
gammaln = lgamma
psi = digamma
multigammaln = mvlgamma

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e",
    "lgamma", "log1p", "log_expit", "log_ndtr", "log_softmax", "logaddexp", "logit", "logsumexp", "multigammaln", "mvlgamma", "ndtr", "ndtri",
    "polygamma", "psi", "round", "sinc", "softmax", "xlog1py", "xlogy", "zeta",
]

for _function in (entr, erfcx, i0e, i1, i1e, log_ndtr, ndtr, ndtri, xlog1py, zeta):     # public here alone, which pickle has to know
    _function.__module__ = _function.op.__module__ = __name__
open_doors(globals())
