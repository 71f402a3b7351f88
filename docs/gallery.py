"""What sphinx-gallery asks about the scripts in examples: their order, which of them run while the pages are made, and with what arguments."""
import ast
import importlib.util
from pathlib import Path
from tempfile import gettempdir

ORDER = ["walkthrough", "digits", "lenet", "logistic_regression", "gaussian_process", "many_models", "dask_models", "char_lstm", "gpt", "minilm",
         "mpi_digits"]
RUN = {                                   # with what arguments; the others take minutes
    "walkthrough": [], "digits": [], "lenet": [], "logistic_regression": [], "gaussian_process": [],
    "char_lstm": ["--epochs", "4", "--width", "96"],
    "gpt": ["--steps", "150", "--width", "64", "--layers", "2", "--context", "64", "--batch-size", "8", "--length", "200"]}
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def order(file):
    return ORDER.index(Path(file).stem)


def arguments(settings, script):
    """What a script is called with: pictures that it saves go nowhere, since the page shows them."""
    file = Path(script["src_file"])
    return [*RUN[file.stem], *["--png", f"{gettempdir()}/{file.stem}.png"] * ("--png" in file.read_text())]


def pattern():
    """The scripts to run, as far as what they import is installed."""
    names = [name for name in RUN if all(map(importlib.util.find_spec, imports(EXAMPLES / f"{name}.py")))]
    return rf"/({'|'.join(names)})\.py$"


def imports(file):
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]
