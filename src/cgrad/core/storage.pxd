"""Storage: an aligned block of bytes with a version counter, shared by all views of it."""

cdef enum:
    TINY_BYTES = 64                        # blocks up to this size live inside the object

cdef enum Source:
    IN_OBJECT
    CACHED
    BORROWED                               # from an array, a memory map: others may see it
    LENT                                   # the same by an array that came as an operand: the tape keeps a copy, nobody would notice a write

cdef class Storage:
    cdef char* data
    cdef Py_ssize_t nbytes
    cdef unsigned int version              # bumped by every in-place write through any view
    cdef unsigned int history              # bumped by every RECORDED in-place write
    cdef bint readonly
    cdef int source                        # inside the object, from the cache, or borrowed
    cdef int size_class                    # of a cached block
    cdef void* owner                       # borrowed memory: a strong reference to its owner (PyObject*)
    cdef char tiny[TINY_BYTES + 16]

cdef Storage new_storage(Py_ssize_t nbytes)                                   # uninitialised; MemoryError
cdef Storage borrow_storage(char* data, Py_ssize_t nbytes, object owner, bint readonly)
