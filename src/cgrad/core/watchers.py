"""Watchers: functions that are told of every node as it is made, of every gradient as a rule gives it, or of what leaves the graph.

For tools that look for faults; without one, an operation pays a comparison.  Next: record.pyx and engine.pyx, which call them (tape.pyx for what leaves).
"""
import threading

from cgrad.core import engine, record, tape

_lock = threading.Lock()
_functions = {"record": [], "gradient": [], "leave": []}
_set = {"record": record.set_record_watcher, "gradient": engine.set_gradient_watcher, "leave": tape.set_leaving_watcher}


def add(kind, function):
    """Call `function` from now on: "record" (node, inputs, results), "gradient" (node, number of the input, gradient),
    "leave" (the tensor that is out of the graph)."""
    with _lock:
        _functions[kind] = [*_functions[kind], function]
        _install(kind)


def remove(kind, function):
    """No longer call a function (one registration of it)."""
    with _lock:
        left = list(_functions[kind])
        left.remove(function)
        _functions[kind] = left
        _install(kind)


def _install(kind):
    functions = _functions[kind]
    if not functions:
        _set[kind](None)
    elif len(functions) == 1:
        _set[kind](functions[0])
    else:
        def call_all(*args):
            for function in functions:
                function(*args)
        _set[kind](call_all)
