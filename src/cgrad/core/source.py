"""Lines of the user's code, for errors, warnings and pictures: which one calls now, how one is written in a text.  Needs the GIL."""
import linecache
import os
import sys
import warnings

HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "")


def _users_frame():
    """The innermost frame outside cgrad, and its stacklevel in a warning of the function that asks."""
    frame, level = sys._getframe(2), 2
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame, level = frame.f_back, level + 1
    return frame, level


def warn(text, category=UserWarning):
    """Give a warning that points at the user's line, however many levels of cgrad lie between."""
    warnings.warn(text, category, _users_frame()[1])


def users_line():
    """(file, line, function) of the innermost frame outside cgrad."""
    frame, _ = _users_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def line_text(source):
    """``file, line 3, in f: y = x * 2`` for (file, line, function)."""
    file, line, function = source
    code = linecache.getline(file, line).strip()
    return f"{file}, line {line}, in {function}{f': {code}' if code else ''}"
