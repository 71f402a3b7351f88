"""The Array API standard's namespace: what dtypes hold, how they meet, what the library says of itself."""
import numpy as np
import pytest

import cgrad as cg

INTEGERS = [cg.uint8, cg.uint16, cg.uint32, cg.uint64, cg.int8, cg.int16, cg.int32, cg.int64]
FLOATS = [cg.float16, cg.float32, cg.float64]


def test_the_module_is_the_namespace():
    x = cg.ones(2)
    assert x.__array_namespace__() is cg and x.__array_namespace__(api_version="2024.12") is cg and cg.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="no version '1999.12'"):
        x.__array_namespace__(api_version="1999.12")
    assert cg.e == np.e and cg.pi == np.pi and cg.inf == np.inf and np.isnan(cg.nan) and cg.newaxis is None


def test_info():
    info = cg.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == "cpu" and info.devices() == ["cpu"]
    assert info.default_dtypes() == {"real floating": cg.float32, "complex floating": None, "integral": cg.int64, "indexing": cg.int64}
    assert info.dtypes(kind="real floating") == {"float32": cg.float32, "float64": cg.float64}
    assert list(info.dtypes(kind=("bool", "unsigned integer"))) == ["bool", "uint8", "uint16", "uint32", "uint64"] and len(info.dtypes()) == 11
    assert info.dtypes(kind="complex floating") == {}
    with pytest.raises(ValueError, match="device must be 'cpu'"):
        info.dtypes(device="cuda")


@pytest.mark.parametrize("dtype", FLOATS)
def test_finfo(dtype):
    ours, theirs = cg.finfo(dtype), np.finfo(dtype.name)
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, name) == getattr(theirs, name) and type(getattr(ours, name)) in (int, float)
    assert ours.dtype is dtype and cg.finfo(cg.ones(1, dtype=dtype)) == ours
    with pytest.raises(TypeError, match="iinfo: .* use finfo"):
        cg.iinfo(dtype)


def test_finfo_of_bfloat16():
    """8 bits of exponent as float32, 7 of mantissa."""
    info = cg.finfo(cg.bfloat16)
    assert (info.bits, info.eps, info.smallest_normal, info.dtype) == (16, 2.0**-7, 2.0**-126, cg.bfloat16)
    assert info.max == -info.min == float(np.array([0x7F7F0000], np.uint32).view(np.float32)[0])
    assert cg.isdtype(cg.bfloat16, "real floating") and not cg.isdtype(cg.bfloat16, cg.float16)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_iinfo(dtype):
    ours, theirs = cg.iinfo(dtype), np.iinfo(dtype.name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    with pytest.raises(TypeError, match="finfo: .* use iinfo"):
        cg.finfo(dtype)


@pytest.mark.parametrize("dtype", [cg.bool, *INTEGERS, *FLOATS])
@pytest.mark.parametrize("kind", ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"])
def test_isdtype(dtype, kind):
    assert cg.isdtype(dtype, kind) == np.isdtype(np.dtype(dtype.name), kind)
    assert cg.isdtype(dtype, (cg.bool, kind)) == np.isdtype(np.dtype(dtype.name), (np.dtype(bool), kind))


def test_isdtype_refuses():
    with pytest.raises(ValueError, match="no kind 'float'"):
        cg.isdtype(cg.float32, "float")
    with pytest.raises(TypeError):
        cg.isdtype("complex64", "numeric")


@pytest.mark.parametrize("a", INTEGERS)
@pytest.mark.parametrize("b", INTEGERS)
def test_integers_meet_as_in_numpy(a, b):
    if np.result_type(a.name, b.name).kind == "f":         # no integer type holds both, and a float would lose digits
        for meet in (cg.result_type, lambda a, b: cg.ones(1, dtype=a) + cg.ones(1, dtype=b), lambda a, b: cg.concat([cg.ones(1, dtype=a), cg.ones(1, dtype=b)])):
            with pytest.raises(TypeError, match=r"u?int(64|8|16|32) and u?int(64|8|16|32) have no integer type in common"):
                meet(a, b)
        assert not cg.can_cast(a, b)
        return
    assert cg.result_type(a, b).name == np.result_type(a.name, b.name).name
    assert cg.can_cast(a, b) == np.can_cast(a.name, b.name)


def test_result_type():
    assert cg.result_type(cg.ones(1), np.float64(1), 3) is cg.float64
    assert cg.result_type(cg.int8, True) is cg.int8 and cg.result_type(cg.int8, 1) is cg.int8 and cg.result_type(cg.bool, 1) is cg.int64
    assert cg.result_type(cg.int8, 1.0) is cg.float32 and cg.result_type(cg.float32, 1.0) is cg.float32 and cg.result_type(2, 1.0) is cg.float32
    assert cg.result_type(np.zeros(1, np.int16), cg.int8) is cg.int16 and cg.result_type(True) is cg.bool
    for a in (cg.bool, *INTEGERS, *FLOATS):
        for number in (True, 1, 1.0):
            assert cg.result_type(a, number) is cg.where(cg.tensor(True), cg.ones(1, dtype=a), number).dtype
    assert cg.result_type(cg.float16, cg.bfloat16) is cg.float32 and cg.result_type(cg.bfloat16, cg.float64) is cg.float64
    assert cg.result_type(cg.int64, cg.float16) is cg.float16 and cg.result_type(cg.bfloat16, 1.0) is cg.bfloat16
    with pytest.raises(ValueError, match="at least one"):
        cg.result_type()
    with pytest.raises(TypeError):
        cg.result_type("complex64")


def test_can_cast():
    assert cg.can_cast(cg.float32, cg.float64) and not cg.can_cast(cg.float64, cg.float32) and not cg.can_cast(cg.ones(1), cg.int64)
    assert cg.can_cast(cg.float16, cg.float32) and not cg.can_cast(cg.float16, cg.bfloat16) and cg.can_cast(cg.uint8, cg.uint64)
    assert cg.can_cast(cg.bool, cg.int8) and cg.can_cast(cg.int64, cg.float32)


def test_to_device_and_astype_device():
    x = cg.ones(2, requires_grad=True)
    assert x.to_device("cpu") is x and x.device == "cpu"
    for call in (lambda: x.to_device("cuda"), lambda: cg.astype(x, cg.float64, device="cuda")):
        with pytest.raises(ValueError, match="device must be 'cpu'"):
            call()
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("cpu", stream=1)
    assert cg.astype(x, cg.float64, device="cpu").dtype is cg.float64
