"""How operations compute for a batch (vmap) where their options tell it: the axes that they name move on by one.

A batch rule gets the inputs with all examples along a new first axis and gives the results likewise.  Most operations that are not
elementwise take their axes from options called `axis` or `axes`, counted from the front, and leave leading axes alone, so the rule
follows; others name `batch=` (see define.py), and what has no rule goes example by example.  Next: core/batching.pyx.
"""

#: options that mean the same whatever axes lie before
_OTHER_OPTIONS = {"keepdims", "correction", "reverse", "sizes", "shifts", "times", "ignored", "n_classes", "descending", "stable", "k",
                  "largest", "ordered", "fold"}


def axes_tell_all(entry, kind):
    """Whether the options of an operation say all about the axes on which it works."""
    names = set(entry.option_names)
    return kind == "elementwise" or bool(names & {"axis", "axes"}) and names <= {"axis", "axes"} | _OTHER_OPTIONS


def with_shifted_axes(entry):
    """The batch rule of an operation whose options tell all."""
    n = entry.n_inputs
    flat = entry.name in ("argmax", "argmin")          # without an axis they count in the flattened tensor

    def rule(*values):
        operands, options = (tuple(values[0]), values[1:]) if n < 0 else (values[:n], values[n:])
        ndim = operands[0].ndim - 1
        named = dict(zip(entry.option_names, options))
        axis = named.get("axis", named.get("axes"))
        if ndim == 0 and type(axis) is int and entry.name not in ("stack", "expand_dims"):     # one axis of a 0-d tensor is let pass
            out = _call(entry, [x.reshape(x.shape + (1,)) for x in operands], _shifted(named, 1))
            return out if out.ndim == 1 else out.reshape(out.shape[:1])
        if flat and axis is None:
            x, = operands
            out = _call(entry, [x.reshape(x.shape[0], -1)], (1, False))
            return out.reshape(out.shape + (1,) * ndim) if named["keepdims"] else out
        return _call(entry, operands, _shifted(named, ndim))
    return rule


def _call(entry, operands, options):
    return entry.function(list(operands), *options) if entry.n_inputs < 0 else entry.function(*operands, *options)


def _shifted(named, ndim):
    """The options with every axis moved on; None stands for all axes."""
    return tuple([value if name not in ("axis", "axes") else tuple(range(1, ndim + 1)) if value is None else
                  tuple([a + (a >= 0) for a in value]) if isinstance(value, (tuple, list)) else value + (value >= 0)
                  for name, value in named.items()])


def with_ndim(x, ndim):
    """The values of a batch with axes of length 1 after the first, so that each example has `ndim` axes."""
    return x if x.ndim > ndim else x.reshape(x.shape[:1] + (1,) * (ndim + 1 - x.ndim) + x.shape[1:])
