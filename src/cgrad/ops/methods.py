"""Methods of Tensor that are no operations: out to NumPy and Python, copies and pickles, tensors like this one.

Next: wiring.py, which loads this file with the others.
"""

import operator

from numpy import memmap, ndarray

from cgrad.core import apply, convert
from cgrad.core.arguments import one_axis
from cgrad.core.device import CPU
from cgrad.core.dtype import bfloat16, uint16
from cgrad.core.forward import copy
from cgrad.core.tensor import Tensor, register_method
from cgrad.ops import casting, creation, namespace, numpy_protocol
from cgrad.ops.define import as_method, as_property, publish


def numpy(x, *, force=False):
    """A NumPy array over the tensor's own memory.

    Parameters
    ----------
    force : bool
        Take the values even of a tracked tensor.

    Returns
    -------
    numpy.ndarray
        Of the same shape, strides and dtype; nothing is copied.

    Raises
    ------
    RuntimeError
        If the tensor requires grad: writes into the array, or what is computed from it, would escape the tape.
    TypeError
        If it is bfloat16, which NumPy lacks, and the package ml_dtypes, which lends its own, is not installed; ``x.float().numpy()`` works.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([1.0, 2.0]).numpy()
    array([1., 2.], dtype=float32)
    """
    convert.check_leaves_graph(x, "numpy")
    if x.requires_grad and not force:
        raise RuntimeError("numpy: the tensor requires grad, so the array would escape the tape; use x.detach().numpy()")
    return convert.numpy(x)


def tolist(x):
    """The elements as nested lists of Python numbers; a number for a 0-d tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    convert.check_leaves_graph(x, "tolist")
    return convert.tolist(x)


def __array__(x, dtype=None, copy=None):
    convert.check_leaves_graph(x, "__array__")
    array = convert.numpy(x, readonly=True)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: the tensor is {x.dtype.name}, an array of {dtype} cannot be made without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _bits(x):
    """An array of the elements, for bfloat16 of their bits, and what else it takes to tell the dtype."""
    if x.dtype is bfloat16:
        return convert.numpy(convert.retyped(x, uint16)), (x.dtype,)
    return convert.numpy(x), ()


def _rebuild(array, requires_grad, dtype=None, writable=False):
    # Memory that several processes share (joblib's maps, Ray's store) arrives read-only: right for data, not for what is trained.
    # Of what comes outside of the pickle some is not aligned (Dask's frames), which is copied, too.
    copy = True if (requires_grad or writable) and not array.flags.writeable else None
    x = convert.tensor_from(array, None, copy)
    return (x if dtype is None else convert.retyped(x, dtype)).requires_grad_(requires_grad)


def _is_mapped(array):
    """Whether it lies in a mapped file: joblib sends the file's name instead of the elements."""
    while isinstance(array, ndarray) and not isinstance(array, memmap):
        array = array.base
    return isinstance(array, memmap)


def __reduce_ex__(x, protocol):
    if not x.is_leaf:
        raise RuntimeError(f"pickle: the tensor was made by {x.grad_fn!r} and its graph cannot be pickled; use x.detach()")
    array, dtype = _bits(x.detach().contiguous())      # pickled by NumPy; with protocol 5 its memory may travel outside of the pickle
    if not (array.flags.writeable or _is_mapped(array)):
        array = array.copy()
    if type(x) is not Tensor:
        return _rebuild_subclass, (type(x), array, x.requires_grad, getattr(x, "__dict__", None), *dtype)
    return _rebuild, (array, x.requires_grad, *dtype)


def _rebuild_subclass(cls, array, requires_grad, state, dtype=None):
    x = cls._make_subclass(cls, _rebuild(array, False, dtype, writable=True), requires_grad)
    if state:
        x.__dict__.update(state)
    return x


def __sizeof__(x):
    """With its elements: schedulers such as Dask's weigh by this what they send and keep."""
    return object.__sizeof__(x) + x.nbytes


def __copy__(x):
    return x if not x.is_leaf else _like(x, x.detach())


def __deepcopy__(x, memo):
    if not x.is_leaf:
        raise RuntimeError(f"deepcopy: the tensor was made by {x.grad_fn!r}; only leaves can be copied with their graph, use x.detach() or x.clone()")
    if id(x) in memo:
        return memo[id(x)]
    out = _like(x, x.detach().clone())
    if x.grad is not None:
        out.grad = x.grad.detach().clone()
    memo[id(x)] = out
    return out


def _like(x, values):
    if type(x) is Tensor:
        return values.requires_grad_(x.requires_grad)
    out = type(x)._make_subclass(type(x), values, x.requires_grad)
    if getattr(x, "__dict__", None):
        out.__dict__.update(x.__dict__)
    return out


def __dlpack__(x, *, stream=None, max_version=None, dl_device=None, copy=None):
    if x.requires_grad:
        raise BufferError("__dlpack__: the tensor requires grad, so the other library would escape the tape; use x.detach()")
    if not copy and any(step < 0 and n > 1 for step, n in zip(x.strides, x.shape)):       # PyTorch ends the process at one
        raise BufferError(f"__dlpack__: other libraries do not take negative strides, these are {tuple(x.strides)}; use x.clone()")
    return convert.dlpack(x, stream, max_version, dl_device, copy)


def tobytes(x):
    """The elements in C order as bytes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([1, 2], dtype=cg.uint8).tobytes()
    b'\\x01\\x02'
    """
    return _bits(x)[0].tobytes()


def new_tensor(x, data, *, dtype=None, requires_grad=False):
    """A tensor from data, with the dtype of this one unless another is given.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(1, dtype=cg.float64).new_tensor([1, 2]).dtype
    cgrad.float64
    """
    return creation.tensor(data, dtype=x.dtype if dtype is None else dtype, requires_grad=requires_grad)


def element_size(x):
    """The size of an element in bytes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).element_size()
    4
    """
    return x.itemsize


def stride(x, axis=None):
    """The strides in elements, or that of one axis.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3).stride()
    (3, 1)
    """
    return x.strides if axis is None else x.strides[one_axis("stride", axis, x.ndim)]


def storage_offset(x):
    """How many elements lie in the memory before the first one.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(4)[1:].storage_offset()
    1
    """
    return copy.place_in_storage(x)[0]


def is_complex(x):
    """Whether the elements are complex numbers: never, for now.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.is_complex(cg.ones(2))
    False
    """
    return x.dtype.is_complex


def is_signed(x):
    """Whether the dtype has negative numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones(2).is_signed(), cg.tensor([True]).is_signed()
    (True, False)
    """
    return x.dtype.kind in ("integer", "floating")


def is_nonzero(x):
    """Whether the only element is not 0.

    Raises
    ------
    ValueError
        For more than one element, or none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.is_nonzero(cg.tensor([0.5]))
    True
    """
    if x.size != 1:
        raise ValueError(f"is_nonzero: needs one element, got shape {x.shape}")
    return bool(x)


def cpu(x):
    """The tensor itself: there is only the device "cpu"."""
    return x


def cuda(x, *args, **kwargs):
    """Only an error: cgrad computes on the CPU, see ``x.to(device)``."""
    raise ValueError("cuda: cgrad computes on the CPU; leave .cuda() out, or write .to(device) with cg.device('cpu')")


def is_tensor(x):
    """Whether something is a Tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.is_tensor(cg.ones(1)), cg.is_tensor(1)
    (True, False)
    """
    return isinstance(x, Tensor)


def numel(x):
    """How many elements a tensor has.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.numel(cg.zeros(2, 3))
    6
    """
    return x.size


def is_floating_point(x):
    """Whether the elements are floats.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.is_floating_point(cg.ones(1)), cg.is_floating_point(cg.arange(1))
    (True, False)
    """
    return x.dtype.is_floating_point


def _new(name):
    make = getattr(creation, name)

    def method(x, *args, dtype=None, **kwargs):
        return make(*args, dtype=x.dtype if dtype is None else dtype, **kwargs)
    method.__name__ = method.__qualname__ = "new_" + name
    method.__doc__ = f"`cgrad.{name}` with the dtype of this tensor unless another is given."
    return method


for _function in (element_size, stride, storage_offset, is_complex, is_floating_point, is_signed, is_nonzero, cpu, cuda, numpy, tolist, tobytes, new_tensor):
    as_method(_function)
for _function in (__array__, __reduce_ex__, __sizeof__, __copy__, __deepcopy__, __dlpack__):
    register_method(_function.__name__, _function)
for _name in ("zeros", "ones", "full", "empty"):
    as_method(_new(_name))
for _name in ("mT", "T"):
    as_property("mH" if _name == "mT" else "H", operator.attrgetter(_name), f"`{_name}`: the conjugate of a real number is the number.")
for _name, _same in (("nelement", "numel"), ("ndimension", "dim")):
    register_method(_name, getattr(Tensor, _same))
for _function in (is_tensor, is_complex, is_floating_point, is_nonzero, numel):
    publish(_function.__name__, _function, method=False)
as_property("device", lambda x: CPU, "Where the memory is: always on the CPU.")
as_property("is_cuda", lambda x: False, "Whether the memory is on a GPU: never.")
as_property("real", casting.real, "The tensor itself: its elements are real.")
as_method(namespace.to_device)
register_method("__array_namespace__", namespace.array_namespace)
register_method("__dlpack_device__", lambda x: (1, 0))             # the CPU
apply.set_ufunc_call(numpy_protocol.ufunc_call)
register_method("__array_ufunc__", apply.array_ufunc)
register_method("__array_function__", numpy_protocol.array_function)
