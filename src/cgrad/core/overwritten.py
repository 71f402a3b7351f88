"""The error about a saved value that was changed in place: which operation saved it, which changed it, and where in the user's code.

Loaded when it happens.  Who wrote is noted at the first write after a save (`note_writer` in storage.pyx); who saved, under
`autograd.detect_anomaly` only, since every recorded operation would pay for it.  Next: engine.pyx, which finds the fault.
"""
from cgrad.core.record import writer_of
from cgrad.core.source import line_text


def overwritten(owner, x, which, version, source=None):
    """The RuntimeError for a tensor that an operation `owner` saved as `which` at a version, in a line of code if that is known."""
    name, written, noted = writer_of(x)
    changes = x._version - version
    by = ""
    if name is not None:
        times = "" if changes == 1 else f" {changes} times," if noted == version + 1 else f" {changes} times, among others"
        by = f"{times} by {name}" + (f" in {line_text(written)}" if written else "")
    fix = "call step() after backward" if name is not None and name.endswith(".step") else \
        "change a copy (x.clone()), or use the operation that makes a new tensor (y = y * 2 for y *= 2)"
    saved = f"It was saved in {line_text(source)}. " if source else ""
    hint = "" if source else ". Inside cgrad.autograd.detect_anomaly() the line that saved it is noted, too"
    return RuntimeError(f"{owner}: a tensor of shape {x.shape} that was saved for backward ({which}) has since been changed in place{by} "
                        f"(version {x._version}, saved at version {version}). {saved}Instead, {fix}{hint}.")
