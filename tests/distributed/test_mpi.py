"""Processes that work together, on 2 and 4 ranks under mpiexec: what on_ranks.py checks."""
import functools
import re

import pytest
from launch import HERE, start

CHECKS = re.findall(r"^def (check_\w+)", (HERE / "on_ranks.py").read_text(), re.MULTILINE)


@functools.cache
def outcomes(n, folder):
    """{check: the tracebacks of the ranks on which it failed}, all from one run."""
    done = start(n, HERE / "on_ranks.py", "all", folder, timeout=300)
    parts = re.split(r"^== (\w+)\n", done.stdout, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2]))
    return found, done.stdout + done.stderr


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ranks")


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("check", CHECKS)
def test_on_ranks(check, n, folder):
    found, everything = outcomes(n, folder)
    assert check in found, everything
    assert not found[check].strip(), found[check]
