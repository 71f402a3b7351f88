"""Lines of the user's code, for errors and pictures: which one calls now, and how one is written in a text.  Needs the GIL."""
import linecache
import os
import sys

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def users_line():
    """(file, line, function) of the innermost frame outside cgrad."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def line_text(source):
    """``file, line 3, in f: y = x * 2`` for (file, line, function)."""
    file, line, function = source
    code = linecache.getline(file, line).strip()
    return f"{file}, line {line}, in {function}{f': {code}' if code else ''}"
