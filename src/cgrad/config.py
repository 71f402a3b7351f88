"""What this installation is: its version, and `show_config` for a bug report.

Everything is looked up when asked for, so that `import cgrad` pays nothing for it.
"""
import contextlib
import os
import platform
import sys

__all__ = ["__version__", "get_num_threads", "set_num_threads", "show_config", "threads"]

__version__ = "0.1.0"


def show_config(mode="stdout"):
    """Show how cgrad was built and what it runs on.

    Parameters
    ----------
    mode : {"stdout", "dicts"}, optional
        Print a short report (the default), or return the same as a nested dictionary of plain values.

    Returns
    -------
    dict or None
        With ``mode="dicts"``: the groups ``"cgrad"``, ``"build"``, ``"cpu"``, ``"threads"``, ``"blas"``, ``"versions"``.

    Raises
    ------
    ValueError
        If `mode` is neither of the two.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.show_config(mode="dicts")["cgrad"]["version"] == cg.__version__
    True
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be 'stdout' or 'dicts', got {mode!r}")
    config = collect()
    if mode == "dicts":
        return config
    for group, entries in config.items():
        print(f"{group}:")
        for name, value in entries.items():
            print(f"  {name}: {value}")
    return None


def get_num_threads():
    """How many threads a large operation may use.

    Unless set otherwise: the first number in ``OMP_NUM_THREADS``, else the CPUs that affinity and container quota leave to this
    process.  A process made by fork computes on 1.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.get_num_threads() >= 1
    True
    """
    from cgrad.kernels import parallel
    return parallel.get_num_threads()


def set_num_threads(n):
    """Set how many threads a large operation may use, in the whole process.

    Parameters
    ----------
    n : int
        At least 1; more than 512 count as 512.

    Raises
    ------
    ValueError
        If `n` is not positive.

    See Also
    --------
    threads : the same for a block of code.

    Notes
    -----
    Results of cgrad's own kernels do not depend on `n`, to the last bit.  Large matrix products go to NumPy's BLAS; where that is
    OpenBLAS (as in NumPy's wheels) and can be found in the process, its number of threads is set as well.

    Examples
    --------
    >>> import cgrad as cg
    >>> before = cg.get_num_threads()
    >>> cg.set_num_threads(1)
    >>> cg.set_num_threads(before)
    """
    from cgrad.core.arguments import whole_number
    from cgrad.kernels import parallel
    parallel.set_num_threads(whole_number("set_num_threads", "the number of threads", n))
    openblas = find_openblas()
    if openblas is not None:
        openblas[1](parallel.get_num_threads())


@contextlib.contextmanager
def threads(n):
    """Use up to `n` threads inside a ``with`` block.

    What :func:`set_num_threads` sets is set for the block and set back behind it, also after an error.  It holds for the whole
    process: other Python threads that compute meanwhile use as many.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    ValueError
        If `n` is not positive.

    Examples
    --------
    >>> import cgrad as cg
    >>> with cg.threads(1):
    ...     cg.get_num_threads()
    1
    """
    before, openblas = get_num_threads(), find_openblas()
    blas_before = openblas[0]() if openblas is not None else None
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
        if openblas is not None:
            openblas[1](blas_before)


def find_openblas():
    """The functions that get and set the number of threads of NumPy's OpenBLAS, or None.

    The module that NumPy calls BLAS from leads to the library, wherever that lies and whatever it is called (not on Windows).
    """
    import ctypes

    from numpy._core import _multiarray_umath

    module = ctypes.CDLL(_multiarray_umath.__file__)
    for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
        name = f"{prefix}openblas_%s_num_threads{suffix}"
        if hasattr(module, name % "set"):
            return module[name % "get"], module[name % "set"]
    return None


def collect():
    """The report as a dictionary of dictionaries."""
    import numpy

    from cgrad import _buildinfo
    from cgrad.kernels import dispatch, parallel

    openblas = find_openblas()
    blas = numpy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "cgrad": {"version": __version__, "location": os.path.dirname(os.path.abspath(__file__))},
        "build": {
            "compiler": _buildinfo.COMPILER,
            "cython": _buildinfo.CYTHON,
            "openmp": _buildinfo.OPENMP or "no (computes on one thread)",
            "debug": _buildinfo.DEBUG,
        },
        "cpu": {
            "machine": platform.machine(),
            "isa": dispatch.isa(),
            "isa_built": dispatch.isa_available(),
            "CGRAD_ISA": os.environ.get("CGRAD_ISA", "not set"),
        },
        "threads": {
            "in_use": parallel.get_num_threads(),
            "in_use_by_openblas": openblas[0]() if openblas is not None else "unknown",
            "usable_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        },
        "blas": {"through": "numpy", "name": blas.get("name", "unknown"), "version": blas.get("version", "unknown")},
        "versions": {"python": sys.version.split()[0], "numpy": numpy.__version__, "platform": platform.platform()},
    }
