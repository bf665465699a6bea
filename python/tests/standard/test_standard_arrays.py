"""Indexing, manipulation, searching, statistics, creation and inspection of the array API standard, for every dtype."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenon as tn

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
NUMERIC, REAL = DTYPES[1:], ["float32", "float64"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
FULL_SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@st.composite
def arrays(draw, dtypes=DTYPES, shapes=SHAPES, low=-100):
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "b":
        values = st.booleans()
    elif dtype.kind == "f":
        values = st.floats(low, 100, width=32)
    else:
        values = st.integers(max(low, 0) if dtype.kind == "u" else low, 100)
    return draw(hnp.arrays(dtype, draw(shapes), elements=values))


def same(ours, theirs, rtol=0.0, atol=0.0) -> None:
    theirs = np.asarray(theirs)
    assert isinstance(ours, tn.Array) and ours.shape == theirs.shape and ours.dtype == theirs.dtype, (
        ours.shape,
        theirs.shape,
        ours.dtype,
        theirs.dtype,
    )
    if rtol or atol:
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(np.asarray(ours), theirs)


# --- Indexing ---


@st.composite
def indices(draw, shape):
    """What the standard allows: integers, slices, an ellipsis, new axes; too few mean the rest."""
    key = []
    for extent in shape[: draw(st.integers(0, len(shape)))]:
        if extent and draw(st.booleans()):
            key.append(draw(st.integers(-extent, extent - 1)))
        else:
            key.append(draw(st.slices(extent)))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(key)))
        tail = len(key) - at
        head_shape, tail_shape = shape[:at], shape[len(shape) - tail :] if tail else ()
        key = key[:at] + [...] + [draw(st.slices(extent)) for extent in tail_shape]
        assert len(head_shape) == at
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    return tuple(key)


@given(st.data())
def test_getitem(data):
    a = data.draw(arrays())
    key = data.draw(indices(a.shape))
    if key.count(Ellipsis) == 0 and data.draw(st.booleans()) and len(key) == 1:
        same(tn.asarray(a)[key[0]], a[key[0]])
    same(tn.asarray(a)[key], a[key])


@given(st.data())
def test_setitem(data):
    a = data.draw(arrays()).copy()
    key = data.draw(indices(a.shape))
    x = tn.array(a)
    part = a[key]
    if data.draw(st.booleans()):
        value = True if a.dtype.kind == "b" else 2.5 if a.dtype.kind == "f" else 3
        x[key] = value
        a[key] = value
    else:
        value = data.draw(hnp.arrays(a.dtype, part.shape, elements=st.booleans() if a.dtype.kind == "b" else st.integers(0, 9)))
        x[key] = tn.asarray(value)
        a[key] = value
    same(x, a)


@given(st.data())
def test_masks(data):
    a = data.draw(arrays(shapes=FULL_SHAPES)).copy()
    mask = data.draw(hnp.arrays(bool, a.shape))
    x = tn.array(a)
    same(x[tn.asarray(mask)], a[mask])
    x[tn.asarray(mask)] = 1
    a[mask] = 1
    same(x, a)


@given(st.data())
def test_integer_arrays_as_indices(data):
    a = data.draw(arrays(shapes=FULL_SHAPES))
    key = []
    for extent in a.shape:
        key.append(
            data.draw(hnp.arrays(np.int64, (3,), elements=st.integers(-extent, extent - 1)))
            if data.draw(st.booleans())
            else data.draw(st.integers(-extent, extent - 1))
        )
    same(tn.asarray(a)[tuple(tn.asarray(k) if isinstance(k, np.ndarray) else k for k in key)], a[tuple(key)])


@given(st.data())
def test_take_and_take_along_axis(data):
    a = data.draw(arrays(shapes=FULL_SHAPES))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    places = data.draw(hnp.arrays(np.int64, (data.draw(st.integers(0, 4)),), elements=st.integers(0, a.shape[axis] - 1)))
    same(tn.take(tn.asarray(a), tn.asarray(places), axis=axis), np.take(a, places, axis=axis))
    if a.ndim == 1:
        same(tn.take(tn.asarray(a), tn.asarray(places)), np.take(a, places))
    along = data.draw(hnp.arrays(np.int64, a.shape, elements=st.integers(0, a.shape[axis] - 1)))
    same(tn.take_along_axis(tn.asarray(a), tn.asarray(along), axis=axis), np.take_along_axis(a, along, axis=axis))


# --- Creation ---


@pytest.mark.parametrize("dtype", DTYPES)
@given(SHAPES)
def test_filled_arrays(dtype, shape):
    for name in ("zeros", "ones"):
        same(getattr(tn, name)(shape, dtype=dtype), getattr(np, name)(shape, dtype=dtype))
        same(getattr(tn, name + "_like")(tn.zeros(shape, dtype=dtype)), getattr(np, name)(shape, dtype=dtype))
        same(getattr(tn, name + "_like")(tn.zeros(shape), dtype=dtype), getattr(np, name)(shape, dtype=dtype))
    value = dtype == "bool" or 3
    same(tn.full(shape, value, dtype=dtype), np.full(shape, value, dtype=dtype))
    same(tn.full_like(tn.zeros(shape, dtype=dtype), value), np.full(shape, value, dtype=dtype))
    assert tn.empty(shape, dtype=dtype).shape == tn.empty_like(tn.zeros(shape, dtype=dtype)).shape == shape
    assert tn.empty(shape, dtype=dtype).dtype == dtype


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.startswith(("int", "uint"))])
def test_full_has_every_integer(dtype):
    info = np.iinfo(dtype)
    for value in (info.min, info.max, info.max - 1):
        assert tn.full((2,), value, dtype=dtype).tolist() == [value] * 2
        assert tn.asarray(value, dtype=dtype).item() == value and int(tn.asarray([value], dtype=dtype)[0]) == value


@given(
    st.integers(-20, 20),
    st.integers(-20, 20),
    st.integers(-5, 5).filter(bool),
    st.sampled_from([None, "int32", "int64", "float32", "float64"]),
)
def test_arange(start, stop, step, dtype):
    same(tn.arange(start, stop, step, dtype=dtype), np.arange(start, stop, step, dtype=dtype or "int64"))
    if stop >= 0:
        same(tn.arange(stop, dtype=dtype), np.arange(stop, dtype=dtype or "int64"))
    assert tn.arange(0.0, 1.0, 0.25).dtype == tn.float32
    same(tn.arange(start, stop, step / 2, dtype="float64"), np.arange(start, stop, step / 2), atol=1e-12)


@given(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32), st.integers(0, 50), st.booleans(), st.sampled_from(REAL))
def test_linspace(start, stop, count, endpoint, dtype):
    same(tn.linspace(start, stop, count, dtype=dtype, endpoint=endpoint), np.linspace(start, stop, count, dtype=dtype, endpoint=endpoint), rtol=1e-5, atol=1e-1 if dtype == "float32" else 1e-9)  # fmt: skip
    if count > 1:
        first = tn.linspace(start, stop, count, dtype=dtype)
        assert first[0].item() == np.dtype(dtype).type(start) and first[-1].item() == np.dtype(dtype).type(stop)


@given(st.integers(0, 5), st.integers(0, 5) | st.none(), st.integers(-7, 7), st.sampled_from(DTYPES))
def test_eye(rows, columns, k, dtype):
    same(tn.eye(rows, columns, k=k, dtype=dtype), np.eye(rows, columns, k=k, dtype=dtype))


@given(arrays(shapes=hnp.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4)), st.integers(-5, 5))
def test_triangles(a, k):
    same(tn.tril(tn.asarray(a), k=k), np.tril(a, k))
    same(tn.triu(tn.asarray(a), k=k), np.triu(a, k))


def test_asarray_takes_what_python_has():
    assert tn.asarray(True).dtype == tn.bool and tn.asarray(1).dtype == tn.int64 and tn.asarray(1.0).dtype == tn.float32
    assert tn.asarray([[1, 2.5], [3, 4]]).dtype == tn.float32 and tn.asarray([True, 2]).dtype == tn.int64
    assert tn.asarray(range(3)).tolist() == [0, 1, 2] and tn.asarray(()).shape == (0,)
    x = tn.asarray([1, 2])
    y = tn.asarray(x, copy=True)
    y[0] = 9
    assert x.tolist() == [1, 2] and tn.asarray(x, dtype="float64").dtype == tn.float64
    with pytest.raises(OverflowError):
        tn.asarray([2**64])
    assert bool(tn.asarray(3)) and float(tn.asarray(2.5)) == 2.5 and int(tn.asarray(-4)) == -4 and [0, 1][tn.asarray(1)] == 1
    assert complex(tn.asarray(1.5)) == 1.5


# --- Dtypes ---


@given(st.data())
def test_astype(data):
    a = data.draw(arrays(low=0))
    for dtype in DTYPES:
        if dtype == "bool" or a.dtype.kind != "f":
            same(tn.astype(tn.asarray(a), dtype), a.astype(dtype))
        else:
            same(
                tn.astype(tn.asarray(a), dtype),
                np.trunc(a).astype(dtype) if np.dtype(dtype).kind in "iu" else a.astype(dtype),
                rtol=1e-7,
            )
    x = tn.asarray(a)
    assert tn.astype(x, x.dtype, copy=False).dtype == x.dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_facts_about_dtypes(dtype):
    own = getattr(tn, dtype)
    kinds = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "real floating"}
    kind = kinds[np.dtype(dtype).kind]
    for name in kinds.values():
        assert tn.isdtype(own, name) == (name == kind)
    assert tn.isdtype(own, "numeric") == (kind != "bool") and tn.isdtype(own, "integral") == ("integer" in kind)
    assert tn.isdtype(own, own) and tn.isdtype(own, (own, "bool")) and not tn.isdtype(own, "complex floating")
    if kind == "real floating":
        ours, theirs = tn.finfo(own), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (
            theirs.bits,
            theirs.eps,
            theirs.max,
            theirs.min,
            theirs.smallest_normal,
        )
        assert (
            all(type(value) is float for value in (ours.eps, ours.max, ours.min, ours.smallest_normal))
            and type(ours.bits) is int
            and ours.dtype == own
        )
        assert tn.finfo(tn.ones(1, dtype=own)).bits == ours.bits
    elif kind != "bool":
        ours, theirs = tn.iinfo(own), np.iinfo(dtype)
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min) and ours.dtype == own
    for other in DTYPES:
        if np.dtype(other).kind == np.dtype(dtype).kind:
            assert tn.can_cast(own, getattr(tn, other)) == np.can_cast(dtype, other)


# --- Manipulation ---


@given(st.data())
def test_manipulation(data):
    a = data.draw(arrays())
    x = tn.asarray(a)
    order = tuple(data.draw(st.permutations(range(a.ndim))))
    same(tn.permute_dims(x, order), np.transpose(a, order))
    axis = data.draw(st.integers(-a.ndim - 1, a.ndim))
    same(tn.expand_dims(x, axis=axis), np.expand_dims(a, axis))
    same(tn.squeeze(tn.expand_dims(x, axis=axis), axis=axis), a)
    same(tn.flip(x), np.flip(a))
    same(tn.roll(x, 3), np.roll(a, 3))
    same(tn.tile(x, (2, 1, 2)), np.tile(a, (2, 1, 2)))
    same(tn.repeat(x, 2), np.repeat(a, 2))
    same(tn.stack([x, x], axis=axis), np.stack([a, a], axis=axis))
    same(tn.reshape(x, (-1,) if a.size else (0,)), a.reshape(-1))
    same(tn.broadcast_to(x, (2, *a.shape)), np.broadcast_to(a, (2, *a.shape)))
    if not a.ndim:
        return
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    other = data.draw(st.integers(-a.ndim, a.ndim - 1))
    same(tn.flip(x, axis=axis), np.flip(a, axis))
    same(tn.roll(x, -1, axis=axis), np.roll(a, -1, axis))
    same(tn.roll(x, (1, 2), axis=(axis, axis)), np.roll(a, (1, 2), (axis, axis)))
    same(tn.moveaxis(x, axis, other), np.moveaxis(a, axis, other))
    same(tn.repeat(x, 3, axis=axis), np.repeat(a, 3, axis=axis))
    same(tn.concat([x, x], axis=axis), np.concatenate([a, a], axis=axis))
    parts = tn.unstack(x, axis=axis)
    assert isinstance(parts, tuple) and len(parts) == a.shape[axis]
    for ours, theirs in zip(parts, np.unstack(a, axis=axis)):
        same(ours, theirs)


@given(arrays(), st.data())
def test_reshape(a, data):
    assume(a.size)
    factors = [n for n in range(1, a.size + 1) if a.size % n == 0]
    first = data.draw(st.sampled_from(factors))
    for shape in ((first, a.size // first), (first, -1), (1, -1, first)):
        same(tn.reshape(tn.asarray(a), shape), a.reshape(shape))


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4), st.sampled_from(DTYPES))
def test_broadcasting(shapes, dtype):
    wanted = [np.ones(shape, dtype) for shape in shapes.input_shapes]
    ours = tn.broadcast_arrays(*map(tn.asarray, wanted))
    assert [x.shape for x in ours] == [shapes.result_shape] * 3 and all(x.dtype == dtype for x in ours)
    assert tn.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    with pytest.raises(ValueError):
        tn.broadcast_shapes((2,), (3,))


# --- Searching, sorting, sets ---


@given(st.data())
def test_searching(data):
    a = data.draw(arrays(NUMERIC, FULL_SHAPES))
    x = tn.asarray(a)
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    keepdims = data.draw(st.booleans())
    same(tn.argmax(x, axis=axis, keepdims=keepdims), np.argmax(a, axis=axis, keepdims=keepdims))
    same(tn.argmin(x, axis=axis, keepdims=keepdims), np.argmin(a, axis=axis, keepdims=keepdims))
    same(tn.count_nonzero(x, axis=axis, keepdims=keepdims), np.count_nonzero(a, axis=axis, keepdims=keepdims))
    mask = data.draw(hnp.arrays(bool, a.shape))
    same(
        tn.where(tn.asarray(mask), x, -x if a.dtype.kind != "u" else x // 2),
        np.where(mask, a, -a if a.dtype.kind != "u" else a // 2),
    )
    same(tn.where(tn.asarray(mask), x, 1), np.where(mask, a, a.dtype.type(1)))
    for ours, theirs in zip(tn.nonzero(x), np.nonzero(a)):
        same(ours, theirs)


@given(arrays(NUMERIC, FULL_SHAPES), st.data())
def test_sorting(a, data):
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    x = tn.asarray(a)
    ascending = np.sort(a, axis=axis)
    same(tn.sort(x, axis=axis), ascending)
    same(tn.sort(x, axis=axis, descending=True), np.flip(ascending, axis))
    same(tn.argsort(x, axis=axis, stable=True), np.argsort(a, axis=axis, kind="stable"))
    descending = tn.argsort(x, axis=axis, descending=True, stable=True)
    same(descending, np.flip(a.shape[axis] - 1 - np.argsort(np.flip(a, axis), axis=axis, kind="stable"), axis))


@given(arrays(shapes=FULL_SHAPES))
def test_sets(a):
    x = tn.asarray(a)
    same(tn.unique_values(x), np.unique_values(a))
    same(tn.unique_counts(x).counts, np.unique_counts(a).counts)
    values, inverse = tn.unique_inverse(x)
    assert inverse.shape == a.shape
    same(values[inverse], a)
    same(tn.isin(x, x[:1]), np.isin(a, a[:1]))


def test_every_nan_is_a_value_of_its_own():
    x = tn.asarray([np.nan, 1.0, np.nan])
    values, counts = tn.unique_counts(x)
    assert values.shape == (3,) and counts.tolist() == [1, 1, 1]


# --- Statistics ---


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any"])
@given(st.data())
def test_statistics(name, data):
    dtypes = {"mean": REAL, "std": REAL, "var": REAL, "all": DTYPES, "any": DTYPES}.get(name, NUMERIC)
    a = data.draw(arrays(dtypes, FULL_SHAPES, low=-3))
    axes = st.integers(-a.ndim, a.ndim - 1)
    axis = data.draw(st.none() | axes | st.lists(axes.map(lambda i: i % a.ndim), unique=True, max_size=a.ndim).map(tuple))
    if name == "prod":
        a = np.clip(a, 0, 2)
    keywords = {"axis": axis, "keepdims": data.draw(st.booleans())}
    if name in ("std", "var"):
        keywords["correction"] = data.draw(st.sampled_from([0, 0.5]))
    with np.errstate(all="ignore"):
        theirs = getattr(np, name)(a, **{("ddof" if key == "correction" else key): value for key, value in keywords.items()})
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if np.asarray(theirs).dtype.kind == "f" else {}
    same(getattr(tn, name)(tn.asarray(a), **keywords), theirs, **tolerance)


@given(st.data())
def test_cumulative(data):
    a = data.draw(arrays(NUMERIC, FULL_SHAPES, low=-3))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    initial = data.draw(st.booleans())
    for name in ("cumulative_sum", "cumulative_prod"):
        values = np.clip(a, 0, 2) if name == "cumulative_prod" else a
        same(getattr(tn, name)(tn.asarray(values), axis=axis, include_initial=initial), getattr(np, name)(values, axis=axis, include_initial=initial), **({"rtol": 1e-4, "atol": 1e-4} if a.dtype.kind == "f" else {}))  # fmt: skip
    same(
        tn.diff(tn.asarray(a), axis=axis, n=data.draw(st.just(1))),
        np.diff(a, axis=axis),
        **({"atol": 1e-4} if a.dtype.kind == "f" else {}),
    )


# --- Products ---


@given(st.data())
def test_products(data):
    n, m, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    batch = data.draw(st.sampled_from([(), (2,), (3, 1)]))
    dtype = data.draw(st.sampled_from(NUMERIC))
    values = st.integers(0, 5)
    a = data.draw(hnp.arrays(dtype, (*batch, n, k), elements=values))
    b = data.draw(hnp.arrays(dtype, (k, m), elements=values))
    x, y = tn.asarray(a), tn.asarray(b)
    same(x @ y, a @ b)
    same(tn.matmul(x, y), a @ b)
    same(x[..., 0, :] @ y, a[..., 0, :] @ b)
    same(tn.tensordot(x, y, axes=1), np.tensordot(a, b, 1))
    same(tn.tensordot(x, y, axes=((-1,), (0,))), np.tensordot(a, b, ((-1,), (0,))))
    same(tn.vecdot(x, y[:, 0]), np.vecdot(a, b[:, 0]))
    same(tn.matrix_transpose(x), np.matrix_transpose(a))
    same(x.mT, np.matrix_transpose(a))
    z = tn.asarray(a[..., :1, :1])
    if not batch:
        z @= tn.ones((1, 1), dtype=dtype)
        same(z, a[:1, :1])


# --- Inspection ---


def test_the_namespace_describes_itself():
    info = tn.__array_namespace_info__()
    capabilities = info.capabilities()
    assert (
        capabilities["boolean indexing"] is True
        and capabilities["data-dependent shapes"] is True
        and capabilities["max dimensions"] >= 16
    )
    assert set(info.default_dtypes()) >= {"real floating", "integral", "indexing"}
    assert set(info.default_dtypes(device=info.default_device()))
    assert set(info.dtypes()) >= set(DTYPES) and info.dtypes(kind="bool") == {"bool": tn.bool}
    assert set(info.dtypes(kind=("signed integer", "real floating"))) >= {"int8", "float64"}
    for name, dtype in info.dtypes().items():
        assert getattr(tn, name) == dtype
    assert info.default_device() in info.devices()
    x = tn.ones(2)
    assert x.device in info.devices() and x.to_device(x.device).tolist() == [1.0, 1.0]
    assert tn.__array_api_version__ >= "2024.12"


def test_arrays_have_what_the_standard_asks_of_them():
    x = tn.ones((2, 3), dtype="float64")
    assert (x.ndim, x.shape, x.size) == (2, (2, 3), 6) and x.T.shape == x.mT.shape == (3, 2)
    assert x.__array_namespace__() is tn and x.__dlpack_device__()[0] == 1
    assert math.isnan(tn.nan) and tn.newaxis is None
    with pytest.raises((TypeError, ValueError)):
        bool(x)
    with pytest.raises(ValueError):
        tn.ones(3).mT  # noqa: B018
    with pytest.raises(TypeError):
        tn.asarray(1.5).__index__()
