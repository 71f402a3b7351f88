"""define: one entry of an operation gives its primitive, its public function and its Op class.

A rule's parameter names say what the tape keeps: inputs by name, `out` the result, `g` the incoming gradient, `shape_x` and
`dtype_x` of an input, `needs` (which inputs want a gradient), else an option of the call.  They are read once, here.
The kind gives forward mode and batching.  Next: arithmetic.py, the first entries; op.py, the same two sides as a class for users.
"""

import importlib
import inspect
import re

from cgrad.core import apply
from cgrad.core import primitive as core
from cgrad.core.door import Door, explain_errors_of_class
from cgrad.core.inplace import inplace_method
from cgrad.core.tensor import register_method
from cgrad.ops import aliases, batching
from cgrad.ops.op import Op
from cgrad.ops.out import NO_OUT

ELEMENTWISE, LINEAR, BILINEAR, NONDIFF, OTHER = "elementwise", "linear", "bilinear", "nondiff", "other"

#: public functions by name, aliases included; `cgrad` takes its names from here
PUBLIC = {}

_signatures = {}

_FUSED = re.compile(r"(\w+)\(([\w, ]*)\)")


class joint:
    """One rule for all inputs: it returns a tuple (or list) of gradients.

    `fused`, if given, computes the same from the same arguments in one pass, for first order.
    """

    def __init__(self, rule, fused=None):
        self.rule = rule
        self.fused = fused


def define(name, *, vjp=None, kind=OTHER, jvp=None, batch=None, fused=None, kernel=None, forward=None, inputs=None, optional=(), options=(),
           result=None, reads=None, moves=False, symbol=None, doc=None, extended=None, public=True, method=True):
    """Define an operation.

    Parameters
    ----------
    name : str
        Public name, and that of the kernel unless `kernel` names another.
    vjp : callable, tuple of callables or joint
        The backward rule of each input; None where an input has no gradient.
    kind : str
        How forward mode follows: ELEMENTWISE (the rules applied to the tangents), LINEAR (the operation on the tangents, and on
        inputs without a rule as they are), BILINEAR (the operation on each tangent in turn), NONDIFF (no derivative), OTHER (`jvp`, else
        the transposed vjp).
    jvp : callable, optional
        Forward rule; names the tangents ``tx``, ``ty``, ... of the inputs (None where there is none), else what a vjp names.
    batch : callable, optional
        How a batch of calls is computed (vmap), where shifting the axes that the options name does not do it: names inputs and options,
        the inputs with all examples along a new first axis, and may name ``size``, the number of examples.  A rule that names
        ``batched`` learns which inputs have that axis, else all have.
    fused : str or tuple of str, optional
        Kernel call that computes a rule in one pass for first order, such as ``"tanh_backward(g, out)"``; ``"g"`` alone passes on,
        an operand may be 0.
    kernel : str, optional
        Name of the elementwise loops.
    forward : callable, optional
        Computes anything that is not elementwise: ``forward(*inputs, *options)`` with plain tensors.
    inputs : tuple of str, or str
        Names of the tensor inputs; a single str if the operation takes a list of them.
    optional : tuple of str
        The inputs that may be None.
    options : tuple of str
        Names of what follows the inputs.
    result : str, optional
        dtype of an elementwise result: ``"same"``, ``"float"`` or ``"bool"``.
    reads : tuple of int, optional
        Which of several results the rules that name `out` read, all by default; others need not be kept, and may be written in place.
    moves : bool
        Whether `forward` only moves elements and so takes any dtype; else float16 and bfloat16 are cast to float32 and back (recorded).
    symbol : str, optional
        The operator of Tensor that it is.
    doc : str
        Docstring of the public function; of an elementwise one a line, notes and an example, to which the sections are added.
    extended : callable, optional
        What an elementwise function of two inputs calls when it gets further keywords, such as ``alpha=``.
    public, method : bool
        Whether the function becomes a public name, a method of Tensor.

    Returns
    -------
    function
        The recorded function; its entry is the attribute ``primitive``, its Op class ``op``.
    """
    if forward is None and kernel is None:
        kernel = name
    entry = core.make_primitive(name, kind, inputs, options, kernel, result, forward, masked=bool(inputs) and inputs[0] == "condition",
                                moves=moves, reads=reads, optional=optional)
    if isinstance(vjp, joint) or entry.n_inputs < 0 and vjp is not None:      # a list of tensors has one rule for all
        rules, whole = [], _joint_rule(entry, vjp if isinstance(vjp, joint) else joint(vjp))
    else:
        rules, whole = _rules(entry, vjp, fused), None
    function = apply.finish_primitive(entry, rules, whole, None if jvp is None else _rule(entry, jvp, None), _batch_rule(entry, kind, batch), extended)
    function.__doc__ = doc if doc is None else _document(entry, inspect.cleandoc(doc), result)
    function.__module__ = "cgrad"
    function.op = _op_class(name, function, entry)
    if kernel is not None:
        function.__signature__ = _signature(entry.input_names)
    if symbol is not None:
        apply.set_operator(symbol, function)
    if public:
        publish(name, function, method)
    return function


def public(function=None, *, method=True, name=None):
    """Make a Python function a public name (and a method of Tensor), with the other spellings of its keywords accepted.

    Parameters
    ----------
    method : bool
        Whether it becomes a method of Tensor, too.
    name : str, optional
        The public name, if not the function's own.
    """
    if function is None:
        return lambda f: public(f, method=method, name=name)
    entry = door(function, name=name)
    publish(entry.__name__, entry, method)
    return entry


def door(function, name=None, module="cgrad", out=True):
    """A Python function with the other spellings of its keywords accepted, and ``out=`` if wanted, for the
    public name `name` of a module.

    Examples
    --------
    >>> @door
    ... def total(x, axis):
    ...     return x, axis
    >>> total(1, dim=2)
    (1, 2)
    """
    parameters = _parameters(function) if hasattr(function, "__code__") else ()
    name = name or function.__name__
    renames = {other: p for p in parameters for other in aliases.KEYWORDS.get(p, ()) if other not in parameters}
    if out:
        renames["out"] = "out"
    entry = Door(function, renames, NO_OUT.get(name))
    entry.__name__ = entry.__qualname__ = name
    entry.__module__ = module
    return entry


def open_doors(namespace, lazy=None, hint=None):
    """Let the errors of what a module, given by its ``globals()``, lists in ``__all__`` say more, and those of a name that it does not have.

    Plain functions become doors, and so do public methods that take arguments; `forward` is called by `Module.__call__`, which does it.
    `lazy` are names that are loaded when they are first used, each with the module where it is, None for a module itself;
    ``hint(name)`` may know a better end of the sentence than a name that is like it.
    """
    module, lazy = namespace["__name__"], lazy or {}

    def public_names():
        return sorted({name for name in namespace if not name.startswith("_")}.union(lazy))

    def find(name):
        if name in lazy:
            found = importlib.import_module(lazy[name] or f".{name}", module)
            if lazy[name]:
                open_doors(vars(found))
                found = namespace[name] = getattr(found, name)
            return found
        from cgrad.core.mistakes import did_you_mean
        raise AttributeError(f"module {module!r} has no attribute {name!r}" + ((hint(name) if hint else "") or did_you_mean(name, public_names())))

    for name in namespace.get("__all__") or public_names():
        value = namespace.get(name)
        if inspect.isfunction(value) or inspect.isbuiltin(value):
            namespace[name] = door(value, module=module, out=False)
        elif type(value) is type and "__all__" in namespace:
            _open_class(value)
    namespace["__getattr__"], namespace["__dir__"] = find, public_names


def _open_class(value):
    explain_errors_of_class(value)
    for base in value.__mro__:
        if base.__module__.startswith("cgrad.") and base.__flags__ & 512:          # not Tensor, which nobody can change
            for key, method in list(vars(base).items()):
                if inspect.isfunction(method) and _is_called_with_arguments(key, method):
                    setattr(base, key, Door(method, {}))


def _is_called_with_arguments(name, method):
    """Whether users call a method, and with arguments; what has no docstring fills in what another method calls."""
    if name in ("__getitem__", "__setitem__", "__delitem__", "__add__", "__iadd__", "step"):
        return True
    takes = method.__code__.co_argcount + method.__code__.co_kwonlyargcount > 1 or method.__code__.co_flags & inspect.CO_VARARGS
    return takes and name[0] != "_" and name != "forward" and method.__doc__


def publish(name, function, method=True):
    """Enter a function under its name and its aliases."""
    if inspect.isfunction(function):
        function = door(function, out=False)
    for spelling in (name, *aliases.NAMES.get(name, ())):
        PUBLIC[spelling] = function
        if method:
            register_method(spelling, function)


def as_method(function, name=None):
    """Hang a plain function onto Tensor; its errors say more, as those of public functions do."""
    register_method(name or function.__name__, door(function, name, out=False))


def in_place(function, name=None):
    """Make a public function a method of Tensor that writes its result into the tensor, and so takes no ``out=``."""
    method = inplace_method(function, (name or function.__name__) + "_")
    method.__wrapped__ = getattr(function, "__wrapped__", function)
    if hasattr(function, "primitive"):
        method.__signature__ = _signature(function.primitive.input_names, False)
    method.__doc__ = f"`{function.__name__}` written into the tensor itself, which is returned.  Gradient: that of `{function.__name__}`."
    register_method(method.__name__, method)


def as_property(name, get, doc):
    """Hang a property without setter onto Tensor; errors name it."""
    made = property(get, doc=doc)
    made.__set_name__(None, name)
    register_method(name, made)


def _rules(entry, vjp, fused):
    count = max(entry.n_inputs, 1)
    functions = vjp if isinstance(vjp, tuple) else (vjp,) + (None,) * (count - 1)
    texts = fused if isinstance(fused, tuple) else (fused,) + (None,) * (count - 1)
    if len(functions) != count or len(texts) != count:
        raise ValueError(f"{entry.name}: has {count} inputs, got {len(functions)} rules and {len(texts)} fused forms")
    return [None if f is None else _rule(entry, f, text) for f, text in zip(functions, texts)]


def _parameters(function):
    """The names of a Python function's parameters; inspect.signature would cost a tenth of the import time."""
    code = function.__code__
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


def _rule(entry, function, fused):
    arguments = [_source(entry, name) for name in _parameters(function)]
    if fused is None:
        return core.make_rule(function, arguments)
    if fused == "g":
        return core.make_rule(function, arguments, passes_gradient=True)
    kernel, operands = _FUSED.fullmatch(fused).groups()
    loops = core.make_primitive(kernel, NONDIFF, None, (), kernel, "same", masked=kernel == "where")
    return core.make_rule(function, arguments, loops, [(core.SOURCES["zero"], 0) if name.strip() == "0" else _source(entry, name.strip())
                                                       for name in operands.split(",")])


def _batch_rule(entry, kind, batch):
    if batch is not None:
        return _rule(entry, batch, None)
    if entry.elementwise or not batching.axes_tell_all(entry, kind):
        return None
    names = [entry.input_names[0]] if entry.n_inputs < 0 else entry.input_names
    return core.make_rule(batching.with_shifted_axes(entry), [_source(entry, name) for name in (*names, *entry.option_names)])


def _joint_rule(entry, vjp):
    arguments = [_source(entry, name) for name in _parameters(vjp.rule)]
    return core.make_rule(vjp.rule, arguments, first_order=vjp.fused)


def _source(entry, name):
    """Where the argument of a rule comes from, as (source, index)."""
    names, sources = entry.input_names, core.SOURCES
    if name in ("g", "out", "needs", "tangents"):
        return sources[name], 0
    if name in ("size", "batched"):            # a batch rule gets these two where a forward rule gets tangents
        return sources["tangent"], ("size", "batched").index(name)
    if entry.n_inputs < 0 and name in names:
        return sources["inputs"], 0
    if name in names:
        return sources["input"], names.index(name)
    if name in entry.option_names:
        return sources["option"], entry.option_names.index(name)
    if name in ("shapes", "inputs"):
        return sources[name], 0
    for prefix, source in (("shape_", "shape"), ("dtype_", "dtype"), ("t", "tangent")):
        if name.startswith(prefix) and name[len(prefix):] in names:
            return sources[source], names.index(name[len(prefix):])
    raise ValueError(f"{entry.name}: a rule names {name!r}, which is neither g, out, an input {names}, an option {entry.option_names}, "
                     "nor shape_, dtype_ or t (tangent) of an input")


def _signature(names, out=True):
    """That of an elementwise function of the operands `names`, or of its method that writes in place; made once, which import time feels."""
    if (names, out) not in _signatures:
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        parameters += [inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)] * out
        _signatures[names, out] = inspect.Signature(parameters)
    return _signatures[names, out]


def _document(entry, doc, result):
    """The docstring of an elementwise function from its own words: a line, notes and an example, and what all of them share."""
    if not entry.elementwise or "Parameters\n---" in doc:
        return doc
    names = ["condition", ", ".join(entry.input_names[1:])] if entry.input_names[0] == "condition" else [", ".join(entry.input_names)]
    lines = ["Parameters", "----------"]
    for name in names:
        lines += [f"{name} : Tensor, array or number", "    True or not 0 where the first value is taken." if name == "condition" else
                  "    Shapes broadcast, dtypes promote; a Python number takes the dtype of the tensor it meets." if "," in name else
                  "    Of any shape."]
    lines += ["out : Tensor, optional", "    Is written with the result and returned, see `cgrad.add`."]
    dtype = {"float": "The dtype of the operands; integers and bools give the default float.", "bool": "bool."}
    lines += ["", "Returns", "-------", "Tensor", "    " + dtype.get(result or entry.result_name, "The dtype of the operands.")]
    if entry.n_inputs > 1:
        lines += ["", "Raises", "------", "ValueError", "    If the shapes do not broadcast."]
    first, _, rest = doc.partition("\n\n")
    notes, _, example = rest.partition("\n\n>>> ")
    return "\n".join([first, "", *lines, "", "Notes", "-----", notes, "", "Examples", "--------", ">>> import cgrad as cg", ">>> " + example])


def _op_class(name, function, entry):
    """The Op class of a built-in operation: usable alone on plain numbers, and recorded on tensors."""

    def forward(self, *args):
        self.args, self.out = args, function(*args)
        return self.out

    def backward(self, grads):
        from cgrad.core.single import operation_gradients
        return operation_gradients(entry, self.args, self.out, grads)

    return type(name, (Op,), {"forward": forward, "backward": backward, "__module__": "cgrad", "__qualname__": f"{name}.op",
                              "builtin": True, "__doc__": f"The operation `{name}` as an Op, with its two sides."})
