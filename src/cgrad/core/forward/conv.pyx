"""Convolutions of tensors, their two adjoints, and what callers may pass for stride, padding and dilation.

Owns result shapes, dtypes and errors; the numbers come from kernels/conv.pyx.  Called by ops/conv.py and nn/functional/conv.py.
The three operations have the same options, so that each is the derivative of the others: the tuples `extents` of the result,
`stride`, `padding` (in front of each axis; what lies outside of the images is 0 on the other side as well) and `dilation`, and `groups`.
Needs the GIL, which it lets go while long loops run.  Next: kernels/conv.pyx.
"""
from cgrad.core.arguments import whole_number
from cgrad.core.dtype cimport KIND, KIND_FLOAT, dtype_object, promote
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_tensor, shape_of, shape_text
from cgrad.kernels.conv cimport CONV_AXES, ConvShape, conv_weight_scratch, run_conv, run_conv_transpose, run_conv_weight
from cgrad.kernels.table cimport BOOL

cdef enum:
    LONG_LOOP = 65536      # multiplications from which releasing the GIL (about 50 ns) is lost in the loop
    FAR = 0x7fffffff       # extents and options lie below: products of two of them stay in range


# ---- options ---------------------------------------------------------------------------------------------------------------------

cpdef tuple numbers(str name, str what, value, int n, int low):
    """`value`, an integer or one for each of n axes, as a tuple of n integers of at least `low`."""
    cdef tuple given
    if isinstance(value, (tuple, list)):
        given = tuple([v if type(v) is int else whole_number(name, what, v) for v in value])
        if len(given) == 1:
            given = given * n
    else:
        given = (value if type(value) is int else whole_number(name, what, value),) * n
    if len(given) != n:
        raise ValueError(f"{name}: {what} must be an integer or {n} integers, one for each axis of the kernel, got {value!r}")
    for v in given:
        if not low <= v < FAR:
            raise ValueError(f"{name}: {what} must be at least {low} (and below 2**31), got {value!r}")
    return given


cdef int check_operands(str name, int n, Tensor x, Tensor w, Tensor b, Py_ssize_t groups, bint transposed) except -1:
    cdef Py_ssize_t channels, wanted, results
    cdef int a
    cdef str layout = "(in_channels, out_channels / groups, " if transposed else "(out_channels, in_channels / groups, "
    layout += ("length)", "height, width)", "depth, height, width)")[n - 1]
    if x.rank != n + 2 and x.rank != n + 1:
        raise ValueError(f"{name}: the input must have {n + 2} axes (batch, channels and {n} to slide along) or {n + 1} (no batch), "
                         f"got shape {shape_text(x.rank, shape_of(x))}")
    if w.rank != n + 2:
        raise ValueError(f"{name}: the weight must have shape {layout}, got {shape_text(w.rank, shape_of(w))}")
    if KIND[x.dtype_id] != KIND_FLOAT or KIND[w.dtype_id] != KIND_FLOAT:
        raise TypeError(f"{name}: input and weight must be floating point, got {dtype_object(x.dtype_id).name} and "
                        f"{dtype_object(w.dtype_id).name}; convert them first")
    for a in range(n):
        if shape_of(w)[2 + a] < 1:
            raise ValueError(f"{name}: the kernel needs at least one element along each axis, got a weight of shape {shape_text(w.rank, shape_of(w))}")
    channels = shape_of(x)[x.rank - n - 1]
    wanted = shape_of(w)[0] if transposed else shape_of(w)[1] * groups
    if channels != wanted or shape_of(w)[0] % groups:
        raise ValueError(f"{name}: a weight of shape {shape_text(w.rank, shape_of(w))}, which is {layout}, does not fit an input of shape "
                         f"{shape_text(x.rank, shape_of(x))} with groups={groups}: " +
                         (f"it has {shape_of(w)[0]} filters, which {groups} groups do not divide" if channels == wanted else
                          f"it takes {wanted} channels, the input has {channels}"))
    results = shape_of(w)[1] * groups if transposed else shape_of(w)[0]
    if b is not None and (b.rank != 1 or shape_of(b)[0] != results):
        raise ValueError(f"{name}: the bias must have shape ({results},) for a weight of shape {shape_text(w.rank, shape_of(w))} and "
                         f"groups={groups}, got {shape_text(b.rank, shape_of(b))}")
    if b is not None and KIND[b.dtype_id] != KIND_FLOAT:
        raise TypeError(f"{name}: the bias must be floating point, got {dtype_object(b.dtype_id).name}; convert it first")
    return 0


def conv_options(str name, int n, Tensor x not None, Tensor w not None, Tensor b, stride, padding, dilation, groups):
    """(extents, stride, padding, dilation, groups) as the operation takes them, of a call of conv1d to conv3d."""
    cdef Py_ssize_t extent, total, kernel
    cdef list extents = []
    cdef list before = []
    cdef tuple strides = numbers(name, "stride", stride, n, 1)
    cdef tuple dilations = numbers(name, "dilation", dilation, n, 1)
    cdef tuple paddings = None
    cdef int a
    groups = numbers(name, "groups", groups, 1, 1)[0]
    check_operands(name, n, x, w, b, groups, False)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f'{name}: padding must be "same", "valid" or numbers, got {padding!r}')
        if padding == "same" and strides != (1,) * n:
            raise ValueError(f'{name}: padding="same" works with stride 1 only, got stride={stride!r}; pass numbers')
    else:
        paddings = numbers(name, "padding", padding, n, 0)
    for a in range(n):
        kernel = <Py_ssize_t> dilations[a] * (shape_of(w)[2 + a] - 1) + 1
        total = 0 if paddings is None else 2 * <Py_ssize_t> paddings[a]
        before.append(total // 2)
        if paddings is None and padding == "same":
            total = kernel - 1
            before[a] = total // 2
        extent = shape_of(x)[x.rank - n + a]
        if extent + total < kernel or extent == 0:
            raise ValueError(f"{name}: the kernel does not fit into the input: {kernel} elements (of {shape_of(w)[2 + a]}, dilation "
                             f"{dilations[a]}) against {extent} and a padding of {total} along axis {x.rank - n + a}; got input "
                             f"{shape_text(x.rank, shape_of(x))} and weight {shape_text(w.rank, shape_of(w))}")
        extents.append((extent + total - kernel) // <Py_ssize_t> strides[a] + 1)
    return tuple(extents), strides, tuple(before), dilations, groups


def conv_transpose_options(str name, int n, Tensor x not None, Tensor w not None, Tensor b, stride, padding, output_padding, groups, dilation):
    """The same of a call of conv_transpose1d to conv_transpose3d."""
    cdef list extents = []
    cdef tuple strides = numbers(name, "stride", stride, n, 1)
    cdef tuple paddings = numbers(name, "padding", padding, n, 0)
    cdef tuple outputs = numbers(name, "output_padding", output_padding, n, 0)
    cdef tuple dilations = numbers(name, "dilation", dilation, n, 1)
    cdef int a
    groups = numbers(name, "groups", groups, 1, 1)[0]
    check_operands(name, n, x, w, b, groups, True)
    for a in range(n):
        if outputs[a] >= max(strides[a], dilations[a]):
            raise ValueError(f"{name}: output_padding must be smaller than stride or dilation, got output_padding={output_padding!r}, "
                             f"stride={stride!r} and dilation={dilation!r}")
        extents.append((shape_of(x)[x.rank - n + a] - 1) * strides[a] - 2 * paddings[a] + dilations[a] * (shape_of(w)[2 + a] - 1) + outputs[a] + 1)
        if extents[a] < 1 or shape_of(x)[x.rank - n + a] == 0:
            raise ValueError(f"{name}: nothing is left of axis {x.rank - n + a} ({extents[a]} elements) of an input of shape "
                             f"{shape_text(x.rank, shape_of(x))} with a weight of shape {shape_text(w.rank, shape_of(w))}, "
                             f"stride={stride!r} and padding={padding!r}")
    return tuple(extents), strides, paddings, dilations, groups


# ---- the three operations ----------------------------------------------------------------------------------------------------------

cdef int fill_shape(str name, ConvShape* s, Tensor x, Tensor y, bint fits, tuple extents, tuple stride, tuple padding, tuple dilation, groups) except -1:
    """The options, with as many axes as x and y have; leading axes of one element where these are fewer than CONV_AXES.

    Extents of image, places and kernel are left to the caller.  ValueError unless operands and options belong together.
    """
    cdef int n = x.rank - 2, a, k
    fits = fits and n <= CONV_AXES and len(extents) == len(stride) == len(padding) == len(dilation) == n
    for extent in extents if fits else ():
        fits = fits and 0 <= extent < FAR
    if not fits:
        raise ValueError(f"{name}: operands of shapes {shape_text(x.rank, shape_of(x))} and {shape_text(y.rank, shape_of(y))} do not fit "
                         f"extents={extents}, stride={stride}, padding={padding}, dilation={dilation} and groups={groups}")
    for k in range(CONV_AXES):
        a = k + n - CONV_AXES
        s.stride[k] = stride[a] if a >= 0 else 1
        s.padding[k] = padding[a] if a >= 0 else 0
        s.dilation[k] = dilation[a] if a >= 0 else 1
        if not (0 < s.stride[k] < FAR and 0 < s.dilation[k] < FAR and -FAR < s.padding[k] < FAR):
            raise ValueError(f"{name}: stride={stride} and dilation={dilation} must be at least 1, and padding={padding} in range")
    s.groups = groups
    return n


cdef void fill_extents(Py_ssize_t* extents, int n, const Py_ssize_t* shape) noexcept:
    cdef int k
    for k in range(CONV_AXES):
        extents[k] = shape[2 + k + n - CONV_AXES] if k + n >= CONV_AXES else 1


cdef Tensor new_result(int dtype, int n, Py_ssize_t first, Py_ssize_t second, tuple extents):
    cdef Py_ssize_t[CONV_AXES + 2] shape
    cdef int a
    shape[0], shape[1] = first, second
    for a in range(n):
        shape[2 + a] = extents[a]
    return empty_tensor(dtype, n + 2, shape)


cdef int common_dtype(str name, Tensor x, Tensor y, Tensor b) except -1:
    cdef int dtype = promote(x.dtype_id, y.dtype_id)
    if b is not None:
        dtype = promote(dtype, b.dtype_id)
    if KIND[dtype] != KIND_FLOAT:
        raise TypeError(f"{name}: the operands must be floating point, got {dtype_object(x.dtype_id).name} and {dtype_object(y.dtype_id).name}")
    return dtype


cdef inline Tensor ready(Tensor x, int dtype):
    return None if x is None else contiguous_tensor(cast_tensor(x, dtype))


cdef inline bint long_loop(const ConvShape* s, Py_ssize_t y_count) noexcept:
    return <double> y_count * s.channels * s.kernel[0] * s.kernel[1] * s.kernel[2] >= LONG_LOOP


cdef inline bint filters_fit(Tensor x, int axis, Tensor w, Tensor b, int b_axis, Py_ssize_t groups) noexcept:
    """Whether channels and filters fit: `axis` of w goes with axis 1 of x, `b_axis` with the bias."""
    if x.rank < 3 or w.rank != x.rank or groups < 1 or shape_of(w)[0] % groups:
        return False
    if shape_of(x)[1] != shape_of(w)[axis] * (groups if axis else 1):
        return False
    return b is None or b.rank == 1 and shape_of(b)[0] == shape_of(w)[b_axis] * (groups if b_axis else 1)


def conv(Tensor x not None, Tensor w not None, Tensor b, tuple extents, tuple stride, tuple padding, tuple dilation, Py_ssize_t groups):
    """y[n, f, p] = the sum of x[n, c, p * stride + t * dilation - padding] * w[f, c, t] over channels c and taps t, + b[f]."""
    cdef ConvShape s
    cdef const char* bias
    cdef int failed, n = fill_shape("conv", &s, x, w, filters_fit(x, 1, w, b, 0, groups), extents, stride, padding, dilation, groups)
    cdef int dtype = common_dtype("conv", x, w, b)
    cdef Tensor y = new_result(dtype, n, shape_of(x)[0], shape_of(w)[0], extents)
    if y.count == 0:
        return y
    s.n_images, s.channels, s.filters = shape_of(x)[0], shape_of(w)[1], shape_of(w)[0] // groups
    fill_extents(s.image, n, shape_of(x))
    fill_extents(s.places, n, shape_of(y))
    fill_extents(s.kernel, n, shape_of(w))
    x, w, b = ready(x, dtype), ready(w, dtype), ready(b, dtype)
    bias = NULL if b is None else b.data
    if not long_loop(&s, y.count):
        failed = run_conv(dtype, &s, x.data, w.data, bias, y.data)
    else:
        with nogil:
            failed = run_conv(dtype, &s, x.data, w.data, bias, y.data)
    if failed:
        raise MemoryError("conv: no memory for a tile of the images")
    return y


def conv_transpose(Tensor y not None, Tensor w not None, Tensor b, tuple extents, tuple stride, tuple padding, tuple dilation, Py_ssize_t groups):
    """The adjoint of conv in x, applied to y, + b: x[n, c, p * stride + t * dilation - padding] = the sum of y[n, f, p] * w[f, c, t]."""
    cdef ConvShape s
    cdef const char* bias
    cdef int failed, n = fill_shape("conv_transpose", &s, y, w, filters_fit(y, 0, w, b, 1, groups), extents, stride, padding, dilation, groups)
    cdef int dtype = common_dtype("conv_transpose", y, w, b)
    cdef Tensor x = new_result(dtype, n, shape_of(y)[0], shape_of(w)[1] * groups, extents)
    if x.count == 0:
        return x
    s.n_images, s.channels, s.filters = shape_of(y)[0], shape_of(w)[1], shape_of(w)[0] // groups
    fill_extents(s.image, n, shape_of(x))
    fill_extents(s.places, n, shape_of(y))
    fill_extents(s.kernel, n, shape_of(w))
    y, w, b = ready(y, dtype), ready(w, dtype), ready(b, dtype)
    bias = NULL if b is None else b.data
    if not long_loop(&s, y.count):
        failed = run_conv_transpose(dtype, &s, y.data, w.data, bias, x.data)
    else:
        with nogil:
            failed = run_conv_transpose(dtype, &s, y.data, w.data, bias, x.data)
    if failed:
        raise MemoryError("conv_transpose: no memory for a tile of the images")
    return x


def conv_weight(Tensor y not None, Tensor x not None, tuple extents, tuple stride, tuple padding, tuple dilation, Py_ssize_t groups):
    """The adjoint of conv in w, applied to y: w[f, c, t] = the sum of y[n, f, p] * x[n, c, p * stride + t * dilation - padding]."""
    cdef ConvShape s
    cdef bint fits = (x.rank > 2 and y.rank == x.rank and groups > 0 and shape_of(x)[0] == shape_of(y)[0]
                      and shape_of(x)[1] % groups == 0 and shape_of(y)[1] % groups == 0)
    cdef int failed, n = fill_shape("conv_weight", &s, y, x, fits, extents, stride, padding, dilation, groups)
    cdef int dtype = common_dtype("conv_weight", y, x, None)
    cdef Tensor scratch, w = new_result(dtype, n, shape_of(y)[1], shape_of(x)[1] // groups, extents)
    cdef Py_ssize_t n_scratch
    if w.count == 0:
        return w
    s.n_images, s.channels, s.filters = shape_of(x)[0], shape_of(x)[1] // groups, shape_of(y)[1] // groups
    fill_extents(s.image, n, shape_of(x))
    fill_extents(s.places, n, shape_of(y))
    fill_extents(s.kernel, n, shape_of(w))
    n_scratch = conv_weight_scratch(dtype, &s)
    scratch = empty_tensor(BOOL, 1, &n_scratch)
    y, x = ready(y, dtype), ready(x, dtype)
    if not long_loop(&s, y.count):
        failed = run_conv_weight(dtype, &s, y.data, x.data, w.data, scratch.data)
    else:
        with nogil:
            failed = run_conv_weight(dtype, &s, y.data, x.data, w.data, scratch.data)
    if failed:
        raise MemoryError("conv_weight: no memory for a tile of the images")
    return w
