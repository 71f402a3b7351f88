"""The gradients of one call of a built-in operation: what its Op class gives back when it is used alone, on plain numbers.

Needs the GIL.  Next: ops/define.py, which makes these classes.
"""
from cgrad.core.dtype cimport KIND, KIND_FLOAT
from cgrad.core.primitive cimport Primitive
from cgrad.core.tape cimport set_grad_mode
from cgrad.core.tensor cimport REQUIRES_GRAD, Tensor, alias_tensor, copy_into, empty_tensor, readable, scalar_tensor
from cgrad.kernels.table cimport FLOAT64

from cgrad.core.apply import call
from cgrad.core.engine import run_backward


def operation_gradients(Primitive p, tuple args, out, g):
    """The gradient of the argument of one call of a built-in operation, or a tuple with one for each of several."""
    cdef Tensor y
    n = len(args)
    mode = set_grad_mode(True)
    try:
        operands = []
        for x in args:
            if isinstance(x, float) or isinstance(x, Tensor) and KIND[(<Tensor>x).dtype_id] == KIND_FLOAT:
                x = as_leaf(x)
            operands.append(x)
        y = call(p, tuple(operands[:p.n_inputs if p.n_inputs > 0 else n]), tuple(operands[p.n_inputs:] if p.n_inputs > 0 else ()))
        wanted = [x for x in operands if isinstance(x, Tensor) and (<Tensor>x).flags & REQUIRES_GRAD]
        g = g if isinstance(g, Tensor) else as_gradient(g, y)
        found = iter(run_backward((y,), (g,), wanted, False, False))
    finally:
        set_grad_mode(mode)
    grads = tuple([next(found) if isinstance(x, Tensor) and (<Tensor>x).flags & REQUIRES_GRAD else None for x in operands])
    return grads[0] if n == 1 else grads


cdef Tensor as_leaf(object value):
    if isinstance(value, Tensor):
        readable(<Tensor>value, "the backward of an Op alone")
    cdef Tensor x = alias_tensor(<Tensor>value) if isinstance(value, Tensor) else scalar_tensor(value, FLOAT64)
    x.flags |= REQUIRES_GRAD
    return x


cdef Tensor as_gradient(object g, Tensor y):
    cdef Tensor t = empty_tensor(y.dtype_id, y.rank, y.dims)
    copy_into(t, scalar_tensor(g, y.dtype_id))
    return t
