"""Walks through a recorded graph that do not run it."""
from cgrad.core.tape cimport Node

cdef int freed(Node node) except -1                     # raises
cdef set find_needed(dict wanted, dict found, list roots)
cdef list awaited_leaves(list roots)
