"""The one table of other spellings.

The names of cgrad are those of the Array API standard (arrays) and PyTorch (autograd).  What else people write for the same thing
is listed here and nowhere else: every alias of a function becomes a public name and, where the function is a method of
Tensor, a method; every alias of a keyword is accepted by all functions that have the keyword.
"""

KEYWORDS = {
    "axis": ("dim", "dims", "dimension"),
    "keepdims": ("keepdim",),
    "x": ("input", "x1"),
    "y": ("other", "x2"),
    "shape": ("size",),
    "axes": ("dims", "dim"),
    "xs": ("tensors", "arrays"),
    "correction": ("ddof",),
    "interpolation": ("method",),
    "weights": ("weight",),
    "indices": ("index",),
    "src": ("value",),
    "k": ("diagonal",),
    "strides": ("stride",),
    "axis0": ("dim0",),
    "axis1": ("dim1",),
    "axis2": ("dim2",),
}

NAMES = {
    # arithmetic
    "absolute": ("abs",),
    "negative": ("neg",),
    "positive": ("pos",),
    "subtract": ("sub",),
    "multiply": ("mul",),
    "divide": ("div", "true_divide"),
    "power": ("pow",),
    "remainder": ("mod",),
    "atan2": ("arctan2",),
    # elementwise
    "asin": ("arcsin",),
    "acos": ("arccos",),
    "atan": ("arctan",),
    "asinh": ("arcsinh",),
    "acosh": ("arccosh",),
    "atanh": ("arctanh",),
    "trunc": ("fix",),
    "round": ("around",),
    "conj": ("conjugate",),
    "sign": ("sgn",),
    "sigmoid": ("expit",),
    "logsigmoid": ("log_sigmoid",),
    "silu": ("swish",),
    "deg2rad": ("radians",),
    "rad2deg": ("degrees",),
    # comparison and logic
    "equal": ("eq",),
    "not_equal": ("ne",),
    "less": ("lt",),
    "less_equal": ("le",),
    "greater": ("gt",),
    "greater_equal": ("ge",),
    "bitwise_not": ("bitwise_invert", "invert"),
    "bitwise_left_shift": ("left_shift",),
    "bitwise_right_shift": ("right_shift",),
    "clip": ("clamp",),
    # reductions
    "cumulative_sum": ("cumsum",),
    "cumulative_prod": ("cumprod",),
    "trapezoid": ("trapz",),
    # linear algebra
    "outer": ("ger",),
    "inv": ("inverse",),
    "multi_dot": ("chain_matmul",),
    # shape and joining
    "permute_dims": ("permute",),
    "swapaxes": ("swapdims",),
    "moveaxis": ("movedim",),
    "expand_dims": ("unsqueeze",),
    "concat": ("cat", "concatenate"),
    "vstack": ("row_stack",),
    "tensor_split": ("array_split",),
    "clone": ("copy",),
    "matrix_transpose": ("adjoint",),
    # creation
    "tensor": ("array",),
    "eye": ("identity",),
    "unstack": ("unbind",),
}

_CANONICAL = {alias: name for name, aliases in NAMES.items() for alias in aliases}


def canonical(name):
    """The name under which `name` is defined here.

    >>> canonical("unsqueeze")
    'expand_dims'
    """
    return _CANONICAL.get(name, name)
