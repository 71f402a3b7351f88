"""gradcheck and gradgradcheck: derivatives computed by the rules against differences of function values."""
from __future__ import annotations

import contextlib

import numpy as np

from cgrad.autograd.grad import grad
from cgrad.core.dtype import float64
from cgrad.core.batching import enter_level, enter_map, leave_map, make_batched, unbatched
from cgrad.core.forward_mode import make_dual, unpack_dual
from cgrad.core.source import warn
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import tensor

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


#: how many gradients or tangents a batch holds
_BATCH = 3


class GradcheckError(RuntimeError):
    """A derivative differs from the difference of function values.

    Examples
    --------
    >>> import cgrad as cg
    >>> f = cg.op(lambda x: x * x, vjp=lambda g, out, x: g * x)           # should be 2 * g * x
    >>> try:
    ...     cg.autograd.gradcheck(f, cg.tensor([1.0], dtype=cg.float64, requires_grad=True))
    ... except cg.autograd.GradcheckError:
    ...     print("wrong")
    wrong
    """


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
              check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
              check_backward_ad=True, fast_mode=False, masked=None):
    """Check the derivatives of a function against central differences.

    Parameters
    ----------
    func : callable
        Returns a Tensor or a tuple of Tensors.
    inputs : Tensor or tuple
        Its arguments. Those that require grad are checked; they should be float64.
    eps : float
        Step of the differences.
    atol, rtol : float
        ``|rule - difference| <= atol + rtol * |difference|`` must hold.
    raise_exception : bool
        False returns False instead of raising.
    nondet_tol : float
        By how much two runs of the rules may differ.
    check_grad_dtypes : bool
        Check that gradients have the dtype of their inputs.
    check_forward_ad, check_backward_ad : bool
        Which modes to check.
    check_batched_grad, check_batched_forward_grad : bool
        Check that a batch of gradients pulled back at once, or of tangents pushed forward at once, gives the same as one after the other
        (``|batched - alone| <= 1e-8 + 1e-5 * |alone|``).
    fast_mode : bool
        Compare along one random direction instead of element by element.
    check_undefined_grad, masked
        Accepted for likeness with PyTorch. Results that are not differentiated receive no gradient in any case.

    Returns
    -------
    bool

    Raises
    ------
    GradcheckError
        Naming the input, its element, and both numbers.
    ValueError
        If there is nothing to check, or a batched check is asked for without that of its mode.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.5, 2.0], dtype=cg.float64, requires_grad=True)
    >>> cg.autograd.gradcheck(cg.sin, x, check_forward_ad=True)
    True
    """
    return _run("gradcheck", func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_grad_dtypes, check_batched_grad,
                check_batched_forward_grad, check_forward_ad, check_backward_ad, fast_mode)


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """Check second derivatives: `gradcheck` of the gradient of a function, whose inputs are those of the function and `grad_outputs`.

    Parameters
    ----------
    func : callable
    inputs : Tensor or tuple
    grad_outputs : Tensor or tuple, optional
        What flows into the outputs; random by default.
    gen_non_contig_grad_outputs : bool
        Make the random ones non-contiguous.
    check_fwd_over_rev, check_rev_over_rev : bool
        Which mode to use over reverse mode.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode, masked
        As for `gradcheck`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.5, 2.0], dtype=cg.float64, requires_grad=True)
    >>> cg.autograd.gradgradcheck(cg.sin, x)
    True
    """
    inputs = _as_tuple(inputs)
    outputs = [y for y in _as_tuple(func(*inputs)) if _differentiable(y)]
    if grad_outputs is None:
        seeds = tuple(_random_like(y, gen_non_contig_grad_outputs) for y in outputs)
    else:
        seeds = _as_tuple(grad_outputs)
    if len(seeds) != len(outputs):
        raise ValueError(f"gradgradcheck: the function has {len(outputs)} differentiable outputs, got {len(seeds)} gradients for them")
    n = len(inputs)

    def gradient(*args):
        args, seeds = args[:n], args[n:]
        outputs = tuple(y for y in _as_tuple(func(*args)) if _differentiable(y))
        wanted = tuple(x for x in args if isinstance(x, Tensor) and x.requires_grad)
        return tuple(g for g in grad(outputs, wanted, seeds, create_graph=True, allow_unused=True) if g is not None and g.requires_grad)

    return _run("gradgradcheck", gradient, inputs + seeds, eps, atol, rtol, raise_exception, nondet_tol, check_grad_dtypes, check_batched_grad,
                False, check_fwd_over_rev, check_rev_over_rev, fast_mode)


def _run(name, func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_dtypes, batched, batched_forward, forward, backward, fast):
    if batched and not backward:
        raise ValueError(f"{name}: check_batched_grad=True needs {'check_backward_ad' if name == 'gradcheck' else 'check_rev_over_rev'}=True")
    if batched_forward and not forward:
        raise ValueError(f"{name}: check_batched_forward_grad=True needs check_forward_ad=True")
    check = _Check(name, func, inputs, eps, atol, rtol)
    try:
        check.outputs_alike()
        numbers = check.differences(fast)
        if backward:
            check.backward(numbers, fast, nondet_tol, check_dtypes)
        if forward:
            check.forward(numbers, fast)
        if batched:
            check.batched_backward()
        if batched_forward:
            check.batched_forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


class _Check:
    """One check: the function, its inputs, and the comparison."""

    def __init__(self, name, func, inputs, eps, atol, rtol):
        self.name, self.func, self.eps, self.atol, self.rtol = name, func, eps, atol, rtol
        self.inputs = _as_tuple(inputs)
        self.places = [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]
        if not self.places:
            raise ValueError(f"{name}: no input requires grad, so there is nothing to check")
        for i in self.places:
            x = self.inputs[i]
            if x.dtype.itemsize < 4:
                raise TypeError(f"{name}: input {i} is {x.dtype}, whose rounding drowns every difference; check with float64, "
                                "for instance input.double()")
            if x.dtype != float64:
                warn(f"{name}: input {i} is {x.dtype.name}; differences need float64 to be exact enough, for instance input.double()")
            if any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape)):
                raise ValueError(f"{name}: elements of input {i} share memory (shape {tuple(x.shape)}, strides {tuple(x.strides)}), "
                                 "so they cannot be changed one by one; pass input.clone()")
        self.memory = [self.inputs[i].detach().numpy() for i in self.places]

    def outputs_alike(self):
        """Call the function once and see that its outputs can be differentiated."""
        outputs = _as_tuple(self.func(*self.inputs))
        for k, y in enumerate(outputs):
            if not isinstance(y, Tensor):
                raise ValueError(f"{self.name}: the function must return tensors, output {k} is {type(y).__name__}")
        self.shown = [k for k, y in enumerate(outputs) if y.dtype.is_floating_point]
        self.outputs = outputs

    def values(self):
        """The outputs now, as one vector of float64."""
        outputs = _as_tuple(self.func(*self.inputs))
        parts = [outputs[k].detach().numpy().astype(np.float64).ravel() for k in self.shown]
        return np.concatenate(parts) if parts else np.zeros(0)

    def differences(self, fast):
        """For each input the Jacobian (elements x outputs), or with `fast` its product with a random direction."""
        rng = np.random.default_rng(0)
        self.directions = [rng.standard_normal(m.shape) for m in self.memory]
        self.weights = rng.standard_normal(sum(self.outputs[k].size for k in self.shown))
        found = []
        for memory, direction in zip(self.memory, self.directions):
            if fast:
                found.append(self._difference(memory, ..., direction)[None])
                continue
            rows = [self._difference(memory, index, 1.0) for index in np.ndindex(*memory.shape)]
            found.append(np.array(rows).reshape(len(rows), self.weights.size))
        return found

    def _difference(self, memory, index, direction):
        before = memory[index].copy()
        try:
            memory[index] = before + self.eps * direction
            up = self.values()
            memory[index] = before - self.eps * direction
            return (up - self.values()) / (2 * self.eps)
        finally:
            memory[index] = before

    def backward(self, numbers, fast, nondet_tol, check_dtypes):
        """Compare with reverse mode."""
        first, again = self._by_rows(fast, check_dtypes), self._by_rows(fast, check_dtypes)
        for j, i in enumerate(self.places):
            drift = np.abs(first[j] - again[j]).max(initial=0.0)
            if drift > nondet_tol:
                raise GradcheckError(f"{self.name}: backward is not deterministic: two runs for input {i} differ by {drift:.3g}")
            if fast:
                self._compare_along("backward", j, self.directions[j].ravel() @ first[j], numbers[j] @ self.weights)
            else:
                self._compare("backward", j, first[j], numbers[j])

    def _by_rows(self, fast, check_dtypes):
        wanted = [self.inputs[i] for i in self.places]
        outputs = _as_tuple(self.func(*self.inputs))
        columns = [[] for _ in wanted]
        start = 0
        for k in self.shown:
            y = outputs[k]
            weights = self.weights[start:start + y.size]
            start += y.size
            for seed in ([weights] if fast else np.eye(y.size)):
                found = [None] * len(wanted)
                if y.requires_grad:
                    g = tensor(seed.reshape(y.shape), dtype=y.dtype)
                    found = grad(y, wanted, g, retain_graph=True, allow_unused=True)
                for j, (x, g) in enumerate(zip(wanted, found)):
                    if g is not None and g.shape != x.shape:
                        raise GradcheckError(f"{self.name}: the gradient of input {self.places[j]} has shape {tuple(g.shape)}, the input {tuple(x.shape)}")
                    if g is not None and check_dtypes and g.dtype != x.dtype:
                        raise GradcheckError(f"{self.name}: the gradient of input {self.places[j]} is {g.dtype}, the input {x.dtype}")
                    columns[j].append(np.zeros(x.size) if g is None else g.detach().numpy().astype(np.float64).ravel())
        found = [np.array(c).reshape(len(c), x.size).T for c, x in zip(columns, wanted)]
        return [f.sum(axis=1) for f in found] if fast else found

    def forward(self, numbers, fast):
        """Compare with forward mode."""
        for j, i in enumerate(self.places):
            if fast:
                self._compare_along("forward mode", j, self._pushed(i, self.directions[j]), numbers[j][0])
            else:
                self._compare("forward mode", j, self._by_columns(j), numbers[j])

    def _by_columns(self, j):
        x = self.inputs[self.places[j]]
        rows = [self._pushed(self.places[j], seed.reshape(x.shape)) for seed in np.eye(x.size)]
        return np.array(rows).reshape(x.size, self.weights.size)

    def _pushed(self, i, direction):
        found = self._tangents(i, tensor(direction, dtype=self.inputs[i].dtype))
        parts = [np.zeros(self.outputs[k].size) if t is None else t.detach().numpy().astype(np.float64).ravel() for k, t in zip(self.shown, found)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _tangents(self, i, direction):
        """The tangents of the outputs, None where there is none, for that of one input."""
        level = enter_level()
        args = list(self.inputs)
        args[i] = make_dual(args[i], direction, level)
        outputs = _as_tuple(self.func(*args))
        return [unpack_dual(outputs[k], level)[1] for k in self.shown]

    def batched_backward(self):
        """Compare gradients pulled back as one batch with those pulled back alone."""
        rng = np.random.default_rng(2)
        wanted = [self.inputs[i] for i in self.places]
        outputs = _as_tuple(self.func(*self.inputs))
        for k in self.shown:
            y = outputs[k]
            if not y.requires_grad:
                continue
            seeds = tensor(rng.standard_normal((_BATCH, *y.shape)), dtype=y.dtype)
            alone = [grad(y, wanted, g, retain_graph=True, allow_unused=True) for g in seeds]
            with _failure(f"{self.name}: a batch of gradients of output {k} could not be pulled back"):
                together = grad(y, wanted, seeds, retain_graph=True, allow_unused=True, is_grads_batched=True)
            for j, i in enumerate(self.places):
                self._compare_batch("backward", f"the gradient of input {i} from output {k}", together[j], [g[j] for g in alone], self.inputs[i].shape)

    def batched_forward(self):
        """The same for tangents pushed forward."""
        rng = np.random.default_rng(2)
        for i in self.places:
            x = self.inputs[i]
            directions = rng.standard_normal((_BATCH, *x.shape))
            alone = [self._tangents(i, tensor(d, dtype=x.dtype)) for d in directions]
            with _failure(f"{self.name}: a batch of tangents of input {i} could not be pushed forward"):
                level = enter_map(_BATCH, "same")
                try:
                    found = self._tangents(i, make_batched(tensor(directions, dtype=x.dtype), level))
                finally:
                    leave_map()
                together = [None if t is None else unbatched(t, level, _BATCH) for t in found]
            for n, k in enumerate(self.shown):
                self._compare_batch("forward mode", f"the tangent of output {k} from input {i}", together[n], [t[n] for t in alone], self.outputs[k].shape)

    def _compare_batch(self, mode, what, together, alone, shape):
        got = np.zeros((_BATCH, *shape)) if together is None else together.detach().numpy().astype(np.float64)
        expected = np.array([np.zeros(shape) if t is None else t.detach().numpy().astype(np.float64) for t in alone])
        wrong = _differ(got, expected, 1e-8, 1e-5)
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            raise GradcheckError(f"{self.name}: batched {mode} is wrong: element {list(at[1:])} of {what}, number {at[0]} of the batch: "
                                 f"batched {got[at]:.8g}, alone {expected[at]:.8g} ({int(wrong.sum())} of {wrong.size} are wrong)")

    def _compare_along(self, mode, j, got, expected):
        """Along one random direction; only if that is wrong, element by element."""
        wrong = _differ(np.ravel(got), np.ravel(expected), self.atol, self.rtol)
        if not wrong.any():
            return
        rows = [self._difference(self.memory[j], index, 1.0) for index in np.ndindex(*self.memory[j].shape)]
        full = self._by_rows(False, False)[j] if mode == "backward" else self._by_columns(j)
        self._compare(mode, j, full, np.array(rows).reshape(len(rows), self.weights.size))
        raise GradcheckError(f"{self.name}: {mode} of input {self.places[j]} along a random direction: rule {np.ravel(got)[np.argmax(wrong)]:.8g}, "
                             f"difference {np.ravel(expected)[np.argmax(wrong)]:.8g}, though no element alone is wrong")

    def _compare(self, mode, j, got, expected):
        wrong = _differ(got, expected, self.atol, self.rtol)
        if not wrong.any():
            return
        i = self.places[j]
        element, position = (int(n) for n in np.argwhere(wrong)[0])
        k = 0
        place = position
        while place >= self.outputs[self.shown[k]].size:
            place -= self.outputs[self.shown[k]].size
            k += 1
        at = _index(element, self.inputs[i].shape)
        to = _index(place, self.outputs[self.shown[k]].shape)
        raise GradcheckError(f"{self.name}: {mode} is wrong: derivative of output {self.shown[k]}{to} with respect to input {i}{at}: "
                             f"rule {got[element, position]:.8g}, difference {expected[element, position]:.8g} "
                             f"({int(wrong.sum())} of {wrong.size} derivatives of this input are wrong)")


def _differ(got, expected, atol, rtol):
    return ~((np.abs(got - expected) <= atol + rtol * np.abs(expected)) | (got == expected) | (np.isnan(got) & np.isnan(expected)))


@contextlib.contextmanager
def _failure(message):
    try:
        yield
    except Exception as error:
        raise GradcheckError(f"{message}: {error}") from error


def _index(flat, shape):
    return str([int(n) for n in np.unravel_index(flat, shape)]) if shape else ""


def _as_tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _differentiable(y):
    return isinstance(y, Tensor) and y.requires_grad


def _random_like(y, non_contiguous):
    values = np.random.default_rng(1).standard_normal((*y.shape, 2) if non_contiguous else y.shape)
    g = tensor(values, dtype=y.dtype)
    return (g[..., 0].detach() if non_contiguous else g).requires_grad_()
