"""Elementwise functions and operators of the array API standard: every dtype, broadcasting, promotion, numbers, special values."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenon as tn

INTEGERS = [np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
FLOATS = [np.dtype("float32"), np.dtype("float64")]
BOOL = [np.dtype("bool")]
NUMERIC, ALL = INTEGERS + FLOATS, BOOL + INTEGERS + FLOATS

# name: dtypes
UNARY = {
    **dict.fromkeys(["abs", "negative", "positive", "sign", "square", "ceil", "floor", "trunc", "round", "conj", "real"], NUMERIC),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], NUMERIC),
    **dict.fromkeys(
        ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "sinh",
         "sqrt", "tan", "tanh", "reciprocal", "signbit"], FLOATS),
    "bitwise_invert": BOOL + INTEGERS,
    "logical_not": BOOL,
}  # fmt: skip
BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "maximum", "minimum", "remainder", "floor_divide"], NUMERIC),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal"], NUMERIC),
    **dict.fromkeys(["equal", "not_equal"], ALL),
    **dict.fromkeys(["divide", "atan2", "hypot", "copysign", "logaddexp", "nextafter"], FLOATS),
    "pow": NUMERIC,
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], BOOL + INTEGERS),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], BOOL),
}
OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "pow": operator.pow, "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
IN_PLACE = {
    "add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul, "divide": operator.itruediv, "floor_divide": operator.ifloordiv,
    "remainder": operator.imod, "pow": operator.ipow, "bitwise_and": operator.iand, "bitwise_or": operator.ior, "bitwise_xor": operator.ixor,
    "bitwise_left_shift": operator.ilshift, "bitwise_right_shift": operator.irshift,
}  # fmt: skip
# Functions whose results are rounded at most once, so that they are the same bits as NumPy's.
EXACT = {"abs", "negative", "positive", "sign", "square", "ceil", "floor", "trunc", "round", "conj", "real", "sqrt", "add", "subtract", "multiply",
         "divide", "maximum", "minimum", "copysign", "nextafter"}  # fmt: skip


def numbers(dtype: np.dtype, name: str = "", is_second: bool = False):
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind == "f":
        if name in ("pow", "floor_divide", "remainder"):  # NumPy's own answers for infinities are not those of the standard
            low = 0.0 if name == "pow" and not is_second else -100.0
            return st.floats(low, 100.0, width=32).filter(lambda value: abs(value) > 1e-3 or not is_second)
        return st.floats(width=dtype.itemsize * 8) | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5])
    info = np.iinfo(dtype)
    if "shift" in name and is_second:
        return st.integers(0, dtype.itemsize * 8 - 1)
    if name == "pow":
        return st.integers(0, 9)
    if name in ("floor_divide", "remainder") and is_second:
        return st.integers(info.min, info.max).filter(lambda value: value not in (0, -1))
    return st.integers(info.min, info.max)


def check(ours, theirs: np.ndarray, name: str = "") -> None:
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    got = np.asarray(ours)
    if theirs.dtype.kind != "f":
        np.testing.assert_array_equal(got, theirs)
        return
    np.testing.assert_array_equal(np.isnan(got), np.isnan(theirs))
    tiny = np.finfo(theirs.dtype).smallest_normal
    is_edge = np.isinf(theirs) | (theirs == 0)
    if name in EXACT:
        np.testing.assert_array_equal(got, theirs)
        zeros = (theirs == 0) & (name != "sign")  # either zero is right
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(theirs[zeros]))
    else:
        largest = np.finfo(theirs.dtype).max
        with np.errstate(all="ignore"):
            is_close = np.abs(got - theirs) <= 64 * np.finfo(theirs.dtype).eps * np.abs(theirs) + tiny
            # A function may overflow a little earlier or later than NumPy's.
            is_close |= (
                is_edge & (got == theirs)
                | (np.isinf(theirs) & (np.abs(got) > 0.9 * largest))
                | (np.isinf(got) & (np.abs(theirs) > 0.9 * largest))
            )
        assert np.all(is_close | np.isnan(theirs)), (got, theirs)


def numpy_function(name: str):
    return {"conj": np.conj, "real": np.real}.get(name) or getattr(np, name)


@pytest.mark.parametrize("name", UNARY)
@given(st.data())
def test_unary(name, data):
    dtype = data.draw(st.sampled_from(UNARY[name]))
    a = data.draw(
        hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5), elements=numbers(dtype, name))
    )
    if dtype.kind == "f" and name in ("sin", "cos", "tan"):
        a = np.where(np.abs(a) > 1e5, dtype.type(1.5), a)
    with np.errstate(all="ignore"):
        theirs = np.asarray(numpy_function(name)(a))
    check(getattr(tn, name)(tn.asarray(a)), theirs, name)


@pytest.mark.parametrize("name", BINARY)
@given(st.data())
def test_binary_functions_and_operators(name, data):
    dtypes = BINARY[name]
    first = data.draw(st.sampled_from(dtypes))
    # The standard promotes within a kind.
    second = first if name in ("floor_divide", "remainder", "pow") or "shift" in name else data.draw(
        st.sampled_from([d for d in dtypes if d.kind == first.kind or {d.kind, first.kind} <= set("iu")]))  # fmt: skip
    if {first.kind, second.kind} == {"i", "u"} and "uint64" in (first.name, second.name):
        second = first
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=0, max_side=4)).input_shapes
    a = data.draw(hnp.arrays(first, shapes[0], elements=numbers(first, name)))
    b = data.draw(hnp.arrays(second, shapes[1], elements=numbers(second, name, True)))
    with np.errstate(all="ignore"):
        theirs = np.asarray(getattr(np, name)(a, b))
    if name == "logaddexp":
        a, b = np.asarray(np.clip(a, -50, 50), first), np.asarray(np.clip(b, -50, 50), second)
        theirs = np.asarray(np.logaddexp(a, b))
    x, y = tn.asarray(a), tn.asarray(b)
    check(getattr(tn, name)(x, y), theirs, name)
    if name in OPERATORS:
        check(OPERATORS[name](x, y), theirs, name)
    if name in IN_PLACE and theirs.shape == a.shape and theirs.dtype == first:
        z = tn.array(a)
        same = z
        z = IN_PLACE[name](z, y)
        assert z is same
        check(z, theirs, name)


@pytest.mark.parametrize("name", OPERATORS)
@given(st.data())
def test_operators_with_python_numbers_keep_the_dtype_of_the_array(name, data):
    dtype = data.draw(st.sampled_from([d for d in BINARY[name] if d.kind != "b"] or BOOL))
    a = data.draw(
        hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3), elements=numbers(dtype, name))
    )
    if dtype.kind == "f":
        number = data.draw(st.sampled_from([0.5, 2.0, 3.0, 1]))
    else:
        number = data.draw(st.booleans() if dtype.kind == "b" else st.integers(1, 7))
    is_array_result = name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    with np.errstate(all="ignore"):
        theirs = np.asarray(OPERATORS[name](a, dtype.type(number)))
    ours = OPERATORS[name](tn.asarray(a), number)
    assert ours.dtype == (tn.bool if is_array_result else dtype)
    check(ours, theirs, name)
    b = np.abs(a) % 5 + 1 if dtype.kind != "b" else a
    b = np.where(np.isnan(b), 1, b).astype(dtype)
    with np.errstate(all="ignore"):
        theirs = np.asarray(OPERATORS[name](dtype.type(number), b))
    check(OPERATORS[name](number, tn.asarray(b)), theirs, name)


INF, NAN = np.inf, np.nan
# What the standard says, where NumPy is no witness: (function, x1, x2, results that are allowed).
SPECIAL = [
    *[("pow", x, 0.0, [1.0]) for x in (NAN, INF, -INF, 0.0, -0.0, 5.0)],
    *[("pow", x, -0.0, [1.0]) for x in (NAN, INF, -INF, 0.0, -0.0, 5.0)],
    ("pow", NAN, 1.0, [NAN]), ("pow", 1.0, NAN, [1.0, NAN]), ("pow", 2.0, NAN, [NAN]), ("pow", 2.0, INF, [INF]), ("pow", 2.0, -INF, [0.0]),
    ("pow", 0.5, INF, [0.0]), ("pow", 0.5, -INF, [INF]), ("pow", 1.0, INF, [1.0]), ("pow", 1.0, -INF, [1.0]), ("pow", -1.0, INF, [1.0]),
    ("pow", INF, 2.0, [INF]), ("pow", INF, -2.0, [0.0]), ("pow", -INF, 3.0, [-INF]), ("pow", -INF, 2.0, [INF]), ("pow", -INF, -3.0, [-0.0]),
    ("pow", -INF, -2.0, [0.0]), ("pow", 0.0, 3.0, [0.0]), ("pow", 0.0, -3.0, [INF]), ("pow", -0.0, 3.0, [-0.0]), ("pow", -0.0, 2.0, [0.0]),
    ("pow", -0.0, -3.0, [-INF]), ("pow", -0.0, -2.0, [INF]), ("pow", -8.0, 0.5, [NAN]),
    ("floor_divide", INF, INF, [NAN]), ("floor_divide", 0.0, 0.0, [NAN]), ("floor_divide", 0.0, 3.0, [0.0]), ("floor_divide", -0.0, 3.0, [-0.0]),
    ("floor_divide", 0.0, -3.0, [-0.0]), ("floor_divide", -0.0, -3.0, [0.0]), ("floor_divide", 5.0, 0.0, [INF]), ("floor_divide", 5.0, -0.0, [-INF]),
    ("floor_divide", -5.0, 0.0, [-INF]), ("floor_divide", INF, 3.0, [INF, NAN]), ("floor_divide", -INF, 3.0, [-INF, NAN]),
    ("floor_divide", 5.0, INF, [0.0]), ("floor_divide", -5.0, INF, [-1.0]), ("floor_divide", 5.0, -INF, [-1.0]), ("floor_divide", -5.0, -INF, [0.0]),
    ("remainder", INF, 3.0, [NAN]), ("remainder", 5.0, 0.0, [NAN]), ("remainder", 0.0, 3.0, [0.0]), ("remainder", -0.0, 3.0, [0.0]),
    ("remainder", 0.0, -3.0, [-0.0]), ("remainder", -0.0, -3.0, [-0.0]), ("remainder", 5.0, INF, [5.0]), ("remainder", -5.0, INF, [INF]),
    ("remainder", 5.0, -INF, [-INF]), ("remainder", -5.0, -INF, [-5.0]), ("remainder", NAN, 1.0, [NAN]),
    ("divide", 0.0, 0.0, [NAN]), ("divide", INF, INF, [NAN]), ("divide", 5.0, -0.0, [-INF]), ("divide", -5.0, INF, [-0.0]),
    ("atan2", 0.0, -0.0, [np.pi]), ("atan2", -0.0, -0.0, [-np.pi]), ("atan2", 0.0, 0.0, [0.0]), ("atan2", -0.0, 0.0, [-0.0]), ("atan2", INF, INF, [np.pi / 4]),
    ("atan2", INF, -INF, [3 * np.pi / 4]), ("atan2", -INF, -INF, [-3 * np.pi / 4]), ("atan2", 5.0, INF, [0.0]), ("atan2", -5.0, INF, [-0.0]),
    ("atan2", 5.0, -INF, [np.pi]), ("atan2", NAN, 1.0, [NAN]), ("hypot", INF, NAN, [INF]), ("hypot", NAN, -INF, [INF]), ("hypot", NAN, 1.0, [NAN]),
    ("maximum", NAN, 1.0, [NAN]), ("maximum", 1.0, NAN, [NAN]), ("minimum", NAN, 1.0, [NAN]), ("minimum", 1.0, NAN, [NAN]),
    ("copysign", 5.0, -0.0, [-5.0]), ("copysign", -5.0, 0.0, [5.0]), ("logaddexp", -INF, 2.0, [2.0]), ("logaddexp", INF, 2.0, [INF]),
    ("add", INF, -INF, [NAN]), ("add", -0.0, -0.0, [-0.0]), ("add", -0.0, 0.0, [0.0]), ("add", 5.0, -5.0, [0.0]), ("multiply", INF, 0.0, [NAN]),
    ("nextafter", 1.0, NAN, [NAN]), ("nextafter", 0.0, -0.0, [-0.0]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_cases_of_two_arguments(dtype):
    wrong = []
    for name, a, b, allowed in SPECIAL:
        x, y = tn.asarray([a] * 9, dtype=dtype), tn.asarray([b] * 9, dtype=dtype)
        for got in (np.asarray(getattr(tn, name)(x, y))[i] for i in (0, 8)):  # a vector and the remainder
            if not any(
                (np.isnan(want) and np.isnan(got))
                or (np.isclose(got, want, rtol=1e-6, atol=0) and np.signbit(got) == np.signbit(want))
                for want in allowed
            ):
                wrong.append((name, a, b, float(got), allowed))
    assert not wrong


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name, dtypes in UNARY.items() if np.dtype("float32") in dtypes])
def test_special_cases_of_one_argument(name, dtype):
    a = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.0, 0.5, -0.5, 1.5, 2.5, -1.5, -0.4], dtype=dtype)
    with np.errstate(all="ignore"):
        theirs = np.asarray(numpy_function(name)(a))
    ours = np.asarray(getattr(tn, name)(tn.asarray(a)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    if theirs.dtype.kind == "f":
        edges = ((theirs == 0) & (name != "sign")) | np.isinf(theirs)
        np.testing.assert_array_equal(np.signbit(ours[edges]), np.signbit(theirs[edges]))


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion_is_that_of_the_standard(a, b):
    is_within_a_kind = a.kind == b.kind or {a.kind, b.kind} == {"i", "u"}
    if not is_within_a_kind or ({a.kind, b.kind} == {"i", "u"} and "uint64" in (a.name, b.name)):
        return  # left open by the standard
    wanted = np.result_type(a, b)
    x, y = tn.ones((2,), dtype=a.name), tn.ones((2,), dtype=b.name)
    assert tn.result_type(x, y) == tn.result_type(a.name, b.name) == tn.result_type(x, b.name) == wanted
    if a.kind != "b":
        assert (x + y).dtype == wanted and tn.add(x, y).dtype == wanted
        assert tn.where(tn.asarray([True, False]), x, y).dtype == wanted and tn.concat([x, y]).dtype == wanted
    assert (x == y).dtype == tn.bool
