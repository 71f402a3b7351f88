"""Storage: an aligned block of bytes with a version counter, shared by all views of it."""
from cpython.object cimport PyObject

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
    cdef bint kept                         # the tape keeps what it holds: the next write notes who it was
    cdef unsigned int noted_version        # the version that the noted write made
    cdef PyObject* writer                  # NULL, or who it was: (name of the operation, code object that called it, offset of the instruction)
    cdef int source                        # inside the object, from the cache, or borrowed
    cdef int size_class                    # of a cached block
    cdef void* owner                       # borrowed memory: a strong reference to its owner (PyObject*)
    cdef char tiny[TINY_BYTES + 16]

cdef Storage new_storage(Py_ssize_t nbytes)                                   # uninitialised; MemoryError
cdef tuple writer_here(str name)
cdef void note_writer(Storage storage, tuple writer) noexcept
cdef inline int written(Storage storage, str name) except -1:                 # to be called at each write in place, by the operation of that name
    if storage.kept:
        note_writer(storage, writer_here(name))
    storage.version += 1
    return 0
cdef Storage borrow_storage(char* data, Py_ssize_t nbytes, object owner, bint readonly)
