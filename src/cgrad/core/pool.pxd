"""Dead objects kept for reuse: making a Tensor, Storage or Node is most of what a small operation costs.

Cython's free lists zero an object, fill in its None's and hand it to the cyclic collector every time, and save the exception state
around ``__dealloc__``: together about 60 of the 110 ns that a recorded operation took.  A pooled object keeps its fields as its owner left
them (every reference None), unseen by the collector, so that taking it out is one load; a further one is copied from a prototype.
A pooled class has its ``tp_dealloc`` replaced by a function of its own module, which drops the references, gives the object back and
leaves subclasses to the function that Cython made.  Needs the GIL, which also guards the pools.
"""
from cpython.object cimport PyObject, PyTypeObject, destructor

cdef extern from *:
    """
    /* A graph of a million nodes that is built again and again finds its memory warm; `cgrad.memory` bounds and trims what is kept. */
    enum { CGRAD_POOL_SIZE = 1 << 20 };
    typedef struct {
        PyObject *dead[CGRAD_POOL_SIZE];
        Py_ssize_t count, limit;
        PyObject *prototype;
        Py_ssize_t nones;          /* references to None in it */
    } cgrad_pool;

    static void cgrad_init_pool(cgrad_pool *pool, PyObject *prototype) {
        PyObject **fields = (PyObject **)(prototype + 1);
        Py_ssize_t k, words = (Py_TYPE(prototype)->tp_basicsize - (Py_ssize_t)sizeof(PyObject)) / (Py_ssize_t)sizeof(PyObject *);
        for (k = 0; k < words; k++) pool->nones += fields[k] == Py_None;
        Py_INCREF(prototype);
        pool->prototype = prototype;
        pool->limit = CGRAD_POOL_SIZE;
    }
    static PyObject *cgrad_copy_prototype(cgrad_pool *pool) {
        PyTypeObject *type = Py_TYPE(pool->prototype);
        PyObject *o = PyType_IS_GC(type) ? PyObject_GC_New(PyObject, type) : PyObject_New(PyObject, type);
        if (!o) return NULL;
        memcpy(o + 1, pool->prototype + 1, type->tp_basicsize - sizeof(PyObject));
        Py_SET_REFCNT(Py_None, Py_REFCNT(Py_None) + pool->nones);
        Py_SET_REFCNT(o, 0);
        return o;
    }
    /* The reference count of what is taken is 0: the reference that the caller takes is the first. */
    static inline PyObject *cgrad_take(cgrad_pool *pool) {
        return pool->count ? pool->dead[--pool->count] : cgrad_copy_prototype(pool);
    }
    static void cgrad_discard(cgrad_pool *pool, PyObject *o) {
        Py_SET_REFCNT(Py_None, Py_REFCNT(Py_None) - pool->nones);
        if (PyType_IS_GC(Py_TYPE(o))) PyObject_GC_Del(o);
        else PyObject_Free(o);
    }
    static inline void cgrad_give(cgrad_pool *pool, PyObject *o) {
        if (pool->count < pool->limit) pool->dead[pool->count++] = o;
        else cgrad_discard(pool, o);
    }
    static void cgrad_set_pool_limit(cgrad_pool *pool, size_t bytes) {
        pool->limit = bytes / 1024 < CGRAD_POOL_SIZE ? (Py_ssize_t)(bytes / 1024) : CGRAD_POOL_SIZE;
        while (pool->count > pool->limit) cgrad_discard(pool, pool->dead[--pool->count]);
    }
    static destructor cgrad_set_dealloc(PyTypeObject *type, destructor dealloc) {
        destructor made = type->tp_dealloc;
        type->tp_dealloc = dealloc;
        return made;
    }
    """
    ctypedef struct Pool "cgrad_pool":
        pass
    void init_pool "cgrad_init_pool" (Pool* pool, object prototype)              # prototype: as good as new
    PyObject* take "cgrad_take" (Pool* pool) except NULL
    void give "cgrad_give" (Pool* pool, PyObject* o) noexcept                    # untracked, its references None
    void set_pool_limit "cgrad_set_pool_limit" (Pool* pool, size_t bytes) noexcept    # an object for each KiB of what the allocator may keep
    destructor set_dealloc "cgrad_set_dealloc" (PyTypeObject* type, destructor dealloc) noexcept
