"""The functions of the Python array API standard 2025.12 that the catalogue lacks, or has with other arguments.

A function here replaces the op of the same name in the main namespace and, if it takes an array first, Array's method.
"""

from __future__ import annotations

import math

from .. import _core
from .._core import Array, DType
from .arguments import float32, int64
from .creation import (
    arange,
    array,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .dtypes import (
    astype,
    can_cast,
    finfo,
    finfo_object,
    iinfo,
    iinfo_object,
    isdtype,
    result_type,
)
from .reductions import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from .searching import (
    argsort,
    clip,
    conj,
    imag,
    isin,
    nextafter,
    nonzero,
    real,
    repeat,
    searchsorted,
    sort,
    take,
    unique_all,
    unique_all_result,
    unique_counts,
    unique_counts_result,
    unique_inverse,
    unique_inverse_result,
    unique_values,
)
from .shapes import (
    broadcast_arrays,
    broadcast_shapes,
    concat,
    expand_dims,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
    tensordot,
    unstack,
    vecdot,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None


class _Info:
    """What __array_namespace_info__() answers."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 16}

    def default_device(self) -> str:
        return "host"

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        standard = [d for d in _core.dtypes if d.name in ("float32", "float64") or d.kind != "float"]
        return {d.name: d for d in standard if kind is None or isdtype(d, kind)}

    def devices(self) -> list[str]:
        from .._devices import devices

        return ["host", *(device.id for device in devices() if device.available)]


def __array_namespace_info__() -> _Info:
    """What this namespace of the array API standard offers."""
    return _Info()


__array_api_version__ = "2025.12"

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "all",
    "any",
    "arange",
    "argsort",
    "array",
    "asarray",
    "astype",
    "broadcast_arrays",
    "broadcast_shapes",
    "can_cast",
    "clip",
    "concat",
    "conj",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "e",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "finfo",
    "finfo_object",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "iinfo_object",
    "imag",
    "inf",
    "isdtype",
    "isin",
    "linspace",
    "matrix_transpose",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "nan",
    "newaxis",
    "nextafter",
    "nonzero",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "prod",
    "real",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "searchsorted",
    "sort",
    "squeeze",
    "std",
    "sum",
    "take",
    "tensordot",
    "tril",
    "triu",
    "unique_all",
    "unique_all_result",
    "unique_counts",
    "unique_counts_result",
    "unique_inverse",
    "unique_inverse_result",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "zeros",
    "zeros_like",
]

# As methods, x.sum() and sum(x) are the same.
for _name in __all__:
    _function = globals()[_name]
    _names = getattr(getattr(_function, "__code__", None), "co_varnames", ("",))
    if callable(_function) and _names[:1] == ("x",) and _name not in ("reshape", "astype", "array"):
        setattr(Array, _name, _function)
