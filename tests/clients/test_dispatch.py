"""SciPy and scikit-learn hand array-API arrays on only if SCIPY_ARRAY_API=1 was set before they were imported: hence a process of their own."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_with_dispatch(library):
    pytest.importorskip(library)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / f"dispatch_{library}.py")], cwd=HERE.parents[1],
                          env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
