"""Primitive: the compiled table entry of an operation, and its rules.

An entry says how an operation computes (loops by dtype, or a forward function), which rule gives the gradient of each input, and what
those rules name, which is what the tape keeps.  Entries are made once, at import, by ops/define.py.  Needs the GIL.
Next: elementwise.pyx, how loops are run; apply.pyx, the way from a call to kernel and node.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from cgrad.core.dtype cimport DType, dtype_object
from cgrad.core.tensor cimport LEVEL, Tensor, shape_tuple
from cgrad.kernels.dispatch cimport elementwise_kernel
from cgrad.kernels.table cimport INT64, N_DTYPES, ElementwiseKernel, computing_dtype


@cython.final
cdef class Rule:
    """One derivative rule: a function and where its arguments come from."""


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
        cdef int id = (<DType>dtype).id
        return self.loops[id] != NULL or self.loops[computing_dtype(id)] != NULL

    def rule_function(self, int i):
        """The Python rule of input i, or None."""
        return None if self.rules[i] is None else (<Rule>self.rules[i]).function


SOURCES = {"g": FROM_GRADIENT, "out": FROM_OUT, "input": FROM_INPUT, "inputs": FROM_INPUTS, "shape": FROM_SHAPE, "dtype": FROM_DTYPE,
           "shapes": FROM_SHAPES, "needs": FROM_NEEDS, "option": FROM_OPTION, "tangent": FROM_TANGENT, "tangents": FROM_TANGENTS,
           "zero": FROM_ZERO}
KINDS = {"elementwise": ELEMENTWISE, "linear": LINEAR, "bilinear": BILINEAR, "nondiff": NONDIFF, "other": OTHER}
RESULTS = {"same": SAME, "float": FLOATING, "bool": BOOLEAN}


def make_rule(function, list arguments, Primitive fused=None, list fused_arguments=None, bint passes_gradient=False, first_order=None):
    """A rule from its function and its arguments as (source, index) pairs; `first_order` is a function of the same arguments."""
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
    rule.first_order = None if first_order is None else make_rule(first_order, arguments)
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


def make_primitive(str name, kind, input_names, option_names=(), str kernel=None, str result=None, forward=None, bint masked=False, bint moves=False,
                   reads=None, optional=()):
    """A primitive without rules; `kernel` names the loops of an elementwise one, `forward` computes any other.

    One that `moves` elements takes any dtype; for others, float16 and bfloat16 are cast to float32 and back.
    """
    cdef Primitive p = Primitive.__new__(Primitive)
    cdef const ElementwiseKernel* found
    cdef int i
    p.name = name
    p.kind = KINDS[kind]
    p.option_names = tuple(option_names)
    p.forward = forward
    p.rules = []
    p.masked = masked
    p.moves = moves
    p.read_results = ~<unsigned int>0 if reads is None else sum([1 << k for k in reads])
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
    for i, input_name in enumerate(p.input_names):
        p.optional |= <unsigned int>(input_name in optional) << i
    if p.n_inputs > MAX_INPUTS:
        raise ValueError(f"{name}: an operation can take at most {MAX_INPUTS} tensors; take a list instead")
    return p


def set_rules(Primitive p, list rules, Rule joint=None, Rule jvp=None, Rule batch=None):
    """Give an entry its rules."""
    cdef Rule rule
    cdef int i
    p.joint = joint
    p.jvp = jvp
    p.batch = batch
    p.rules = rules if rules else [None] * max(p.n_inputs, 0)
    for i, found in enumerate(p.rules if joint is None else [joint]):
        if found is None:
            continue
        rule = <Rule>found
        if joint is None and p.n_inputs >= 0:
            find_own(rule, i)
        p.saves[i] = rule.inputs
        p.has_rule |= 1 << i
        p.saves_out |= <unsigned int>rule.names_out << i
        p.saves_all |= <unsigned int>rule.all_inputs << i
        p.names_shapes |= <unsigned int>rule.names_shapes << i


cdef int find_own(Rule rule, int i) except -1:
    """Tell the shape and dtype of the rule's own input i, which need not be kept, from those of others."""
    cdef int k
    rule.names_shapes = False
    for k in range(rule.n_arguments):
        if rule.source[k] in (FROM_SHAPE, FROM_DTYPE) and rule.index[k] == i:
            rule.source[k] = FROM_OWN_SHAPE if rule.source[k] == FROM_SHAPE else FROM_OWN_DTYPE
            rule.names_own = True
        elif rule.source[k] in (FROM_SHAPE, FROM_DTYPE, FROM_SHAPES):
            rule.names_shapes = True
    return 0


cdef object call_rule(Rule rule, object g, PyObject** inputs, int n, object out, tuple options, int n_options, object needs,
                      object tangents, tuple own):
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
        elif source == FROM_OWN_SHAPE:
            value = own[0]
        elif source == FROM_OWN_DTYPE:
            value = own[1]
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


cdef Rule joint_rule(Primitive p, object g, bint create_graph):
    """The joint rule to call for the gradient g (a tuple for several results): the one-pass form where nobody differentiates it."""
    if create_graph or p.joint.first_order is None:
        return p.joint
    for one in (g if isinstance(g, tuple) else (g,)):
        if isinstance(one, Tensor) and (<Tensor>one).flags & LEVEL:
            return p.joint
    return p.joint.first_order


cdef tuple input_facts(PyObject** inputs, int n):
    """(shapes, dtypes) of the inputs, for rules that name them."""
    cdef Tensor x
    cdef tuple shapes = PyTuple_New(n)
    cdef tuple dtypes = PyTuple_New(n)
    cdef object shape, dtype
    cdef int i
    for i in range(n):
        shape = ()
        dtype = None
        if isinstance(<object>inputs[i], Tensor):
            x = <Tensor>inputs[i]
            shape = shape_tuple(x.rank, x.dims)
            dtype = dtype_object(x.dtype_id)
        Py_INCREF(shape)
        PyTuple_SET_ITEM(shapes, i, shape)
        Py_INCREF(dtype)
        PyTuple_SET_ITEM(dtypes, i, dtype)
    return shapes, dtypes


def facts(tuple operands):
    """(shapes, dtypes) of operands, as rules name them."""
    return input_facts(tuple_items(<PyObject*>operands), len(operands))
