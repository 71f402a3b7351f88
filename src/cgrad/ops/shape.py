"""Another shape, order or direction of the same numbers: views wherever strides allow.

All of it is linear, so each rule undoes the step.  `broadcast_to` hands its gradient on as it is: the engine sums it back
over broadcast axes.  Next: matmul.py.
"""
import builtins
import math

from cgrad.core.forward import shape as forward
from cgrad.core.arguments import as_tensor, axis_order, one_axis, several_axes, shape_tuple, whole_number
from cgrad.ops.define import LINEAR, as_property, define, public

_reshape = define("reshape", forward=forward.reshape, moves=True, inputs=("x",), options=("shape",),
                  vjp=lambda g, shape_x: _reshape(g, shape_x), batch=lambda x, shape: _reshape(x, _with_batch(x, shape)), kind=LINEAR, public=False)
_permute = define("permute_dims", forward=forward.permute, moves=True, inputs=("x",), options=("axes",),
                  vjp=lambda g, axes: _permute(g, inverse_order(axes)), batch=lambda x, axes: _permute(x, (0, *[a + 1 for a in axes])),
                  kind=LINEAR, public=False)
_squeeze = define("squeeze", forward=forward.squeeze, moves=True, inputs=("x",), options=("axes",),
                  vjp=lambda g, axes: _expand_dims(g, axes), kind=LINEAR, public=False)
_expand_dims = define("expand_dims", forward=forward.expand_dims, moves=True, inputs=("x",), options=("axes",),
                      vjp=lambda g, axes: _squeeze(g, axes), kind=LINEAR, public=False)
_broadcast_to = define("broadcast_to", forward=forward.broadcast_to, moves=True, inputs=("x",), options=("shape",),
                       vjp=lambda g: g, batch=lambda x, shape: _broadcast_batch(x, shape), kind=LINEAR, public=False)
_flip = define("flip", forward=forward.flip, moves=True, inputs=("x",), options=("axes",),
               vjp=lambda g, axes: _flip(g, axes), kind=LINEAR, public=False)


def _with_batch(x, shape):
    """The new shape of all examples; -1 is worked out first, for a batch may be empty."""
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        shape = tuple(math.prod(x.shape[1:]) // rest if n == -1 and rest else n for n in shape)
    return x.shape[:1] + shape


def _broadcast_batch(x, shape):
    return _broadcast_to(_reshape(x, x.shape[:1] + (1,) * (len(shape) + 1 - x.ndim) + x.shape[1:]), x.shape[:1] + tuple(shape))


def inverse_order(axes):
    """The order of axes that undoes `axes`."""
    inverse = [0] * len(axes)
    for new, old in enumerate(axes):
        inverse[old] = new
    return tuple(inverse)


# ----------------------------------------------------------------------------------------------------------------- shape
@public(method=True)
def reshape(x, shape, *more, copy=None):
    """The same numbers, in the same order, in another shape.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int
        As many elements as `x` has.  One length may be -1; it follows from the others.  ``x.reshape(2, 3)`` works, too.
    copy : bool or None, optional
        True copies always, False never (an error where a view is not possible), None where needed.

    Returns
    -------
    Tensor
        A view wherever strides allow.

    Raises
    ------
    ValueError
        If the numbers do not fit, or need a copy that `copy` forbids.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    x = as_tensor("reshape", x)
    if more or type(shape) is not tuple:
        shape = shape_tuple("reshape", shape, more)
    if copy:
        return _reshape(x.clone(), shape)
    if copy is False:
        return view(x, shape)
    return _reshape(x, shape)


@public(method=True)
def view(x, shape, *more):
    """The same memory in another shape; `reshape` without the copy.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int
        As for `reshape`.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        If the numbers do not fit, or no strides can show them in this shape.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    shape = shape_tuple("view", shape, more)
    complete = shape
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if rest:
            complete = tuple(x.numel() // rest if n == -1 else n for n in shape)
    if -1 not in complete and math.prod(complete) == x.numel() and not forward.can_view(x, complete):
        raise ValueError(f"view: a tensor of shape {tuple(x.shape)} and strides {tuple(x.strides)} cannot be seen as {complete} "
                         "without a copy; use reshape")
    return _reshape(x, shape)


@public(method=True)
def view_as(x, y):
    """The same memory in the shape of another tensor.

    Parameters
    ----------
    x, y : Tensor

    Returns
    -------
    Tensor
        A view of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(4).view_as(cg.zeros(2, 2)).shape
    (2, 2)
    """
    return view(x, tuple(y.shape))


@public(method=True)
def reshape_as(x, y):
    """The same numbers in the shape of another tensor.

    Parameters
    ----------
    x, y : Tensor

    Returns
    -------
    Tensor
        A view wherever strides allow.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(4).reshape_as(cg.zeros(2, 2)).shape
    (2, 2)
    """
    return _reshape(as_tensor("reshape_as", x), tuple(y.shape))


@public(method=True)
def ravel(x):
    """All numbers along one axis.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        1-d; a view wherever strides allow.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ravel(cg.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    x = as_tensor("ravel", x)
    return _reshape(x, (x.numel(),))


@public(method=True)
def flatten(x, start_dim=0, end_dim=-1):
    """Several neighbouring axes joined into one.

    Parameters
    ----------
    x : Tensor
    start_dim, end_dim : int, optional
        First and last of the axes to join; by default all.

    Returns
    -------
    Tensor
        A view wherever strides allow; 1-d for a 0-d tensor.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If `start_dim` comes after `end_dim`.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3, 4).flatten(1).shape
    (2, 12)
    """
    x = as_tensor("flatten", x)
    first = one_axis("flatten", start_dim, x.ndim, "start_dim")
    last = one_axis("flatten", end_dim, x.ndim, "end_dim")
    if first > last:
        raise ValueError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim} in a tensor with {x.ndim} axes")
    shape = tuple(x.shape)
    return _reshape(x, shape[:first] + (math.prod(shape[first:last + 1]),) + shape[last + 1:])


@public(method=True)
def unflatten(x, axis, sizes):
    """One axis split into several.

    Parameters
    ----------
    x : Tensor
    axis : int
        The axis to split.
    sizes : tuple of int
        Its new lengths; one may be -1.

    Returns
    -------
    Tensor
        A view wherever strides allow.

    Raises
    ------
    ValueError
        If the product of `sizes` is not the length of the axis.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 12).unflatten(1, (3, -1)).shape
    (2, 3, 4)
    """
    x = as_tensor("unflatten", x)
    at = one_axis("unflatten", axis, x.ndim)
    shape, sizes = tuple(x.shape), shape_tuple("unflatten", sizes)
    if not sizes:
        raise ValueError("unflatten: sizes is empty; name at least one length")
    length = shape[at] if shape else 1
    rest = math.prod(n for n in sizes if n != -1)
    if sizes.count(-1) > 1 or (length % rest if -1 in sizes and rest else length != rest and -1 not in sizes):
        raise ValueError(f"unflatten: axis {axis} of shape {shape} has {length} elements, which do not fit into {sizes}")
    if -1 in sizes:
        if not rest:
            raise ValueError(f"unflatten: -1 in {sizes} could be any number; name the length")
        sizes = tuple(length // rest if n == -1 else n for n in sizes)
    return _reshape(x, shape[:at] + sizes + shape[at + 1:])


# ----------------------------------------------------------------------------------------------------------------- order
@public(method=True)
def permute_dims(x, axes, *more):
    """The axes in another order.

    Parameters
    ----------
    x : Tensor
    axes : tuple of int
        For each axis of the result, the axis of `x` it is.  ``x.permute(2, 0, 1)`` works, too.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        If an axis is missing or named twice.

    Notes
    -----
    Gradient: ``g`` with the axes put back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3, 4).permute(2, 0, 1).shape
    (4, 2, 3)
    """
    x = as_tensor("permute_dims", x)
    return _permute(x, axis_order("permute_dims", axes, more, x))


@public(method=True)
def transpose(x, *axes, axis0=None, axis1=None):
    """Two axes exchanged, or all of them in another order.

    Parameters
    ----------
    x : Tensor
    *axes : int or tuple of int, optional
        Two integers exchange these axes (as in PyTorch); a tuple, or as many integers as there are axes, gives their new order and
        nothing turns the order round (as in NumPy).
    axis0, axis1 : int, optional
        The two axes, by name (PyTorch's ``dim0=``, ``dim1=``).

    Returns
    -------
    Tensor
        A view.

    Notes
    -----
    Gradient: ``g`` with the axes put back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3, 4).transpose(0, 2).shape
    (4, 3, 2)
    """
    x = as_tensor("transpose", x)
    if axis0 is not None:
        axes += (axis0,)
    if axis1 is not None:
        axes += (axis1,)
    if not axes or axes == (None,):
        return _permute(x, tuple(range(x.ndim - 1, -1, -1)))
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        return permute_dims(x, axes[0])
    if len(axes) == 2:
        return swapaxes(x, *axes)
    return permute_dims(x, axes)


@public(method=True)
def swapaxes(x, axis1, axis2):
    """Two axes exchanged.

    Parameters
    ----------
    x : Tensor
    axis1, axis2 : int

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If an axis is out of range.

    Notes
    -----
    Gradient: ``g`` with the axes put back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3, 4).swapaxes(0, -1).shape
    (4, 3, 2)
    """
    x = as_tensor("swapaxes", x)
    first, second = one_axis("swapaxes", axis1, x.ndim), one_axis("swapaxes", axis2, x.ndim)
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = second, first
    return _permute(x, tuple(order))


@public(method=True)
def matrix_transpose(x):
    """Each matrix of the last two axes transposed.

    Parameters
    ----------
    x : Tensor
        At least 2-d.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For less than two axes.

    Notes
    -----
    Gradient: ``g`` transposed likewise.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.matrix_transpose(cg.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    x = as_tensor("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: needs at least 2 axes, got shape {tuple(x.shape)}")
    n = x.ndim
    return _permute(x, (*range(n - 2), n - 1, n - 2))


@public(method=True)
def t(x):
    """A matrix transposed; a tensor with fewer axes comes back as it is.

    Parameters
    ----------
    x : Tensor
        At most 2-d.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        For more than two axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.t(cg.zeros(2, 3)).shape
    (3, 2)
    """
    x = as_tensor("t", x)
    if x.ndim > 2:
        raise ValueError(f"t: needs at most 2 axes, got shape {tuple(x.shape)}; use permute_dims or mT")
    return _permute(x, tuple(range(x.ndim - 1, -1, -1)))


as_property("T", lambda x: _permute(x, tuple(range(x.ndim - 1, -1, -1))), "The tensor with its axes in reverse order.")
as_property("mT", matrix_transpose.__wrapped__, "Each matrix of the last two axes transposed.")


@public(method=True)
def moveaxis(x, source, destination):
    """Some axes moved to other places; the others keep their order.

    Parameters
    ----------
    x : Tensor
    source, destination : int or tuple of int
        Which axes, and where each of them goes.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        If the two differ in number, or an axis is named twice.

    Notes
    -----
    Gradient: ``g`` with the axes put back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.moveaxis(cg.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    x = as_tensor("moveaxis", x)
    source = source if isinstance(source, (tuple, list)) else (source,)
    destination = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: source {tuple(source)} and destination {tuple(destination)} differ in number")
    source = [one_axis("moveaxis", axis, x.ndim, "source") for axis in source]
    destination = [one_axis("moveaxis", axis, x.ndim, "destination") for axis in destination]
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise ValueError(f"moveaxis: an axis is named twice in {tuple(source)} to {tuple(destination)}")
    if x.ndim == 0:
        return _permute(x, ())
    order = [axis for axis in range(x.ndim) if axis not in source]
    for at, axis in sorted(zip(destination, source)):
        order.insert(at, axis)
    return _permute(x, tuple(order))


@public(method=True)
def flip(x, axis=None, *more):
    """The numbers in reverse order along axes.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to reverse; None for all.

    Returns
    -------
    Tensor
        A view (with negative strides).

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``g`` flipped likewise.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.flip(cg.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    x = as_tensor("flip", x)
    axes = several_axes("flip", (axis, *more) if more else axis, x.ndim)
    return _flip(x, tuple(range(x.ndim)) if axes is None else axes)


@public(method=True)
def fliplr(x):
    """The columns in reverse order: ``flip(x, 1)``.

    Parameters
    ----------
    x : Tensor
        At least 2-d.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        If there is no second axis.

    Notes
    -----
    Gradient: ``g`` flipped likewise.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fliplr(cg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    x = as_tensor("fliplr", x)
    if x.ndim < 2:
        raise ValueError(f"fliplr: needs at least two axes, got shape {x.shape}")
    return _flip(x, (1,))


@public(method=True)
def flipud(x):
    """The rows in reverse order: ``flip(x, 0)``.

    Parameters
    ----------
    x : Tensor
        At least 1-d.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    ValueError
        If `x` is 0-d.

    Notes
    -----
    Gradient: ``g`` flipped likewise.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.flipud(cg.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    x = as_tensor("flipud", x)
    if x.ndim < 1:
        raise ValueError("flipud: needs at least one axis, got a 0-d tensor")
    return _flip(x, (0,))


@public(method=True)
def rot90(x, k=1, axes=(0, 1)):
    """A plane of two axes turned by quarters of a circle, from the first axis towards the second.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    k : int, optional
        How many quarters; negative numbers turn the other way.
    axes : pair of int, optional
        The plane.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If there are not two different axes.

    Notes
    -----
    Gradient: ``g`` turned back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.rot90(cg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x, k = as_tensor("rot90", x), whole_number("rot90", "k", k) % 4
    axes = tuple([one_axis("rot90", axis, x.ndim) for axis in axes])
    if x.ndim < 2 or len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"rot90: needs two different axes, got {axes} for shape {x.shape}")
    order = list(range(x.ndim))
    if k % 2 == 0:
        return _flip(x, axes) if k else _permute(x, tuple(order))
    order[axes[0]], order[axes[1]] = axes[1], axes[0]
    return _permute(_flip(x, axes[1:]), tuple(order)) if k == 1 else _flip(_permute(x, tuple(order)), axes[1:])


# -------------------------------------------------------------------------------------------------------- axes of length 1
@public(method=True)
def squeeze(x, axis=None, *more):
    """Axes of length 1 taken out.

    Parameters
    ----------
    x : Tensor
    axis : int, tuple of int or None, optional
        The axes to take out; None for all of length 1.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice, or has another length than 1 (as in the Array API; PyTorch keeps such axes).

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(1, 3, 1).squeeze(0).shape
    (3, 1)
    """
    x = as_tensor("squeeze", x)
    if axis is None:
        return _squeeze(x, tuple([a for a, n in enumerate(x.shape) if n == 1]))
    axes = several_axes("squeeze", (axis, *more) if more else axis, x.ndim)
    return _squeeze(x, tuple(range(x.ndim)) if axes is None else axes)


@public(method=True)
def expand_dims(x, axis=0):
    """New axes of length 1.

    Parameters
    ----------
    x : Tensor
    axis : int or tuple of int, optional
        Their places in the result.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``g`` in the shape of `x`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.expand_dims(cg.zeros(3), -1).shape
    (3, 1)
    """
    x = as_tensor("expand_dims", x)
    if not isinstance(axis, (tuple, list)):
        return _expand_dims(x, (one_axis("expand_dims", axis, x.ndim + 1),))
    ndim = x.ndim + len(axis)
    return _expand_dims(x, tuple(sorted([one_axis("expand_dims", a, ndim) for a in axis])))


# ---------------------------------------------------------------------------------------------------------- broadcasting
@public(method=True)
def broadcast_to(x, shape, *more):
    """`x` repeated along new leading axes and axes of length 1, without a copy.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int
        The shape to reach.

    Returns
    -------
    Tensor
        A view whose elements share memory: do not write into it.

    Raises
    ------
    ValueError
        If the shape cannot be reached.

    Notes
    -----
    Gradient: ``g`` summed over the repeats.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.broadcast_to(cg.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    if more or type(shape) is not tuple:
        shape = shape_tuple("broadcast_to", shape, more)
    return _broadcast_to(as_tensor("broadcast_to", x), shape)


@public(method=True)
def expand(x, shape, *more):
    """`broadcast_to` in PyTorch's spelling: a length of -1 keeps the axis as it is.

    Parameters
    ----------
    x : Tensor
    shape : int or tuple of int
        The shape to reach.  ``x.expand(2, -1)`` works, too.

    Returns
    -------
    Tensor
        A view whose elements share memory: do not write into it.

    Raises
    ------
    ValueError
        If the shape cannot be reached.

    Notes
    -----
    Gradient: ``g`` summed over the repeats.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([1, 2]).expand(2, -1)
    tensor([[1, 2],
            [1, 2]])
    """
    x = as_tensor("expand", x)
    wanted = shape_tuple("expand", shape, more)
    lead = len(wanted) - x.ndim
    if lead < 0 or -1 in wanted[:lead]:
        raise ValueError(f"expand: a tensor of shape {tuple(x.shape)} cannot be expanded to {wanted}"
                         + ("; -1 stands for an axis that is there already" if lead > 0 else ""))
    return _broadcast_to(x, tuple([x.shape[i - lead] if n == -1 else n for i, n in enumerate(wanted)]))


@public(method=True)
def expand_as(x, y):
    """`x` repeated, without a copy, to the shape of another tensor.

    Parameters
    ----------
    x, y : Tensor

    Returns
    -------
    Tensor
        A view whose elements share memory: do not write into it.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([1, 2]).expand_as(cg.zeros(3, 2)).shape
    (3, 2)
    """
    return _broadcast_to(as_tensor("expand_as", x), tuple(y.shape))


@public(method=False)
def broadcast_shapes(*shapes):
    """The shape that several shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of int

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If two lengths differ and neither is 1.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    shapes = [shape_tuple("broadcast_shapes", shape) for shape in shapes]
    ndim = builtins.max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for at, n in enumerate(shape, ndim - len(shape)):
            if n < 0:
                raise ValueError(f"broadcast_shapes: negative length in {shape}")
            if n != 1 and result[at] not in (1, n):
                raise ValueError(f"broadcast_shapes: shapes {', '.join(map(str, shapes))} do not broadcast together: "
                                 f"{result[at]} and {n} along axis {at} of the result")
            result[at] = n if n != 1 else result[at]
    return tuple(result)


@public(method=False)
def broadcast_tensors(*tensors):
    """Several tensors in the shape they broadcast to.

    Parameters
    ----------
    *tensors : Tensor

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        If the shapes do not broadcast together.

    Examples
    --------
    >>> import cgrad as cg
    >>> a, b = cg.broadcast_tensors(cg.zeros(3, 1), cg.zeros(4))
    >>> a.shape, b.shape
    ((3, 4), (3, 4))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    tensors = [as_tensor("broadcast_tensors", x) for x in tensors]
    shape = broadcast_shapes(*[tuple(x.shape) for x in tensors])
    return tuple([_broadcast_to(x, shape) for x in tensors])


@public(method=False)
def broadcast_arrays(*tensors):
    """`broadcast_tensors` with a list, as the Array API standard of 2024 has it.

    Parameters
    ----------
    *tensors : Tensor

    Returns
    -------
    list of Tensor
        Views.

    Raises
    ------
    ValueError
        If the shapes do not broadcast together.

    Examples
    --------
    >>> import cgrad as cg
    >>> [x.shape for x in cg.broadcast_arrays(cg.zeros(3, 1), cg.zeros(4))]
    [(3, 4), (3, 4)]
    """
    return list(broadcast_tensors(*tensors))
