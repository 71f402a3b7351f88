"""Writes the pages of the reference, by topic, from what the package has: a public name that is new is on its page at the next build."""
import ast
import importlib
import inspect
import types
from pathlib import Path

from numpydoc.docscrape import NumpyDocString

import cgrad

# Page -> (title, the files under cgrad/ops whose functions it shows)
FUNCTIONS = {
    "creation": ("Making tensors", ["creation", "ranges", "triangles"]),
    "elementwise": ("Elementwise functions", ["elementwise", "arithmetic", "special", "gamma", "casting"]),
    "comparison": ("Comparison, logic, choice", ["compare", "choosing", "methods"]),
    "reduction": ("Reductions and statistics", ["reduction", "variance", "statistics", "softmax"]),
    "scan": ("Running sums, differences, numerics", ["scan", "numerics"]),
    "products": ("Products of matrices", ["matmul", "einsum", "linalg"]),
    "shape": ("Shape and order of axes", ["shape", "strided", "diagonal"]),
    "joining": ("Joining, splitting, repeating", ["joining", "splitting", "repeating", "editing"]),
    "indexing": ("Indexing, gathering, scattering", ["indexing", "gathering", "slices", "masking", "scattering"]),
    "sorting": ("Sorting, searching, sets", ["sorting", "searching"]),
    "activation": ("Activations", ["activation"]),
}
# Page -> (title, names at the top level)
NAMES = {
    "dtypes": ("Dtypes, devices, constants", ["dtype", "get_default_dtype", "set_default_dtype", "promote_types", "result_type", "can_cast", "isdtype",
                                        "finfo", "iinfo", "is_floating_point", "is_complex", "device"]),
    "own": ("Own operations", ["Op", "op", "foreign_op"]),
    "show": ("Looking at a computation", ["explain", "graph", "profile", "set_printoptions"]),
    "files": ("Files", ["save", "load"]),
    "process": ("Threads and the process", ["get_num_threads", "set_num_threads", "threads", "show_config"]),
}
# Page -> (title, module)
MODULES = {
    "random": ("Random numbers", "random"), "linalg": ("Linear algebra", "linalg"), "special": ("Special functions", "special"),
    "fft": ("Fourier transforms", "fft"), "autograd": ("Gradients: autograd", "autograd"), "func": ("Derivatives as functions: func", "func"),
    "nn": ("Networks: nn", "nn"), "functional": ("Functions of networks: nn.functional", "nn.functional"), "init": ("Initialisation: nn.init", "nn.init"),
    "utils": ("Tools: nn.utils", "nn.utils"), "rnn": ("Packed sequences: nn.utils.rnn", "nn.utils.rnn"),
    "parametrize": ("Parametrizations: nn.utils.parametrize", "nn.utils.parametrize"),
    "parametrizations": ("Ready parametrizations: nn.utils.parametrizations", "nn.utils.parametrizations"), "optim": ("Optimizers: optim", "optim"),
    "lr_scheduler": ("Learning rates: optim.lr_scheduler", "optim.lr_scheduler"),
    "swa_utils": ("Averages of weights: optim.swa_utils", "optim.swa_utils"), "data": ("Data sets and batches: data", "data"),
    "distributed": ("Several processes: distributed", "distributed"),
    "memory": ("Memory", "memory"), "cuda": ("GPUs, which there are none: cuda", "cuda"), "einops": ("einops: interop.einops", "interop.einops"),
}
ORDER = ["tensor", "creation", "dtypes", "random", "elementwise", "comparison", "reduction", "scan", "products", "linalg", "special", "fft", "shape",
         "joining", "indexing", "sorting", "activation", "autograd", "func", "own", "show", "nn", "functional", "init", "utils", "rnn", "parametrize",
         "parametrizations", "optim", "lr_scheduler", "swa_utils", "data", "distributed", "files", "memory", "process", "cuda", "einops", "others"]


def write(folder):
    """All pages into a folder."""
    pages = dict(pages_of_functions())
    pages["tensor"] = tensor_page()
    for page, (title, module) in MODULES.items():
        owner = importlib.import_module(f"cgrad.{module}") if has(module) else None
        if owner is not None:
            pages[page] = module_page(title, module, owner)
    pages["index"] = index_page([page for page in ORDER if page in pages])
    write_pages(folder, pages)


def write_pages(folder, pages):
    """A file for each page; those that did not change are left alone, so that Sphinx need not read them again, and old ones go."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for page, text in pages.items():
        path = folder / f"{page}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def has(module):
    if module.startswith("interop"):
        return importlib.util.find_spec(module.rpartition(".")[2]) is not None         # about a library, which may not be there
    return importlib.util.find_spec(f"cgrad.{module}") is not None


def heading(title, mark="="):
    return f"{title}\n{mark * (2 * len(title))}\n"


def table(module, names):
    """A list of links with the first lines of the docstrings."""
    return "\n".join([f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in names), ""])


def canonical(owner, name):
    """The name under which an object is explained: its own, if the module has it under that one."""
    own = getattr(getattr(owner, name), "__name__", name)
    return own if own.isidentifier() and getattr(owner, own, None) is getattr(owner, name) else name


def entry(module, owner, name):
    value, full = getattr(owner, name), f"{module}.{name}"
    if isinstance(value, type):
        options = "" if issubclass(value, BaseException) else "   :members:\n"
        return f".. autoclass:: {full}\n{options}"
    if callable(value):
        return f".. autofunction:: {full}\n"
    return f".. py:data:: {name}\n"


def entries(module, owner, names):
    """A table of the names, then each with its docstring; other spellings point to the first."""
    spelled, shown = {}, []
    for name in names:
        main = canonical(owner, name)
        if main != name:
            spelled.setdefault(main, []).append(name)
        else:
            shown.append(name)
    parts = [table(module, shown)]
    for name in shown:
        parts.append(entry(module, owner, name))
        if name in spelled:
            parts.append(also(module, name, spelled.pop(name)))
    return "\n".join(parts)


def also(module, name, others):
    lines = [f".. py:function:: {other}\n\n   The same as :func:`{module}.{name}`.\n" for other in others]
    return "\n".join(lines)


def defined_where():
    """{name: file or folder under cgrad/ops that defines it}."""
    root, found = Path(cgrad.__file__).parent / "ops", {}
    for path in sorted(root.rglob("*.py")):
        family = path.relative_to(root).parts[0].removesuffix(".py")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, family)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for n in ast.walk(target):
                        if isinstance(n, ast.Name):
                            found.setdefault(n.id, family)
    return found


def pages_of_functions():
    """The top level, sorted into topics; what has no topic is on a page of its own, so that nothing is lost."""
    where = defined_where()
    topic_of = {family: page for page, (_, families) in FUNCTIONS.items() for family in families}
    topic_of_name = {name: page for page, (_, names) in NAMES.items() for name in names}
    elsewhere = {"Tensor", *dir(cgrad.random), *cgrad.autograd.__all__}
    names = {page: [] for page in [*FUNCTIONS, *NAMES, "others"]}
    constants = []
    for name in dir(cgrad):
        value = getattr(cgrad, name)
        if isinstance(value, types.ModuleType) or name in elsewhere or name.startswith("__"):
            continue
        if not callable(value):
            constants.append(name)
            continue
        main = canonical(cgrad, name)
        page = topic_of_name.get(main) or topic_of.get(where.get(main), "others")
        names[page].append(name)
    for page, (title, _) in {**FUNCTIONS, **NAMES, "others": ("Other functions", ())}.items():
        if names[page]:
            text = heading(title) + "\n" + entries("cgrad", cgrad, names[page])
            yield page, text + (dtypes(constants) if page == "dtypes" else "")


def dtypes(constants):
    lines = []
    for name in constants:
        value = getattr(cgrad, name)
        own = value.name if isinstance(value, cgrad.dtype) else name
        own = "bool" if own == "bool_" else own
        about = f"The same as :data:`cgrad.{own}`." if own != name else f"The dtype of that name, {value.itemsize} bytes an element." \
            if isinstance(value, cgrad.dtype) else "For ``x[:, newaxis]``: None." if value is None else f"The number {value}."
        lines.append(f".. py:data:: {name}\n\n   {about}\n")
    return "\n".join(["", *lines])


def tensor_page():
    cls = cgrad.Tensor
    names = [n for n in dir(cls) if not n.startswith("_")]
    functions = [n for n in names if getattr(cgrad, n, None) is getattr(cls, n)]
    written = [n for n in names if n.endswith("_") and n not in ("requires_grad_",) and n[:-1] in functions]
    own = [n for n in names if n not in functions and n not in written]
    attributes = [n for n in own if not callable(inspect.getattr_static(cls, n)) and not isinstance(inspect.getattr_static(cls, n), classmethod)]
    methods = [n for n in own if n not in attributes]
    told = {"itemsize": "Bytes of an element.", "nbytes": "Bytes of all elements."}         # of the others the class tells
    for names_of, kind, lines in NumpyDocString(inspect.getdoc(cls))["Attributes"]:
        told |= dict.fromkeys(names_of.split(", "), " ".join([f"*{kind}*.", *lines]))
    parts = [heading("Tensor"), ".. currentmodule:: cgrad\n", ".. autoclass:: cgrad.Tensor\n", heading("Attributes", "-")]
    parts += [f".. autoattribute:: cgrad.Tensor.{n}\n" if inspect.getdoc(inspect.getattr_static(cls, n))
              else f".. py:attribute:: Tensor.{n}\n\n   {told[n]}\n" for n in attributes]
    parts += [heading("Methods of its own", "-")] + [f".. automethod:: cgrad.Tensor.{n}\n" for n in methods]
    parts += [heading("Methods that are functions", "-"), "``x.name(...)`` is ``cgrad.name(x, ...)``:\n",
              ", ".join(f":func:`~cgrad.{n}`" for n in functions) + ".\n",
              heading("Methods that write", "-"), "``x.name_(...)`` writes what ``cgrad.name(x, ...)`` gives into ``x`` itself, and returns it. The "
              "gradient is that of the function:\n", ", ".join(f":func:`{n} <cgrad.{n[:-1]}>`" for n in written) + ".\n"]
    return "\n".join(parts)


def module_page(title, module, owner):
    names = [n for n in owner.__all__ if not isinstance(getattr(owner, n), types.ModuleType)]
    parts = [heading(title), f".. automodule:: cgrad.{module}\n   :no-members:\n", entries(f"cgrad.{module}", owner, names)]
    if module in ("random", "autograd"):
        shared = [name for name in names if hasattr(cgrad, name)]
        parts += [heading("At the top level", "-"), ".. currentmodule:: cgrad\n", *(also(f"cgrad.{module}", name, [name]) for name in shared)]
    return "\n".join(parts)


def index_page(pages):
    return "\n".join([heading("Reference"),
                      "Every public name, by topic. ``help(cgrad.sum)`` shows the same in a terminal.\n", ".. toctree::\n   :maxdepth: 1\n",
                      *(f"   {page}" for page in pages), ""])
