"""How this copy of cgrad was compiled, as the compiler itself saw it.  Read by cgrad.config; nobody else needs it."""

cdef extern from *:
    """
    #if defined(__clang__)
      #define CGRAD_COMPILER "clang " __clang_version__
    #elif defined(__GNUC__)
      #define CGRAD_COMPILER "gcc " __VERSION__
    #else
      #define CGRAD_COMPILER "unknown"
    #endif
    #ifdef _OPENMP
      #define CGRAD_OPENMP _OPENMP
    #else
      #define CGRAD_OPENMP 0
    #endif
    #ifndef CGRAD_DEBUG
      #define CGRAD_DEBUG 0
    #endif
    """
    const char* CGRAD_COMPILER
    int CGRAD_OPENMP          # yyyymm of the standard the compiler follows, 0 without OpenMP
    int CGRAD_DEBUG
    unsigned int CYTHON_HEX_VERSION

COMPILER = CGRAD_COMPILER.decode().strip()
CYTHON = f"{CYTHON_HEX_VERSION >> 24}.{CYTHON_HEX_VERSION >> 16 & 0xFF}.{CYTHON_HEX_VERSION >> 8 & 0xFF}"
OPENMP = CGRAD_OPENMP
DEBUG = CGRAD_DEBUG != 0
