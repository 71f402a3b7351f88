"""Whether an operand is a temporary of the interpreter: the inner result of ``a * b + c``, which nobody can see again.

Such a tensor can give its memory to the result.  A reference count of 1 does not tell: compiled code may call an operator with an object
that only a variable of its own holds.  So, as NumPy does for its arrays, the C stack is looked at: between the interpreter's loop and us
there may be nothing but Python itself and this package; and the loop must stand at an operator, since a call's arguments may belong
to a partial or the like.  That takes 1 to 2 us, which only large tensors are worth.  From Python 3.14 on the interpreter says itself.
Where the stack cannot be read the answer is no.  Needs the GIL.  Next: apply.pyx, which asks.
"""
from cpython.object cimport PyObject

from opcode import opmap

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030E0000
    static int cgrad_binary_op = 0;
    static int cgrad_is_temporary(PyObject *x) { return PyUnstable_Object_IsUniqueReferencedTemporary(x); }

    #elif defined(__GLIBC__) || defined(__APPLE__)
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <dlfcn.h>
    #include <execinfo.h>

    static int cgrad_binary_op = -1;

    /* What is known of a return address: 1 the interpreter's loop, 2 elsewhere in Python or in this package, 3 foreign. */
    enum { CGRAD_LOOP = 1, CGRAD_OWN = 2, CGRAD_FOREIGN = 3, CGRAD_KNOWN = 64, CGRAD_DEPTH = 12 };
    static struct { void *address; int kind; } cgrad_known[CGRAD_KNOWN];

    static int cgrad_classify(void *address) {
        static void *python = NULL, *loop = NULL;
        static size_t folder = 0;
        static const char *package = NULL;
        size_t slot = ((size_t)address >> 2) % CGRAD_KNOWN;
        Dl_info info;
        if (cgrad_known[slot].address == address) return cgrad_known[slot].kind;
        if (!python) {
            if (!dladdr((void *)PyNumber_Add, &info)) return CGRAD_FOREIGN;
            python = info.dli_fbase;
            loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
            if (!dladdr((void *)cgrad_classify, &info)) return CGRAD_FOREIGN;
            package = info.dli_fname;             /* .../cgrad/core/temporary.*.so */
            folder = (size_t)(strrchr(package, '/') - package) + 1;
        }
        cgrad_known[slot].address = address;
        if (!dladdr(address, &info)) cgrad_known[slot].kind = CGRAD_FOREIGN;
        else if (info.dli_fbase == python) cgrad_known[slot].kind = loop && info.dli_saddr == loop ? CGRAD_LOOP : CGRAD_OWN;
        else cgrad_known[slot].kind = strncmp(info.dli_fname, package, folder) == 0 ? CGRAD_OWN : CGRAD_FOREIGN;
        return cgrad_known[slot].kind;
    }
    static int cgrad_at_operator(void) {
        PyFrameObject *frame = PyEval_GetFrame();
        PyCodeObject *code;
        PyObject *bytes;
        int at, found = 0;
        if (!frame) return 0;
        at = PyFrame_GetLasti(frame);
        code = PyFrame_GetCode(frame);
        bytes = PyCode_GetCode(code);
        if (!bytes) PyErr_Clear();
        else if (at >= 0 && at < PyBytes_GET_SIZE(bytes)) found = ((unsigned char *)PyBytes_AS_STRING(bytes))[at] == cgrad_binary_op;
        Py_XDECREF(bytes);
        Py_DECREF(code);
        return found;
    }
    static int cgrad_is_temporary(PyObject *x) {
        void *stack[CGRAD_DEPTH];
        int k, depth, kind;
        if (Py_REFCNT(x) != 1 || *PyObject_GET_WEAKREFS_LISTPTR(x) || !cgrad_at_operator()) return 0;
        depth = backtrace(stack, CGRAD_DEPTH);
        for (k = 1; k < depth; k++) {
            kind = cgrad_classify(stack[k]);
            if (kind != CGRAD_OWN) return kind == CGRAD_LOOP;
        }
        return 0;
    }

    #else
    static int cgrad_binary_op = 0;
    static int cgrad_is_temporary(PyObject *x) { (void)x; return 0; }
    #endif
    """
    int cgrad_binary_op
    bint cgrad_is_temporary(PyObject* x) noexcept


cdef bint is_temporary(PyObject* x) noexcept:
    return cgrad_is_temporary(x)


cgrad_binary_op = opmap["BINARY_OP"]
