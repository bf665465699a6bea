"""Element types: conversion, promotion, limits."""

from __future__ import annotations

import builtins

from .. import _core
from .._core import Array, DType
from .._record import NamedTuple
from .arguments import float32, int64, ops, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._devices import DeviceLike


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: DeviceLike = None) -> Array:
    """The array converted to another dtype."""
    return placed(ops["cast"](x, dtype), device)


_KINDS: dict[str, Callable[[DType], bool]] = {
    "bool": lambda d: d.kind == "bool",
    "signed integer": lambda d: d.kind == "int",
    "unsigned integer": lambda d: d.kind == "uint",
    "integral": lambda d: d.kind in ("int", "uint"),
    "real floating": lambda d: d.kind == "float",
    "complex floating": lambda _: False,
    "numeric": lambda d: d.kind != "bool",
}


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether dtype is of a kind: a dtype, "bool", "integral", "real floating", "numeric" ..., or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of dtype {kind!r}; known are {', '.join(_KINDS)}")
    return _KINDS[kind](dtype)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of the result of an operation on arrays, dtypes and Python numbers, which adapt to the others."""
    strong = [x.dtype if isinstance(x, Array) else _core.dtype(x) for x in arrays_and_dtypes if not _is_number(x)]
    numbers = [x for x in arrays_and_dtypes if _is_number(x)]
    if not strong:
        strong = [_core._asarray(x, None, None).dtype for x in numbers]
    result = strong[0]
    for dtype in strong[1:]:
        result = _core.promote(result, dtype)
    for number in numbers:
        if isinstance(number, float) and result.kind != "float":
            result = float32
        elif not isinstance(number, bool) and result.kind == "bool":
            result = int64
    return result


def _is_number(x: object) -> bool:
    return isinstance(x, (bool, int, float)) and not isinstance(x, Array)


def can_cast(from_: Any, to: DType, /) -> bool:
    """Whether every value of a dtype, or of an array's dtype, is one of another dtype by the rules of promotion."""
    return result_type(from_, to) == to


class finfo_object(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: DType


_FLOATS = {  # bits, digits of the mantissa, largest exponent
    "float64": (64, 52, 1023),
    "float32": (32, 23, 127),
    "float16": (16, 10, 15),
    "bfloat16": (16, 7, 127),
}


def _dtype_of(type: Any) -> DType:
    return type.dtype if isinstance(type, Array) else _core.dtype(type)


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating-point dtype."""
    dtype = _dtype_of(type)
    if dtype.name not in _FLOATS:
        raise ValueError(f"finfo: {dtype} is not one of {', '.join(_FLOATS)}")
    bits, digits, exponent = _FLOATS[dtype.name]
    largest = (2.0 - 2.0**-digits) * 2.0**exponent
    return finfo_object(bits, 2.0**-digits, largest, -largest, 2.0 ** (1 - exponent), dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype."""
    dtype = _dtype_of(type)
    if dtype.kind not in ("int", "uint"):
        raise ValueError(f"iinfo: {dtype} is not an integer dtype")
    bits = 8 * dtype.itemsize
    if dtype.kind == "uint":
        return iinfo_object(bits, 2**bits - 1, 0, dtype)
    return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)
