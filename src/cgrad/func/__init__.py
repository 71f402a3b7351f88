"""Derivatives as functions of functions: what goes in and comes out is a function, and they nest to any order.

Arguments and results may be trees (dicts, lists, tuples) of tensors. No ``.grad`` is read or changed.

Examples
--------
>>> import cgrad as cg
>>> f = lambda x: (x ** 3).sum()
>>> cg.func.grad(f)(cg.tensor([1.0, 2.0]))
tensor([ 3., 12.])
>>> cg.func.hessian(f)(cg.tensor([1.0, 2.0]))
tensor([[ 6.,  0.],
        [ 0., 12.]])
"""
from cgrad.func.functional_call import functional_call, stack_module_state
from cgrad.func.grad import grad, value_and_grad
from cgrad.func.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
from cgrad.func.jvp import jvp
from cgrad.func.linearize import linearize
from cgrad.func.vjp import vjp
from cgrad.func.vmap import vmap
from cgrad.ops.define import open_doors

__all__ = ["functional_call", "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linearize",
           "stack_module_state", "value_and_grad", "vjp", "vmap"]

open_doors(globals())
