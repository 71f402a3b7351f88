"""The words are true: every public name has a docstring whose example runs, and so does the code in the README."""
import contextlib
import doctest
import gc
import importlib.util
import inspect
import io
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg

ROOT = Path(__file__).resolve().parents[1]
MODULES = ["autograd", "func", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.rnn", "optim",
           "optim.lr_scheduler", "optim.swa_utils", "data", "distributed", "memory", "random", "linalg", "fft"]


def public(owner):
    """(name, object) of what a module offers, or a class defines."""
    for name in getattr(owner, "__all__", None) or [n for n in dir(owner) if not n.startswith("_")]:
        value = getattr(owner, name)
        if not isinstance(value, types.ModuleType):
            yield name, value


def everything():
    """{dotted name: object} of the public interface: the top level, its modules, and the methods of the classes in them."""
    found = {}
    owners = {"cg": cg}
    for module in MODULES:
        owner = cg
        for part in module.split("."):
            owner = getattr(owner, part, None)
        if owner is not None:
            owners[f"cg.{module}"] = owner
    for prefix, owner in owners.items():
        for name, value in public(owner):
            if not callable(value):
                continue
            found[f"{prefix}.{name}"] = value
            if inspect.isclass(value):
                found |= {f"{prefix}.{name}.{n}": v for n, v in vars(value).items()
                          if not n.startswith("_") and (callable(v) or isinstance(v, property))}
    unique = {}
    for name, value in sorted(found.items(), key=lambda item: (item[0].count("."), item[0])):
        unique.setdefault(id(value), (name, value))
    return dict(unique.values())


PUBLIC = everything()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_says_what_it_is(name):
    text = inspect.getdoc(PUBLIC[name])
    assert text and text.strip(), f"{name} has no docstring"


def has_example(value):
    return ">>>" in (getattr(value, "__doc__", None) or "")


def test_every_public_name_has_an_example():
    """Its own; a method's may be that of its class; ``exp_`` is explained by ``exp``."""
    names = {name.removeprefix("cg."): value for name, value in PUBLIC.items()}
    functions = {name.rpartition(".")[2] for name, value in names.items() if has_example(value)}
    without = [name for name, value in names.items() if not has_example(value) and not has_example(names.get(name.rpartition(".")[0]))
               and name.rpartition(".")[2].removesuffix("_") not in functions]
    assert not without


@pytest.mark.parametrize("name", [n for n, v in PUBLIC.items() if ">>>" in (getattr(v, "__doc__", None) or "") and not n.startswith("cg.distributed.")])
def test_the_example_runs(name):
    cg.manual_seed(0)
    parser, report = doctest.DocTestParser(), io.StringIO()
    example = parser.get_doctest(PUBLIC[name].__doc__, {"cg": cg, "np": np, "nn": cg.nn}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(example, out=report.write)
    assert not runner.failures, report.getvalue()


def readme_block():
    text = (ROOT / "README.md").read_text()
    return re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]


def test_the_code_in_the_readme_prints_what_it_says():
    code, out = readme_block(), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    printed = out.getvalue()
    promised = re.findall(r"# (tensor\(.*\))$", code, re.MULTILINE)
    assert len(promised) >= 2
    for text in promised:
        assert text in printed
    assert float(printed.split()[-1]) < 1e-3       # the loss after training


@pytest.mark.parametrize("section", re.split(r"^##+ ", (ROOT / "docs" / "files-and-data.md").read_text(), flags=re.MULTILINE),
                         ids=lambda text: text.partition("\n")[0])
def test_the_page_on_files_and_data(section):
    if "safetensors" in section and ">>>" in section:
        pytest.importorskip("safetensors")
    runner, report = doctest.DocTestRunner(), io.StringIO()
    runner.run(doctest.DocTestParser().get_doctest(section.replace("```", ""), {}, "page", None, 0), out=report.write)
    assert not runner.failures, report.getvalue()


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts and (page.parent != ROOT / "docs" or page.stem == "index")
         and page.stem != "cython"]               # what is compiled: tests/ops/test_foreign.py


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_a_page_of_the_documentation_runs(page):
    """The code of a page, in one namespace from top to bottom."""
    text = page.read_text()
    for library in ("scipy", "sklearn"):
        if f">>> from {library}" in text:
            pytest.importorskip(library)
    gc.collect()                       # some pages look at what memory is held
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    runner, report = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), io.StringIO()
    runner.run(doctest.DocTestParser().get_doctest(code, {"__name__": "__main__"}, page.name, None, 0), out=report.write)
    assert not runner.failures, report.getvalue()


def code_of(page):
    """The lines of input on a page, without comments and the language of an explanation."""
    lines = re.findall(r"^(?:>>>|\.\.\.) (.*)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"\s*#.*| lang=\"zh\"", "", line).replace(",)", ")") for line in lines]


@pytest.mark.parametrize("page", [page for page in PAGES if page.parts[-3:-1] == ("zh", "learn")], ids=lambda page: page.stem)
def test_the_lessons_have_the_same_code_in_both_languages(page):
    assert code_of(page) == code_of(ROOT / "docs" / "learn" / page.name)


def test_the_search_splits_chinese_into_characters_and_pairs():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("docs_search", ROOT / "docs" / "search.py")
    search = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(search)
    words = search.Search({}).split("叶子节点 requires_grad=True，用 Op 求 δx")
    assert words == ["叶", "子", "节", "点", "叶子", "子节", "节点", "requires_grad", "True", "用", "Op", "求", "δx"]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    for module in ("sphinx", "pydata_sphinx_theme", "numpydoc", "myst_parser", "sphinx_copybutton", "sphinx_gallery"):
        pytest.importorskip(module)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(cg.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", ROOT / "docs", tmp_path],
                         capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr
    found = {name for page in (tmp_path / "reference").glob("*.html") for name in re.findall(r'id="cgrad\.([\w.]+)"', page.read_text())}
    names = {name.removeprefix("cg.") for name in PUBLIC if name.rpartition(".")[0] not in PUBLIC}
    names |= {name for name in dir(cg) if not isinstance(getattr(cg, name), types.ModuleType) and not name.startswith("__")}
    assert not names - found
    assert not (tmp_path / "reference" / "others.html").exists()        # a topic for each: the table FUNCTIONS of docs/reference.py
    index = json.loads((tmp_path / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    terms = index["terms"].keys() | index["titleterms"].keys()
    assert {"梯", "梯度", "反向", "传播", "叶子", "链式", "法则", "二阶", "算子", "累加", "雅可", "conv2d", "value_and_grad", "jvp"} <= terms
    assert "二阶导数" in (tmp_path / "_static" / "page-texts.js").read_text()
    assert '<html lang="zh"' in (tmp_path / "zh/learn/tape.html").read_text()


def test_the_readme_names_files_that_exist():
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (ROOT / target).exists(), f"{page.name} points to {target}"
