"""What this installation is: its version, and `show_config` for a bug report.

Everything is looked up when asked for, so that `import cgrad` pays nothing for it.
"""
import os
import platform
import sys

__all__ = ["__version__", "get_num_threads", "set_num_threads", "show_config"]

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

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.get_num_threads() >= 1
    True
    """
    from cgrad.kernels import parallel
    return parallel.get_num_threads()


def set_num_threads(n):
    """Set how many threads a large operation may use.

    Parameters
    ----------
    n : int
        At least 1.  Results do not depend on it, to the last bit.

    Raises
    ------
    ValueError
        If `n` is not positive.

    Examples
    --------
    >>> import cgrad as cg
    >>> before = cg.get_num_threads()
    >>> cg.set_num_threads(1)
    >>> cg.set_num_threads(before)
    """
    from cgrad.kernels import parallel
    parallel.set_num_threads(n)


def collect():
    """The report as a dictionary of dictionaries."""
    import numpy

    from cgrad import _buildinfo
    from cgrad.kernels import dispatch, parallel

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
            "usable_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        },
        "blas": {"through": "numpy", "name": blas.get("name", "unknown"), "version": blas.get("version", "unknown")},
        "versions": {"python": sys.version.split()[0], "numpy": numpy.__version__, "platform": platform.platform()},
    }
