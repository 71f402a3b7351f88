"""The layers import downwards only: kernels <- core <- ops <- autograd, func <- nn and what stands beside it.  And files stay short."""
import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "cgrad"
RANK = {"kernels": 0, "core": 1, "ops": 2, "autograd": 3, "func": 3, "nn": 4, "optim": 4, "data": 4, "distributed": 4, "files": 4, "interop": 4, "show": 4,
        "utils": 4}
MAX_LINES = 700                     # of code: docstrings, comments and blank lines are not counted

FILES = sorted(p for p in SOURCE.rglob("*") if p.suffix in (".py", ".pyx", ".pxd", ".pxi"))
IMPORT = re.compile(r"^\s*(?:from\s+(?P<source>[.\w]+)\s+c?import\s+(?P<names>.*)|c?import\s+(?P<modules>[\w., ]+))")


def name_of(path):
    """cgrad.core.tensor for .../cgrad/core/tensor.pyx; a package for its __init__."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def without_words(text):
    """Source without docstrings and comments."""
    return re.sub(r"#.*", "", re.sub(r'("""|\'\'\').*?\1', "''", text, flags=re.DOTALL))


def logical_lines(text):
    """Source lines of Cython without words and with parentheses joined."""
    text = without_words(text)
    text = re.sub(r"\\\n", " ", text)
    return re.sub(r"\(([^()]*)\)", lambda m: m[0].replace("\n", " "), text).splitlines()


def absolute(path, source):
    """The absolute name of a possibly relative import source."""
    dots = len(source) - len(source.lstrip("."))
    if not dots:
        return source
    package = name_of(path).split(".")
    if path.stem != "__init__":
        package = package[:-1]
    base = package[:len(package) - (dots - 1)]
    return ".".join([*base, source[dots:]]) if source[dots:] else ".".join(base)


def named(source, names):
    """What `from source import names` loads: modules inside `source`, and `source` itself for anything else."""
    modules = {f"{source}.{name}" for name in names if file_of(f"{source}.{name}")}
    return modules if len(modules) == len(names) else modules | {source}


def imports_of(path):
    """Every cgrad module that the file names in an import or cimport, at any depth of the code."""
    text = path.read_text()
    found = set()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                source = absolute(path, "." * node.level + (node.module or ""))
                found |= named(source, [alias.name for alias in node.names])
    else:
        for line in logical_lines(text):
            match = IMPORT.match(line)
            if match and match["source"]:
                source = absolute(path, match["source"])
                names = [name.split(" as ")[0].strip() for name in match["names"].strip("() ").split(",")]
                found |= named(source, names)
            elif match:
                found |= {name.split(" as ")[0].strip() for name in match["modules"].split(",")}
    return {name for name in found if name == "cgrad" or name.startswith("cgrad.")}


def file_of(module):
    """The source file behind a dotted name, or None (a name inside a module, a compiled helper)."""
    base = SOURCE.parent.joinpath(*module.split("."))
    return next((f for f in (*(base.with_suffix(s) for s in (".pyx", ".py")), base / "__init__.py") if f.exists()), None)


def rank_of(module):
    """The height of a dotted name: that of its layer; a single module beside the layers is as high as what it imports."""
    parts = module.split(".")
    if len(parts) == 1:
        return max(RANK.values())           # the package itself gathers everything
    if parts[1] in RANK:
        return RANK[parts[1]]
    path = file_of(".".join(parts[:2]))
    return max((rank_of(name) for name in imports_of(path) if name != module), default=0) if path else 0


def breaches(path):
    own = rank_of(name_of(path))
    return sorted(module for module in imports_of(path) if rank_of(module) > own)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_point_downwards(path):
    assert not breaches(path), f"{path.relative_to(SOURCE)} imports from a higher layer"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_no_file_is_too_long(path):
    name = path.relative_to(SOURCE).as_posix()
    lines = sum(1 for line in without_words(path.read_text()).splitlines() if line.strip())
    assert lines <= MAX_LINES, f"{name} has {lines} lines of code: split it"


def test_every_directory_with_code_is_a_package():
    folders = {p.parent for p in FILES}
    assert not [str(f) for f in folders if not (f / "__init__.py").exists()]


@pytest.mark.parametrize(("file", "line", "expected"), [
    ("core/tensor.pyx", "from cgrad.ops.define cimport define", {"cgrad.ops.define"}),
    ("core/tensor.pyx", "from cgrad.ops cimport (a,\n    b)", {"cgrad.ops"}),
    ("core/tensor.pyx", "cimport cgrad.nn.module", {"cgrad.nn.module"}),
    ("core/tensor.pyx", "    import cgrad.optim as o, cgrad.kernels.table", {"cgrad.optim"}),
    ("core/tensor.pyx", "from ..ops import exp", {"cgrad.ops"}),
    ("core/tensor.pyx", '"""\nfrom cgrad.ops import x\n"""', set()),
    ("core/convert.py", "def f():\n    from ..ops.define import define", {"cgrad.ops.define"}),
    ("kernels/x.pxd", "from cgrad.core.tensor cimport Tensor", {"cgrad.core.tensor"}),
    ("core/x.py", "import cgrad", {"cgrad"}),
    ("ops/a.py", "import cgrad.core.tensor", set()),
    ("nn/a.py", "import cgrad as cg", set()),
])
def test_the_reader_of_imports_sees_breaches(file, line, expected, tmp_path, monkeypatch):
    """The guard itself: written in every way Cython allows, an arrow upwards is found."""
    root = tmp_path / "cgrad"
    path = root / file
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n")
    monkeypatch.setattr("test_layers.SOURCE" if __name__ == "test_layers" else f"{__name__}.SOURCE", root)
    assert expected <= set(breaches(path))
    assert bool(breaches(path)) == bool(expected)
