"""One process without mpiexec: the examples of the docstrings, and what import does not load."""
import re
import subprocess
import sys

import pytest
from launch import ENVIRONMENT, library

import cgrad as cg

DOCTESTS = """
import doctest, importlib, sys
import cgrad as cg
failures = 0
for name in ["", ".group", ".collectives", ".data_parallel", ".sharded"]:
    result = doctest.testmod(importlib.import_module("cgrad.distributed" + name), optionflags=doctest.ELLIPSIS)
    print(name, result)
    failures += result.failed
sys.exit(failures)
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


def test_the_examples_of_the_docstrings():
    if library() is None:
        pytest.skip("no MPI: pip install mpi4py mpich")
    done = python(DOCTESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(map(int, re.findall(r"attempted=(\d+)", done.stdout))) > 40


def test_import_loads_neither_mpi_nor_this():
    done = python("import sys, cgrad as cg; print('cgrad.distributed' in sys.modules, 'mpi4py' in sys.modules); cg.distributed; print('mpi4py' in sys.modules)")
    assert done.stdout.split() == ["False", "False", "False"], done.stderr


def test_without_init_and_without_mpi():
    for call in (lambda: cg.distributed.all_reduce(cg.ones(2)), cg.distributed.barrier, cg.distributed.get_rank,
                 lambda: cg.distributed.DataParallel(cg.nn.Linear(1, 1))):
        with pytest.raises(RuntimeError, match=r"call cgrad.distributed.init\(\) first"):
            call()
    with pytest.raises(ValueError, match="timeout must be a positive number of seconds, got -1"):
        cg.distributed.init(timeout=-1)
    done = python("import sys; sys.modules['mpi4py'] = None; import cgrad as cg; cg.distributed.init()")
    assert "ImportError: init: cgrad.distributed needs mpi4py and an MPI library" in done.stderr and "pip install mpi4py mpich" in done.stderr
