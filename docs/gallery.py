"""Writes a page for each file in examples: what it is, what it prints and draws where it takes seconds, and its source."""
import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from reference import write_pages

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ORDER = ["walkthrough", "digits", "lenet", "char_lstm", "gpt", "minilm"]
RUN = {                      # what runs while the pages are made: arguments, and what it imports
    "walkthrough": ([], ["cgrad"]),
    "digits": (["--png", "digits.png"], ["sklearn", "matplotlib", "tqdm"]),
}


def write(folder):
    folder.mkdir(exist_ok=True)
    names = sorted((path.stem for path in EXAMPLES.glob("*.py")), key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    pages = {name: page(name, folder) for name in names}
    pages["index"] = "\n".join([
        "Examples", "========", "", "Whole scripts, each a plain loop in one file of the folder ``examples`` of the repository. "
        "``pip install '.[examples]'`` brings what they need.", "", ".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in names), ""])
    write_pages(folder, pages)


def page(name, folder):
    source = EXAMPLES / f"{name}.py"
    first, _, about = ast.get_docstring(ast.parse(source.read_text())).partition("\n")
    parts = [f"{name}.py", "=" * (len(name) + 3), "", first, about.partition("\nRun it:")[0], ""]
    if name in RUN and all(importlib.util.find_spec(module) for module in RUN[name][1]):
        parts += ["Run", "---", "", ".. code-block:: none", "", *("   " + line for line in printed(source, folder).splitlines()), ""]
        parts += [f".. image:: {name}.png\n   :alt: what {name}.py draws\n"] * (folder / f"{name}.png").exists()
    return "\n".join([*parts, "Source", "------", "", f".. literalinclude:: ../../examples/{name}.py", "   :language: python", ""])


def printed(source, folder):
    """What an example prints, run in the folder of the pages; kept until the example changes."""
    kept = folder / f"{source.stem}.txt"
    if not kept.exists() or kept.stat().st_mtime < source.stat().st_mtime:
        path = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))
        run = subprocess.run([sys.executable, source, *RUN[source.stem][0]], cwd=folder, capture_output=True, text=True, check=True,
                             env={**os.environ, "PYTHONPATH": path})
        kept.write_text("\n".join(line.rpartition("\r")[2].rstrip() for line in run.stdout.replace(str(folder) + "/", "").splitlines()).strip() + "\n")
    return kept.read_text()
