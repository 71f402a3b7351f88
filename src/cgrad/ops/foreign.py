"""foreign_op: compiled functions of others, given as pointers, become operations.

What a pointer points to is read off its type (ctypes, cffi, the name of a capsule) or said in words of C, and checked before anything is
called.  Next: core/foreign.pyx, which calls; op.py, what an operation is.
"""
from __future__ import annotations

import re
import struct

from cgrad.core.dtype import get_default_dtype, promote_types
from cgrad.core.foreign import CFunction, capsule
from cgrad.core.tensor import Tensor
from cgrad.ops.batching import with_ndim
from cgrad.ops.creation import asarray
from cgrad.ops.op import Op

__all__ = ["foreign_op"]

WEIGHT = 20             # of a call: what a sine of the C library takes, in additions
DTYPES = {"double": "float64", "float": "float32"}
LENGTHS = {"Py_ssize_t", "ssize_t", "ptrdiff_t", "intptr_t", "size_t", "int64_t", "long long", "int"} | ({"long"} if struct.calcsize("l") == 8 else set())
FORMS = ("cgrad calls 'T (T, ...)' with 1 to 4 numbers and 'void (const T *, ..., Py_ssize_t n, T *out)' with 1 to 3 arrays, "
         "where T is double or float")


def foreign_op(function, *, signature=None, partials=None, vjp=None, name=None):
    """Turn a compiled function, given as a pointer, into an operation that is recorded like every other.

    It runs without the GIL, whatever layout the tensors have. A function of numbers is called for each element of tensors that broadcast, on
    several threads if there are many, so it must not write to what calls share.

    Parameters
    ----------
    function
        Points to ``T f(T)``, with up to four numbers, or ``void f(const T *x, Py_ssize_t n, T *out)``, with up to three arrays of n elements
        in C order, called once; T is double or float. Given as a function of ctypes with argtypes and restype, a function pointer of
        cffi, a capsule named by its signature (Cython's ``__pyx_capi__``, as of ``scipy.special.cython_special``), a
        ``scipy.LowLevelCallable``, a cfunc of Numba, an address as an integer, or what ``loop_function`` of ``cgrad.pxd`` returns.
    signature : str, optional
        In C, such as ``"double (double, double)"``. Needed for an address, and where the pointer does not tell.
    partials : pointer or callable, or a sequence of them, optional
        The partial derivative with respect to each input, as a function of the same inputs; None for an input without one. cgrad's
        functions and operations, which can be differentiated again, allow derivatives of any order.
    vjp : callable, optional
        Instead of `partials`: ``vjp(gradient, result, *inputs)`` gives one gradient for each input, None where none is due.
    name : str, optional
        For errors and graphs; by default that of the function if it has one.

    Returns
    -------
    callable
        Takes tensors, arrays and numbers; on numbers alone it returns a float. Its class, a subclass of `cgrad.Op`, is its ``.op``.
        Results have the floating dtype of the inputs, or that of the function if that is narrower; the computation has the function's.

    Raises
    ------
    TypeError
        If the pointer or the signature is not of a form that can be called; says which.
    RuntimeError
        In backward without `partials` or `vjp`.

    Notes
    -----
    A wrong signature for an address cannot be noticed and ends the process.

    Examples
    --------
    The C library's sine, whose derivatives are each other:

    >>> import ctypes
    >>> import cgrad as cg
    >>> libm = ctypes.CDLL(None)
    >>> for f in (libm.sin, libm.cos):
    ...     f.argtypes, f.restype = [ctypes.c_double], ctypes.c_double
    >>> sin = cg.foreign_op(libm.sin, partials=lambda x: cos(x))
    >>> cos = cg.foreign_op(libm.cos, partials=lambda x: -sin(x))
    >>> x = cg.tensor([0.0, 1.0], requires_grad=True)
    >>> sin(x).sum().backward()
    >>> x.grad
    tensor([1.0000, 0.5403])
    >>> sin(0.5)
    0.479425538604203
    """
    call, own_name = _call(function, signature)
    name = name or own_name or "foreign_op"
    if partials is not None and vjp is not None:
        raise TypeError("foreign_op: partials and vjp both say how to differentiate; give one of them")
    if vjp is not None and not callable(vjp):
        raise TypeError(f"foreign_op: vjp must be a function, got {type(vjp).__name__}")
    given = {"call": call, "vjp": staticmethod(vjp) if vjp else None, "partials": None, "__doc__": f"The compiled function {name} as an operation."}
    if partials is not None:
        given["partials"] = _partials(partials, call.n_inputs, signature)
        given["jvp"] = _jvp
    if call.form != "whole":
        given["batch"] = _batch
    made = type(name, (Foreign,), given)

    def operation(*inputs):
        return made()(*inputs)
    operation.op, operation.__name__, operation.__qualname__, operation.__doc__ = made, name, name, made.__doc__
    return operation


class Foreign(Op):
    """A compiled function as an Op; the subclasses of `foreign_op` say which."""

    def forward(self, *inputs):
        name, call = type(self).__name__, self.call
        if len(inputs) != call.n_inputs:
            raise TypeError(f"{name}: takes {call.n_inputs} input{'s' * (call.n_inputs > 1)}, got {len(inputs)}")
        self.inputs = inputs
        tensors = [x if isinstance(x, Tensor) else asarray(x) for x in inputs]
        dtypes = [t.dtype for t, x in zip(tensors, inputs) if not isinstance(x, (int, float))]
        out = call(name, tuple(tensors if dtypes else [asarray(x, dtype=call.dtype) for x in inputs]), _result_dtype(call, dtypes))
        if self.vjp is not None:
            self.result = out
        return out if dtypes else out.item()

    def backward(self, grads):
        if self.vjp is not None:
            return self.vjp(grads, self.result, *self.inputs)
        if self.partials is None:
            raise RuntimeError(f"{type(self).__name__}: backward has no rule for it; give foreign_op(..., partials=) or vjp=")
        return tuple([grads * p(*self.inputs) if p and wanted else None for p, wanted in zip(self.partials, self.needs_input_grad)])


def _result_dtype(call, dtypes):
    """The dtype that inputs of these promote to, if it is floating, but none wider than the function's."""
    if not dtypes or not call.dtype.is_floating_point:
        return call.dtype
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = promote_types(dtype, other)
    if not dtype.is_floating_point:
        dtype = get_default_dtype()
    return dtype if dtype.itemsize < call.dtype.itemsize else call.dtype


def _jvp(self, *tangents):
    parts = [t * p(*self.inputs) for t, p in zip(tangents, self.partials) if t is not None and p]
    return sum(parts[1:], parts[0]) if parts else None


def _batch(self, axes, *inputs):
    ndim = max(x.ndim - (axis == 0) for x, axis in zip(inputs, axes) if isinstance(x, Tensor))
    return type(self)()(*[with_ndim(x, ndim) if axis == 0 else x for x, axis in zip(inputs, axes)])


def _partials(partials, n, signature):
    """One function on tensors, or None, for each of n inputs."""
    found = list(partials) if isinstance(partials, (list, tuple)) and _low_level(partials) is partials else [partials]
    if len(found) != n:
        raise TypeError(f"foreign_op: the function has {n} input{'s' * (n > 1)}, partials must be as many functions, got {len(found)}")
    for i, p in enumerate(found):
        if p is None or (callable(p) and not _is_pointer(p)):
            continue
        found[i] = foreign_op(p, signature=signature if isinstance(p, int) else None)
        if found[i].op.call.n_inputs != n:
            raise TypeError(f"foreign_op: a partial derivative takes the inputs of the function; number {i} takes {found[i].op.call.n_inputs}, "
                            f"the function {n}")
    return found


# ---------------------------------------------------------------------- what a pointer points to
def _call(function, signature):
    """The CFunction and its name, or None."""
    if isinstance(function, CFunction):
        return function, None
    function = _low_level(function)
    name, own, address = _described(function)
    if own is not None and signature is not None and _parsed(own) != _parsed(signature):
        raise TypeError(f"foreign_op: signature={signature!r} is not what the pointer says of itself, {own!r}")
    text = signature if own is None else own
    if text is None:
        raise TypeError(f"foreign_op: {function!r} does not tell what it takes; set argtypes and restype (ctypes), or give "
                        'signature="double (double)"')
    form, n_inputs, dtype, with_int = _parsed(text)
    return CFunction(form, address, n_inputs, dtype, with_int, WEIGHT, function), name


def _low_level(function):
    """What stands behind a scipy.LowLevelCallable or a cfunc of Numba."""
    if type(function).__name__ == "LowLevelCallable":
        if function.user_data is not None:
            raise TypeError("foreign_op: a LowLevelCallable with user_data cannot be called, since its function takes a pointer to them")
        return function.function
    if hasattr(function, "ctypes") and hasattr(function, "address"):
        return function.ctypes
    return function


def _is_pointer(x):
    x = _low_level(x)
    return isinstance(x, (int, CFunction)) or capsule(x) is not None or _is_cffi(x) or _is_ctypes(x)


def _is_cffi(x):
    return type(x).__module__ == "_cffi_backend" and "CData" in type(x).__name__


def _is_ctypes(x):
    return any(c.__name__ in ("_CFuncPtr", "CFuncPtr") for c in type(x).__mro__)


def _described(function):
    """(name, signature, address) of a pointer; the first two may be None."""
    found = capsule(function)
    if found is not None:
        return None, *found
    if isinstance(function, int) and not isinstance(function, bool):
        return None, None, function
    if _is_ctypes(function):
        return _described_ctypes(function)
    if _is_cffi(function):
        return _described_cffi(function)
    hint = "; give ffi.addressof(lib, 'name')" if "_cffi_backend" in repr(function) else \
        "; cgrad.op takes Python functions" if callable(function) else ""
    raise TypeError(f"foreign_op: the function is a pointer of ctypes, cffi, a capsule or an address, not {type(function).__name__}{hint}")


def _described_ctypes(function):
    import ctypes
    name = getattr(function, "__name__", None)
    if function._flags_ & 4:                                       # FUNCFLAG_PYTHONAPI
        raise TypeError(f"foreign_op: {name or function!r} comes from PyDLL and needs the GIL; load the library with ctypes.CDLL")
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    if function.argtypes is None:
        return name, None, address
    types = [_ctype_name(t) for t in (function.restype, *function.argtypes)]
    return name, f"{types[0]} ({', '.join(types[1:])})", address


def _ctype_name(t):
    """A type of ctypes in words of C, as far as it matters here."""
    import ctypes
    if t is None:
        return "void"
    if t in (ctypes.c_double, ctypes.c_float):
        return t.__name__[2:]
    if hasattr(t, "_dtype_"):                                       # numpy.ctypeslib.ndpointer
        return next((f"{c} *" for c, dtype in DTYPES.items() if t._dtype_ == dtype), f"{t._dtype_} *")
    pointed = getattr(t, "_type_", None)
    if isinstance(pointed, type):
        return f"{_ctype_name(pointed)} *"
    if isinstance(pointed, str) and pointed in "iIlLqQ":
        return "Py_ssize_t" if ctypes.sizeof(t) == 8 else "int" if pointed in "il" else t.__name__
    return t.__name__


def _described_cffi(function):
    import _cffi_backend as backend
    kind = backend.typeof(function)
    if kind.kind != "function":
        raise TypeError(f"foreign_op: {kind.cname!r} is no pointer to a function")
    address = int(backend.cast(backend.new_primitive_type("uintptr_t"), function))
    return None, f"{kind.result.cname} ({', '.join(t.cname for t in kind.args)})", address


def _parsed(text):
    """(form, number of inputs, dtype, with_int) of a signature in C; see CFunction."""
    plain = re.sub(r"\b(const|noexcept|nogil|restrict|__restrict(__)?)\b", " ", text)
    match = re.fullmatch(r"\s*([\w ]+?)\s*(?:\(\s*\*\s*\w*\s*\)|\b\w+)?\s*\((.*)\)\s*", plain)
    if match and "complex" not in plain.lower():
        result, parameters = " ".join(match[1].split()), [_parameter(p) for p in match[2].split(",")]
        found = _numbers(result, parameters) or _arrays(result, parameters)
        if found:
            return found
    raise TypeError(f"foreign_op: a function {text!r} cannot be called; {FORMS}")


def _parameter(text):
    """(type, number of stars, name or '') of a parameter."""
    stars, words = text.count("*"), text.replace("*", " ").split()
    whole = " ".join(words)
    if whole in LENGTHS or whole in DTYPES or len(words) < 2:
        return whole, stars, ""
    return " ".join(words[:-1]), stars, words[-1]


def _numbers(result, parameters):
    with_int = parameters[-1] == ("int", 0, "__pyx_skip_dispatch")
    numbers = parameters[:-1] if with_int else parameters
    if result in DTYPES and 1 <= len(numbers) <= 4 and all(p[:2] == (result, 0) for p in numbers):
        return "each", len(numbers), DTYPES[result], with_int
    return None


def _arrays(result, parameters):
    if result != "void" or not 3 <= len(parameters) <= 5:
        return None
    *inputs, length, out = parameters
    if out[0] not in DTYPES or any(p[:2] != (out[0], 1) for p in (*inputs, out)) or length[0] not in LENGTHS or length[1]:
        return None
    return "whole", len(inputs), DTYPES[out[0]], length[0] == "int"
