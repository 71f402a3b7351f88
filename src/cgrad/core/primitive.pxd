"""Primitive: the compiled table entry of an operation, and its rules."""
from cpython.object cimport PyObject

from cgrad.core.tensor cimport Tensor
from cgrad.kernels.table cimport N_DTYPES, loop_t

cdef extern from *:
    """
    #define CGRAD_TUPLE_ITEMS(t) (((PyTupleObject*)(t))->ob_item)
    """
    PyObject** tuple_items "CGRAD_TUPLE_ITEMS" (PyObject* t)

cdef enum:
    MAX_INPUTS = 8         # of an operation that does not take a list
    MAX_ARGUMENTS = 16     # of a rule

cdef enum Kind:
    ELEMENTWISE = 0        # forward mode: the rules applied to the tangents
    LINEAR = 1             # the operation applied to the tangents
    BILINEAR = 2           # the operation on each tangent in turn
    NONDIFF = 3            # no gradient
    OTHER = 4              # a jvp rule of its own, or the transposed vjp

cdef enum Source:          # where an argument of a rule comes from
    FROM_GRADIENT
    FROM_OUT
    FROM_INPUT
    FROM_INPUTS            # all of them, as a list
    FROM_SHAPE
    FROM_DTYPE
    FROM_SHAPES
    FROM_NEEDS
    FROM_OPTION
    FROM_TANGENT           # jvp rules only
    FROM_TANGENTS
    FROM_OWN_SHAPE         # of the input that the rule is for: the engine knows it from where the gradient goes
    FROM_OWN_DTYPE
    FROM_ZERO              # the number 0: fused calls only

cdef enum Result:          # dtype of an elementwise result
    SAME
    FLOATING
    BOOLEAN


cdef class Rule:
    cdef object function
    cdef int n_arguments
    cdef int source[MAX_ARGUMENTS]
    cdef int index[MAX_ARGUMENTS]
    cdef unsigned long long inputs         # bit i: names input i
    cdef bint all_inputs
    cdef bint names_out
    cdef bint names_shapes                 # of other inputs
    cdef bint names_own                    # shape or dtype of the rule's own input
    cdef Primitive fused                   # kernel that computes the rule in one pass, or None
    cdef int n_fused
    cdef int fused_source[3]
    cdef int fused_index[3]
    cdef bint passes_gradient              # fused="g"
    cdef Rule first_order                  # of a joint rule: the same in one pass, where nobody differentiates it; or None


cdef class Primitive:
    cdef readonly str name
    cdef readonly int kind
    cdef readonly int n_inputs             # -1: a list of tensors
    cdef int result
    cdef int weight
    cdef readonly bint elementwise
    cdef bint masked                       # the first input is a condition (where)
    cdef unsigned int optional             # bit i: input i may be None
    cdef readonly bint moves               # only moves elements about: takes float16 and bfloat16 as they are
    cdef bint whole_exponent               # the second input may not be negative if both are integers (power)
    cdef loop_t loops[N_DTYPES]
    cdef readonly object forward           # how anything else is computed
    cdef readonly tuple input_names
    cdef readonly tuple option_names
    cdef readonly list rules               # a Rule or None for each input
    cdef readonly Rule joint               # one rule for all inputs
    cdef readonly Rule jvp
    cdef readonly Rule batch               # how it computes for a batch where its kind does not say so
    # What the rules name, for the recorder: bit i stands for input i (bit 0 for all where there is a joint rule).
    cdef unsigned long long saves[MAX_INPUTS]    # bit k of saves[i]: the rule of input i names input k
    cdef unsigned int has_rule, saves_out, saves_all, names_shapes
    cdef unsigned int read_results         # bit k: a rule that names `out` reads result k
    cdef readonly object function          # what recorded calls go through


cdef object call_rule(Rule rule, object g, PyObject** inputs, int n, object out, tuple options, int n_options, object needs,
                      object tangents, tuple own)        # own: (shape, dtype) of the rule's input
cdef Rule joint_rule(Primitive p, object g, bint create_graph)
cdef tuple input_facts(PyObject** inputs, int n)         # (shapes, dtypes), for rules that name them
