"""Parameter and Buffer: tensors that a Module registers by itself when they are assigned as attributes."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that belongs to a Module and is trained.

    Parameters
    ----------
    data : Tensor or array-like
        The values. A Tensor's memory is shared, anything else is copied.
    requires_grad : bool, default True
        Whether ``backward`` fills ``.grad``. Frozen parameters are still saved and listed.

    Raises
    ------
    TypeError
        If gradients are asked for and `data` is not floating point.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.nn.Parameter(cg.tensor([1.0, 2.0]))
    >>> w.requires_grad, w.is_leaf
    (True, True)
    >>> w
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = cg.empty((0,))
        elif not isinstance(data, Tensor):
            data = cg.tensor(data)
        if requires_grad and not data.dtype.is_floating_point:
            raise TypeError(f"Parameter: only floating point tensors can require gradients, got {data.dtype}; "
                            "pass requires_grad=False or convert the data")
        return Tensor._make_subclass(cls, data.detach(), bool(requires_grad))

    def __init__(self, data=None, requires_grad=True):
        pass

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo):
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return known


class Buffer(Tensor):
    """A tensor that is state of a Module but not trained; assigning it as an attribute is the same as `Module.register_buffer`.

    Parameters
    ----------
    data : Tensor or array-like
        The values. A Tensor's memory is shared, anything else is copied.
    persistent : bool, default True
        Whether it is part of the module's `state_dict`.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.Identity()
    >>> layer.mean = cg.nn.Buffer(cg.tensor([1.0, 2.0]))
    >>> list(layer.state_dict())
    ['mean']
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = cg.empty((0,))
        elif not isinstance(data, Tensor):
            data = cg.tensor(data)
        out = Tensor._make_subclass(cls, data.detach(), False)
        out.persistent = bool(persistent)
        return out

    def __init__(self, data=None, *, persistent=True):
        pass

    def __deepcopy__(self, memo):
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        return known
