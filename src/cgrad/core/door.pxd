"""A public function that takes calls as they come, as a vector of arguments."""
from cpython.object cimport PyObject, PyTypeObject

# Calls of the instances of a type go to the function at this offset in them.
cdef extern from *:
    """
    static inline int cgrad_failed(void) { return -1; }
    static inline void cgrad_call_by_vector(PyTypeObject *type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(type);
    }
    """
    int failed "cgrad_failed" () except -1                                  # raises the error that is set
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf)
    void call_by_vector "cgrad_call_by_vector" (PyTypeObject* type, Py_ssize_t offset) noexcept

ctypedef PyObject* (*raw_call_t)(PyObject* self, PyObject** args, size_t nargsf, PyObject* names) noexcept     # NULL for an error
ctypedef object (*vectorcall_t)(object self, PyObject** args, size_t nargsf, PyObject* names)


cdef class Door:
    cdef vectorcall_t vectorcall       # takes the call; at first `enter`, which passes it on to the function
    cdef object function
    cdef dict renames
    cdef object no_out                 # why a call takes no out=, or None
    cdef dict __dict__


cdef object into(str name, object function, tuple args, dict kwargs, object out)     # the function's result written into `out`
cdef object enter(object self, PyObject** args, size_t nargsf, PyObject* names)      # how a door takes calls
cdef object handed_on(PyObject* result, object function, dict renames, PyObject** args, size_t nargsf, PyObject* names)
cdef dict named_arguments(PyObject** args, Py_ssize_t n, PyObject* names)
