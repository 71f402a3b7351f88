"""functional_call: call a module with other parameters than its own."""
from __future__ import annotations

__all__ = ["functional_call"]


def functional_call(module, parameters, args=(), kwargs=None):
    """Call a module with tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : Module
        Is unchanged afterwards, also if the call raises.
    parameters : dict of str to Tensor
        By path, as in ``module.state_dict()``; what is not named stays the module's own.
    args : tuple or anything else
        The positional arguments; what is no tuple is the only one.
    kwargs : dict, optional

    Raises
    ------
    KeyError
        If the module has no parameter or buffer of a name.

    Examples
    --------
    >>> import cgrad as cg
    >>> net, x = cg.nn.Linear(2, 1), cg.ones((1, 2))
    >>> p = {"weight": cg.tensor([[1.0, 2.0]]), "bias": cg.tensor([0.5])}
    >>> cg.func.functional_call(net, p, x)
    tensor([[3.5000]])
    >>> cg.func.grad(lambda p: cg.func.functional_call(net, p, x).sum())(p)
    {'weight': tensor([[1., 1.]]), 'bias': tensor([1.])}
    """
    places = []
    for path, value in parameters.items():
        owner, _, name = path.rpartition(".")
        try:
            part = module.get_submodule(owner)
        except AttributeError as error:
            raise KeyError(f"functional_call: there is no parameter or buffer '{path}': {error}") from None
        for table in (part._parameters, part._buffers):
            if name in table:
                places.append((table, name, value))
                break
        else:
            raise KeyError(f"functional_call: there is no parameter or buffer '{path}' in {type(module).__name__}")
    before = [(table, name, table[name]) for table, name, _ in places]
    shared = {id(old): value for (_, _, old), (_, _, value) in zip(before, places)}
    for part in module.modules():        # a parameter that is shared is replaced wherever it is
        for table in (part._parameters, part._buffers):
            for name, old in table.items():
                if old is not None and id(old) in shared and not any(t is table and n == name for t, n, _ in before):
                    before.append((table, name, old))
                    places.append((table, name, shared[id(old)]))
    try:
        for table, name, value in places:
            table[name] = value
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for table, name, old in before:
            table[name] = old
