"""Module: a tree of parameters, buffers and sub-modules with a forward function.

State saving and loading is in `state.py`, hooks are in `hooks.py`.
"""
from __future__ import annotations

from cgrad.core.convert import writable_or_copied
from cgrad.core.tensor import Tensor
from cgrad.nn import hooks as _hooks
from cgrad.nn import state as _state
from cgrad.nn.parameter import Buffer, Parameter

__all__ = ["Module"]

_TABLES = ("_parameters", "_buffers", "_modules")


class Module:
    """Base class of everything that holds parameters.

    A subclass calls ``super().__init__()``, assigns parameters and other modules as attributes, and writes `forward`.

    Attributes
    ----------
    training : bool
        True after construction and `train`, False after `eval`.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Net(cg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = cg.nn.Linear(2, 3)
    ...         self.out = cg.nn.Linear(3, 1)
    ...     def forward(self, x):
    ...         return self.out(cg.nn.functional.relu(self.hidden(x)))
    >>> net = Net()
    >>> net(cg.ones((4, 2))).shape
    (4, 1)
    >>> [name for name, _ in net.named_parameters()]
    ['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']
    >>> net
    Net(
      (hidden): Linear(in_features=2, out_features=3, bias=True)
      (out): Linear(in_features=3, out_features=1, bias=True)
    )
    """

    def __init__(self):
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_modules"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_hooks"] = _hooks.HookTable()

    def forward(self, *args, **kwargs):
        """Compute the output; every subclass writes its own."""
        raise NotImplementedError(f"{type(self).__name__}: a Module needs a forward method; write def forward(self, ...)")

    def __call__(self, *args, **kwargs):
        try:
            if self._hooks:
                return _hooks.call(self, args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            from cgrad.core.mistakes import explained_of_layer
            error = explained_of_layer(self, args, kwargs, error)      # the name is forgotten in the end, and no cycle keeps the frames
            if error is None:
                raise
            raise error from None

    # ------------------------------------------------------------------ attributes
    def __getattr__(self, name):
        own = self.__dict__
        for table in _TABLES:
            entries = own.get(table)
            if entries is not None and name in entries:
                return entries[name]
        if "_modules" not in own and (name in _TABLES or name in ("training", "_hooks")):
            raise AttributeError(f"{type(self).__name__}: call super().__init__() first in __init__")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError(f"{type(self).__name__}: cannot assign module '{name}' before super().__init__()")
            if name in vars(Module):
                raise KeyError(f"{type(self).__name__}: '{name}' is a method of every Module; give the child another name")
            self._forget(name, "_modules")
            own["_modules"][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"{type(self).__name__}: cannot assign {type(value).__name__} as parameter '{name}'; "
                                "a Parameter or None is needed (del the parameter first to replace it by something else)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(f"{type(self).__name__}: cannot assign {type(value).__name__} as child module '{name}'; "
                                "a Module or None is needed")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{type(self).__name__}: cannot assign {type(value).__name__} as buffer '{name}'; "
                                "a Tensor or None is needed")
            own["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        for table in _TABLES:
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                del entries[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", _hooks.HookTable())
        for name, buffer in self._buffers.items():
            self._buffers[name] = buffer if buffer is None else writable_or_copied(buffer)

    def __dir__(self):
        own = self.__dict__
        names = set(dir(type(self))) | set(own)
        for table in _TABLES:
            names.update(own.get(table, ()))
        return sorted(name for name in names if not name[:1].isdigit())

    def _forget(self, name, keep):
        """Take `name` out of every place but the table `keep`, so that it means one thing."""
        own = self.__dict__
        own.pop(name, None)
        for table in _TABLES:
            if table != keep and name in own.get(table, ()):
                del own[table][name]
                own["_non_persistent_buffers_set"].discard(name)

    def _check_name(self, what, name, table):
        own = self.__dict__
        if table not in own:
            raise AttributeError(f"{type(self).__name__}: cannot assign {what} '{name}' before super().__init__()")
        if not isinstance(name, str):
            raise TypeError(f"register_{what}: the name must be a string, got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"register_{what}: the name '{name}' contains a dot; dots separate levels of the module tree")
        if name == "":
            raise KeyError(f"register_{what}: the name is empty")
        if name not in own[table] and hasattr(self, name):
            raise KeyError(f"register_{what}: '{name}' is already an attribute of {type(self).__name__}")

    def register_parameter(self, name, param):
        """Add a parameter (or None, which reserves the name); the same as assigning it as an attribute."""
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"register_parameter: '{name}' must be a Parameter or None, got {type(param).__name__}")
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is state but not trained, such as a running mean.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool, default True
            Whether the buffer is part of `state_dict`.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"register_buffer: '{name}' must be a Tensor or None, got {type(tensor).__name__}")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name, module):
        """Another name of `add_module`."""
        self.add_module(name, module)

    def _check_child(self, name, module):
        self._check_name("module", name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"add_module: '{name}' must be a Module or None, got {module!r:.80}")

    def add_module(self, name, module):
        """Add a child module (or None); the same as assigning it as an attribute."""
        self._check_child(name, module)
        self._modules[name] = module

    # ------------------------------------------------------------------ walking the tree
    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yield (path, module) for this module and all below it, each module once."""
        memo = set() if memo is None else memo
        if id(self) in memo:
            return
        if remove_duplicate:
            memo.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """Yield this module and all below it; each once, unless `remove_duplicate` is False."""
        return iter(_tree(self)) if remove_duplicate else (module for _, module in self.named_modules(remove_duplicate=False))

    def named_children(self):
        """Yield (name, module) of the direct children, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        """Yield the direct children."""
        for _, module in self.named_children():
            yield module

    def _named_entries(self, table, prefix, recurse, remove_duplicate):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield (path, parameter) of this module and, with `recurse`, all below it; shared parameters once."""
        return self._named_entries("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yield the parameters, what an optimizer takes; shared ones once."""
        seen = set()
        for module in _tree(self) if recurse else (self,):
            for param in module._parameters.values():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield param

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yield (path, buffer), each buffer once."""
        return self._named_entries("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yield the buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        """The module at the path `target`, such as ``"encoder.0"``; AttributeError names what is missing."""
        module = self
        for part in target.split(".") if target else ():
            child = module._modules.get(part)
            if child is None:
                raise AttributeError(f"get_submodule: {type(module).__name__} has no child module '{part}' (in '{target}')")
            module = child
        return module

    def set_submodule(self, target, module, strict=False):
        """Put a module at the path `target`, in place of the one that is there, or as a new one unless `strict`."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: expected a Module, got {type(module).__name__}")
        if owner._modules.get(name) is None and (strict or hasattr(owner, name)):
            raise AttributeError(f"set_submodule: {type(owner).__name__} has no child module '{name}' (in '{target}')")
        owner.add_module(name, module)

    def get_buffer(self, target):
        """The buffer at the path `target`."""
        path, _, name = target.rpartition(".")
        buffer = self.get_submodule(path)._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"get_buffer: there is no buffer '{target}'")
        return buffer

    def get_parameter(self, target):
        """The parameter at the path `target`."""
        path, _, name = target.rpartition(".")
        param = self.get_submodule(path)._parameters.get(name)
        if param is None:
            raise AttributeError(f"get_parameter: there is no parameter '{target}'")
        return param

    def apply(self, fn):
        """Call ``fn(module)`` on every module below and then on this one; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ------------------------------------------------------------------ switches
    def train(self, mode=True):
        """Set training mode here and below (matters for dropout and the like); returns self."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: the mode must be True or False, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Set evaluation mode, the same as ``train(False)``; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Let all parameters require gradients or freeze them; returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or with ``set_to_none=False`` fill them with zeros."""
        for module in _tree(self):
            for param in module._parameters.values():
                if param is None or param.grad is None:
                    continue
                param.grad = None if set_to_none else param.grad.detach().zero_()

    # ------------------------------------------------------------------ dtype
    def to(self, *args, **kwargs):
        """Convert floating point parameters and buffers to a dtype, in place; returns self.

        Parameters
        ----------
        dtype : dtype, optional
            A floating point dtype. ``"cpu"``, the only device, is accepted and changes nothing. A Tensor stands for its dtype.
        """
        return _state.convert(self, _state.parse_to(args, kwargs))

    def float(self):
        """Convert floating point parameters and buffers to float32; returns self."""
        return self.to("float32")

    def double(self):
        """Convert floating point parameters and buffers to float64; returns self."""
        return self.to("float64")

    def half(self):
        """Convert floating point parameters and buffers to float16, computed in float32; returns self."""
        return self.to("float16")

    def bfloat16(self):
        """Convert floating point parameters and buffers to bfloat16, computed in float32; returns self."""
        return self.to("bfloat16")

    def type(self, dst_type):
        """Convert floating point parameters and buffers to a dtype; returns self."""
        return self.to(dst_type)

    def cpu(self):
        """Changes nothing, since everything is on the CPU; returns self."""
        return self

    def cuda(self, device=None):
        """Only an error: cgrad computes on the CPU, see ``model.to(device)``."""
        raise ValueError("cuda: cgrad computes on the CPU; leave .cuda() out, or write .to(device) with cg.device('cpu')")

    # ------------------------------------------------------------------ saving
    def get_extra_state(self):
        """State beside parameters and buffers for `state_dict`; a class that has some writes this and `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__}: a class with set_extra_state must have get_extra_state, too")

    def set_extra_state(self, state):
        """Take back what `get_extra_state` gave, when a state dict is loaded."""
        raise RuntimeError(f"{type(self).__name__}: the state dict has an extra state; write set_extra_state to take it")

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by path, and extra states.

        Parameters
        ----------
        destination : dict, optional
            Where to put them; a new OrderedDict by default.
        prefix : str, optional
            Put before every key.
        keep_vars : bool, default False
            False gives detached tensors that share memory with the module, True the parameters themselves.

        Examples
        --------
        >>> import cgrad as cg
        >>> list(cg.nn.Linear(2, 1).state_dict())
        ['weight', 'bias']
        """
        return _state.state_dict(self, destination, prefix, keep_vars)

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy values from a state dict into this module.

        Everything is checked before the first value is copied: after an error the module is as it was.

        Parameters
        ----------
        state_dict : mapping of str to Tensor or array
        strict : bool, default True
            Whether missing and unexpected keys are an error. Shapes must always agree.
        assign : bool, default False
            Take the given tensors themselves instead of copying their values.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``, lists of str.

        Raises
        ------
        RuntimeError
            Naming every missing key, every unexpected key and every pair of unlike shapes.

        Examples
        --------
        >>> import cgrad as cg
        >>> a, b = cg.nn.Linear(2, 1), cg.nn.Linear(2, 1)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        """
        return _state.load_state_dict(self, state_dict, strict, assign)

    # ------------------------------------------------------------------ hooks
    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before every forward; a result other than None replaces the arguments."""
        return _hooks.add(self, "forward_pre", hook, with_kwargs, prepend=prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after every forward; a result other than None replaces the output.

        With `always_call` also after a forward that raised an exception.
        """
        return _hooks.add(self, "forward", hook, with_kwargs, always_call, prepend=prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are there; a result replaces them."""
        return _hooks.add(self, "full_backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there; a result replaces `grad_input`.

        `grad_input` has an entry for each positional argument, None where no gradient is wanted.

        Examples
        --------
        >>> import cgrad as cg
        >>> layer = cg.nn.Linear(2, 1)
        >>> handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> layer(cg.ones(1, 2)).sum().backward()
        (tensor([[1.]]),)
        """
        return _hooks.add(self, "full_backward", hook, prepend=prepend)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before `state_dict` reads this module."""
        return _hooks.add(self, "state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after it; the hook may change the dict in place."""
        return _hooks.add(self, "state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before loading.

        The hook may change the dict, which is a copy, for example to rename keys of older versions.
        """
        return _hooks.add(self, "load_state_dict_pre", hook)

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading; what it takes off the two lists is no longer an error."""
        return _hooks.add(self, "load_state_dict_post", hook)

    # ------------------------------------------------------------------ printing
    def summary(self, *inputs, input_size=None, dtype=None, **kwargs):
        """A table of all layers: shapes of their results, parameters, bytes, multiply-adds.

        The module is called once with the inputs, in evaluation mode and without recording; hooks, modes and random numbers are then
        as before. Without inputs it is not called, and shapes and multiply-adds are left out.

        Parameters
        ----------
        *inputs
            What the module is called with; a tuple of ints stands for zeros of that shape.
        input_size : tuple of int, or list of them, optional
            The same for those who know it by this name.
        dtype : dtype, optional
            Of the zeros; that of the first parameter by default.
        **kwargs
            Handed to the module.

        Returns
        -------
        ModelSummary
            Prints as a table, in notebooks as HTML; the figures are its attributes (``parameters``, ``trainable``, ``parameter_bytes``,
            ``multiply_adds``, ``flops``, ``layers``, ...).

        Notes
        -----
        Multiply-adds are those of matrix products: ``out.size * in_features`` of a linear layer, ``out.size * in_channels / groups *
        kernel`` of a convolution, projections and both products of attention, ``steps * weights`` of recurrent layers. Sums of biases,
        elementwise functions and products that a forward writes itself are not counted.

        Examples
        --------
        >>> import cgrad as cg
        >>> net = cg.nn.Sequential(cg.nn.Linear(4, 8), cg.nn.ReLU(), cg.nn.Linear(8, 2))
        >>> net.summary((1, 4))
        layer        output shape  parameters  trainable  bytes  multiply-adds
        ----------------------------------------------------------------------
        Sequential   (1, 2)                 -          -      -              -
          0: Linear  (1, 8)                40        yes    160             32
          1: ReLU    (1, 8)                 -          -      -              -
          2: Linear  (1, 2)                18        yes     72             16
        ----------------------------------------------------------------------
        parameters     58 (58 trainable), 232 B
        buffers        0 B
        outputs        72 B
        multiply-adds  48 (96 flops)
        """
        from cgrad.nn.summary import summarize
        return summarize(self, inputs, input_size, dtype, kwargs)

    def extra_repr(self):
        """What stands between the brackets of the printed form, before the children."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def _child_lines(self):
        return [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        children = self._child_lines()
        if not children and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return "\n  ".join([f"{self._get_name()}(", *extra_lines, *children]) + "\n)"


def check_sizes(layer, least=1, **sizes):
    """Raise ValueError unless the sizes that a layer is made with are ints of at least `least`."""
    for what, n in sizes.items():
        if not isinstance(n, int) or n < least:
            raise ValueError(f"{type(layer).__name__}: {what} must be an int of at least {least}, got {n!r}")


def _tree(module):
    """A module and all below it as a list, parents first, each once; the names that `named_modules` makes take longer than the walk."""
    out = []
    _visit(module, out, set())
    return out


def _visit(module, out, seen):
    seen.add(id(module))
    out.append(module)
    for child in module._modules.values():
        if child is not None and id(child) not in seen:
            _visit(child, out, seen)


def indent(text):
    """Indent all lines but the first by two blanks."""
    return text.replace("\n", "\n  ")

