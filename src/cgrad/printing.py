"""How tensors are shown: the layout, number formats and abbreviations of PyTorch.

Only the shown part of a tensor is ever turned into Python numbers.  Called by Tensor's ``repr``.  Next: config.py.
"""
import contextlib
import math

from cgrad.core import convert
from cgrad.core.batching import is_batched
from cgrad.core.dtype import get_default_dtype
from cgrad.core.forward import index

__all__ = ["set_printoptions", "get_printoptions", "printoptions"]

_DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
_PROFILES = {
    "default": _DEFAULT,
    "short": {**_DEFAULT, "precision": 2, "edgeitems": 2},
    "full": {**_DEFAULT, "threshold": math.inf},
}
_options = dict(_DEFAULT)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """
    Change how tensors are shown.

    Parameters
    ----------
    precision : int, optional
        Digits after the point (4 by default).
    threshold : int, optional
        Number of elements above which only the edges are shown (1000).
    edgeitems : int, optional
        How many elements are shown at each edge then (3).
    linewidth : int, optional
        Characters on a line (80).
    profile : {"default", "short", "full"}, optional
        Sets of values to start from.
    sci_mode : bool, optional
        Always or never use scientific notation; only None in a profile lets the numbers decide.

    Raises
    ------
    ValueError
        An unknown profile or a value out of range.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.set_printoptions(precision=2)
    >>> cg.tensor([0.125])
    tensor([0.12])
    >>> cg.set_printoptions(profile="default")
    """
    new = dict(_options)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
        new = dict(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not (isinstance(value, int) or name == "threshold" and value == math.inf) or value < 0:
            raise ValueError(f"set_printoptions: {name} must be a non-negative int, got {value!r}")
        new[name] = value
    if sci_mode is not None:
        new["sci_mode"] = bool(sci_mode)
    _options.update(new)


def get_printoptions():
    """
    The settings of `set_printoptions` as a dict.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.printing.get_printoptions()["precision"]
    4
    """
    return dict(_options)


@contextlib.contextmanager
def printoptions(**options):
    """
    Other settings within a ``with`` block.

    Parameters
    ----------
    **options
        As for `set_printoptions`.

    Examples
    --------
    >>> import cgrad as cg
    >>> with cg.printing.printoptions(precision=1):
    ...     print(cg.tensor([0.25]))
    tensor([0.2])
    """
    before = dict(_options)
    try:
        set_printoptions(**options)
        yield get_printoptions()
    finally:
        _options.clear()
        _options.update(before)


class Format:
    """The one format in which all numbers of a tensor are shown: whole, fixed or scientific, and how wide."""

    def __init__(self, values, floating):
        self.floating, self.whole, self.scientific, self.width = floating, True, False, 1
        precision, wanted = _options["precision"], _options["sci_mode"]
        if not floating:
            self.width = max((len(str(value)) for value in values), default=1)
            return
        values = [value for value in values if value != 0 and math.isfinite(value)]
        if values:
            largest, smallest = max(map(abs, values)), min(map(abs, values))
            self.whole = all(value == math.floor(value) for value in values)
            self.scientific = largest / smallest > 1000.0 or largest > 1e8 or (not self.whole and smallest < 1e-4)
            if wanted is not None:
                self.scientific = wanted
            if self.scientific:
                self.width = max(len(f"{value:.{precision}e}") for value in values)
            elif self.whole:
                self.width = max(len(f"{value:.0f}") + 1 for value in values)
            else:
                self.width = max(len(f"{value:.{precision}f}") for value in values)

    def __call__(self, value):
        precision = _options["precision"]
        if not self.floating:
            shown = str(value)
        elif self.scientific:
            shown = f"{value:.{precision}e}"
        elif self.whole:
            shown = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            shown = f"{value:.{precision}f}"
        return shown.rjust(self.width)


def _shown(x, summarize):
    """The shown numbers of `x` as nested lists, with Ellipsis for what is left out."""
    if x.ndim == 0:
        return convert.item(x)
    edge, n = _options["edgeitems"], x.shape[0]
    if not summarize:
        return convert.tolist(x)
    if n <= 2 * edge:
        return [_shown(index.getitem(x, k), True) for k in range(n)]
    head = [_shown(index.getitem(x, k), True) for k in range(edge)]
    return [*head, Ellipsis, *(_shown(index.getitem(x, k), True) for k in range(n - edge, n))]


def _numbers(shown):
    """All numbers in nested lists."""
    if not isinstance(shown, list):
        return [shown]
    flat = [shown]
    while flat and any(isinstance(item, list) for item in flat):
        flat = [number for item in flat if item is not Ellipsis for number in item]
    return [number for number in flat if number is not Ellipsis]


def _layout(shown, depth, indent, form):
    """Text of nested lists, `depth` levels deep."""
    if depth == 0:
        return form(shown)
    if depth == 1:
        per_line = max(1, (_options["linewidth"] - indent) // (form.width + 2))
        items = [" ..." if item is Ellipsis else form(item) for item in shown]
        lines = [", ".join(items[k:k + per_line]) for k in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if item is Ellipsis else _layout(item, depth - 1, indent + 1, form) for item in shown]
    return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"


def text(x, prefix="tensor("):
    """
    Text of a tensor as ``repr`` shows it.

    Parameters
    ----------
    x : Tensor
    prefix : str
        What stands before the numbers; later lines are indented to its length.

    Returns
    -------
    str
        Dtype (unless it is the default float, int64 or bool), ``requires_grad`` and ``grad_fn`` follow the numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> print(cg.printing.text(cg.tensor([1.0, 2.5])))
    tensor([1.0000, 2.5000])
    """
    if is_batched(x):
        return f"tensor(one of a batch in vmap, size={tuple(x.shape)}, dtype={x.dtype!r})"
    indent = len(prefix)
    notes = []
    plain = x.detach()
    if x.size == 0:
        body = "[]"
        if x.ndim != 1:
            notes.append(f"size={tuple(x.shape)}")
        if x.dtype is not get_default_dtype():
            notes.append(f"dtype={x.dtype!r}")
    else:
        shown = _shown(plain, x.size > _options["threshold"])
        body = _layout(shown, x.ndim, indent, Format(_numbers(shown), x.dtype.is_floating_point))
        if x.dtype is not get_default_dtype() and x.dtype.name not in ("int64", "bool"):
            notes.append(f"dtype={x.dtype!r}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn={x.grad_fn!r}")
    elif x.requires_grad:
        notes.append("requires_grad=True")
    out = prefix + body
    used = len(out) - out.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > _options["linewidth"]:
            out += ",\n" + " " * indent + note
            used = indent + len(note)
        else:
            out += ", " + note
            used += len(note) + 2
    return out + ")"
