"""Gradients of recorded computations: grad, backward, the switches of recording, checks, checkpoints, own functions.

Examples
--------
>>> import cgrad as cg
>>> x = cg.tensor([1.0, 2.0], requires_grad=True)
>>> cg.autograd.grad((x ** 2).sum(), x)
(tensor([2., 4.]),)
"""
from typing import TYPE_CHECKING

from cgrad.autograd.checkpoint import checkpoint, checkpoint_sequential
from cgrad.autograd.grad import backward, grad
from cgrad.autograd import methods as _methods  # noqa: F401  hangs backward and register_hook onto Tensor
from cgrad.autograd.mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from cgrad.ops.define import open_doors
from cgrad.ops.function import Function, once_differentiable

if TYPE_CHECKING:
    from cgrad.autograd.budget import checkpoint_budget
    from cgrad.autograd.debug.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
    from cgrad.autograd.debug.check_op import check_op
    from cgrad.autograd.debug.gradcheck import GradcheckError, gradcheck, gradgradcheck
    from cgrad.autograd.debug.watch import watch
    from cgrad.autograd.saved import save_on_disk, saved_tensors_hooks

__all__ = [
    "Function", "GradcheckError", "backward", "check_op", "checkpoint", "checkpoint_budget", "checkpoint_sequential", "detect_anomaly", "enable_grad",
    "grad", "gradcheck", "gradgradcheck", "inference_mode", "is_anomaly_enabled", "is_grad_enabled", "no_grad", "once_differentiable", "save_on_disk",
    "saved_tensors_hooks", "set_detect_anomaly", "set_grad_enabled", "watch",
]

open_doors(globals(), {                 # what is loaded when first used
    "GradcheckError": ".debug.gradcheck", "check_op": ".debug.check_op", "checkpoint_budget": ".budget", "detect_anomaly": ".debug.anomaly",
    "gradcheck": ".debug.gradcheck", "gradgradcheck": ".debug.gradcheck", "is_anomaly_enabled": ".debug.anomaly",
    "save_on_disk": ".saved", "saved_tensors_hooks": ".saved", "set_detect_anomaly": ".debug.anomaly", "watch": ".debug.watch",
})
