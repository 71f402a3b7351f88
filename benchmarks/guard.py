"""Names the public operations that no benchmark measures: ``python -m benchmarks.guard``."""
import ast
import sys
from pathlib import Path

import cgrad as cg

from .bench_every import FIRST, MADE

MODULES = [cg, cg.autograd, cg.fft, cg.linalg, cg.nn.functional, cg.special]
NO_OPERATIONS = {                 # questions, settings, tools
    "can_cast", "finfo", "iinfo", "isdtype", "is_complex", "is_floating_point", "is_nonzero", "is_tensor", "numel", "promote_types", "result_type",
    "default_generator", "fork_rng", "get_rng_state", "set_rng_state", "seed", "initial_seed", "manual_seed", "get_default_dtype", "set_default_dtype",
    "set_printoptions", "show_config", "explain", "graph", "check_op", "gradcheck", "gradgradcheck", "once_differentiable",
    "is_grad_enabled", "is_anomaly_enabled", "set_detect_anomaly"}


def measured():
    """Names of operations in the tables of bench_every, and all names that the other benchmarks use."""
    names = {*(name.rpartition(".")[2] for name in FIRST), *MADE}
    for file in Path(__file__).parent.glob("bench_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.add(node.value.rpartition(".")[2])
    return names


def unmeasured():
    names, found = measured() | NO_OPERATIONS, []
    functions = {id(getattr(module, name)) for module in MODULES for name in dir(module) if name in names}
    for module in MODULES:
        for name in getattr(module, "__all__", dir(module)):
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type) and not name.startswith("_") and not {name, name.rstrip("_")} & names and id(f) not in functions:
                found.append(f"{module.__name__}.{name}")
    return sorted(found)


if __name__ == "__main__":
    print(*unmeasured(), sep="\n", end="")
    sys.exit(bool(unmeasured()))
