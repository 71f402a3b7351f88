"""Build recipe: one extension for each .pyx under src/cgrad, the three ISA shells with flags of their own."""
import os
import platform
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
DEBUG = os.environ.get("CGRAD_DEBUG", "0") == "1"
BASE = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"]
ISA = {
    "_baseline": [],
    "_avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi2"],
    "_avx512": ["-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx2", "-mfma", "-mbmi2", "-mprefer-vector-width=512"],
}


def extensions():
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    for path in sorted((ROOT / "src" / "cgrad").rglob("*.pyx")):
        if path.stem in ("_avx2", "_avx512") and not x86:
            continue
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        flags = BASE + ISA.get(path.stem, [])
        openmp = ["-fopenmp"] if path.stem == "parallel" else []
        yield Extension(module, [str(path.relative_to(ROOT))], include_dirs=[numpy.get_include()],
                        extra_compile_args=flags + openmp, extra_link_args=openmp,
                        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")])


directives = dict(language_level=3, boundscheck=DEBUG, wraparound=False, initializedcheck=DEBUG, cdivision=True,
                  embedsignature=False, binding=True)
setup(ext_modules=cythonize(list(extensions()), build_dir="build/cython", nthreads=2, compiler_directives=directives,
                            shared_utility_qualified_name="cgrad._cyutility"))
