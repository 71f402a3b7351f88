"""Connect the core to the operations: what the engine adds gradients with, what operators, indexing and printing call."""

from types import SimpleNamespace

from cgrad import printing
from cgrad import core
from cgrad.core import arguments, batching, engine, forward_mode, hooks, tensor
from cgrad.ops import (  # noqa: F401
    activation, arithmetic, casting, choosing, compare, creation, diagonal, editing, einsum, elementwise, gamma, gathering, generator, indexing,
    inplace, joining, masking, matmul, methods, numerics, random, ranges, reduction, repeating, scan, scattering, searching, shape, slices, softmax,
    sorting, special, splitting, statistics, strided, triangles, variance,
)
from cgrad.ops.linalg import decompositions, lu, norms, products, solving, triangular  # noqa: F401


def _sum_to(g, target):
    """`g` summed over the axes along which something of shape `target` was broadcast, recorded."""
    lead = g.ndim - len(target)
    axes = tuple([k for k in range(g.ndim) if k < lead or target[k - lead] != g.shape[k]])
    if len(axes) == lead:
        return reduction._sum(g, axes, False)
    g = reduction._sum(g, axes, True)
    return shape._reshape(g, target) if lead else g


engine.set_engine_functions(arithmetic.add.primitive.function, casting._cast, _sum_to, casting._clone)
forward_mode.set_forward_functions(SimpleNamespace(
    add=arithmetic.add.primitive.function, broadcast_to=shape.broadcast_to, cast=casting._cast, zeros_like=creation.zeros_like, ones_like=creation.ones_like,
    permute=shape._permute, positive=casting._clone))
batching.set_batch_functions(SimpleNamespace(broadcast_to=shape.broadcast_to, reshape=shape._reshape, stack=joining._stack, unstack=joining._unstack))
arguments.set_tensor_maker(creation.asarray)
core.inplace.set_inplace_helpers(casting._cast, strided.write_view, shape.broadcast_to, inplace._replace, casting._clone)
core.apply.set_cast(casting._cast)
hooks.set_identity(casting._clone)
tensor.set_item_access(indexing.getitem, indexing.setitem, core.forward.index.Rows)
tensor.set_printer(printing.text)
