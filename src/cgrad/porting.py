"""What to write for names that people look for at the top level of cgrad and that are elsewhere or not there; read when one was not found."""
import importlib

__all__ = []

_INSTEAD = {
    "compile": "leave it out, there is nothing to compile",
    "jit": "leave it out, there is nothing to compile",
    "backends": "leave it out, there is one backend",
    "accelerator": "cgrad computes on the CPU; write cg.device('cpu')",
    "autocast": "leave it out; there is float16 to store, and float32 to compute",
    "amp": "leave it out; there is float16 to store, and float32 to compute",
    "use_deterministic_algorithms": "leave it out, a run gives the same bits each time",
    "Size": "shapes are tuples",
    "distributions": "cg.random draws, cg.special has the functions of distributions",
    "hub": "load weights with cg.load from a safetensors file",
    **{f"{kind}Tensor": f"write cg.tensor(data, dtype=cg.{dtype})" for kind, dtype in (
        ("Float", "float32"), ("Double", "float64"), ("Half", "float16"), ("Long", "int64"), ("Int", "int32"), ("Short", "int16"),
        ("Char", "int8"), ("Byte", "uint8"), ("Bool", "bool"))},
}
_MODULES = ("nn.functional", "linalg", "special", "func", "autograd", "random", "nn", "data", "distributed")


def hint(name):
    """A sentence for the end of an error's message, or nothing."""
    if name in _INSTEAD:
        return f"; {_INSTEAD[name]}"
    for module in _MODULES:
        if not name.startswith("_") and hasattr(importlib.import_module(f"cgrad.{module}"), name):
            return f"; it is cgrad.{module}.{name}"
    return ""
