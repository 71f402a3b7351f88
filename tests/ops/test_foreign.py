"""foreign_op: functions of ctypes, cffi, Cython and plain addresses as operations, and cgrad's interface for Cython."""
import ctypes
import doctest
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import check_op
from cgrad.ops.foreign import _parsed

libm = ctypes.CDLL(None)


def number_function(name, n=1, dtype=ctypes.c_double):
    """A function of the C library with its types; an object of its own, so that tests do not see each other's."""
    return ctypes.CFUNCTYPE(dtype, *[dtype] * n)((name, libm))


def address_of(name):
    return ctypes.cast(getattr(libm, name), ctypes.c_void_p).value


sin = cg.foreign_op(number_function("sin"), partials=lambda x: cos(x), name="sin")
cos = cg.foreign_op(number_function("cos"), partials=lambda x: -sin(x), name="cos")
atan2 = cg.foreign_op(number_function("atan2", 2), name="atan2", partials=(lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y)))


def leaf(values):
    return cg.tensor(np.asarray(values), dtype=cg.float64, requires_grad=True)


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


# ------------------------------------------------------------------ functions of numbers
@pytest.mark.parametrize("layout", ["0-d", "empty", "flat", "transposed", "reversed", "strided", "broadcast", "many axes", "large"])
def test_every_layout(layout):
    a = {"0-d": random(), "empty": random(0, 3), "flat": random(7), "transposed": random(4, 5).T, "reversed": random(6, 3)[::-1, ::-1],
         "strided": random(9, 8)[::2, 1::3], "broadcast": np.broadcast_to(random(4), (3, 4)), "many axes": random(*[2] * 12),
         "large": random(400, 301).T}[layout]
    np.testing.assert_allclose(sin(cg.from_numpy(a) if layout != "broadcast" else cg.tensor(a[0]).expand(3, 4)).numpy(), np.sin(a), rtol=1e-15)


def test_inputs_broadcast():
    y, x = random(5, 1, 3), random(4, 1, seed=1)
    out = atan2(cg.tensor(y), cg.tensor(x))
    np.testing.assert_allclose(out.numpy(), np.arctan2(y, x), rtol=1e-15)
    np.testing.assert_allclose(atan2(cg.tensor(y), 0.5).numpy(), np.arctan2(y, 0.5), rtol=1e-15)
    np.testing.assert_allclose(atan2(y, x).numpy(), np.arctan2(y, x), rtol=1e-15)
    with pytest.raises(ValueError, match=r"atan2: shapes \(2,\), \(3,\) do not broadcast"):
        atan2(cg.ones(2), cg.ones(3))
    with pytest.raises(TypeError, match="atan2: takes 2 inputs, got 1"):
        atan2(cg.ones(2))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floating_dtypes_are_kept_and_rounded_once(dtype):
    x = cg.tensor(random(50), dtype=getattr(cg, dtype))
    out = sin(x)
    want = cg.tensor(np.sin(x.double().numpy()), dtype=cg.float64).to(x.dtype)
    assert out.dtype is x.dtype
    assert cg.array_equal(out, want)


@pytest.mark.parametrize("dtype", ["bool_", "uint8", "uint64", "int16", "int64"])
def test_integers_become_the_default_dtype(dtype):
    x = cg.tensor([0, 1, 1]).to(getattr(cg, dtype) if dtype != "bool_" else cg.bool)
    assert sin(x).dtype is cg.float32
    np.testing.assert_allclose(sin(x).numpy(), np.sin([0.0, 1, 1]), rtol=1e-7)
    big = cg.tensor([2**40 + 1])
    assert cg.foreign_op(number_function("fmod", 2))(big, 1024.0).item() == 1.0          # exact in the function's dtype


def test_a_float_function_gives_float32():
    f = cg.foreign_op(number_function("sinf", dtype=ctypes.c_float), partials=cg.cos)
    x = leaf([0.5, 1.0])
    assert f(x).dtype is cg.float32 and f(cg.ones(2).half()).dtype is cg.float16
    np.testing.assert_allclose(f(x).detach().numpy(), np.sin([0.5, 1.0]), rtol=1e-6)
    f(x).sum().backward()
    assert x.grad.dtype is cg.float64
    np.testing.assert_allclose(x.grad.numpy(), np.cos([0.5, 1.0]), rtol=1e-6)


def test_special_values():
    x = cg.tensor([np.nan, np.inf, -0.0, 5e-324], dtype=cg.float64)
    out = cg.foreign_op(number_function("sin"))(x).numpy()
    assert np.isnan(out[:2]).all() and np.signbit(out[2]) and out[3] == 5e-324


def test_numbers_alone_give_numbers():
    assert sin(0.5) == math.sin(0.5) and type(sin(1)) is float
    assert atan2(1.0, 2) == math.atan2(1.0, 2)
    assert sin.op.__name__ == "sin" and issubclass(sin.op, cg.Op)


def test_as_many_threads_as_there_are_give_the_same_bits():
    x = cg.tensor(random(100_000))
    with cg.threads(1):
        one = sin(x)
    with cg.threads(4):
        assert cg.array_equal(sin(x), one)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["double", "float"])
def test_up_to_four_numbers(n, kind):
    """Any function will do that is called through a pointer of the right type: Python's own, here."""
    c = ctypes.c_double if kind == "double" else ctypes.c_float
    f = ctypes.CFUNCTYPE(c, *[c] * n)(lambda *xs: sum(k * x for k, x in enumerate(xs, 1)))
    xs = [random(3, seed=k).astype(kind if kind == "float" else "f8").astype("f4" if kind == "float" else "f8") for k in range(n)]
    np.testing.assert_allclose(cg.foreign_op(f)(*map(cg.tensor, xs)).numpy(), sum(k * x for k, x in enumerate(xs, 1)), rtol=1e-6)


# ------------------------------------------------------------------ derivatives
def test_derivatives_of_any_order_in_both_directions_and_batches():
    assert check_op(sin, (leaf(random(2, 3)),))
    assert check_op(atan2, (leaf(random(3)), leaf(random(2, 3, seed=1))))
    x = leaf([0.3])
    y = sin(x)
    for want in (math.cos(0.3), -math.sin(0.3), -math.cos(0.3)):
        y, = cg.autograd.grad(y.sum(), x, create_graph=True)
        assert y.item() == pytest.approx(want, rel=1e-14)
    assert cg.func.jvp(sin, (x.detach(),), (cg.ones(1, dtype=cg.float64),))[1].item() == pytest.approx(math.cos(0.3))
    xs, y = cg.tensor(random(5, 3)), cg.tensor(random(3, seed=1))
    np.testing.assert_allclose(cg.func.vmap(atan2, in_dims=(0, None))(xs, y).numpy(), np.arctan2(xs.numpy(), y.numpy()), rtol=1e-15)


def test_partials_given_as_pointers():
    f = cg.foreign_op(number_function("sin"), partials=number_function("cos"))
    x = leaf([0.3, 1.0])
    g, = cg.autograd.grad(f(x).sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), np.cos([0.3, 1.0]), rtol=1e-15)
    with pytest.raises(RuntimeError, match="backward has no rule for it"):
        g.sum().backward()
    f = cg.foreign_op(address_of("sin"), signature="double (double)", partials=address_of("cos"))
    np.testing.assert_allclose(cg.autograd.grad(f(x).sum(), x)[0].numpy(), np.cos([0.3, 1.0]), rtol=1e-15)


def test_an_input_without_a_partial_gets_no_gradient():
    f = cg.foreign_op(number_function("fmod", 2), partials=(lambda x, y: cg.ones_like(x), None))
    x, y = leaf([5.5]), leaf([2.0])
    f(x, y).sum().backward()
    assert x.grad.item() == 1.0 and y.grad is None


def test_a_vjp_of_ones_own():
    f = cg.foreign_op(number_function("exp"), vjp=lambda g, out, x: g * out, name="exp")
    assert check_op(f, (leaf(random(2, 3)),))
    with pytest.raises(TypeError, match="give one of them"):
        cg.foreign_op(number_function("exp"), vjp=lambda g, out, x: g, partials=cg.exp)
    with pytest.raises(TypeError, match="vjp must be a function, got int"):
        cg.foreign_op(number_function("exp"), vjp=3)


def test_without_a_rule_it_can_be_computed_only():
    f = cg.foreign_op(number_function("cbrt"), name="cbrt")
    y = f(leaf([8.0]))
    assert y.item() == 2.0
    with pytest.raises(RuntimeError, match=r"cbrt: backward has no rule for it; give foreign_op\(..., partials=\)"):
        y.backward()


def test_partials_that_do_not_fit():
    with pytest.raises(TypeError, match="has 2 inputs, partials must be as many functions, got 1"):
        cg.foreign_op(number_function("atan2", 2), partials=cg.cos)
    with pytest.raises(TypeError, match="number 0 takes 2"):
        cg.foreign_op(number_function("sin"), partials=number_function("atan2", 2))
    with pytest.raises(TypeError, match="not NoneType|not str"):
        cg.foreign_op(number_function("sin"), partials="cos")


# ------------------------------------------------------------------ functions of whole arrays
def whole(function, n_inputs=1, number=ctypes.c_double, length=ctypes.c_ssize_t):
    """A pointer to a Python function of arrays, called as C would call it."""
    pointer = ctypes.POINTER(number)

    def run(*args):
        *inputs, n, out = args
        np.ctypeslib.as_array(out, (n,))[:] = function(*(np.ctypeslib.as_array(x, (n,)) for x in inputs))
    return ctypes.CFUNCTYPE(None, *[pointer] * n_inputs, length, pointer)(run)


@pytest.mark.parametrize("length", [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_longlong, ctypes.c_size_t])
def test_whole_arrays_of_any_layout(length):
    f = cg.foreign_op(whole(np.cumsum, length=length))
    a = random(4, 6)
    np.testing.assert_allclose(f(cg.tensor(a)).numpy(), np.cumsum(a).reshape(4, 6), rtol=1e-14)
    np.testing.assert_allclose(f(cg.tensor(a).t()).numpy(), np.cumsum(a.T).reshape(6, 4), rtol=1e-14)
    assert f(cg.ones((0, 3))).shape == (0, 3)
    assert f(cg.ones(3)).dtype is cg.float32
    assert f(cg.ones(3)).tolist() == [1, 2, 3]


def test_whole_arrays_with_derivatives():
    f = cg.foreign_op(whole(lambda x, y: x * y, 2), partials=(lambda x, y: y, lambda x, y: x))
    assert check_op(f, (leaf(random(2, 3)), leaf(random(3, seed=1))), batched=False)
    with pytest.warns(RuntimeWarning, match="example by example"):        # an array is not to be joined with others
        out = cg.func.vmap(cg.foreign_op(whole(np.cumsum)))(cg.ones((2, 3)))
    assert out.tolist() == [[1, 2, 3], [1, 2, 3]]


# ------------------------------------------------------------------ pointers of every kind
def test_addresses_need_a_signature():
    f = cg.foreign_op(address_of("hypot"), signature="double hypot(double x, double y)")
    assert f(3.0, 4.0) == 5.0
    with pytest.raises(TypeError, match='signature="double'):
        cg.foreign_op(address_of("sin"))
    with pytest.raises(ValueError, match="NULL"):
        cg.foreign_op(0, signature="double (double)")


def test_functions_of_ctypes():
    f = ctypes.CDLL(None).sin
    with pytest.raises(TypeError, match="set argtypes and restype"):
        cg.foreign_op(f)
    f.argtypes = [ctypes.c_double]
    with pytest.raises(TypeError, match=r"'int \(double\)' cannot be called"):
        cg.foreign_op(f)                                # restype is int unless one says otherwise
    f.restype = ctypes.c_double
    assert cg.foreign_op(f)(0.5) == math.sin(0.5)
    assert cg.foreign_op(f).op.__name__ == "sin"
    with pytest.raises(TypeError, match="not what the pointer says of itself"):
        cg.foreign_op(f, signature="float (float)")
    with pytest.raises(TypeError, match="needs the GIL"):
        cg.foreign_op(ctypes.pythonapi.PyFloat_AsDouble)
    g = ctypes.CDLL(None).sin
    g.argtypes, g.restype = [np.ctypeslib.ndpointer(np.float64), ctypes.c_ssize_t, np.ctypeslib.ndpointer(np.float64)], None
    assert cg.foreign_op(g).op.call.form == "whole"


def test_capsules():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.create_string_buffer(b"double (double)")
    assert cg.foreign_op(new(address_of("sin"), name, None))(0.5) == math.sin(0.5)
    wrong = ctypes.create_string_buffer(b"arrow_schema")
    with pytest.raises(TypeError, match="'arrow_schema' cannot be called"):
        cg.foreign_op(new(address_of("sin"), wrong, None))
    assert cg.foreign_op(new(address_of("sin"), None, None), signature="double (double)")(0.5) == math.sin(0.5)


def test_cython_functions_of_scipy():
    functions = pytest.importorskip("scipy.special.cython_special").__pyx_capi__
    special = pytest.importorskip("scipy.special")
    y0 = cg.foreign_op(functions["y0"], partials=lambda x: -y1(x), name="y0")
    y1 = cg.foreign_op(functions["y1"], partials=lambda x: y0(x) - y1(x) / x, name="y1")
    x = leaf(random(2, 3) + 3)
    np.testing.assert_allclose(y0(x).detach().numpy(), special.y0(x.detach().numpy()), rtol=1e-15)
    assert check_op(y0, (x,))
    float_expit = next(c for name, c in functions.items() if name.endswith("expit") and "log" not in name and _signature(c).startswith("float"))
    np.testing.assert_allclose(cg.foreign_op(float_expit)(cg.tensor([0.5])).numpy(), special.expit(np.float32([0.5])), rtol=1e-6)
    with pytest.raises(TypeError, match="void .*cannot be called"):
        cg.foreign_op(functions["ellipj"])


def _signature(capsule):
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return name(capsule).decode()


def test_low_level_callables_of_scipy():
    scipy = pytest.importorskip("scipy")
    assert cg.foreign_op(scipy.LowLevelCallable(number_function("sin")))(0.5) == math.sin(0.5)
    with pytest.raises(TypeError, match="user_data"):
        cg.foreign_op(scipy.LowLevelCallable(number_function("sin"), ctypes.c_void_p(1)))


def test_pointers_of_cffi():
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef("double sin(double); float sinf(float); double hypot(double, double); int abs(int);")
    lib = ffi.dlopen(None)
    assert cg.foreign_op(lib.sin, partials=lib.sin)(0.5) == math.sin(0.5)
    assert cg.foreign_op(ffi.addressof(lib, "hypot"))(3, 4) == 5.0
    kernel = ffi.cast("void (*)(const double *, long, double *)", address_of("sin"))
    assert cg.foreign_op(kernel).op.call.form == "whole"
    with pytest.raises(TypeError, match="cannot be called"):
        cg.foreign_op(lib.abs)
    with pytest.raises(TypeError, match="no pointer to a function"):
        cg.foreign_op(ffi.new("double[3]"))


@pytest.mark.parametrize("x", [None, "sin", 1.5, True, len, lambda x: x, np.sin])
def test_what_is_no_pointer(x):
    with pytest.raises(TypeError, match="foreign_op: the function is a pointer of ctypes, cffi, a capsule or an address"):
        cg.foreign_op(x, signature="double (double)")


@pytest.mark.parametrize(("text", "form"), [
    ("double (double)", ("each", 1, "float64", False)),
    ("double(*)(double)", ("each", 1, "float64", False)),
    ("float f(float x, const float y)", ("each", 2, "float32", False)),
    ("double (double, int __pyx_skip_dispatch)", ("each", 1, "float64", True)),
    ("void (const double *x, Py_ssize_t n, double *restrict out)", ("whole", 1, "float64", False)),
    ("void (*)(float*, float*, int n, float*)", ("whole", 2, "float32", True)),
])
def test_signatures_that_are_understood(text, form):
    assert _parsed(text) == form


@pytest.mark.parametrize("text", [
    "", "double", "double ()", "void ()", "double (void)", "int (int)", "double (float)", "double (double, int)", "double (double *)", "double *(double)",
    "long double (long double)", "double complex (double complex)", "double (double, double, double, double, double)", "void (double *, double *)",
    "void (double *, Py_ssize_t, float *)", "void (double *, Py_ssize_t *, double *)", "void (double, Py_ssize_t, double *)", "double (double) (double)",
])
def test_signatures_that_are_refused(text):
    with pytest.raises(TypeError, match="cannot be called; cgrad calls"):
        cg.foreign_op(1, signature=text)


# ------------------------------------------------------------------ cimport cgrad
KERNELS = '''
# cython: language_level=3
cimport cgrad
from cgrad cimport Tensor, FLOAT32, FLOAT64, BFLOAT16
from libc.math cimport exp, log1p
import cgrad as cg


cdef void softplus_loop(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil:
    cdef double* out = <double*>data[0]
    cdef const double* x = <const double*>data[1]
    cdef Py_ssize_t i
    for i in range(n):
        out[i * strides[0]] = log1p(exp(x[i * strides[1]]))


cdef double sigmoid_number(double x) noexcept nogil:
    return 1 / (1 + exp(-x))


sigmoid = cg.foreign_op(<size_t>&sigmoid_number, signature="double (double)", partials=lambda x: sigmoid(x) * (1 - sigmoid(x)))
softplus = cg.foreign_op(cgrad.loop_function(softplus_loop, 1, FLOAT64, 20), partials=sigmoid, name="softplus")


def facts(x):
    return [cgrad.shape(x)[i] for i in range(cgrad.ndim(x))], [cgrad.strides(x)[i] for i in range(cgrad.ndim(x))], cgrad.dtype(x)


def corner(Tensor x):
    cdef const double[:, :] view = x
    return view[0, 1]


def unrecorded(*xs):
    return cgrad.elementwise(softplus_loop, xs, FLOAT64, 20)


def write(Tensor x):
    (<double*>cgrad.mutable_data(x))[0] = 7


def bad_empty(int ndim, int length, int dtype):
    cdef Py_ssize_t shape[1]
    shape[0] = length
    return cgrad.empty(ndim, shape, dtype)


NAMES = {"float32": FLOAT32, "float64": FLOAT64, "bfloat16": BFLOAT16}
'''


DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "own-operations.md").read_text() + (DOCS / "howto" / "cython.md").read_text()
SECTIONS = {title: body for title, body in re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", GUIDE, re.MULTILINE) if ">>>" in body}


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A Cython module of somebody else's, built against the package as it is installed."""
    pytest.importorskip("Cython")
    if not shutil.which((os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "foreign_kernels.pyx").write_text(KERNELS)
    (folder / "kernels.pyx").write_text(re.search(r"```cython\n(.*?)```", GUIDE, re.DOTALL)[1])
    path = os.pathsep.join([str(Path(cg.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-m", "Cython.Build.Cythonize", "-i", "foreign_kernels.pyx", "kernels.pyx"], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path, "CFLAGS": "-O1 -g0"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "warning" not in done.stderr.lower(), done.stderr
    sys.path.insert(0, str(folder))
    try:
        import foreign_kernels
        import kernels  # noqa: F401  for the guide
    finally:
        sys.path.remove(str(folder))
    return foreign_kernels


def test_cython_kernels_are_operations(kernels):
    x = leaf(random(4, 3))
    for layout in (x, x.t(), x[::-1, ::2]):
        np.testing.assert_allclose(kernels.softplus(layout).detach().numpy(), np.log1p(np.exp(layout.detach().numpy())), rtol=1e-14)
    assert check_op(kernels.softplus, (x,))
    assert kernels.softplus(cg.ones(3)).dtype is cg.float32


def test_cython_sees_tensors(kernels):
    x = cg.zeros((3, 4, 5), dtype=cg.float64)
    assert kernels.facts(x.permute(2, 0, 1)[::-1]) == ([5, 3, 4], [-1, 20, 5], 12)
    assert {name: kernels.facts(cg.zeros(1, dtype=getattr(cg, name)))[2] for name in kernels.NAMES} == kernels.NAMES
    assert kernels.corner(cg.tensor([[1.0, 2.0]], dtype=cg.float64)) == 2.0
    out = kernels.unrecorded(leaf([0.0]))
    assert not out.requires_grad and out.item() == pytest.approx(math.log(2))


def test_cython_cannot_do_silent_harm(kernels):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y.exp() * y
    with pytest.raises(RuntimeError, match="requires grad"):
        kernels.write(y)
    kept = cg.tensor([1.0, 2.0], dtype=cg.float64)
    z = x * kept
    kernels.write(kept)
    with pytest.raises(RuntimeError, match="changed in place|overwritten"):
        z.sum().backward()
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernels.write(cg.from_numpy(frozen))
    with pytest.raises(TypeError, match="expected a Tensor, got int"):
        kernels.facts(3)
    with pytest.raises(ValueError, match="do not broadcast"):
        kernels.unrecorded(cg.ones(2), cg.ones(3))
    for args, text in (((1, -1, 12), "negative"), ((1, 1, 99), "no dtype"), ((99, 1, 12), "axes")):
        with pytest.raises(ValueError, match=text):
            kernels.bad_empty(*args)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_guide(title, request):
    if "SciPy" in title:
        pytest.importorskip("scipy")
    if "from kernels import" in SECTIONS[title]:
        request.getfixturevalue("kernels")
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(re.sub("```.*", "", SECTIONS[title]), {}, title, None, 0))
    assert runner.failures == 0
