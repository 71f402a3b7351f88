"""Door: a public function that accepts other spellings of its keywords (``dim`` for ``axis``) and ``out=``, for a few nanoseconds.

A call goes on to the function behind it as it came, without a tuple or dict in between; a method of Tensor needs no bound
method.  Only where a keyword is spelt otherwise is the tuple of names made anew.  Also calls that a profile watches: what a function
takes its calls by is exchanged for as long, so that nothing is paid without one.  Needs the GIL.  Next: ops/define.py, whose `public`
makes doors; inplace.pyx, how a result is written into ``out=``.
"""
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

cdef extern from "Python.h":
    object PyMethod_New(object function, object self)
    object PyObject_Vectorcall(object function, PyObject** args, size_t nargsf, PyObject* names)

cdef extern from *:
    PyObject* call_vector "PyObject_Vectorcall" (object function, PyObject** args, size_t nargsf, PyObject* names) noexcept

cdef extern from *:
    """
    static void **cgrad_vector_place(PyObject *function) {
        PyTypeObject *type = Py_TYPE(function);
        return PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL) ? (void **)((char *)function + type->tp_vectorcall_offset) : NULL;
    }
    static PyObject *cgrad_call_by_tuple(PyObject *function, PyObject *args, PyObject *kwargs) {
        PyCFunctionObject *compiled = (PyCFunctionObject *)function;     /* tp_call would look for a vectorcall first */
        return ((PyCFunctionWithKeywords)(void (*)(void))compiled->m_ml->ml_meth)(compiled->m_self, args, kwargs);
    }
    static PyObject *cgrad_make_instance(PyObject *kind, PyObject *const *args, size_t nargsf, PyObject *names) {
        Py_ssize_t n = PyVectorcall_NARGS(nargsf);
        PyObject *tuple = PyTuple_New(n), *kwargs = names ? PyDict_New() : NULL, *made = NULL;
        int failed = tuple == NULL || (names && kwargs == NULL);
        for (Py_ssize_t k = 0; k < n && !failed; k++)
            PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
        for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names) && !failed; k++)
            failed = PyDict_SetItem(kwargs, PyTuple_GET_ITEM(names, k), args[n + k]);
        if (!failed)
            made = PyType_Type.tp_call(kind, tuple, kwargs);
        Py_XDECREF(tuple);
        Py_XDECREF(kwargs);
        return made;
    }
    static void cgrad_make_instances_by(PyTypeObject *kind, void *entry) {
        kind->tp_vectorcall = (vectorcallfunc)entry;
        PyType_Modified(kind);
    }
    """
    PyObject* make_instance "cgrad_make_instance" (object kind, PyObject** args, size_t nargsf, PyObject* names) noexcept
    void make_instances_by "cgrad_make_instances_by" (PyTypeObject* kind, void* entry) noexcept
    void** vector_place "cgrad_vector_place" (PyObject* function) noexcept
    object call_by_tuple "cgrad_call_by_tuple" (object function, object args, object kwargs)


cdef class Door:
    """A function and the other spellings of its keywords.

    Parameters
    ----------
    function : callable
    renames : dict of str to str
        From another spelling to the function's own; with "out" among them the door itself looks after ``out=``.
    no_out : str, optional
        Why a call takes no ``out=``.
    """

    def __cinit__(self, function, dict renames, no_out=None):
        self.vectorcall = enter
        self.function = function
        self.renames = renames
        self.no_out = no_out
        self.__wrapped__ = function
        for name in ("__name__", "__qualname__", "__module__"):
            setattr(self, name, getattr(function, name))

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)        # what `callable` looks for; calls take the vector way, set below

    @property
    def knows_out(self):
        """Whether ``out=`` is taken, or refused with a reason."""
        return "out" in self.renames

    @property
    def takes_out(self):
        """Whether a result can be written into ``out=``."""
        return self.knows_out and self.no_out is None

    @property
    def __doc__(self):
        text = self.function.__doc__
        return with_out_documented(text) if text is not None and self.takes_out else text

    def __getattr__(self, name):
        if name == "__signature__" and self.takes_out:       # made when somebody asks: all of them would take a tenth of the import
            return with_out(self.function)
        raise AttributeError(f"function {self.__name__!r} has no attribute {name!r}")

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<function {self.__module__}.{self.__name__}>"


cdef object enter(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef Door door = <Door>self
    cdef Py_ssize_t k
    if names != NULL:
        for k in range(PyTuple_GET_SIZE(<object>names)):
            if PyDict_GetItem(door.renames, <object>PyTuple_GET_ITEM(<object>names, k)) != NULL:
                renamed = own_names(door, <tuple>names)
                if "out" in door.renames and "out" in renamed:
                    return enter_with_out(door, args, nargsf, renamed)
                return handed_on(call_vector(door.function, args, nargsf, <PyObject*>renamed), door, door.renames, args, nargsf, names)
    return handed_on(call_vector(door.function, args, nargsf, names), door, door.renames, args, nargsf, names)


cdef object handed_on(PyObject* result, object function, dict renames, PyObject** args, size_t nargsf, PyObject* names):
    """The result of a call, or an error that says more than the one that is set."""
    if result == NULL:
        return explain(function, renames, args, nargsf, names)
    out = <object>result
    Py_DECREF(out)
    return out


cdef object explain(object function, dict renames, PyObject** args, size_t nargsf, PyObject* names):
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf)
    try:
        failed()
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, BufferError) as error:
        from cgrad.core.mistakes import explained
        named = named_arguments(args, n, names)
        better = explained(function.__name__, function, renames, tuple([<object>args[k] for k in range(n)]), named, error)
        if better is None:
            raise
        raise better.with_traceback(error.__traceback__) from None


cdef dict named_arguments(PyObject** args, Py_ssize_t n, PyObject* names):
    cdef Py_ssize_t k
    cdef dict named = {}
    for k in range(PyTuple_GET_SIZE(<object>names) if names != NULL else 0):
        named[<object>PyTuple_GET_ITEM(<object>names, k)] = <object>args[n + k]
    return named


# ---------------------------------------------------------------------- compiled functions that are public themselves
cdef raw_call_t compiled_call = NULL          # the one way in which functions of Cython with few arguments take calls
cdef dict no_renames = {}


def explain_errors_of(function):
    """Let the errors of a compiled function say more, as a door's do, without one more object in the way of a call."""
    global compiled_call
    cdef void** place = vector_place(<PyObject*>function)
    if place != NULL and place[0] != NULL:
        compiled_call = <raw_call_t>place[0]
        place[0] = <void*>enter_compiled
    return function


cdef object enter_compiled(object self, PyObject** args, size_t nargsf, PyObject* names):
    return handed_on(compiled_call(<PyObject*>self, args, nargsf, names), self, no_renames, args, nargsf, names)


# ---------------------------------------------------------------------- classes
def explain_errors_of_class(kind):
    """Let the errors that come from making instances of a class of Python say more: it is called by way of a slot that no subclass inherits.

    CPython 3.13 passes the slot by where a loop makes many instances with all arguments by position.
    """
    make_instances_by(<PyTypeObject*>kind, <void*>enter_class)


cdef object enter_class(object self, PyObject** args, size_t nargsf, PyObject* names):
    return handed_on(make_instance(self, args, nargsf, names), self, no_renames, args, nargsf, names)


cdef object enter_with_out(Door door, PyObject** args, size_t nargsf, tuple names):
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf)
    cdef dict options = named_arguments(args, n, <PyObject*>names)
    out = options.pop("out")
    operands = tuple([<object>args[k] for k in range(n)])
    if out is None:
        return door.function(*operands, **options)
    if door.no_out is not None:
        raise TypeError(f"{door.__name__}: takes no out=, since it {door.no_out}")
    return into(door.__name__, door.function, operands, options, out)


cdef tuple own_names(Door door, tuple names):
    """The keywords of a call in the function's own spelling."""
    cdef tuple out = PyTuple_New(len(names))
    cdef Py_ssize_t k
    for k, name in enumerate(names):
        own = door.renames.get(name, name)
        if own is not name and (own in names or own in [door.renames.get(earlier) for earlier in names[:k]]):
            raise TypeError(f"{door.__name__}: {own!r} was given twice, the second time as {name!r}")
        Py_INCREF(own)
        PyTuple_SET_ITEM(out, k, own)
    return out


cdef Door first = Door(len, {})
call_by_vector(<PyTypeObject*>Door, <char*>&first.vectorcall - <char*><PyObject*>first)


# ---------------------------------------------------------------------- out=
cdef object writer = None


def set_out_writer(function):
    """Tell what writes a result into ``out=``: ``function(name, compute, args, kwargs, out)``."""
    global writer
    writer = function


cdef object into(str name, object function, tuple args, dict kwargs, object out):
    """What a function gives, written into `out`."""
    return writer(name, function, args, kwargs, out)


def with_out(function):
    """The signature of a Python function with ``out=None`` as a further keyword."""
    import inspect
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    keywords = [p for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    return signature.replace(parameters=[p for p in parameters if p not in keywords] + [out] + keywords)


def with_out_documented(str text):
    """A numpydoc text with ``out`` after the parameters."""
    before, heading, after = text.partition("Returns\n")
    indent = before[len(before.rstrip(" ")):]
    lines = f"{indent}out : Tensor, optional\n{indent}    Is written with the result and returned, see `cgrad.add`.\n\n"
    return f"{before.rstrip()}\n{lines}{indent}{heading}{after}" if heading else text


# ---------------------------------------------------------------------- watched calls
cdef object call_watcher = None
cdef dict ways = {}                # watched function -> the address by which it takes calls, 0 if by a tuple alone


def watch_calls(functions, watcher):
    """Tell a watcher of every call of the functions: ``_enter(function, args)``, then ``_leave()``.  With None they are let go again."""
    global call_watcher
    call_watcher = watcher
    for function in list(ways):
        vector_place(<PyObject*>function)[0] = <void*><size_t>ways.pop(function)
    for function in functions if watcher is not None else ():
        if vector_place(<PyObject*>function) != NULL and function not in ways:
            ways[function] = <size_t>vector_place(<PyObject*>function)[0]
            vector_place(<PyObject*>function)[0] = <void*>watched


cdef object watched(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef object watcher = call_watcher
    cdef size_t way = <size_t>ways.get(self, 0)
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf)
    if watcher is None:                # let go between the look at its way and here
        return PyObject_Vectorcall(self, args, nargsf, names)
    watcher._enter(self, tuple([<object>args[k] for k in range(n)]))      # a reference no longer than this, for `temporary.pyx`
    try:
        if way:
            return (<vectorcall_t>way)(self, args, nargsf, names)
        return call_by_tuple(self, tuple([<object>args[k] for k in range(n)]), named_arguments(args, n, names))
    finally:
        watcher._leave()
