"""Gradients of recorded computations: grad, backward, the switches of recording, checks, checkpoints, own functions.

Examples
--------
>>> import cgrad as cg
>>> x = cg.tensor([1.0, 2.0], requires_grad=True)
>>> cg.autograd.grad((x ** 2).sum(), x)
(tensor([2., 4.]),)
"""
from typing import TYPE_CHECKING

from cgrad.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from cgrad.autograd.check_op import check_op
from cgrad.autograd.checkpoint import checkpoint, checkpoint_sequential
from cgrad.autograd.grad import backward, grad
from cgrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from cgrad.autograd import methods as _methods  # noqa: F401  hangs backward and register_hook onto Tensor
from cgrad.autograd.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from cgrad.autograd.watch import watch
from cgrad.ops.function import Function, once_differentiable

if TYPE_CHECKING:
    from cgrad.autograd.budget import checkpoint_budget

__all__ = [
    "Function", "GradcheckError", "backward", "check_op", "checkpoint", "checkpoint_budget", "checkpoint_sequential", "detect_anomaly", "enable_grad",
    "grad", "gradcheck", "gradgradcheck", "is_anomaly_enabled", "is_grad_enabled", "no_grad", "once_differentiable", "set_detect_anomaly",
    "set_grad_enabled", "watch",
]


def __getattr__(name):
    if name == "checkpoint_budget":             # seldom wanted, so loaded when it is
        from cgrad.autograd.budget import checkpoint_budget
        return checkpoint_budget
    raise AttributeError(f"module 'cgrad.autograd' has no attribute {name!r}")
