"""Calls: from operands to kernel and node; the functions and operators that users call.

A call tests the OR-ed flags of its inputs once.  None set: allocate, run the kernel, done.  Only REQUIRES_GRAD: the same and a node.
Anything else (a tangent, a mark of a user's Op): the slow road of forward_mode.pyx.  Public functions are compiled closures over their
entry.  Needs the GIL.  Next: inplace.pyx, the same for operations that write; engine.pyx, which goes back.
"""
cimport cython
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject

from cgrad.core.door cimport Door, enter, handed_on, into
from cgrad.core.dtype cimport KIND, KIND_FLOAT, dtype_object, promote
from cgrad.core.elementwise cimport (
    Py_REFCNT, as_tensor, compute, compute1, compute2, compute_number, compute_over, is_array, is_number, is_spare,
)
from cgrad.core.primitive cimport MAX_INPUTS, Primitive, Rule, tuple_items
from cgrad.core.record cimport attach, fresh_flags, keeps, record, wants_node
from cgrad.core.temporary cimport is_temporary
from cgrad.core.tensor cimport LOST, MARKED, N_OPERATORS, SLOW, Tensor, VIEW, alias_tensor, set_operators
from cgrad.kernels.table cimport BFLOAT16, FLOAT16, FLOAT32

from cgrad.core.door import explain_errors_of
from cgrad.core.primitive import set_rules

cdef extern from "Python.h":
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    object PyObject_Vectorcall(object function, PyObject** args, size_t nargsf, PyObject* names)

cdef enum:
    LARGE = 1 << 18         # elements from which it pays to find out whether an operand is a temporary

cdef object slow_road = None       # forward_mode's interpreter
cdef object casting = None         # the recorded cast


def set_cast(function):
    """Tell how a recorded cast is made."""
    global casting
    casting = function


def set_slow_road(function):
    """Tell who interprets a call when an input carries more than values and a wish for gradients."""
    global slow_road
    slow_road = function


cdef object apply1(Primitive p, object value):
    cdef Tensor x, out
    cdef PyObject* inputs[1]
    if not isinstance(value, Tensor):
        value = as_tensor(p, value)
    x = <Tensor>value
    if x.flags & SLOW:
        return slow_road(p, (x,), ())
    out = compute1(p, x)
    out.flags |= x.flags & LOST
    if x.flags & MARKED:
        inputs[0] = <PyObject*>x
        if wants_node(p, fresh_flags(inputs, 1) if x.flags & VIEW else x.flags, out, inputs, 1):
            record(p, inputs, 1, out, None)
    return out


cdef object apply2(Primitive p, object a, object b):
    cdef Tensor out
    cdef unsigned int flags
    cdef PyObject* inputs[2]
    if isinstance(a, Tensor):
        if isinstance(b, Tensor):
            flags = (<Tensor>a).flags | (<Tensor>b).flags
            if flags & SLOW:
                return slow_road(p, (a, b), ())
            if (<Tensor>a).dtype_id != (<Tensor>b).dtype_id:
                inputs[0] = <PyObject*>a
                inputs[1] = <PyObject*>b
                out = compute(p, inputs, 2)
            elif (<Tensor>a).count < LARGE:
                out = compute2(p, <Tensor>a, <Tensor>b)
            else:
                out = over_temporary(p, a, b)
                if out is None:
                    out = compute2(p, <Tensor>a, <Tensor>b)
        elif is_number(b):
            flags = (<Tensor>a).flags
            if flags & SLOW:
                return slow_road(p, (a, b), ())
            out = over_temporary(p, a, b) if (<Tensor>a).count >= LARGE else None
            if out is None:
                out = compute_number(p, <Tensor>a, b, False)
        else:
            return apply2(p, a, as_tensor(p, b))
    elif isinstance(b, Tensor):
        if not is_number(a):
            return apply2(p, as_tensor(p, a), b)
        flags = (<Tensor>b).flags
        if flags & SLOW:
            return slow_road(p, (a, b), ())
        out = over_temporary(p, a, b) if (<Tensor>b).count >= LARGE else None
        if out is None:
            out = compute_number(p, <Tensor>b, a, True)
    else:
        return apply2(p, as_tensor(p, a), b)
    out.flags |= flags & LOST
    if flags & MARKED:
        inputs[0] = <PyObject*>a
        inputs[1] = <PyObject*>b
        if wants_node(p, fresh_flags(inputs, 2) if flags & VIEW else flags, out, inputs, 2):
            record(p, inputs, 2, out, None)
    return out


cdef Tensor over_temporary(Primitive p, object a, object b):
    """The result written over an operand that dies with this call and that the tape will not keep; None if there is none."""
    cdef PyObject* inputs[2]
    cdef int i
    inputs[0] = <PyObject*>a
    inputs[1] = <PyObject*>b
    for i in range(2):       # without a reference of our own, which is_temporary would count
        if Py_REFCNT(inputs[i]) == 1 and isinstance(<object>inputs[i], Tensor) and (<Tensor>inputs[i]).count >= LARGE \
                and is_spare(<Tensor>inputs[i]) and not keeps(p, inputs, 2, i) and is_temporary(inputs[i]) \
                and compute_over(p, inputs, 2, <Tensor>inputs[i]):
            return alias_tensor(<Tensor>inputs[i])
    return None


cdef object apply_elementwise(Primitive p, tuple args):
    """Any number of inputs."""
    cdef Tensor out
    cdef unsigned int flags = 0
    cdef PyObject* inputs[MAX_INPUTS]
    cdef int i, n = len(args)
    cdef bint tensors = False
    operands = list(args)
    for i in range(n):
        if isinstance(operands[i], Tensor):
            tensors = True
        elif not is_number(operands[i]):
            operands[i] = as_tensor(p, operands[i])
            tensors = True
    if not tensors:
        operands[0] = as_tensor(p, operands[0])
    for i in range(n):
        inputs[i] = <PyObject*>operands[i]
        if isinstance(operands[i], Tensor):
            flags |= (<Tensor>operands[i]).flags
    if flags & SLOW:
        return slow_road(p, tuple(operands), ())
    out = compute(p, inputs, n)
    out.flags |= flags & LOST
    if flags & MARKED and wants_node(p, fresh_flags(inputs, n) if flags & VIEW else flags, out, inputs, n):
        record(p, inputs, n, out, None)
    return out


cdef object apply_general(Primitive p, tuple args):
    """An operation with a forward of its own: `args` are its inputs (or one list of them), then its options."""
    cdef tuple operands = args
    cdef int i, n = p.n_inputs
    cdef int n_options = <int>len(args) - (1 if n < 0 else n)
    cdef unsigned int flags = 0
    cdef bint converted = False, half = False
    cdef PyObject** inputs
    if n_options != len(p.option_names):
        raise TypeError(f"{p.name}: takes {len(p.option_names)} options {p.option_names}, got {n_options}")
    if n < 0:
        operands = args[0] if isinstance(args[0], tuple) else tuple(args[0])
        n = <int>len(operands)
    inputs = tuple_items(<PyObject*>operands)
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            flags |= (<Tensor>inputs[i]).flags
            half |= FLOAT16 <= (<Tensor>inputs[i]).dtype_id <= BFLOAT16
        elif <object>inputs[i] is not None:
            converted = True
        elif p.n_inputs < 0 or not p.optional >> i & 1:
            as_tensor(p, None)       # an error that names the operation
    if converted:
        operands = tuple([x if x is None else as_tensor(p, x) for x in operands[:n]])
        return apply_general(p, operands + args[n:] if p.n_inputs >= 0 else (operands,) + args[1:])
    if half and not p.moves:
        return apply_widened(p, operands[:n], args[len(args) - n_options:])
    if flags & SLOW:
        return slow_road(p, operands[:n], args[len(args) - n_options:])
    if flags & VIEW:
        flags = fresh_flags(inputs, n)
    result = p.forward(*args) if p.n_inputs >= 0 else p.forward(list(operands), *args[1:])
    return attach(p, inputs, n, args, n_options, flags, result)


cdef object apply_widened(Primitive p, tuple operands, tuple options):
    """Compute in float32 what has no form for float16 and bfloat16: the casts there and back are recorded, so the rules see float32."""
    cdef list wide = []
    cdef int dtype = -1
    for x in operands:
        if isinstance(x, Tensor) and KIND[(<Tensor>x).dtype_id] == KIND_FLOAT:
            dtype = (<Tensor>x).dtype_id if dtype < 0 else promote(dtype, (<Tensor>x).dtype_id)
            if (<Tensor>x).dtype_id < FLOAT32:
                x = casting(x, dtype_object(FLOAT32))
        wide.append(x)
    result = call(p, tuple(wide), options)
    if dtype >= FLOAT32:
        return result
    return tuple([narrowed(x, dtype) for x in result]) if isinstance(result, tuple) else narrowed(result, dtype)


cdef object narrowed(object x, int dtype):
    return casting(x, dtype_object(dtype)) if isinstance(x, Tensor) and (<Tensor>x).dtype_id == FLOAT32 else x


@cython.binding(True)          # functions with attributes, which take calls the way that `explain_errors_of` knows
def finish_primitive(Primitive p, list rules, Rule joint=None, Rule jvp=None, Rule batch=None, extended=None):
    """Give a primitive its rules and return its recorded function, a compiled closure.

    ``input=`` and ``other=`` are PyTorch's words for x and y, ``out=`` is written with the result; further keywords, or fewer operands than
    three, go to `extended`, a Python function.
    """
    set_rules(p, rules, joint, jvp, batch)
    if not p.elementwise:
        def function(*args):
            return apply_general(p, args)
    elif p.n_inputs == 1:
        def function(x):
            return apply1(p, x)
    elif p.n_inputs == 2 and extended is not None:
        def function(x, y, **options):
            return extended(x, y, **options) if options else apply2(p, x, y)
    elif p.n_inputs == 2:
        def function(x, y):
            return apply2(p, x, y)
    else:
        def function(*args, **kwargs):
            if "out" in kwargs:
                out = kwargs.pop("out")
                return p.function(*args, **kwargs) if out is None else into(p.name, p.function, args, kwargs, out)
            if kwargs:
                names = p.input_names[len(args):]
                renamed = {{"input": "x", "other": "y"}.get(key, key): value for key, value in kwargs.items()}
                if len(renamed) != len(kwargs) or set(renamed) != set(names):
                    raise TypeError(f"{p.name}: takes the operands {', '.join(p.input_names)}, got {len(args)} by position and "
                                    f"{', '.join(kwargs)} by name")
                args += tuple([renamed[name] for name in names])
            if len(args) != p.n_inputs:
                if extended is not None:
                    return extended(*args)
                raise TypeError(f"{p.name}: takes {p.n_inputs} operands, got {len(args)}")
            return apply_elementwise(p, args)
    function.__name__ = function.__qualname__ = p.name
    function.primitive = p
    p.function = function
    if not p.elementwise or p.n_inputs > 2:
        return explain_errors_of(function) if p.elementwise else function
    p.function = elementwise_door(p, function)
    p.function.primitive = p
    return p.function


cdef class ElementwiseDoor(Door):
    """A public elementwise function: operands by position go on at once, all other calls to the function that knows keywords.

    Its docstring is set as an attribute, which this one lets pass.
    """
    cdef Primitive p


cdef ElementwiseDoor elementwise_door(Primitive p, object function):
    cdef ElementwiseDoor door = ElementwiseDoor(function, {"out": "out", "input": "x"} | ({"other": "y"} if p.n_inputs == 2 else {}))
    door.vectorcall = apply1_by_vector if p.n_inputs == 1 else apply2_by_vector
    door.p = p
    return door


ctypedef PyObject* (*raw_apply1_t)(PyObject* p, PyObject* x) noexcept
ctypedef PyObject* (*raw_apply2_t)(PyObject* p, PyObject* x, PyObject* y) noexcept

cdef raw_apply1_t raw_apply1 = <raw_apply1_t>apply1          # NULL for an error, which `handed_on` takes up
cdef raw_apply2_t raw_apply2 = <raw_apply2_t>apply2


cdef object apply1_by_vector(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef ElementwiseDoor door = <ElementwiseDoor>self
    if names == NULL and nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET == 1:
        return handed_on(raw_apply1(<PyObject*>door.p, args[0]), door, door.renames, args, nargsf, names)
    return enter(self, args, nargsf, names)


cdef object apply2_by_vector(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef ElementwiseDoor door = <ElementwiseDoor>self
    if names == NULL and nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET == 2:
        return handed_on(raw_apply2(<PyObject*>door.p, args[0], args[1]), door, door.renames, args, nargsf, names)
    return enter(self, args, nargsf, names)


def call(Primitive p, tuple operands, tuple options):
    """Call a primitive as its public function would."""
    if p.elementwise:
        return apply_elementwise(p, operands) if p.n_inputs > 2 else p.function(*operands)
    if p.n_inputs < 0:
        return apply_general(p, (list(operands),) + options)
    return apply_general(p, operands + options)


# ---------------------------------------------------------------------- operators
cdef list operator_primitives = [None] * N_OPERATORS
cdef list operator_functions = [None] * N_OPERATORS
OPERATOR_SYMBOLS = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
                    "neg", "pos", "abs", "~"]


def set_operator(str symbol, function):
    """Fill an operator slot of Tensor; a function of an elementwise primitive takes the short way."""
    cdef int which = OPERATOR_SYMBOLS.index(symbol)
    primitive = getattr(function, "primitive", None)
    operator_functions[which] = function
    operator_primitives[which] = primitive if primitive is not None and (<Primitive>primitive).elementwise else None


cdef Primitive operator_primitive(int which):
    return <Primitive>operator_primitives[which]


cdef object operator_function(int which):
    return operator_functions[which]


cdef bint is_operand(object x) except -1:
    return isinstance(x, Tensor) or is_number(x) or is_array(x)


cdef object binary_operation(int which, object x, object y):
    cdef object p = operator_primitives[which]
    if not (isinstance(y, Tensor) or is_number(y)) or not (isinstance(x, Tensor) or is_number(x)):
        if not is_operand(x) or not is_operand(y):
            return NotImplemented
    if p is not None:
        return apply2(<Primitive>p, x, y)
    return operator_functions[which](x, y)


cdef object unary_operation(int which, object x):
    cdef object p = operator_primitives[which]
    if p is not None:
        return apply1(<Primitive>p, x)
    return operator_functions[which](x)


set_operators(binary_operation, unary_operation)

cdef object operator_watcher = None


def watch_operators(watcher):
    """Tell a watcher of operators, see `door.watch_calls`; those that call a public function are seen there."""
    global operator_watcher
    operator_watcher = watcher
    if watcher is None:
        set_operators(binary_operation, unary_operation)
    else:
        set_operators(watched_binary, watched_unary)


cdef object watched_binary(int which, object x, object y):
    cdef object watcher = operator_watcher
    if watcher is None or operator_primitives[which] is None:
        return binary_operation(which, x, y)
    watcher._enter(operator_functions[which], (x, y))
    try:
        return binary_operation(which, x, y)
    finally:
        watcher._leave()


cdef object watched_unary(int which, object x):
    cdef object watcher = operator_watcher
    if watcher is None or operator_primitives[which] is None:
        return unary_operation(which, x)
    watcher._enter(operator_functions[which], (x,))
    try:
        return unary_operation(which, x)
    finally:
        watcher._leave()


# ---------------------------------------------------------------------- NumPy's operations
cdef object other_ufunc_call = None


def set_ufunc_call(function):
    """Tell what takes the calls of NumPy's ufuncs that the short way below does not."""
    global other_ufunc_call
    other_ufunc_call = function


cdef dict ufunc_functions = {}        # ufunc -> function
cdef dict ufunc_primitives = {}       # the same for plain elementwise operations of one or two operands
cdef str CALL = "__call__"


def set_ufunc(ufunc, function):
    """Let a NumPy ufunc on tensors call a function."""
    ufunc_functions[ufunc] = function
    primitive = getattr(function, "primitive", None)
    if primitive is not None and (<Primitive>primitive).elementwise and (<Primitive>primitive).n_inputs == ufunc.nin <= 2:
        ufunc_primitives[ufunc] = primitive


def __array_ufunc__(x, ufunc, method, *inputs, **options):
    """How NumPy hands over an operation on a tensor, and an operator with an array or scalar on its left."""
    function = ufunc_functions.get(ufunc)
    if function is None or options or method != CALL:
        return other_ufunc_call(ufunc, method, inputs, options)
    for operand in inputs:
        if not is_operand(operand):
            return other_ufunc_call(ufunc, method, inputs, options)
    return function(*inputs)


cdef object array_ufunc_by_vector(object self, PyObject** args, size_t nargsf, PyObject* names):
    """The same: the short way for ``array + t`` and ``np.sin(t)``, without tuples and dicts of our own (0.1 to 0.2 µs)."""
    cdef Py_ssize_t n = nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET
    cdef PyObject* primitive
    if names == NULL and 4 <= n <= 5 and <str>args[2] == CALL:
        primitive = PyDict_GetItem(ufunc_primitives, <object>args[1])
        if primitive != NULL and is_operand(<object>args[3]):
            if n == 4:
                return apply1(<Primitive>primitive, <object>args[3])
            if is_operand(<object>args[4]):
                return apply2(<Primitive>primitive, <object>args[3], <object>args[4])
    return PyObject_Vectorcall((<Door>self).function, args, nargsf, names)


array_ufunc = Door(__array_ufunc__, {})
(<Door>array_ufunc).vectorcall = array_ufunc_by_vector
