"""cgrad: define-by-run automatic differentiation for the CPU.

The public names, by topic: dtypes; Tensor and the operations on it (from the table in cgrad.ops; `linalg`, `fft`, `special`); derivatives (`autograd`, `func`,
`checkpoint`, `Op`, `op`); networks (`nn`, `optim`, `data`); files (`save`, `load`); the process (`memory`, threads, `show_config`).
"""

from math import e, inf, nan, pi

from cgrad.config import __version__, get_num_threads, set_num_threads, show_config, threads
from cgrad.core.device import device
from cgrad.core.dtype import DType as dtype
from cgrad.core.dtype import bool_ as bool
from cgrad.core.dtype import bfloat16, float16, float32, float64, get_default_dtype, int8, int16, int32, int64, promote_types, set_default_dtype
from cgrad.core.dtype import uint8, uint16, uint32, uint64
from cgrad.core.tensor import Tensor
from cgrad.ops import PUBLIC as _operations
from cgrad.ops import Op
from cgrad.ops.decorator import op
from cgrad.ops.define import open_doors as _open_doors
from cgrad.ops.namespace import NamespaceInfo as __array_namespace_info__
from cgrad.ops.namespace import can_cast, finfo, iinfo, isdtype, result_type

globals().update(_operations)

from cgrad import autograd, memory, random  # noqa: E402
from cgrad.autograd import checkpoint, checkpoint_sequential, enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled  # noqa: E402
from cgrad.printing import set_printoptions  # noqa: E402
from cgrad.random import Generator, manual_seed  # noqa: E402

half = float16
float = float32
double = float64
long = int64
int = int32
newaxis = None
__array_api_version__ = "2024.12"


def _hint(name):
    from cgrad.porting import hint
    return hint(name)


_open_doors(globals(), {
    **dict.fromkeys(("nn", "optim", "data", "distributed", "fft", "func", "linalg", "special", "cuda", "utils")), "checkpoint_budget": ".autograd.budget",
    "explain": ".show.explain", "foreign_op": ".ops.foreign", "graph": ".show.graph", "load": ".files", "profile": ".show.profile", "save": ".files",
}, _hint)
