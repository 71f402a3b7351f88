"""What `import cgrad` costs, in a fresh interpreter.  NumPy's own import is the yardstick: cgrad adds at most 50 ms to it."""
import subprocess
import sys


def seconds(statement):
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


class Import:
    params = [["numpy", "numpy, then cgrad", "cgrad on top of numpy"]]
    param_names = ["what"]
    unit = "s"
    timeout = 120

    def track_import(self, what):
        """The smallest of seven."""
        statement = {"numpy": "import numpy", "numpy, then cgrad": "import numpy, cgrad",
                     "cgrad on top of numpy": "import numpy; t = time.perf_counter(); import cgrad"}[what]
        return min(seconds(statement) for _ in range(7))

    def track_modules(self, what):
        """How many modules are loaded."""
        statement = {"numpy": "import numpy", "numpy, then cgrad": "import cgrad", "cgrad on top of numpy": "import numpy, cgrad"}[what]
        code = f"import sys; {statement}; print(len(sys.modules))"
        return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)

    track_modules.unit = "modules"
