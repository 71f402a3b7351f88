"""Dead objects kept for reuse: making a Tensor, Storage or Node is most of what a small operation costs.

Cython's free lists zero an object, fill in its None's and hand it to the cyclic collector every time, and save the exception state
around ``__dealloc__``: together about 100 ns for one recorded operation.  A pooled object instead keeps its fields as they were left
(every reference None), unseen by the collector, so that taking it out is one store.  A class that is pooled has its ``tp_dealloc``
replaced by a function of its own module, which drops the references, pools the object and leaves subclasses to the function that
Cython made.  Needs the GIL, which also guards the pools.
"""
from cpython.object cimport PyObject, PyTypeObject, destructor

cdef extern from *:
    """
    enum { CGRAD_POOL_SIZE = 4096 };
    typedef struct { PyObject *dead[CGRAD_POOL_SIZE]; Py_ssize_t count; } cgrad_pool;

    /* A dead object or NULL.  Its reference count is 0: the reference that the caller takes is the first. */
    static inline PyObject *cgrad_unpool(cgrad_pool *pool) {
        return pool->count ? pool->dead[--pool->count] : NULL;
    }
    static inline int cgrad_enpool(cgrad_pool *pool, PyObject *o) {
        if (pool->count == CGRAD_POOL_SIZE) return 0;
        pool->dead[pool->count++] = o;
        return 1;
    }
    static destructor cgrad_set_dealloc(PyTypeObject *type, destructor dealloc) {
        destructor made = type->tp_dealloc;
        type->tp_dealloc = dealloc;
        return made;
    }
    """
    ctypedef struct Pool "cgrad_pool":
        pass
    PyObject* unpool "cgrad_unpool" (Pool* pool) noexcept nogil
    bint enpool "cgrad_enpool" (Pool* pool, PyObject* o) noexcept nogil
    destructor set_dealloc "cgrad_set_dealloc" (PyTypeObject* type, destructor dealloc) noexcept
