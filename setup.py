"""The build recipe: one extension for each .pyx under src/cgrad, with what the compiler at hand can do.

Everything else about the package is said in pyproject.toml.  Environment variables read here:

CGRAD_DEBUG=1      bounds and initialisation checks, Cython `assert` statements, -O1 -g
CGRAD_NO_OPENMP=1  a serial build, as if the compiler knew no OpenMP
CC, CFLAGS         as usual; an -O in CFLAGS replaces ours
"""
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PACKAGE = Path("src", "cgrad")
SHARED = "cgrad._cyutility"     # Cython's own helpers, compiled once: each module then is 20 KB instead of 180 KB
DEBUG = os.environ.get("CGRAD_DEBUG", "0") == "1"
OPENMP_WANTED = os.environ.get("CGRAD_NO_OPENMP", "0") != "1"
OPENMP_MODULES = ("parallel", "_buildinfo")
X86 = platform.machine().lower() in ("x86_64", "amd64")
# Neither in a loop over elements nor on the path of a small eager operation: compiled for size, two fifths less.
SELDOM = (
    "cgrad.core.batching", "cgrad.core.foreign", "cgrad.core.forward.attention", "cgrad.core.forward.conv", "cgrad.core.forward.embedding",
    "cgrad.core.forward.loss", "cgrad.core.forward.optim", "cgrad.core.forward.order", "cgrad.core.forward.pool",
    "cgrad.core.forward.recurrent", "cgrad.core.forward.running", "cgrad.core.forward.scan", "cgrad.core.forward.search",
    "cgrad.core.forward_mode", "cgrad.core.graph", "cgrad.core.hooks", "cgrad.core.primitive", "cgrad.kernels.blas",
    "cgrad.kernels.dispatch", "cgrad.kernels.doors",
)
BUILD_DIR = Path("build", "cython-debug" if DEBUG else "cython")

# NaN, infinity and signed zero must hold, so no -ffast-math; math functions set no errno and nobody traps on an exception
# flag, which is what lets loops vectorise.  Integer overflow wraps, as in NumPy.
FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv"]
# No symbols, no padding between segments, no tables to unwind stacks by (no exception passes through): an eighth of the installed size.
SLIM = ["-fno-asynchronous-unwind-tables", "-Wl,-s", "-Wl,-z,noseparate-code", "-Wl,-z,norelro", "-Wl,-z,common-page-size=64", "-Wl,--build-id=none"]
# What Cython and CPython call unlikely, errors above all, never is in a loop: compiled for size, and put where it is in nobody's way.
COLD = ["--param=builtin-expect-probability=100"]
# In the shells of kernels each loop is written for the strides that occur (gcc would write another one for a stride of 1 beside it, 6 % of
# the size), and what is to be inlined says so (gcc would copy loops that several kernels share into each of them, 8 %).  Branches outside of
# loops need no alignment (1.5 %).
SHELL = ["-fno-version-loops-for-strides", "-fno-inline-functions", "-fno-inline-small-functions", "-fno-inline-functions-called-once",
         "-fno-ipa-cp-clone", "-fno-align-jumps", "-fno-align-labels"]
ISA = {
    "_avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi2"],
    "_avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma", "-mf16c", "-mbmi2",
                "-mprefer-vector-width=512"],
}
OPENMP_CHOICES = [(["-fopenmp"], ["-fopenmp"]), (["-Xpreprocessor", "-fopenmp"], ["-lomp"])]   # the second: macOS with libomp

PROBE_ISA = """
#include <immintrin.h>
int main(void) { return (int)_mm256_cvtss_f32(_mm256_set1_ps(0.0f)); }
"""
PROBE_OPENMP = """
#include <omp.h>
int main(void) {
    int n = 0;
    #pragma omp parallel reduction(+:n)
    n += 1;
    return n > omp_get_max_threads();
}
"""

# Functions without what Python functions know of themselves (code objects, attributes): 5 KB less each module, and a method called with a
# wrong `self` is refused, where Cython's own functions would read its memory as that of a tensor.
DIRECTIVES = {
    "binding": False,
    "language_level": 3, "cdivision": True,
    "wraparound": False, "boundscheck": DEBUG, "initializedcheck": DEBUG, "auto_pickle": False,
}


def cpu_count():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def isa_of(module):
    """The key of ISA that module's shell needs, or None: kernels/_avx2.pyx, kernels/_reduce_avx512.pyx, ..."""
    return next((isa for isa in ISA if module.endswith(isa)), None)


def optimisation(module):
    if module in (*SELDOM, SHARED):
        return "-Os"
    if module == "cgrad.kernels._baseline" and X86:      # for the few processors without AVX2; two fifths of the size of -O3
        return "-Os"
    return "-O3" if module.startswith("cgrad.kernels.") else "-O2"


def compile_flags(module):
    """What an extension is compiled with."""
    given = os.environ.get("CFLAGS", "").split()
    flags = list(FLAGS)
    if not any(flag.startswith("-O") for flag in given):
        flags.append("-O1" if DEBUG else optimisation(module))
    if DEBUG:
        flags += ["-g", "-UNDEBUG"]
    elif not any(flag.startswith("-g") for flag in given):
        flags.append("-g0")      # Python's own flags carry -g, which makes the wheel four times as large
    return flags


def extensions():
    import numpy

    macros = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("CGRAD_DEBUG", str(int(DEBUG)))]
    if not DEBUG:
        macros.append(("CYTHON_WITHOUT_ASSERTIONS", "1"))
    for path in sorted(PACKAGE.rglob("*.pyx")):
        module = ".".join(path.relative_to("src").with_suffix("").parts)
        yield Extension(module, [path.as_posix()], include_dirs=[numpy.get_include()], define_macros=list(macros),
                        extra_compile_args=compile_flags(module))
    yield Extension(SHARED, [], extra_compile_args=compile_flags(SHARED))


class BuildExtensions(build_ext):
    """Probe the compiler, cythonize into build/, compile on all cores this process may use."""

    def initialize_options(self):
        super().initialize_options()
        self.parallel = cpu_count()

    def finalize_options(self):
        super().finalize_options()
        if DEBUG:
            self.build_temp += "-debug"

    def build_extensions(self):
        from Cython.Build import cythonize

        self.force = self.force or self.settings_changed()
        self.fit_to_compiler()
        done = cythonize(self.extensions, build_dir=str(BUILD_DIR), include_path=["src"], nthreads=int(self.parallel or 0), force=self.force,
                         compiler_directives=DIRECTIVES, shared_utility_qualified_name=SHARED)
        for extension, cythonized in zip(self.extensions, done, strict=True):
            extension.sources, extension.depends = cythonized.sources, cythonized.depends
        # The largest first, so that no core waits at the end for one that started late.
        self.extensions.sort(key=lambda extension: -os.path.getsize(extension.sources[0]))
        super().build_extensions()

    def fit_to_compiler(self):
        """Give each extension the flags of its own; drop the ISA shells that this compiler or machine cannot build."""
        openmp = next((c for c in OPENMP_CHOICES if self.compiles(PROBE_OPENMP, *c)), None) if OPENMP_WANTED else None
        if OPENMP_WANTED and openmp is None:
            self.warn("this compiler has no working OpenMP: cgrad is built to compute on one thread")
        slim = SLIM if not DEBUG and "-g" not in os.environ.get("CFLAGS", "").split() and self.compiles("int main(void) { return 0; }", [], SLIM) else []
        shell = [flag for flag in SHELL if self.compiles("int main(void) { return 0; }", ["-Werror", flag])]
        cold = COLD if self.compiles("int main(void) { return 0; }", ["-Werror", *COLD]) else []
        usable = [isa for isa in ISA if X86 and self.compiles(PROBE_ISA, ISA[isa])]
        self.extensions[:] = [e for e in self.extensions if isa_of(e.name) in (None, *usable)]
        for extension in self.extensions:
            if extension.name.startswith("cgrad.kernels._"):
                extension.extra_compile_args += shell + ISA.get(isa_of(extension.name), [])
            extension.extra_compile_args += cold + [flag for flag in slim if not flag.startswith("-Wl")]
            extension.extra_link_args += [flag for flag in slim if flag.startswith("-Wl")]
            if openmp and extension.name.rpartition(".")[2] in OPENMP_MODULES:
                extension.extra_compile_args += openmp[0]
                extension.extra_link_args += openmp[1]

    def compiles(self, code, flags, link=()):
        """Whether the compiler of this build makes a program of `code`, quietly."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text(code)
            command = [*self.compiler.compiler_so, *flags, str(source), "-o", str(Path(folder, "probe")), *link]
            return subprocess.run(command, capture_output=True).returncode == 0

    def settings_changed(self):
        """Whether flags differ from those of the last build in this tree (file times do not show that)."""
        stamp = Path("build", "settings.json")
        flags = [compile_flags(module) for module in (SHARED, SELDOM[0], "cgrad.kernels._baseline", "cgrad.kernels.")]
        now = json.dumps([self.compiler.compiler_so, flags, SELDOM, SLIM, COLD, SHELL, ISA, DEBUG, OPENMP_WANTED, DIRECTIVES])
        changed = stamp.exists() and stamp.read_text() != now
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
        return changed


setup(ext_modules=list(extensions()), cmdclass={"build_ext": BuildExtensions})
