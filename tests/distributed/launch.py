"""Starting scripts under mpiexec, of the MPI that mpi4py finds; each with a limit of time."""
import functools
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cgrad as cg

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(cg.__file__).parents[1]), "MPLBACKEND": "Agg",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


@functools.cache
def library():
    """The name of the MPI library that mpi4py finds, or None.  Asked in another process: this one shall not load it."""
    asked = subprocess.run([sys.executable, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"],
                           capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    return asked.stdout.split("\n")[0] if asked.returncode == 0 else None


@functools.cache
def launcher():
    """The start of the command line, or a skipped test where there is no MPI."""
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if library() is None or mpiexec is None:
        pytest.skip("no MPI: pip install mpi4py mpich")
    return [mpiexec, *(["--oversubscribe"] if "Open MPI" in library() else [])]


def start(n, script, *arguments, timeout=120, cwd=None):
    """Run a Python script on n ranks; the finished process.  When the time is over, all of them are ended."""
    command = [*launcher(), "-n", str(n), sys.executable, str(script), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=cwd,
                          start_new_session=True) as running:
        try:
            out, err = running.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
            pytest.fail(f"{' '.join(command)} has not ended after {timeout} s\n{out}\n{err}")
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def run(n, script, *arguments, **options):
    """The same for what must end well; what it printed."""
    done = start(n, script, *arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
