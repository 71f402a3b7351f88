"""Primitive: the compiled table entry of an operation, and the way from a call to kernel and node.

A call tests the OR-ed flags of its inputs once.  None set: allocate, run the kernel, done.  Only REQUIRES_GRAD: the same and a
node.  Anything else (a tangent, a mark of a user's Op): the slow road of forward_mode.pyx.  Python numbers are weak operands that
go to the kernel from the stack and never become tensors.  Everything here needs the GIL (released inside long loops).
Next: engine.pyx, which calls the rules back; ops/define.py, which fills the entries.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t

import numpy as np

from cgrad.core.dtype cimport (
    DType, ITEMSIZE, KIND, KIND_BOOL, KIND_FLOAT, KIND_INT, PROMOTE, default_float, dtype_object,
)
from cgrad.core.tape cimport (
    Node, Rest, grad_enabled, inside_op, is_tracked, new_node, node_rest, set_node_shape, track,
)
from cgrad.core.tensor cimport (
    CONTIGUOUS, DERIVED, DUAL, N_OPERATORS, OP_EQUAL, OP_NOT_EQUAL, REQUIRES_GRAD, SLOW, TRACED, Tensor, VIEW, alias_tensor,
    become_view, cast_tensor, copy_into, copy_tensor, empty_like, empty_tensor, item_of, launch, refresh, same_shape, scalar_tensor, set_extra,
     set_operators,
    shape_text, shape_tuple, stale, store_item, writable,
)
from cgrad.kernels.dispatch cimport elementwise_kernel
from cgrad.kernels.table cimport BOOL, FLOAT64, INT64, MAX_DIMS, N_DTYPES, ElementwiseKernel, loop_t

cdef enum:
    SMALL = 4096           # elements up to which a contiguous loop is called directly

cdef Py_ssize_t ONES[MAX_INPUTS + 1]
cdef int _i
for _i in range(MAX_INPUTS + 1):
    ONES[_i] = 1

cdef object convert = None         # core.convert's array-to-tensor function
cdef object slow_road = None       # forward_mode's interpreter


def set_converter(function):
    """Tell how arrays and NumPy scalars among the operands become tensors."""
    global convert
    convert = function


def set_slow_road(function):
    """Tell who interprets a call when an input carries more than values and a wish for gradients."""
    global slow_road
    slow_road = function


# ---------------------------------------------------------------------- operands
cdef inline bint is_number(object x) noexcept:
    return isinstance(x, float) or isinstance(x, int)


cdef Tensor as_tensor(Primitive p, object x):
    if isinstance(x, Tensor):
        return <Tensor>x
    if isinstance(x, bool):
        return scalar_tensor(x, BOOL)
    if isinstance(x, float):
        return scalar_tensor(x, default_float())
    if isinstance(x, int):
        return scalar_tensor(x, INT64)
    if isinstance(x, (np.ndarray, np.generic)):
        return convert(x)
    raise TypeError(f"{p.name}: operands are tensors, arrays or numbers, got {type(x).__name__}; make a tensor with cgrad.tensor(...)")


cdef inline int number_kind(object x) noexcept:
    if isinstance(x, float):
        return KIND_FLOAT
    if isinstance(x, bool):
        return KIND_BOOL
    return KIND_INT


cdef inline int with_number(int dtype, int kind) noexcept:
    # The dtype of a tensor that meets a Python number: the number only matters if its kind is higher.
    if kind <= KIND[dtype]:
        return dtype
    return INT64 if kind == KIND_INT else default_float()


cdef int computing_dtype(Primitive p, int dtype) except -1:
    """The dtype in which `p` computes for operands of a common dtype."""
    if p.loops[dtype] != NULL:
        return dtype
    if p.result != SAME and p.loops[default_float()] != NULL and KIND[dtype] != KIND_FLOAT:
        return default_float()
    if KIND[dtype] == KIND_BOOL and p.result != BOOLEAN:
        raise TypeError(f"{p.name}: not defined for bool tensors; convert them first, for instance with x.int(), or use the logical functions")
    raise TypeError(f"{p.name}: not defined for tensors of dtype {dtype_object(dtype).name}")


# ---------------------------------------------------------------------- elementwise, unrecorded
cdef Tensor compute1(Primitive p, Tensor x):
    cdef int dtype = x.dtype_id
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef char* data[2]
    cdef int itemsize[2]
    cdef const Py_ssize_t* strides[2]
    if loop == NULL:
        dtype = computing_dtype(p, dtype)
        loop = p.loops[dtype]
        x = cast_tensor(x, dtype)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    data[1] = x.data
    if x.flags & CONTIGUOUS and x.count <= SMALL:
        loop(data, ONES, x.count)
        return out
    itemsize[0] = ITEMSIZE[out.dtype_id]
    itemsize[1] = ITEMSIZE[dtype]
    if x.flags & CONTIGUOUS:
        strides[0] = strides[1] = ONES
        launch(loop, 2, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    else:
        strides[0] = out.dims + out.rank
        strides[1] = x.dims + x.rank
        launch(loop, 2, data, itemsize, x.rank, x.dims, strides, p.weight, x.count)
    return out


cdef Tensor compute2(Primitive p, Tensor x, Tensor y):
    cdef int dtype = x.dtype_id
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    cdef PyObject* inputs[2]
    if loop == NULL or not same_shape(x, y) or not x.flags & y.flags & CONTIGUOUS:
        inputs[0] = <PyObject*>x
        inputs[1] = <PyObject*>y
        return compute(p, inputs, 2)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    data[1] = x.data
    data[2] = y.data
    if x.count <= SMALL:
        loop(data, ONES, x.count)
        return out
    itemsize[0] = ITEMSIZE[out.dtype_id]
    itemsize[1] = itemsize[2] = ITEMSIZE[dtype]
    strides[0] = strides[1] = strides[2] = ONES
    launch(loop, 3, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    return out


cdef int broadcast(Primitive p, PyObject** inputs, int n, int* rank, Py_ssize_t* shape) except -1:
    """The common shape of the tensors among the inputs."""
    cdef Tensor x
    cdef int i, k, lead
    rank[0] = 0
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            x = <Tensor>inputs[i]
            if x.rank > rank[0]:
                rank[0] = x.rank
    for k in range(rank[0]):
        shape[k] = 1
    for i in range(n):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        x = <Tensor>inputs[i]
        lead = rank[0] - x.rank
        for k in range(x.rank):
            if shape[lead + k] == 1:
                shape[lead + k] = x.dims[k]
            elif x.dims[k] != 1 and x.dims[k] != shape[lead + k]:
                shapes = [shape_text((<Tensor>inputs[j]).rank, (<Tensor>inputs[j]).dims)
                          for j in range(n) if isinstance(<object>inputs[j], Tensor)]
                raise ValueError(f"{p.name}: shapes {', '.join(shapes)} do not broadcast; axes must match from the right or be 1")
    return 0


cdef Tensor compute(Primitive p, PyObject** inputs, int n):
    """Any mixture of tensors and numbers; dtypes promote, shapes broadcast.  At least one tensor."""
    cdef Tensor x, out
    cdef int dtype = -1, kind = -1, rank, i, k, lead, first = 1 if p.masked else 0
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t layout[MAX_INPUTS + 1][MAX_DIMS]
    cdef const Py_ssize_t* strides[MAX_INPUTS + 1]
    cdef char* data[MAX_INPUTS + 1]
    cdef int itemsize[MAX_INPUTS + 1]
    cdef double numbers[MAX_INPUTS]
    cdef list casts = None      # keeps converted operands alive
    for i in range(first, n):
        value = <object>inputs[i]
        if isinstance(value, Tensor):
            x = <Tensor>value
            dtype = x.dtype_id if dtype < 0 else PROMOTE[dtype][x.dtype_id]
        elif number_kind(value) > kind:
            kind = number_kind(value)
    if dtype < 0:
        dtype = BOOL
    if kind >= 0:
        dtype = with_number(dtype, kind)
    dtype = computing_dtype(p, dtype)
    if p.whole_exponent and KIND[dtype] == KIND_INT:
        check_exponent(<object>inputs[1])
    broadcast(p, inputs, n, &rank, shape)
    out = empty_tensor(BOOL if p.result == BOOLEAN else dtype, rank, shape)
    data[0] = out.data
    itemsize[0] = ITEMSIZE[out.dtype_id]
    strides[0] = out.dims + rank
    for i in range(n):
        value = <object>inputs[i]
        strides[i + 1] = layout[i]
        itemsize[i + 1] = ITEMSIZE[BOOL if i < first else dtype]
        if isinstance(value, Tensor):
            x = cast_tensor(<Tensor>value, BOOL if i < first else dtype)
            if x is not value:
                casts = [x] if casts is None else casts + [x]
            lead = rank - x.rank
            for k in range(rank):
                layout[i][k] = 0 if k < lead or x.dims[k - lead] == 1 and shape[k] != 1 else x.dims[x.rank + k - lead]
            data[i + 1] = x.data
        else:
            store_item(BOOL if i < first else dtype, <char*>&numbers[i], value)
            for k in range(rank):
                layout[i][k] = 0
            data[i + 1] = <char*>&numbers[i]
    if rank == 0:
        p.loops[dtype](data, ONES, 1)
    else:
        launch(p.loops[dtype], n + 1, data, itemsize, rank, shape, strides, p.weight, out.count)
    return out


cdef int check_exponent(object y) except -1:
    """Integers have no negative powers."""
    if (y < 0) if not isinstance(y, Tensor) else (y < 0).any().item():
        raise ValueError("power: integers have no negative powers; convert the base first, for instance with x.float()")
    return 0


cdef Tensor compute_number(Primitive p, Tensor x, object number, bint number_first):
    """A tensor and a Python number."""
    cdef int dtype = with_number(x.dtype_id, number_kind(number))
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef PyObject* inputs[2]
    cdef char* data[3]
    cdef Py_ssize_t steps[3]
    cdef double value
    if loop == NULL or dtype != x.dtype_id or not x.flags & CONTIGUOUS or x.count > SMALL:
        inputs[1 if number_first else 0] = <PyObject*>x
        inputs[0 if number_first else 1] = <PyObject*>number
        return compute(p, inputs, 2)
    store_item(dtype, <char*>&value, number)
    if p.whole_exponent and KIND[dtype] == KIND_INT and not number_first:
        check_exponent(number)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    steps[0] = 1
    if number_first:
        data[1] = <char*>&value
        data[2] = x.data
        steps[1] = 0
        steps[2] = 1
    else:
        data[1] = x.data
        data[2] = <char*>&value
        steps[1] = 1
        steps[2] = 0
    loop(data, steps, x.count)
    return out


# ---------------------------------------------------------------------- recording
cdef Node record(Primitive p, PyObject** inputs, int n, Tensor out, tuple options):
    """The node of a call whose inputs include a tracked one.  `out` may be None if there are several results."""
    cdef Node node = new_node(p, n)
    cdef Tensor x
    cdef Rule rule
    cdef unsigned long long save = 0
    cdef bint save_all = False, save_out = False, shapes = False
    cdef int i
    cdef object edge
    cdef Rest rest
    if n > 2:
        rest = node_rest(node)
        rest.edges = [None] * (n - 2)
        rest.edge_outputs = [0] * (n - 2)
        rest.saved = [None] * (n - 2)
        rest.versions = [0] * (n - 2)
    for i in range(n):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        x = <Tensor>inputs[i]
        if not x.flags & REQUIRES_GRAD:
            continue
        rule = p.joint
        if rule is None:
            rule = <Rule>p.rules[i]
            if rule is None:
                continue
        save |= rule.inputs
        save_all |= rule.all_inputs
        save_out |= rule.names_out
        shapes |= rule.names_shapes
        if x.node is not None:
            edge = x.node
            if is_tracked(edge):
                track(node)      # a cycle through an earlier node can come back through this one
        else:
            edge = x
        if i == 0:
            node.edge0 = edge
            node.edge_output0 = x.output_number
        elif i == 1:
            node.edge1 = edge
            node.edge_output1 = x.output_number
        else:
            node.rest.edges[i - 2] = edge
            node.rest.edge_outputs[i - 2] = x.output_number
    if save or save_all:
        for i in range(n):
            if save_all or (save >> i) & 1:
                save_input(node, i, <object>inputs[i])
    if shapes:
        options = (options or ()) + input_facts(inputs, n)
    node.options = options
    if out is not None:
        set_node_shape(node, out.dtype_id, out.rank, out.dims)
        if save_out:
            node.saved_out = alias_tensor(out)
            node.version_out = out.storage.version
        out.node = node
        out.flags |= REQUIRES_GRAD
    return node


cdef tuple input_facts(PyObject** inputs, int n):
    """(shapes, dtypes) of the inputs, for rules that name them."""
    cdef Tensor x
    shapes = []
    dtypes = []
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            x = <Tensor>inputs[i]
            shapes.append(shape_tuple(x.rank, x.dims))
            dtypes.append(dtype_object(x.dtype_id))
        else:
            shapes.append(())
            dtypes.append(None)
    return tuple(shapes), tuple(dtypes)


cdef int save_input(Node node, int i, object value) except -1:
    cdef unsigned int version = (<Tensor>value).storage.version if isinstance(value, Tensor) else 0
    if i == 0:
        node.saved0 = value
        node.version0 = version
    elif i == 1:
        node.saved1 = value
        node.version1 = version
    else:
        node.rest.saved[i - 2] = value
        node.rest.versions[i - 2] = version
    return 0


cdef unsigned int fresh_flags(PyObject** inputs, int n) except? 4096:
    """The flags of the inputs after views whose base was written in place have learnt of it."""
    cdef unsigned int flags = 0
    cdef int i
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            if stale(<Tensor>inputs[i]) and grad_enabled():
                refresh(<Tensor>inputs[i])
            flags |= (<Tensor>inputs[i]).flags
    return flags


cdef inline bint wants_node(Primitive p, unsigned int flags, Tensor out) noexcept:
    # After a kernel whose inputs had some flag set: is this call to be recorded?
    if not flags & REQUIRES_GRAD or p.kind == NONDIFF or KIND[out.dtype_id] != KIND_FLOAT:
        return False
    if grad_enabled():
        return True
    if inside_op():
        out.flags |= DERIVED
    return False


# ---------------------------------------------------------------------- calls
cdef object apply1(Primitive p, object value):
    cdef Tensor x, out
    cdef PyObject* inputs[1]
    if not isinstance(value, Tensor):
        value = as_tensor(p, value)
    x = <Tensor>value
    if x.flags & SLOW:
        return slow_road(p, (x,), ())
    out = compute1(p, x)
    if x.flags & TRACED:
        inputs[0] = <PyObject*>x
        if wants_node(p, fresh_flags(inputs, 1) if x.flags & VIEW else x.flags, out):
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
            if (<Tensor>a).dtype_id == (<Tensor>b).dtype_id:
                out = compute2(p, <Tensor>a, <Tensor>b)
            else:
                inputs[0] = <PyObject*>a
                inputs[1] = <PyObject*>b
                out = compute(p, inputs, 2)
        elif is_number(b):
            flags = (<Tensor>a).flags
            if flags & SLOW:
                return slow_road(p, (a, b), ())
            out = compute_number(p, <Tensor>a, b, False)
        else:
            return apply2(p, a, as_tensor(p, b))
    elif isinstance(b, Tensor):
        if not is_number(a):
            return apply2(p, as_tensor(p, a), b)
        flags = (<Tensor>b).flags
        if flags & SLOW:
            return slow_road(p, (a, b), ())
        out = compute_number(p, <Tensor>b, a, True)
    else:
        return apply2(p, as_tensor(p, a), b)
    if flags & TRACED:
        inputs[0] = <PyObject*>a
        inputs[1] = <PyObject*>b
        if wants_node(p, fresh_flags(inputs, 2) if flags & VIEW else flags, out):
            record(p, inputs, 2, out, None)
    return out


cdef object apply3(Primitive p, object a, object b, object c):
    return apply_elementwise(p, (a, b, c))


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
    if flags & TRACED and wants_node(p, fresh_flags(inputs, n) if flags & VIEW else flags, out):
        record(p, inputs, n, out, None)
    return out


cdef object apply_general(Primitive p, tuple args):
    """An operation with a forward of its own: `args` are its inputs (or one list of them), then its options."""
    cdef tuple operands = (args[0] if isinstance(args[0], tuple) else tuple(args[0])) if p.n_inputs < 0 else args[:p.n_inputs]
    cdef tuple options = args[1:] if p.n_inputs < 0 else args[p.n_inputs:]
    cdef int n = len(operands)
    cdef unsigned int flags = 0
    cdef bint converted = False
    if len(options) != len(p.option_names):
        raise TypeError(f"{p.name}: takes {len(p.option_names)} options {p.option_names}, got {len(options)}")
    for operand in operands:
        if isinstance(operand, Tensor):
            flags |= (<Tensor>operand).flags
        elif operand is not None:
            converted = True
    if converted:
        operands = tuple([x if x is None else as_tensor(p, x) for x in operands])
    if flags & SLOW:
        return slow_road(p, operands, options)
    if flags & VIEW:
        flags = fresh_flags(PyTuple_items(<PyObject*>operands), n)
    if p.n_inputs < 0:
        result = p.forward(list(operands), *options)
    else:
        result = p.forward(*operands, *options)
    return attach(p, operands, options, flags, result)


cdef object attach(Primitive p, tuple operands, tuple options, unsigned int flags, object result):
    """Record a call of a general operation if it is to be recorded."""
    cdef int i, n
    cdef Tensor out
    cdef Node node
    cdef PyObject** inputs
    if isinstance(result, Tensor):
        for operand in operands:
            if operand is result:
                out = alias_tensor(<Tensor>result)
                become_view(out, <Tensor>result)
                result = out
                break
        out = <Tensor>result
        if not flags & REQUIRES_GRAD or not wants_node(p, flags, out):
            return out
    elif isinstance(result, tuple):
        out = None
        if not flags & REQUIRES_GRAD or p.kind == NONDIFF or not any_wants_node(p, flags, <tuple>result):
            return result
    else:
        return result
    n = len(operands)
    inputs = (<PyObject**>PyTuple_items(<PyObject*>operands))
    node = record(p, inputs, n, out, options)
    if out is None:
        attach_results(p, node, <tuple>result)
    return result


cdef extern from *:
    """
    #define CGRAD_TUPLE_ITEMS(t) (((PyTupleObject*)(t))->ob_item)
    """
    PyObject** PyTuple_items "CGRAD_TUPLE_ITEMS" (PyObject* t)


cdef bint any_wants_node(Primitive p, unsigned int flags, tuple results) noexcept:
    cdef bint wanted = False
    for result in results:
        if isinstance(result, Tensor) and wants_node(p, flags, <Tensor>result):
            wanted = True
    return wanted


cdef int attach_results(Primitive p, Node node, tuple results) except -1:
    """Give several results their node."""
    cdef Tensor x
    cdef Rest rest = node_rest(node)
    cdef Rule rule
    cdef int k = 0
    cdef bint names_out = p.joint is not None and p.joint.names_out
    for rule in p.rules:
        names_out |= rule is not None and rule.names_out
    for result in results:
        if isinstance(result, Tensor):
            x = <Tensor>result
            if k == 0:
                set_node_shape(node, x.dtype_id, x.rank, x.dims)
            else:
                rest.shapes.append((x.dtype_id, shape_tuple(x.rank, x.dims)))
            if KIND[x.dtype_id] == KIND_FLOAT:
                x.node = node
                x.output_number = k
                x.flags |= REQUIRES_GRAD
        else:
            rest.shapes.append((FLOAT64, ()))
        k += 1
    node.n_outputs = k
    if names_out:
        node.saved_out = tuple([alias_tensor(<Tensor>x) if isinstance(x, Tensor) else x for x in results])
    return 0


def record_custom(call, tuple inputs, result):
    """Give the result (a tensor or a tuple) of a user's Op a node that calls back `call.backward`.

    The results are aliases, so that tensors kept on the Op's instance make no cycle through their own node.
    """
    cdef Node node = new_node(call, len(inputs))
    cdef Tensor x, out
    cdef Rest rest = node_rest(node)
    cdef int i, k = 0
    track(node)          # the instance may hold anything, so the collector must see the node
    call.node = node
    rest.edges = [None] * max(0, len(inputs) - 2)
    rest.edge_outputs = [0] * max(0, len(inputs) - 2)
    for i in range(len(inputs)):
        if not isinstance(inputs[i], Tensor) or not (<Tensor>inputs[i]).flags & REQUIRES_GRAD:
            continue
        x = <Tensor>inputs[i]
        edge = x.node if x.node is not None else x
        if i == 0:
            node.edge0 = edge
            node.edge_output0 = x.output_number
        elif i == 1:
            node.edge1 = edge
            node.edge_output1 = x.output_number
        else:
            rest.edges[i - 2] = edge
            rest.edge_outputs[i - 2] = x.output_number
    results = []
    for value in (result if isinstance(result, tuple) else (result,)):
        if isinstance(value, Tensor):
            out = alias_tensor(<Tensor>value)
            if k == 0:
                set_node_shape(node, out.dtype_id, out.rank, out.dims)
            else:
                rest.shapes.append((out.dtype_id, shape_tuple(out.rank, out.dims)))
            if KIND[out.dtype_id] == KIND_FLOAT:
                out.node = node
                out.output_number = k
                out.flags |= REQUIRES_GRAD
            value = out
        elif k > 0:
            rest.shapes.append((FLOAT64, ()))
        results.append(value)
        k += 1
    node.n_outputs = k
    return tuple(results) if isinstance(result, tuple) else results[0]


def connected(Tensor x, Node node, int output):
    """An alias of `x` at the place of a node's result in the graph."""
    cdef Tensor out = alias_tensor(x)
    out.node = node
    out.output_number = output
    out.flags |= REQUIRES_GRAD
    return out


def is_marked(Tensor x):
    """Whether the tensor was computed from tracked ones inside a user's Op.forward."""
    return bool(x.flags & DERIVED)


def unmark(Tensor x):
    """Take that mark off."""
    x.flags &= ~<unsigned int>DERIVED


def take_history(Tensor x, Tensor out, bint written):
    """Let `x` have the history of `out`, as if out's operation had made it; `written` tells the other views of its memory."""
    if written:
        x.storage.history += 1
    x.node = out.node
    x.output_number = out.output_number
    x.flags |= out.flags & REQUIRES_GRAD
    x.view_history = x.storage.history


def forget_history(Tensor x):
    """Make a recorded tensor a leaf that does not require grad."""
    if x.flags & VIEW:
        raise RuntimeError("detach_: a view cannot be taken out of the graph in place; use x.detach()")
    x.node = None
    x.output_number = 0
    x.flags &= ~<unsigned int>REQUIRES_GRAD
    return x


cdef object rebase(Tensor x, Tensor out):
    """Write `out` into `x`, with its history or tangent."""
    if out.flags & DUAL:
        copy_into(x, out)
        set_extra(x, "dual", out.extra["dual"])
        x.flags |= DUAL | (out.flags & REQUIRES_GRAD)
        return x
    copy_into(x, out)
    if out.node is not None:
        take_history(x, out, True)
    return x


# ---------------------------------------------------------------------- in place
cdef bint may_overlap_itself(Tensor x) noexcept:
    cdef int k
    for k in range(x.rank):
        if x.dims[k] > 1 and x.dims[x.rank + k] == 0:
            return True
    return False


cdef object apply_inplace(Primitive p, Tensor x, object other):
    cdef Tensor y = None, out
    cdef PyObject* inputs[2]
    cdef unsigned int flags
    if stale(x):
        refresh(x)
    flags = x.flags
    if isinstance(other, Tensor):
        y = <Tensor>other
        if stale(y):
            refresh(y)
    elif not is_number(other):
        y = as_tensor(p, other)
    if y is not None:
        flags |= y.flags
        other = y
    check_inplace(p.name, x, flags)
    if flags & SLOW or flags & REQUIRES_GRAD and grad_enabled():
        out = apply2(p, x, other)
        check_result(p, x, out)
        return write_through(x, out)
    inputs[0] = <PyObject*>x
    inputs[1] = <PyObject*>other
    if y is not None and y.dtype_id == x.dtype_id and p.result != BOOLEAN and p.loops[x.dtype_id] != NULL and same_shape(x, y) \
            and x.flags & y.flags & CONTIGUOUS and (x.storage is not y.storage or x.data == y.data):
        run_inplace(p, x, y)
        return x
    out = compute(p, inputs, 2)
    check_result(p, x, out)
    copy_into(x, out)
    return x


cdef int run_inplace(Primitive p, Tensor x, Tensor y) except -1:
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    data[0] = data[1] = x.data
    data[2] = y.data
    itemsize[0] = itemsize[1] = itemsize[2] = ITEMSIZE[x.dtype_id]
    strides[0] = strides[1] = strides[2] = ONES
    launch(p.loops[x.dtype_id], 3, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    x.storage.version += 1
    return 0


cdef int check_inplace(str name, Tensor x, unsigned int flags) except -1:
    writable(x, name)
    if x.flags & REQUIRES_GRAD and grad_enabled() and (x.node is None or x.base is not None and x.base.node is None and x.base.flags & REQUIRES_GRAD):
        what = "a leaf tensor that requires grad" if x.node is None else "a view of a leaf tensor that requires grad"
        raise RuntimeError(f"{name}: {what} cannot be changed in place while operations are recorded; "
                           "change it under cgrad.no_grad(), or work on x.clone()")
    if may_overlap_itself(x):
        raise RuntimeError(f"{name}: the tensor has several elements in one place (an axis of stride 0, shape {shape_text(x.rank, x.dims)}), "
                           "so it cannot be changed in place; take x.clone() first")
    return 0


cdef int check_result(Primitive p, Tensor x, Tensor out) except -1:
    if not same_shape(x, out):
        raise ValueError(f"{p.name}: the result has shape {shape_text(out.rank, out.dims)} and cannot be written in place into shape "
                         f"{shape_text(x.rank, x.dims)}")
    if KIND[out.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{p.name}: the result is {dtype_object(out.dtype_id).name} and cannot be written in place into a tensor of "
                        f"{dtype_object(x.dtype_id).name}; write x = x {p.name} y, or convert first")
    return 0


cdef object write_through(Tensor x, Tensor out):
    """Write a recorded result into x; if x is a view, its base learns of it."""
    if out.dtype_id != x.dtype_id:
        out = casting(out, dtype_object(x.dtype_id))
    if out.node is not None:
        keep_overwritten(out.node, x)
    if x.base is not None and out.node is not None:
        return write_view(x, out)
    return rebase(x, out)


cdef int keep_overwritten(Node node, Tensor x) except -1:
    """The rules of an in-place operation may need what it is about to overwrite: let the node keep a copy, at x's old place in the graph."""
    cdef Tensor kept
    if saves_memory_of(node.saved0, x):
        kept = place_of(copy_tensor(<Tensor>node.saved0), <Tensor>node.saved0)
        node.version0 = 0
        if node.saved1 is node.saved0:
            node.saved1 = kept
            node.version1 = 0
        node.saved0 = kept
    if saves_memory_of(node.saved1, x):
        node.saved1 = place_of(copy_tensor(<Tensor>node.saved1), <Tensor>node.saved1)
        node.version1 = 0
    return 0


cdef inline bint saves_memory_of(object saved, Tensor x) noexcept:
    return isinstance(saved, Tensor) and (<Tensor>saved).storage is x.storage


cdef Tensor place_of(Tensor kept, Tensor like):
    kept.node = like.node
    kept.output_number = like.output_number
    kept.flags |= like.flags & REQUIRES_GRAD if like.node is not None else 0
    return kept


cdef object casting = None
cdef object write_view = None


def set_inplace_helpers(cast, view_writer):
    """Tell how a recorded cast is made and how a recorded write through a view reaches its base."""
    global casting, write_view
    casting = cast
    write_view = view_writer


def check_inplace_target(Tensor x, str name, *others):
    """Refuse what cannot be changed in place: read-only memory, a tracked leaf, overlapping elements."""
    check_inplace(name, x, x.flags)


def write_inplace(Tensor x, Tensor out):
    """Write a result (recorded or not) of x's shape into x, with its history."""
    return write_through(x, out)


# ---------------------------------------------------------------------- rules
cdef object call_rule(Rule rule, object g, PyObject** inputs, int n, object out, tuple options, int n_options, object needs,
                      object tangents):
    cdef tuple args = PyTuple_New(rule.n_arguments)
    cdef int i, source, index
    cdef object value
    for i in range(rule.n_arguments):
        source = rule.source[i]
        index = rule.index[i]
        if source == FROM_GRADIENT:
            value = g
        elif source == FROM_OUT:
            value = out
        elif source == FROM_INPUT:
            value = <object>inputs[index]
        elif source == FROM_OPTION:
            value = options[index]
        elif source == FROM_SHAPE:
            value = options[n_options][index]
        elif source == FROM_DTYPE:
            value = options[n_options + 1][index]
        elif source == FROM_SHAPES:
            value = options[n_options]
        elif source == FROM_NEEDS:
            value = needs
        elif source == FROM_TANGENT:
            value = tangents[index]
        elif source == FROM_TANGENTS:
            value = tangents
        else:
            value = [<object>inputs[k] for k in range(n)]
        Py_INCREF(value)
        PyTuple_SET_ITEM(args, i, value)
    return rule.function(*args)


def facts(tuple operands):
    """(shapes, dtypes) of operands, as rules name them."""
    return input_facts(PyTuple_items(<PyObject*>operands), len(operands))


# ---------------------------------------------------------------------- entries
@cython.final
cdef class Rule:
    """One derivative rule: a function and where its arguments come from."""


def make_rule(function, list arguments, Primitive fused=None, list fused_arguments=None, bint passes_gradient=False):
    """A rule from its function and its arguments as (source, index) pairs."""
    cdef Rule rule = Rule.__new__(Rule)
    cdef int i, source, index
    if len(arguments) > MAX_ARGUMENTS:
        raise ValueError(f"a rule can name at most {MAX_ARGUMENTS} values")
    rule.function = function
    rule.n_arguments = len(arguments)
    for i, (source, index) in enumerate(arguments):
        rule.source[i] = source
        rule.index[i] = index
        if source == FROM_INPUT:
            rule.inputs |= <unsigned long long>1 << index
        rule.all_inputs |= source == FROM_INPUTS
        rule.names_out |= source == FROM_OUT
        rule.names_shapes |= source in (FROM_SHAPE, FROM_SHAPES, FROM_DTYPE)
    rule.passes_gradient = passes_gradient
    rule.fused = fused
    if fused is not None:
        rule.n_fused = len(fused_arguments)
        for i, (source, index) in enumerate(fused_arguments):
            rule.fused_source[i] = source
            rule.fused_index[i] = index
            if source == FROM_INPUT:
                rule.inputs |= <unsigned long long>1 << index
            rule.names_out |= source == FROM_OUT
    return rule


SOURCES = {"g": FROM_GRADIENT, "out": FROM_OUT, "input": FROM_INPUT, "inputs": FROM_INPUTS, "shape": FROM_SHAPE, "dtype": FROM_DTYPE,
           "shapes": FROM_SHAPES, "needs": FROM_NEEDS, "option": FROM_OPTION, "tangent": FROM_TANGENT, "tangents": FROM_TANGENTS}
KINDS = {"elementwise": ELEMENTWISE, "linear": LINEAR, "bilinear": BILINEAR, "nondiff": NONDIFF, "other": OTHER}
RESULTS = {"same": SAME, "float": FLOATING, "bool": BOOLEAN}


@cython.final
cdef class Primitive:
    """The entry of an operation: how it computes, its rules, its kind."""

    def __repr__(self):
        return f"<primitive {self.name}>"

    @property
    def has_fused_rules(self):
        """For each input whether its rule has a fused kernel."""
        return tuple(rule is not None and ((<Rule>rule).fused is not None or (<Rule>rule).passes_gradient) for rule in self.rules)

    @property
    def result_name(self):
        """dtype of an elementwise result: "same", "float" or "bool"."""
        return ("same", "float", "bool")[self.result]

    def supports(self, dtype):
        """Whether there is a loop for the dtype."""
        return self.loops[(<DType>dtype).id] != NULL

    def rule_function(self, int i):
        """The Python rule of input i, or None."""
        return None if self.rules[i] is None else (<Rule>self.rules[i]).function


def make_primitive(str name, kind, input_names, option_names=(), str kernel=None, str result=None, forward=None, bint masked=False):
    """A primitive without rules; `kernel` names the loops of an elementwise one, `forward` computes any other."""
    cdef Primitive p = Primitive.__new__(Primitive)
    cdef const ElementwiseKernel* found
    cdef int i
    p.name = name
    p.kind = KINDS[kind]
    p.option_names = tuple(option_names)
    p.forward = forward
    p.rules = []
    p.masked = masked
    p.whole_exponent = kernel == "power"
    if kernel is not None:
        found = elementwise_kernel(kernel)
        p.elementwise = True
        p.n_inputs = found.n_inputs
        p.weight = found.weight
        for i in range(N_DTYPES):
            p.loops[i] = found.loops[i]
        if result is None:
            result = "float" if p.loops[<int>INT64] == NULL else "same"
        p.result = RESULTS[result]
        input_names = ("x", "y", "z")[:p.n_inputs] if input_names is None else tuple(input_names)
    else:
        p.n_inputs = -1 if isinstance(input_names, str) else len(input_names)
    p.input_names = (input_names,) if isinstance(input_names, str) else tuple(input_names)
    if p.n_inputs > MAX_INPUTS:
        raise ValueError(f"{name}: an operation can take at most {MAX_INPUTS} tensors; take a list instead")
    return p


cdef object spelt(Primitive p, str name, object value, object other):
    """An operand that may have come under its other name."""
    if other is None:
        return value
    if value is not None:
        raise TypeError(f"{p.name}: {name} was given twice")
    return other


def finish_primitive(Primitive p, list rules, Rule joint=None, Rule jvp=None, extended=None):
    """Give a primitive its rules and return its recorded function, a compiled closure.

    ``input=`` and ``other=`` are PyTorch's words for x and y; further keywords go to `extended`, a Python function.
    """
    p.joint = joint
    p.jvp = jvp
    p.rules = rules if rules else [None] * max(p.n_inputs, 0)
    if not p.elementwise:
        def function(*args):
            return apply_general(p, args)
    elif p.n_inputs == 1:
        def function(x=None, *, input=None):
            return apply1(p, x if input is None else spelt(p, "x", x, input))
    elif p.n_inputs == 2 and extended is not None:
        def function(x=None, y=None, *, input=None, other=None, **options):
            if input is not None or other is not None:
                x, y = spelt(p, "x", x, input), spelt(p, "y", y, other)
            return extended(x, y, **options) if options else apply2(p, x, y)
    elif p.n_inputs == 2:
        def function(x=None, y=None, *, input=None, other=None):
            if input is not None or other is not None:
                x, y = spelt(p, "x", x, input), spelt(p, "y", y, other)
            return apply2(p, x, y)
    else:
        def function(*args, **kwargs):
            if kwargs:
                names = p.input_names[len(args):]
                renamed = {{"input": "x", "other": "y"}.get(key, key): value for key, value in kwargs.items()}
                if len(renamed) != len(kwargs) or set(renamed) != set(names):
                    raise TypeError(f"{p.name}: takes the operands {', '.join(p.input_names)}, got {len(args)} by position and "
                                    f"{', '.join(kwargs)} by name")
                args += tuple([renamed[name] for name in names])
            if len(args) != p.n_inputs:
                raise TypeError(f"{p.name}: takes {p.n_inputs} operands, got {len(args)}")
            return apply_elementwise(p, args)
    function.__name__ = function.__qualname__ = p.name
    function.primitive = p
    p.function = function
    return function


def call(Primitive p, tuple operands, tuple options):
    """Call a primitive as its public function would."""
    if p.elementwise:
        return apply_elementwise(p, operands) if p.n_inputs > 2 else p.function(*operands)
    if p.n_inputs < 0:
        return apply_general(p, (list(operands),) + options)
    return apply_general(p, operands + options)


def make_door(function, dict renames):
    """A function with other spellings of its keywords: a compiled closure that renames them if there are any."""
    def door(*args, **kwargs):
        if not kwargs:
            return function(*args)
        for key in kwargs:
            if key in renames:
                return function(*args, **renamed(function, renames, kwargs))
        return function(*args, **kwargs)
    return door


def renamed(function, dict renames, dict kwargs):
    out = {}
    for key, value in kwargs.items():
        name = renames.get(key, key)
        if name in out or name != key and name in kwargs:
            raise TypeError(f"{function.__name__}: {name!r} was given twice, the second time as {key!r}")
        out[name] = value
    return out


# ---------------------------------------------------------------------- operators
cdef PyObject* operator_primitives[N_OPERATORS]
cdef list operator_functions = [None] * N_OPERATORS
cdef list operator_inplace = [None] * N_OPERATORS
OPERATOR_SYMBOLS = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=",
                    "neg", "pos", "abs", "~"]


def set_operator(str symbol, function):
    """Fill an operator slot of Tensor; a function of a two-input elementwise primitive takes the short way."""
    cdef int which = OPERATOR_SYMBOLS.index(symbol)
    primitive = getattr(function, "primitive", None)
    operator_functions[which] = function
    operator_primitives[which] = NULL
    if primitive is not None and (<Primitive>primitive).elementwise:
        operator_primitives[which] = <PyObject*>primitive


def _operand_ok(x):
    return isinstance(x, (Tensor, float, int, np.ndarray, np.generic))


cdef object binary_operation(int which, object x, object y):
    if not (isinstance(y, Tensor) or is_number(y)) or not (isinstance(x, Tensor) or is_number(x)):
        if not _operand_ok(x) or not _operand_ok(y):
            return NotImplemented
    if operator_primitives[which] != NULL:
        return apply2(<Primitive>operator_primitives[which], x, y)
    return operator_functions[which](x, y)


cdef object unary_operation(int which, object x):
    if operator_primitives[which] != NULL:
        return apply1(<Primitive>operator_primitives[which], x)
    return operator_functions[which](x)


cdef object inplace_operation(int which, object x, object y):
    cdef Tensor out
    if not _operand_ok(y):
        return NotImplemented
    if operator_primitives[which] != NULL:
        return apply_inplace(<Primitive>operator_primitives[which], x, y)
    return inplace_by_function(OPERATOR_SYMBOLS[which], operator_functions[which], x, y)


cdef object inplace_by_function(str name, object function, Tensor x, object y):
    cdef Tensor out
    check_inplace(name, x, x.flags)
    out = function(x, y)
    if not same_shape(x, out):
        raise ValueError(f"{name}=: the result has shape {shape_text(out.rank, out.dims)} and cannot be written in place into shape {shape_text(x.rank, x.dims)}")
    if KIND[out.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{name}=: the result is {dtype_object(out.dtype_id).name} and cannot be written in place into a tensor of {dtype_object(x.dtype_id).name}")
    return write_through(x, out)


def inplace(function, Tensor x, *args):
    """Apply an operation in place: ``x.exp_()`` is ``inplace(exp, x)``."""
    primitive = getattr(function, "primitive", None)
    if len(args) == 1 and primitive is not None and (<Primitive>primitive).elementwise:
        return apply_inplace(<Primitive>primitive, x, args[0])
    cdef Tensor out
    name = getattr(function, "__name__", "in-place operation")
    check_inplace(name, x, x.flags)
    out = function(x, *args)
    if not same_shape(x, out):
        raise ValueError(f"{name}_: the result has shape {shape_text(out.rank, out.dims)} and cannot be written in place into shape {shape_text(x.rank, x.dims)}")
    if KIND[out.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{name}_: the result is {dtype_object(out.dtype_id).name} and cannot be written in place into a tensor of {dtype_object(x.dtype_id).name}")
    return write_through(x, out)


set_operators(binary_operation, inplace_operation, unary_operation)
