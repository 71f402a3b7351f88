"""What is said of a call that failed: which function was called, with what, and what would work.

`door.pyx` asks here when a public function raises, so nothing of this costs a call that goes well, and no function has to say by itself what
holds for all: that a keyword is misspelt, that an argument is missing or no tensor.  An error that names the function already, and one
that comes from the user's own code (a function given to `vmap`, a `forward`), stays as it is.
"""
import difflib
import inspect
import os
import re
import sys

import numpy as np
from numpy.exceptions import AxisError
from numpy.linalg import LinAlgError

from cgrad.core.source import HERE
from cgrad.core.tensor import Tensor

_OURS = (HERE, "src/cgrad", os.path.dirname(np.__file__), "<frozen")          # where Cython says that its code is, too; and Python's own
_LIBRARY = os.path.dirname(inspect.__file__)
_EXPLAINED = {AttributeError: TypeError, KeyError: TypeError, ZeroDivisionError: ValueError, AssertionError: ValueError,
              **{kind: kind for kind in (TypeError, ValueError, IndexError, OverflowError, BufferError, AxisError, LinAlgError)}}
_OF_OPERATION = re.compile(r"[A-Za-z_][\w.]*: ")
_MISSED = re.compile(r"([\w.<>]+)\(\) ")
_PYTHONS_OWN = re.compile(r"' object |operand|unpack|not supported between|out of range|out of bounds|too large to convert|Argument '|argument must be|"
                          r"must be real number|must be integers|Cannot convert|an integer is required|cannot be interpreted|can only concatenate|"
                          r"math domain|'\w+'$|no len|is not iterable|division by zero|unhashable|invalid literal|not convert|ufunc '|formatting|zip\(|"
                          r"os.PathLike|truth value|Python scalars")
_WRONG_TYPE = re.compile(r"Argument '\w+' (must not be None|has incorrect type \(expected cgrad.core.tensor)|Cannot convert \S+ to cgrad.core.tensor")


def explained(name, function, renames, args, named, error):
    """The error to raise in place of `error`, or None if that says enough.  Of classes and their methods only what the user calls explains itself."""
    call = f"call it as {name}"
    if not isinstance(function, type) and "." not in function.__qualname__:
        return _explained(name, name, function, renames, args, named, error, call)
    caller = sys._getframe().f_back
    if caller is not None and caller.f_code.co_filename.startswith(HERE):
        return None
    if isinstance(function, type) or not args:
        return _explained(name, name, function, renames, args, named, error, call, function)
    owner = type(args[0]).__name__
    full = owner if name.startswith("__") else f"{owner}.{name}"
    return _explained(full, f"{owner}|{name}", function.__get__(args[0]), renames, args[1:], named, error, call, args[0])


def explained_of_layer(layer, args, named, error):
    """The same for ``layer(*args, **named)``; what a `forward` of the user's or an operation has said stays."""
    text, forward = str(error), layer.forward
    missed = _MISSED.match(text)                                    # Python's words for a call that does not fit a function
    if not getattr(forward, "__module__", "").startswith("cgrad.") or _OF_OPERATION.match(text) or missed and missed[1] != forward.__qualname__:
        return None
    name = type(layer).__name__
    better = _explained(name, name, forward, {}, args, named, error, "call the layer with ", None)
    return None if better is None else better.with_traceback(error.__traceback__)


def _explained(name, names, function, renames, args, named, error, call, owner=NotImplemented):
    """`owner` is the instance that a method belongs to, a class that was called, None for a layer, NotImplemented for a plain function."""
    kind = next((_EXPLAINED[base] for base in type(error).__mro__ if base in _EXPLAINED), None)
    if kind is None or _from_outside(error.__traceback__):
        return None
    text, own = str(error), str(error.args[0]) if error.args else ""
    if isinstance(error, (KeyError, AttributeError)) and (_OF_OPERATION.match(own) or isinstance(error, KeyError) and owner is not NotImplemented):
        kind, text = type(error), own                               # meant as what it is
    if text.startswith(name + ": "):
        return None
    inner = getattr(getattr(function, "__wrapped__", None), "__name__", "") + ": "
    if text.startswith(inner):                                      # of a method in place, or of another name
        return _like(error, kind, f"{name}: {text.removeprefix(inner)}")
    signature = inspect.signature(function)
    problem = _misfit(signature, renames, args, named, text)
    if problem is not None:
        return TypeError(f"{name}: {problem}; {call}{_brief(signature)}")
    if re.match(rf"(\w+\.)*({names})_?\b", text):
        return None
    given = signature.bind(*args, **{renames.get(key, key): value for key, value in named.items()}).arguments
    if _OF_OPERATION.match(text):                                   # of an operation that it is made of
        unsaid = owner is not NotImplemented and "(*" not in str(signature) and not any(key in text for key in given)
        return _like(error, kind, f"{name}: {f'cannot work with {_listed(given)}: ' * unsaid}{text}")
    return _like(error, kind, f"{name}: {_in_our_words(error, text, given, owner) or text}")


def _like(error, kind, text):
    """An error of the given kind, or of the class of `error` where that is one."""
    try:
        better = (type(error) if isinstance(error, kind) else kind)(text)
    except TypeError:                                               # NumPy has some that take more than a text
        better = kind(text)
    for note in getattr(error, "__notes__", ()):
        better.add_note(note)
    return better


def _from_outside(traceback):
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) and (not file.startswith(_LIBRARY) or "site-packages" in file):
            return True
        traceback = traceback.tb_next
    return False


def _misfit(signature, renames, args, named, text):
    """What does not fit the parameters, or None."""
    parameters = signature.parameters
    refused = re.search(r"got an unexpected keyword argument '(\w+)'", text)
    if refused:
        for key in named:
            if renames.get(key, key) not in parameters and refused[1] in (key, renames.get(key)):
                return f"no argument is called {key!r}" + did_you_mean(key, [*parameters, *renames])
    try:
        signature.bind(*args, **{renames.get(key, key): value for key, value in named.items()})
    except TypeError as error:
        return f"{error} ({len(args)} given by position)" if "positional" in str(error) else str(error)
    return None


def did_you_mean(name, names):
    """The name that is most like another one, as the end of a sentence; nothing if none is."""
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _brief(signature):
    """The signature without annotations."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _in_our_words(error, text, given, owner):
    """What Python said of a value somewhere inside, said of the arguments; None if the text is cgrad's own."""
    others = {key: value for key, value in given.items() if not isinstance(value, Tensor)}
    if isinstance(error, KeyError) and owner is not NotImplemented:
        text = f"there is no {text!r}"
        if hasattr(owner, "keys"):
            return f"{text}, only {', '.join(map(repr, owner.keys()))}"
        return f"cannot work with {_listed(given)}: {text}" if given else text
    if not given or not isinstance(error, AttributeError) and not _PYTHONS_OWN.search(text):
        return None
    tensors = owner is None or owner is NotImplemented
    if isinstance(error, AttributeError) and (tensors or isinstance(owner, type)) and hasattr(Tensor, str(error.name)):
        for key, value in others.items():
            if value is error.obj:
                return f"{key} must be a tensor, got {described(value)}"
    if _WRONG_TYPE.match(text) or tensors and isinstance(error, AttributeError) and hasattr(Tensor, str(error.name)):
        return f"expected a tensor, got {_listed(others or given)}"
    named = {key: value for key, value in others.items() if f"'{type(value).__name__}'" in text}
    return f"cannot work with {_listed(named or given)}: {text}"


def _listed(given):
    return ", ".join(f"{key} = {described(value)}" for key, value in given.items())


def described(value):
    """A value in a few words."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and dtype {value.dtype.name}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, (Tensor, np.ndarray)) for item in value):
        return f"a {type(value).__name__} of {len(value)}: " + ", ".join(described(item) for item in value[:3]) + ", ..." * (len(value) > 3)
    try:
        text = repr(value)
    except Exception:               # noqa: BLE001  a repr of the user's, perhaps of what is half made
        text = "\n"
    if "\n" in text or " at 0x" in text:
        return f"{type(value).__name__}(...)"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
