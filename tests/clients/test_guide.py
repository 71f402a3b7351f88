"""The code in docs/other-libraries.md does what it says, as far as its libraries are there."""
import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "other-libraries.md").read_text()
SECTIONS = {title: body for title, body in re.findall(r"^## (.*)\n((?:(?!^## ).*\n)*)", TEXT, re.MULTILINE) if ">>>" in body}
NEEDS = {"SciPy": "scipy", "einops": "einops", "scikit-learn": "sklearn", "pandas": "pandas", "Matplotlib": "matplotlib"}
RUN = "import doctest, sys; runner = doctest.DocTestRunner(); " \
      "runner.run(doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, 'guide', None, 0)); sys.exit(runner.failures > 0)"


@pytest.mark.parametrize("title", SECTIONS)
def test_section(title):
    needed = NEEDS.get(title)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    code = SECTIONS[title].replace("```python", "").replace("```", "")
    if needed in ("scipy", "sklearn"):               # read SCIPY_ARRAY_API when they are imported
        done = subprocess.run([sys.executable, "-c", RUN], input=code, env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        runner = doctest.DocTestRunner()
        runner.run(doctest.DocTestParser().get_doctest(code, {}, title, None, 0))
        assert runner.failures == 0
