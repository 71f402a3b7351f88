"""Walks through a recorded graph that do not run it."""

cdef set find_needed(dict wanted, dict found, list roots)
cdef list awaited_leaves(list roots)
