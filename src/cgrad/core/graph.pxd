"""Walks through a recorded graph that do not run it."""
from cgrad.core.tape cimport Node

cdef int freed(Node node) except -1                     # raises
cdef set find_needed(dict wanted, dict found, unsigned long long oldest, bint stop, list roots)
cdef bint lost(Node node, unsigned long long oldest) noexcept      # freed, it does not know what lies behind it, perhaps something wanted: an error when run
cdef list awaited_leaves(list roots)
