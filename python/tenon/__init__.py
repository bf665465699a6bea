"""Tenon: arrays that are computed when a value is needed, on any device, which is leased only while there is work.

    import tenon as tn
    a = tn.array([[1.0, 2.0], [3.0, 4.0]])
    print(tn.softmax(a @ a.T))            # one fused program, one lease

The functions are the catalogue of operations (tenon.ops) and the Python array API standard 2025.12. tenon.devices() lists the
devices, `with tenon.lease("gpu"):` holds one for several programs, and @tenon.jit records a function once.
"""

from . import _core

globals().update(_core.ops)
globals().update({dtype.name: dtype for dtype in _core.dtypes})

from ._core import Array, DType  # noqa: E402
from ._devices import (  # noqa: E402
    Decision,
    Device,
    Lease,
    Place,
    close,
    config,
    device,
    devices,
    explain,
    find,
    get_default_device,
    lease,
    queue,
    set_default_device,
    simulate,
    status,
)
from ._errors import (  # noqa: E402
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    Error,
    ExchangeRefused,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    Unknown,
)
from ._evaluation import Evaluation, Progress, eval, load, load_metadata, run, save  # noqa: E402, A004
from . import _array  # noqa: E402, F401
from ._standard import *  # noqa: E402, F403

ops = _core.ops
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Loaded when they are used first: an import of tenon takes a few milliseconds.
    from importlib import import_module

    if name in ("jit", "spec", "Program", "load_program"):
        return getattr(import_module("tenon._jit"), name)
    if name in ("eval_async", "run_async", "watch"):
        return getattr(import_module("tenon._async"), name)
    if name in ("Model", "ModelValue", "Encoder", "Tokenizer", "Tokens", "Match", "similarity", "most_similar"):
        return getattr(import_module("tenon._model"), name)
    if name in ("Generator", "Generation", "TextStream"):
        return getattr(import_module("tenon._generator"), name)
    if name in ("Mesh", "MeshPlan", "MeshReport", "MpiMesh", "MpiReport", "finish_mpi", "started_by_mpi"):
        return getattr(import_module("tenon._mesh"), name)
    if name == "compat":
        return import_module("tenon.compat")
    raise AttributeError(f"module 'tenon' has no attribute {name!r}")
