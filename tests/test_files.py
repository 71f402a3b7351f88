"""Files: nested state in safetensors and npz, damaged and hostile files, replacement at once, other programs' files."""
import collections
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg

try:
    import safetensors
    import safetensors.numpy
except ImportError:
    safetensors = None

SAFETENSORS = pytest.param("safetensors", marks=pytest.mark.skipif(safetensors is None, reason="the package safetensors is not installed"))
FORMATS = [SAFETENSORS, "npz"]
needs_package = pytest.mark.skipif(safetensors is None, reason="the package safetensors is not installed")
DTYPES = [cg.bool, cg.uint8, cg.uint16, cg.uint32, cg.uint64, cg.int8, cg.int16, cg.int32, cg.int64, cg.float16, cg.bfloat16, cg.float32, cg.float64]


def again(obj, form, tmp_path, **options):
    path = tmp_path / f"state.{form}"
    cg.save(obj, path)
    assert os.listdir(tmp_path) == [path.name]
    return cg.load(path, **options)


def same(a, b):
    """Equal in type, structure and bits."""
    if isinstance(a, cg.Tensor):
        return isinstance(b, cg.Tensor) and a.dtype is b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(type(k) is type(m) and same(a[k], b[m]) for k, m in zip(a, b))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


# ------------------------------------------------------------------------------------------------------------- there and back
@pytest.mark.parametrize("form", FORMATS)
def test_nested_state_comes_back(form, tmp_path):
    state = {
        "plain": [1, -2**80, 0.1, float("inf"), float("nan"), -0.0, True, False, None, "", "\ud800 \0 'ü", 1e-320],
        "empty": ({}, [], (), (((),),)),
        0: {1.5: cg.ones(2), None: (cg.zeros(3), [np.arange(3)]), True: "yes"},
        "": np.float32(0.1), ".": np.int8(-3), "__metadata__": cg.ones(1), "a.b": cg.zeros(1), "a": {"b": cg.ones(1)}, "file": cg.ones(4),
        "../../etc/passwd": cg.ones(1), "\ud800": cg.ones(3), "nul\0": cg.ones(2), "long" * 30_000: cg.ones(1),
        "arrays": [np.asfortranarray(np.ones((2, 3))), np.zeros((0, 2), np.uint16), np.array(2.5), np.arange(4.0).astype(">f4")[::-2]],
    }
    expected = dict(state, arrays=[*state["arrays"][:3], state["arrays"][3].astype(np.float32)])
    assert same(expected, again(state, form, tmp_path))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout(form, dtype, tmp_path):
    x = cg.asarray(np.random.default_rng(0).integers(0, 100, (3, 4)) % (2 if dtype is cg.bool else 100)).astype(dtype)
    state = [x, x.T, x[::-1, 1::2], x[0, 0], x[:0], x[:, 1:1], cg.zeros((0,), dtype=dtype), x[:1].expand(3, 4), x.reshape(1, 3, 1, 4)]
    back = again(state, form, tmp_path)
    assert same(state, back)
    assert not any(x.requires_grad or not x.is_contiguous() for x in back)
    back[0].zero_()                                  # memory of its own, to be written to


@pytest.mark.parametrize("form", FORMATS)
def test_special_values_keep_their_bits(form, tmp_path):
    bits = np.array([0x7ff8000000000001, 0xfff0000000000000, 0x8000000000000000, 1, 0x7ff0000000000001], np.uint64)
    assert same(again(cg.tensor(bits.view(np.float64)), form, tmp_path), cg.tensor(bits.view(np.float64)))
    halves = cg.frombuffer(np.array([0x7fc1, 0xff80, 0x8000, 1], np.uint16), dtype=cg.bfloat16)
    assert same(again({"x": halves}, form, tmp_path), {"x": halves})


@pytest.mark.parametrize("form", FORMATS)
def test_tied_tensors_are_stored_once_and_stay_tied(form, tmp_path):
    x = cg.ones(1000)
    state = {"a": x, "b": x.detach(), "row": x[:10], "c": [x], "array": x.numpy()}
    back = again(state, form, tmp_path)
    assert back["a"] is back["b"] is back["c"][0] and same(state, back)
    back["array"][0] = 5
    assert back["a"][0].item() == 5 and back["row"][0].item() == 1
    assert (tmp_path / f"state.{form}").stat().st_size < 6000


@pytest.mark.parametrize("form", FORMATS)
def test_subclasses_come_back_as_the_plain_type(form, tmp_path):
    point = collections.namedtuple("Point", "x y")(1, cg.ones(2))
    back = again([collections.OrderedDict(b=1, a=2), collections.defaultdict(list, c=3), point, cg.nn.Parameter(cg.ones(2))], form, tmp_path)
    assert same(back, [{"b": 1, "a": 2}, {"c": 3}, (1, cg.ones(2)), cg.ones(2)])


@pytest.mark.parametrize("form", FORMATS)
def test_only_some_keys(form, tmp_path):
    state = {"model": {"w": cg.ones(3)}, 7: [1], "other": cg.zeros(2)}
    assert same(again(state, form, tmp_path, keys=[7, "model"]), {7: [1], "model": {"w": cg.ones(3)}})
    path = tmp_path / f"state.{form}"
    assert cg.load(path, keys=()) == {}
    with pytest.raises(KeyError, match=r"state.*no key 'x'; there are 'model', 7, 'other'"):
        cg.load(path, keys=["x"])
    with pytest.raises(TypeError, match="list of keys"):
        cg.load(path, keys="model")
    cg.save([1, 2], path)
    with pytest.raises(ValueError, match="no dict"):
        cg.load(path, keys=["x"])


@pytest.mark.parametrize("form", FORMATS)
def test_file_objects_and_every_kind_of_path(form, tmp_path):
    state = {"x": cg.arange(5), "n": 1}
    with open(tmp_path / "any name", "wb") as file:
        cg.save(state, file, format=form)
    with open(tmp_path / "any name", "rb") as file:
        assert same(cg.load(file), state) and not file.closed
    memory = io.BytesIO()
    cg.save(state, memory, format=form)
    assert same(cg.load(io.BytesIO(memory.getvalue())), state) and not memory.closed
    for path in (str(tmp_path / f"s.{form}"), tmp_path / f"ü.{form}"):
        cg.save(state, path)
        assert same(cg.load(path), state)
    cg.save(state, tmp_path / f"{'n' * 240}.{form.upper()}")
    assert same(cg.load(tmp_path / f"{'n' * 240}.{form.upper()}"), state)
    os.symlink(tmp_path / f"s.{form}", tmp_path / f"link.{form}")
    cg.save([5], tmp_path / f"link.{form}")
    assert cg.load(tmp_path / f"s.{form}") == [5] and os.path.islink(tmp_path / f"link.{form}")


def test_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    (tmp_path / "there").write_bytes(made(one()))
    for call in (lambda: cg.save({"x": cg.ones(1)}, tmp_path / "x.safetensors"), lambda: cg.load(tmp_path / "there")):
        with pytest.raises(ImportError, match=r"pip install safetensors.*npz"):
            call()
    assert os.listdir(tmp_path) == ["there"]


@needs_package
def test_safetensors_is_the_format_of_file_objects():
    file = io.BytesIO()
    cg.save({"x": cg.ones(1)}, file)
    assert safetensors.numpy.load(file.getvalue())["x"].tolist() == [1.0]


def test_the_format_has_to_be_known(tmp_path):
    for name in ("state", "state.npy", "state.v2"):
        with pytest.raises(ValueError, match=r"format.*safetensors.*npz"):
            cg.save({}, tmp_path / name)
    for name in ("state.pt", "state.pkl", "state.bin"):
        with pytest.raises(ValueError, match=r"safetensors.torch.save_file"):
            cg.save({}, tmp_path / name)
    with pytest.raises(ValueError, match="format 'pickle'"):
        cg.save({}, tmp_path / "state.npz", format="pickle")
    for file in (None, 3):
        for call in (lambda file: cg.save({}, file), cg.load):
            with pytest.raises(TypeError, match="path"):
                call(file)
    with pytest.raises(TypeError, match="binary"):
        cg.load(io.StringIO("text"))
    cg.save({"a": 1}, tmp_path / "state", format="npz")
    assert cg.load(tmp_path / "state") == {"a": 1}
    with pytest.raises(FileNotFoundError):
        cg.load(tmp_path / "missing.npz")


def test_what_cannot_be_saved_is_named_with_its_place(tmp_path):
    loop = []
    loop.append({"x": loop})
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for bad, text in [({"a": [1, {2}]}, r"obj\['a'\]\[1\] is a set"), ({"net": cg.nn.Linear(1, 1)}, r"obj\['net'\] is a Linear.*state_dict"),
                      ({(1, 2): 3}, "key of type tuple"), ({"s": np.array(["x"])}, r"obj\['s'\]"), ([np.array([object()])], r"obj\[0\]"), ([np.ma.array([1, 2], mask=[0, 1])], r"obj\[0\]: .*asked"),
                      ([b"bytes"], "bytes"), ([1j], "complex"), (lambda: 0, "obj is a function"), ([np.datetime64("2020-01-01")], "obj")]:
        with pytest.raises(TypeError, match=text):
            cg.save(bad, tmp_path / "state.npz")
    for bad, text in [(loop, r"obj\[0\]\['x'\] contains itself"), (deep, "too deeply")]:
        with pytest.raises(ValueError, match=text):
            cg.save(bad, tmp_path / "state.npz")
    assert not os.listdir(tmp_path)
    twice = [1]
    cg.save([twice, twice], tmp_path / "state.npz")


@needs_package
def test_mapped_tensors_leave_the_file_alone(tmp_path):
    x = cg.randn(300, 7)
    state = {"w": x, "half": x.bfloat16(), "flag": x > 0, "empty": cg.zeros((0, 3)), "array": np.arange(5.0), "odd": cg.tensor([1, 2, 3], dtype=cg.uint8)}
    back = again(state, "safetensors", tmp_path, mmap=True)
    assert same(state, back)
    back["w"].zero_()
    back["array"][:] = 7
    assert same(state, cg.load(tmp_path / "state.safetensors"))
    cg.save({"w": cg.ones(2)}, tmp_path / "state.safetensors")          # replaced, so the mapping stays what it was
    assert same(back["half"], state["half"])
    for file, match in [(io.BytesIO((tmp_path / "state.safetensors").read_bytes()), "by its path"), (tmp_path / "s.npz", "npz")]:
        cg.save({}, tmp_path / "s.npz")
        with pytest.raises(ValueError, match=match):
            cg.load(file, mmap=True)


# ------------------------------------------------------------------------------------------------------------- other programs
@needs_package
def test_safetensors_files_of_other_programs(tmp_path):
    arrays = {"w": np.random.default_rng(0).random((3, 2)).astype(np.float32), "n": np.array(3), "flag": np.array([True, False])}
    safetensors.numpy.save_file(arrays, tmp_path / "theirs", metadata={"format": "pt"})
    for mapped in (False, True):
        back = cg.load(tmp_path / "theirs", mmap=mapped)
        assert set(back) == set(arrays) and all(same(back[name], cg.tensor(array)) for name, array in arrays.items())
    cg.save({name: cg.tensor(array) for name, array in arrays.items()}, tmp_path / "ours.safetensors")
    theirs = safetensors.numpy.load_file(tmp_path / "ours.safetensors")
    assert all(same(theirs[name], array) for name, array in arrays.items()) and set(theirs) == set(arrays)


def test_npz_files_of_numpy(tmp_path):
    arrays = {"w": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(24).reshape(2, 3, 4)), "big": np.arange(3, dtype=">i2"), "e": np.ones(0)}
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "theirs.npz", **arrays, other=np.array(["text"]), objects=np.array([None], dtype=object))
        back = cg.load(tmp_path / "theirs.npz", keys=arrays)
        assert all(same(back[name], cg.tensor(array)) for name, array in arrays.items())
        for name, text in [("other", "<U4"), ("objects", "Python objects")]:
            with pytest.raises(ValueError, match=rf"theirs.npz.*array '{name}'.*{text}"):
                cg.load(tmp_path / "theirs.npz", keys=[name])
    cg.save(arrays, tmp_path / "ours.npz")
    with np.load(tmp_path / "ours.npz") as theirs:
        assert all(same(theirs[name], np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("="))) for name in arrays)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [lambda: cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.BatchNorm1d(4), cg.nn.Linear(4, 2)),
                                  lambda: cg.nn.LSTM(3, 4, 2, bidirectional=True), lambda: cg.nn.MultiheadAttention(4, 2), lambda: cg.nn.TransformerEncoderLayer(4, 2, 8)])
def test_state_dicts_of_networks(form, make, tmp_path):
    net, other = make(), make()
    report = other.load_state_dict(again(net.state_dict(), form, tmp_path))
    assert not report.missing_keys and not report.unexpected_keys
    assert same(dict(other.state_dict()), dict(net.state_dict()))
    saved = cg.load(tmp_path / f"state.{form}")
    first = next(iter(saved))
    saved["module." + first] = saved.pop(first)
    report = other.load_state_dict(saved, strict=False)
    assert report.missing_keys == [first] and report.unexpected_keys == ["module." + first]


@needs_package
def test_weights_under_the_names_of_pytorch(tmp_path):
    """An LSTM and an attention layer as PyTorch's state_dict names and lays them out, below a prefix."""
    rng = np.random.default_rng(0)
    shapes = {"attention.in_proj_weight": (12, 4), "attention.in_proj_bias": (12,), "attention.out_proj.weight": (4, 4), "attention.out_proj.bias": (4,),
              "norm.weight": (4,), "norm.bias": (4,), "norm.running_mean": (4,), "norm.running_var": (4,), "norm.num_batches_tracked": ()}
    for end in ("l0", "l0_reverse"):
        shapes |= {f"lstm.weight_ih_{end}": (20, 4), f"lstm.weight_hh_{end}": (20, 5), f"lstm.bias_ih_{end}": (20,), f"lstm.bias_hh_{end}": (20,)}
    arrays = {f"module.{name}": np.array(7) if shape == () else rng.random(shape).astype(np.float32) for name, shape in shapes.items()}
    safetensors.numpy.save_file(arrays, tmp_path / "model.safetensors", metadata={"format": "pt"})
    net = cg.nn.ModuleDict({"attention": cg.nn.MultiheadAttention(4, 2), "norm": cg.nn.BatchNorm1d(4), "lstm": cg.nn.LSTM(4, 5, bidirectional=True)})
    state = {name.removeprefix("module."): x for name, x in cg.load(tmp_path / "model.safetensors", mmap=True).items()}
    report = net.load_state_dict(state)
    assert not report.missing_keys and not report.unexpected_keys
    assert all(np.array_equal(net.state_dict()[name].numpy(), arrays[f"module.{name}"]) for name in shapes)


# ------------------------------------------------------------------------------------------------------------- damaged and hostile
def made(header, data=b"\0" * 24):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def one(dtype="F32", shape=(2, 3), offsets=(0, 24), **more):
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}, **more}


def tensor_at(begin, end):
    return {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}


def ours(state, *names):
    about = json.dumps({"version": 1, "state": state}) if not isinstance(state, str) else state
    return made(one("U8", [24], __metadata__={"cgrad": about}))


BAD_SAFETENSORS = {
    "empty": (b"", "too small"), "seven bytes": (b"\1" + b"\0" * 6, "too small"), "no header": (struct.pack("<Q", 0), ""),
    "a header of 2**64 - 1 bytes": (b"\xff" * 100, ""), "a header of 2**62 bytes": (struct.pack("<Q", 2**62) + b"{}", "too large"),
    "a header longer than the file": (struct.pack("<Q", 90_000_000) + b"{}" * 20, "header length"),
    "no JSON": (made(b"{oops"), "JSON"), "a list": (made(b"[1]"), "JSON"), "no UTF-8": (made(b"\xff\xfe{}"), "UTF-8"),
    "deep JSON": (made(b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "recursion"),
    "a name twice": (made(b'{"a": %s, "a": %s}' % ((json.dumps(one()["a"]).encode(),) * 2)), "'a' appears twice"),
    "end past the data": (made(one(shape=[2, 4], offsets=[0, 32])), "tensor 'a' lies at 0 to 32 of 24 bytes"),
    "an end beyond everything": (made(one(shape=[2**40, 2**10], offsets=[0, 2**52])), "tensor 'a'"),
    "more data than tensors": (made(one(), b"\0" * 32), "not fully covered"),
    "begin after end": (made(one(offsets=[24, 0])), "a"), "negative begin": (made(one(offsets=[-8, 16])), "tensor 'a'"),
    "negative lengths": (made(one(shape=[-2, -3])), ""), "shape that wraps": (made(one(shape=[2**32, 2**32, 6])), "overflow.*tensor 'a'"),
    "shape of another size": (made(one(shape=[2, 2])), r"tensor 'a' of shape \[2, 2\] and dtype F32 has 24 bytes"),
    "lengths of text": (made(one(shape=["2", "3"])), ""), "unknown dtype": (made(one("F7")), "F7"), "no dtype cgrad has": (made(one("F8_E4M3", [24])), "tensor 'a'.*F8_E4M3"),
    "gap": (made({"a": tensor_at(0, 8), "b": tensor_at(16, 24)}), "`b`"), "overlap": (made({"a": tensor_at(0, 16), "b": tensor_at(8, 24)}), "`b`"),
    "no offsets": (made({"a": {"dtype": "F32", "shape": [6]}}), "data_offsets"), "texts that are none": (made(one(__metadata__={"x": 1})), "JSON"),
    "bools of 7": (made(one("BOOL", [24]), b"\7" * 24), "tensor 'a'.*0 and 1"), "too many axes": (made(one(shape=[1] * 200 + [6])), "tensor 'a'"),
    "structure: no JSON": (ours("{"), "structure"), "structure: a number": (ours("3"), "structure"), "structure: later version": (ours('{"version": 9, "state": 1}'), "version 9"),
    "structure: deep": (ours('{"version": 1, "state": ' + "[" * 10_000 + "]" * 10_000 + "}"), "structure"),
    "structure: unknown kind": (ours({"code": "import os"}), "unknown part with code"), "structure: two kinds": (ours({"tuple": [], "array": "a", "x": 1}), ""),
    "structure: nothing": (ours({}), "unknown part"), "structure: missing tensor": (ours({"tensor": "b"}), "'b' is missing"),
    "structure: a list as key": (ours({"dict": [[[1], 2]]}), "keys"), "structure: no pairs": (ours({"dict": [[1, 2, 3]]}), "keys"),
    "structure: name is no text": (ours({"tensor": ["a"]}), "unknown part"), "structure: tuple of text": (ours({"tuple": "abc"}), "unknown part"),
    "a pickle": (pickle.dumps({"a": [1] * 100}, 4), "pickle.*safetensors.torch.save_file"), "text": (b"name,value\n1,2\n" * 100, ""),
}


@needs_package
@pytest.mark.parametrize("mapped", [False, True, "file object"])
@pytest.mark.parametrize("name", BAD_SAFETENSORS)
def test_bad_safetensors_files_are_refused(name, mapped, tmp_path):
    content, text = BAD_SAFETENSORS[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)load: .*{'BytesIO' if mapped == 'file object' else 'bad.safetensors'}: .*{text}"):
        cg.load(io.BytesIO(content)) if mapped == "file object" else cg.load(path, mmap=mapped)


@needs_package
def test_every_cut_and_many_changed_bytes_are_an_error_or_other_numbers(tmp_path):
    file = io.BytesIO()
    cg.save({"a": cg.arange(6).reshape(2, 3), "b": [cg.tensor([True, False]), 0.5]}, file)
    content = file.getvalue()
    for n in range(len(content)):
        with pytest.raises(ValueError, match="load: "):
            cg.load(io.BytesIO(content[:n]))
    rng = np.random.default_rng(0)
    for _ in range(2000):
        changed = bytearray(content)
        changed[rng.integers(len(content))] = rng.integers(256)
        try:
            cg.load(io.BytesIO(bytes(changed)))
        except ValueError:
            pass


def zipped(*members, compress=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compress) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def npy(header, data=b"", version=b"\1\0"):
    header = header if isinstance(header, bytes) else repr(header).encode()
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", len(header) + 1) + header + b"\n" + data


def array(shape=(2,), descr="<f8", data=bytes(16), **more):
    return npy({"descr": descr, "fortran_order": False, "shape": shape, **more}, data)


def about(**fields):
    content = json.dumps({"structure": json.dumps({"version": 1, "state": 3}), "bfloat16": [], **fields}).encode()
    return array((len(content),), "|u1", content)


BAD_NPZ = {
    "no zip": (b"PK\3\4" + b"\0" * 50, ""), "cut": (zipped(("a.npy", array()))[:-30], ""), "text inside": (zipped(("a.txt", b"x")), "'a.txt' is no array"),
    "a file of PyTorch": (zipped(("archive/data.pkl", b"x"), ("archive/version", b"3")), "safetensors.torch.save_file"),
    "a folder": (zipped(("../", b"")), "no array"), "a name twice": (b"", "'a' appears twice"),
    "no npy": (zipped(("a.npy", b"x" * 100)), "array 'a'"), "empty": (zipped(("a.npy", b"")), "array 'a'"),
    "huge shape": (zipped(("a.npy", array((2**50, 2**10)))), r"array 'a'.*shape.*16 bytes"), "short": (zipped(("a.npy", array((3,)))), "array 'a'.*16 bytes"),
    "long": (zipped(("a.npy", array((1,)))), "array 'a'.*16 bytes"), "negative lengths": (zipped(("a.npy", array((-2, -1)))), "array 'a'"),
    "many axes": (zipped(("a.npy", array((1,) * 100 + (2,)))), "array 'a'"), "version 3": (zipped(("a.npy", npy({}, version=b"\3\0"))), "version"),
    "header of code": (zipped(("a.npy", npy(b"__import__('os').system('true')"))), "array 'a'"), "deep header": (zipped(("a.npy", npy(b"(" * 9000))), "array 'a'"),
    "many signs": (zipped(("a.npy", npy(b"-" * 9000 + b"1"))), "array 'a'"), "a long header": (zipped(("a.npy", npy(b" " * 60_000))), "array 'a'"),
    "objects": (zipped(("a.npy", array((2,), "|O"))), "array 'a'.*pickle"), "complex": (zipped(("a.npy", array((1,), "<c16"))), "array 'a'"),
    "records": (zipped(("a.npy", array((1,), [("x", "<f8"), ("y", "<f8")]))), "array 'a'"), "bools of 7": (zipped(("a.npy", array((3,), "|b1", b"\7\7\7"))), "0 and 1"),
    "a bomb": (zipped(("a.npy", b"\0" * (20 << 20)), compress=zipfile.ZIP_DEFLATED), "would take"),
    "bzip2": (zipped(("a.npy", array()), compress=zipfile.ZIP_BZIP2), "deflated"), "structure: no JSON": (zipped(("__cgrad__.npy", array())), "structure"),
    "structure: no tensor": (zipped(("__cgrad__.npy", about(structure='{"version": 1, "state": {"tensor": "x"}}'))), "'x' is missing"),
    "structure: halves": (zipped(("__cgrad__.npy", about(bfloat16=3))), "structure"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", BAD_NPZ)
def test_bad_npz_files_are_refused(name, tmp_path, monkeypatch):
    content, text = BAD_NPZ[name]
    if name == "a name twice":
        content = zipped(("a.npy", array()), ("a.npy", array()))
    if name == "a bomb":
        monkeypatch.setattr("cgrad.files.npz._SMALL", 1 << 20)
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)load: .*bad.npz: .*{text}"):
        cg.load(path)


def test_every_cut_and_many_changed_bytes_of_an_npz_file():
    file = io.BytesIO()
    cg.save({"a": cg.arange(6).reshape(2, 3), "b": [cg.tensor([True, False]), 0.5]}, file, format="npz")
    content = file.getvalue()
    for n in range(0, len(content), 7):
        with pytest.raises(ValueError, match="load: "):
            cg.load(io.BytesIO(content[:n]), format="npz")
    rng = np.random.default_rng(0)
    for _ in range(2000):
        changed = bytearray(content)
        changed[rng.integers(len(content))] = rng.integers(256)
        try:
            cg.load(io.BytesIO(bytes(changed)), format="npz")
        except ValueError:
            pass


def test_pickles_are_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return open, (str(tmp_path / "executed"), "w")

    for name in ("x.pt", "x.pkl", "x"):
        (tmp_path / name).write_bytes(pickle.dumps({"a": Evil()}))
        with pytest.raises(ValueError, match="pickle"):
            cg.load(tmp_path / name)
    np.savez(tmp_path / "x.npz", a=np.array([Evil()], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        cg.load(tmp_path / "x.npz")
    assert not (tmp_path / "executed").exists()


# ------------------------------------------------------------------------------------------------------------- all or nothing
@pytest.mark.parametrize("form", FORMATS)
def test_an_error_leaves_the_old_file(form, tmp_path, monkeypatch):
    path = tmp_path / f"state.{form}"
    cg.save({"a": cg.ones(3)}, path)
    before = path.read_bytes()
    monkeypatch.setattr("cgrad.files.atomic.os.fsync", lambda descriptor: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cg.save({"a": cg.zeros(3)}, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    with pytest.raises(OSError, match="missing"):
        cg.save({}, tmp_path / "missing" / path.name)


KILLED = """
import sys, cgrad as cg
path, n = sys.argv[1], 0
while True:
    n += 1
    cg.save({"n": n, "x": cg.full((500_000,), float(n)), "y": cg.full((1000,), float(n))}, path)
    print(n, flush=True)
"""


@pytest.mark.parametrize("form", FORMATS)
def test_a_killed_process_leaves_a_whole_file(form, tmp_path):
    path = tmp_path / f"state.{form}"
    last = 0
    for delay in (0.0, 0.003, 0.01):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True,
                                   env=os.environ | {"PYTHONPATH": str(Path(cg.__file__).parents[1])})
        process.stdout.readline()
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        done = [int(line) for line in process.stdout.read().split()]
        process.wait()
        process.stdout.close()
        state = cg.load(path)
        n = state["n"]
        assert n >= max([2, *done]) and (state["x"] == n).all() and (state["y"] == n).all()
        last = max(last, n)
    assert last
