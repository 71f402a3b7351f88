"""What is shipped: the sdist is complete, the wheel built from it installs and imports in a clean environment, and stays light."""
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import cgrad as cg

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "cgrad"
SOURCES = {p.relative_to(ROOT / "src").as_posix() for p in SOURCE.rglob("*") if p.suffix in (".py", ".pyi", ".pyx", ".pxd", ".pxi")}

# Not needed to import cgrad and too slow to load, or not ours to need at all.  (What NumPy itself loads is left out of account.)
HEAVY = {"asyncio", "concurrent.futures", "email", "html", "http", "importlib.metadata", "inspect", "logging", "matplotlib",
         "multiprocessing", "pandas", "scipy", "sklearn", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "torch", "tqdm",
         "unittest", "urllib.request", "xml", "Cython", "setuptools", "hypothesis", "pytest"}


def run(*command, cwd=None, **variables):
    """Run a command; the test fails with its output if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """(sdist, wheel), the wheel built from the unpacked sdist in an isolated environment as an installer would.

    Compiled without optimisation: what is in them is the question here, and it takes a third of the time.
    """
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, CFLAGS="-O0")
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def sdist_names(shipped):
    with tarfile.open(shipped[0]) as archive:
        return {PurePosixPath(*PurePosixPath(m.name).parts[1:]).as_posix() for m in archive.getmembers() if m.isfile()}


@pytest.fixture(scope="module")
def wheel_names(shipped):
    with zipfile.ZipFile(shipped[1]) as archive:
        return set(archive.namelist())


@pytest.mark.slow
def test_the_sdist_has_all_it_takes_to_build_and_test(sdist_names):
    assert {f"src/{name}" for name in SOURCES} <= sdist_names
    assert {"src/cgrad/py.typed", "pyproject.toml", "setup.py", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
            "asv.conf.json", "benchmarks/common.py", "examples/digits.py", "tests/conftest.py", ".ci/run"} <= sdist_names
    assert {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("*.py")} <= sdist_names


@pytest.mark.slow
def test_the_wheel_has_contracts_and_types(wheel_names):
    assert wheel_names >= {name for name in SOURCES if name.endswith((".py", ".pyi"))}
    assert {"cgrad/py.typed", "cgrad/__init__.pyi"} <= wheel_names
    assert {name for name in wheel_names if name.endswith(".pxd")} == {"cgrad/__init__.pxd", "cgrad/core/foreign.pxd"}     # for `cimport cgrad`
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)
    compiled = {name.split(".")[0] for name in wheel_names if name.endswith((".so", ".pyd"))}
    wanted = {name.removesuffix(".pyx") for name in SOURCES if name.endswith(".pyx")} | {"cgrad/_cyutility"}
    assert {name for name in wanted - compiled if not name.endswith(("_avx2", "_avx512"))} == set()


@pytest.mark.slow
def test_nothing_else_is_shipped(sdist_names, wheel_names):
    for names in (sdist_names, wheel_names):
        assert not [name for name in names if name.endswith((".c", ".cpp", ".o", ".html", ".pyc"))]
    assert not [name for name in wheel_names if name.endswith((".pyx", ".pxi"))]       # the sources are for the sdist
    assert not [name for name in sdist_names if name.endswith((".so", ".pyd"))]
    assert {name.split("/")[0] for name in wheel_names} == {"cgrad", f"cgrad-{cg.__version__}.dist-info"}


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(shipped, tmp_path):
    run(sys.executable, "-m", "virtualenv", tmp_path / "env")
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(python, "-m", "pip", "install", "-q", shipped[1], PYTHONPATH="")
    code = """
import cgrad as cg
x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
(x * x).sum().backward()
assert x.grad.tolist() == [2.0, 4.0, 6.0]
cg.show_config()
from importlib.metadata import requires, version
assert version("cgrad") == cg.__version__
assert [r for r in requires("cgrad") if "extra" not in r] == ["numpy>=2.2"], requires("cgrad")
"""
    report = run(python, "-c", code, cwd=tmp_path, PYTHONPATH="")
    assert "isa" in report
    assert "cgrad" not in run(python, "-m", "pip", "check", PYTHONPATH="")
    installed = run(python, "-m", "pip", "list", "--format=freeze", PYTHONPATH="").lower().split()
    assert {line.split("==")[0] for line in installed if "==" in line} - {"pip", "setuptools", "wheel"} == {"cgrad", "numpy"}


def modules_after(statement):
    return set(run(sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)").split())


def test_importing_cgrad_loads_nothing_heavy():
    extra = modules_after("import numpy, cgrad") - modules_after("import numpy")
    assert not [name for name in extra if name in HEAVY or name.split(".")[0] in HEAVY]


def test_importing_cgrad_leaves_numpys_random_state_alone_and_prints_nothing():
    code = """
import numpy
numpy.random.seed(0)
before = numpy.random.get_state()[1].tolist()
import cgrad
assert numpy.random.get_state()[1].tolist() == before
"""
    assert run(sys.executable, "-W", "error", "-c", code) == ""


def test_show_config_knows_the_installation(capsys):
    config = cg.show_config(mode="dicts")
    assert set(config) == {"cgrad", "build", "cpu", "threads", "blas", "versions"}
    assert config["cgrad"]["version"] == cg.__version__
    assert config["cpu"]["isa"] in config["cpu"]["isa_built"]
    assert config["threads"]["in_use"] == cg.get_num_threads()
    assert cg.show_config() is None
    printed = capsys.readouterr().out
    for group, entries in config.items():
        assert f"{group}:" in printed
        for name, value in entries.items():
            assert f"{name}: {value}" in printed
    with pytest.raises(ValueError, match="mode must be 'stdout' or 'dicts', got 'json'"):
        cg.show_config("json")


def test_the_readme_never_installs_the_strangers_package():
    """A bare name after `pip install` would fetch an unrelated project."""
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.rst"), *SOURCE.rglob("*.py")):
        assert "pip install cgrad" not in path.read_text(), path
