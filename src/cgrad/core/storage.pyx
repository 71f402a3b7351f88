"""Storage: an aligned block of bytes with a version counter, shared by all views of it.

Owns every byte that tensors hold.  Three sources: up to TINY_BYTES live inside the object (which comes from a pool), larger
blocks come from a caching allocator, and borrowed memory (NumPy arrays, memory maps) belongs to an owner that is kept alive.
Why a cache: writing into pages fresh from the kernel takes 3 to 5 times as long as into warm ones, which for results of megabytes
is most of the operation.  The cache keeps freed blocks by size class, is bounded, can be trimmed (`cgrad.memory`), and lends large ones
to the system, which takes their pages when memory runs short.
All functions need the GIL, which is also what makes the cache safe.  Next: tensor.pyx.
"""
cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_FillInfo
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

from cgrad.core.pool cimport Pool, give, init_pool, set_dealloc, take, set_pool_limit

from os import path

from cgrad import core

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    PyFrameObject* PyEval_GetFrame()
    PyFrameObject* PyFrame_GetBack(PyFrameObject* frame)
    PyObject* PyFrame_GetCode "(PyObject *)PyFrame_GetCode" (PyFrameObject* frame)      # a new reference
    int PyFrame_GetLasti(PyFrameObject* frame)

cdef extern from *:
    """
    #include <stdlib.h>
    #if defined(__linux__)
    #include <sys/mman.h>
    #include <unistd.h>
    #endif

    static void *cgrad_aligned(size_t alignment, size_t size) {
    #if defined(_MSC_VER)
        return _aligned_malloc(size, alignment);
    #else
        void *block = NULL;
        return posix_memalign(&block, alignment, size) ? NULL : block;
    #endif
    }
    static void cgrad_aligned_free(void *block) {
    #if defined(_MSC_VER)
        _aligned_free(block);
    #else
        free(block);
    #endif
    }
    /* Large blocks ask for huge pages: 512 times fewer page faults on the first touch. */
    static void cgrad_huge_pages(void *block, size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(block, size, MADV_HUGEPAGE);
    #else
        (void)block; (void)size;
    #endif
    }
    /* The system may take the pages of a block that waits for reuse when it runs short; a write makes them ours again. */
    static void cgrad_lend(void *block, size_t size) {
    #if defined(__linux__) && defined(MADV_FREE)
        madvise(block, size, MADV_FREE);
    #else
        (void)block; (void)size;
    #endif
    }
    static size_t cgrad_physical_memory(void) {
    #if defined(__linux__) && defined(_SC_PHYS_PAGES)
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        if (pages > 0 && size > 0) return (size_t)pages * (size_t)size;
    #endif
        return (size_t)4 << 30;
    }
    """
    void* cgrad_aligned(size_t alignment, size_t size) nogil
    void cgrad_aligned_free(void* block) nogil
    void cgrad_huge_pages(void* block, size_t size) nogil
    void cgrad_lend(void* block, size_t size) nogil
    size_t cgrad_physical_memory() nogil

cdef enum:
    ALIGNMENT = 64
    N_CLASSES = 256
    HUGE_BLOCK = 4 << 20
    LENT_BLOCK = 16 << 20       # lending costs 20 us, 3 % of an operation on 4 MB and less than 1 % here
    HUGE_ALIGNMENT = 2 << 20


cdef struct Block:
    Block* next
    void* data         # the block itself, where this struct lies in its first bytes; huge ones, whose pages are lent out, have theirs outside


cdef Block* free_blocks[N_CLASSES]
cdef size_t bytes_cached = 0
cdef size_t bytes_live = 0
cdef size_t bytes_peak = 0
cdef size_t cache_limit = min(cgrad_physical_memory() // 8, <size_t>2 << 30)
cdef unsigned long long n_hits = 0
cdef unsigned long long n_misses = 0


cdef inline int size_class(size_t nbytes) noexcept nogil:
    # Four classes to each power of two: at most a quarter of a block is wasted.
    cdef int power = 0
    cdef size_t top = (nbytes - 1) >> 6
    while top > 7:
        top >>= 1
        power += 1
    return 4 * power + <int>top


cdef inline size_t class_size(int index) noexcept nogil:
    cdef int power
    if index < 8:
        return <size_t>(index + 1) << 6
    power = (index - 4) // 4
    return <size_t>(index - 4 * power + 1) << (6 + power)


cdef void* take_block(size_t nbytes, int* index) noexcept:
    global bytes_cached, bytes_live, bytes_peak, n_hits, n_misses
    cdef int k = size_class(nbytes)
    cdef size_t size = class_size(k)
    cdef void* data
    index[0] = k
    if free_blocks[k] != NULL:
        data = take_cached(k)
        n_hits += 1
    else:
        n_misses += 1
        data = cgrad_aligned(HUGE_ALIGNMENT if size >= HUGE_BLOCK else ALIGNMENT, size)
        if data == NULL:
            trim_cache(0)
            data = cgrad_aligned(ALIGNMENT, size)
            if data == NULL:
                return NULL
        if size >= HUGE_BLOCK:
            cgrad_huge_pages(data, size)
    bytes_live += size
    if bytes_live > bytes_peak:
        bytes_peak = bytes_live
    return data


cdef inline void* take_cached(int k) noexcept:
    global bytes_cached
    cdef Block* block = free_blocks[k]
    cdef void* data = block.data
    free_blocks[k] = block.next
    bytes_cached -= class_size(k)
    if block != data:
        free(block)
    return data


cdef void give_block(void* data, int index) noexcept:
    global bytes_cached, bytes_live
    cdef size_t size = class_size(index)
    cdef Block* block = <Block*>data
    bytes_live -= size
    if bytes_cached + size > cache_limit:
        cgrad_aligned_free(data)
        return
    if size >= LENT_BLOCK:
        block = <Block*>malloc(sizeof(Block))
        if block == NULL:
            cgrad_aligned_free(data)
            return
        cgrad_lend(data, size)
    block.data = data
    block.next = free_blocks[index]
    free_blocks[index] = block
    bytes_cached += size


cdef void trim_cache(size_t keep) noexcept:
    """Free cached blocks, the largest first, until at most `keep` bytes stay."""
    cdef int k
    for k in range(N_CLASSES - 1, -1, -1):
        while free_blocks[k] != NULL and bytes_cached > keep:
            cgrad_aligned_free(take_cached(k))


@cython.final
@cython.no_gc
cdef class Storage:
    """A block of bytes that tensors are views of; it exports the buffer protocol."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.readonly and flags & PyBUF_WRITABLE:
            raise BufferError("Storage: the memory is read-only")
        PyBuffer_FillInfo(buffer, self, self.data, self.nbytes, self.readonly, flags)

    def __len__(self):
        return self.nbytes


cdef Pool pool


cdef void dealloc(PyObject* o) noexcept:
    if (<Storage>o).source == CACHED:
        give_block((<Storage>o).data, (<Storage>o).size_class)
    elif (<Storage>o).source >= BORROWED:
        Py_DECREF(<object>(<Storage>o).owner)
    if (<Storage>o).writer != NULL:
        Py_DECREF(<object>(<Storage>o).writer)
        (<Storage>o).writer = NULL
    give(&pool, o)


init_pool(&pool, Storage.__new__(Storage))
set_dealloc(<PyTypeObject*>Storage, dealloc)


cdef Storage new_storage(Py_ssize_t nbytes):
    cdef Storage storage = <Storage>take(&pool)
    cdef int index
    storage.nbytes = nbytes
    storage.version = 0
    storage.history = 0
    storage.kept = False
    storage.readonly = False
    if nbytes <= TINY_BYTES:
        storage.source = IN_OBJECT
        storage.data = <char*>((<uintptr_t>storage.tiny + 15) & ~<uintptr_t>15)
        return storage
    storage.source = IN_OBJECT   # nothing to give back should the next line fail
    storage.data = <char*>take_block(nbytes, &index)
    if storage.data == NULL:
        raise MemoryError(f"could not allocate {nbytes} bytes for a tensor")
    storage.source = CACHED
    storage.size_class = index
    return storage


cdef Storage borrow_storage(char* data, Py_ssize_t nbytes, object owner, bint readonly):
    cdef Storage storage = <Storage>take(&pool)
    storage.data = data
    storage.nbytes = nbytes
    storage.version = 0
    storage.history = 0
    storage.kept = False
    storage.readonly = readonly
    Py_INCREF(owner)
    storage.owner = <void*>owner
    storage.source = BORROWED
    return storage


cdef str PACKAGE = path.dirname(core.__path__[0]) + path.sep


cdef tuple writer_here(str name):
    """The operation of that name as called by the innermost line of code outside cgrad."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef object code = None
    cdef int offset = 0
    Py_XINCREF(<PyObject*>frame)
    while frame != NULL:
        code = <object>PyFrame_GetCode(frame)
        Py_DECREF(code)
        offset = PyFrame_GetLasti(frame)
        back = PyFrame_GetBack(frame)
        Py_DECREF(<object>frame)
        if not (<str>code.co_filename).startswith(PACKAGE):
            Py_XDECREF(<PyObject*>back)
            break
        frame = back
    return name, code, offset


cdef void note_writer(Storage storage, tuple writer) noexcept:
    cdef PyObject* old = storage.writer
    storage.kept = False
    storage.noted_version = storage.version + 1
    Py_INCREF(writer)
    storage.writer = <PyObject*>writer
    Py_XDECREF(old)


def memory_stats():
    """Figures of the allocator, in bytes and counts, as a dict."""
    return {"live_bytes": bytes_live, "peak_bytes": bytes_peak, "cached_bytes": bytes_cached, "limit_bytes": cache_limit,
            "reused_blocks": n_hits, "new_blocks": n_misses}


def memory_trim(keep=0):
    """Free cached blocks until at most `keep` bytes stay; returns how many were freed."""
    cdef size_t before = bytes_cached
    if keep < 0:
        raise ValueError(f"memory.trim: keep must not be negative, got {keep}")
    trim_cache(keep)
    set_pool_limit(&pool, 0)
    set_pool_limit(&pool, cache_limit)
    return before - bytes_cached


def memory_reset_peak(floor=0):
    """Let the peak start again from what lives now, or from `floor` if that is more."""
    global bytes_peak
    bytes_peak = max(bytes_live, <size_t>floor)


def memory_set_limit(limit):
    """Bound the bytes kept for reuse; returns the earlier bound."""
    global cache_limit
    cdef size_t before = cache_limit
    if limit < 0:
        raise ValueError(f"memory.set_limit: the limit must not be negative, got {limit}")
    cache_limit = limit
    trim_cache(cache_limit)
    set_pool_limit(&pool, cache_limit)
    return before
