"""Memory shared with other libraries: NumPy, PyTorch, and producers and consumers of DLPack written here."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tenon as tn

CPU, CUDA = 1, 2
READ_ONLY, IS_COPIED = 1, 2


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", Version),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def look(capsule, name=b"dltensor_versioned", form=Versioned):
    """What a consumer reads in a capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return form.from_address(pointer(capsule, name))


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class OnCuda:
    """An array of a library whose memory is on a GPU, with NumPy's memory in its place."""

    def __init__(self, values, is_willing=True):
        self.values, self.is_willing, self.asked = np.asarray(values), is_willing, []

    def __dlpack_device__(self):
        return (CUDA, 1)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append((stream, max_version, dl_device, copy))
        if not self.is_willing:
            raise BufferError("no copies today")
        assert dl_device == (CPU, 0)
        return self.values.copy().__dlpack__(max_version=max_version)


class OlderOnCuda(OnCuda):
    """The same from before DLPack 1.0."""

    def __dlpack__(self, stream=None):
        raise AssertionError("would hand out memory of the GPU")


def test_numpy_and_tenon_share_memory_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    for x in (tn.asarray(a), tn.asarray(a, copy=False), tn.from_dlpack(a), tn.from_dlpack(a, copy=False)):
        for b in (np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x))):
            assert address(b) == address(a)
    x = tn.arange(6) * 2  # computed here
    assert address(np.asarray(x)) == address(np.from_dlpack(x)) == address(np.asarray(memoryview(x)))
    assert not np.from_dlpack(x).flags.writeable


def test_pytorch_and_tenon_share_memory_both_ways():
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0).reshape(2, 3)
    for x in (tn.asarray(t), tn.from_dlpack(t)):
        assert address(np.asarray(x)) == t.data_ptr() and x.dtype == tn.float32
    t[0, 0] = 7.0
    assert x.tolist()[0][0] == 7.0
    y = tn.arange(6, dtype=tn.float32) * 2
    back = torch.from_dlpack(y)
    assert back.tolist() == y.tolist() and back.dtype == torch.float32
    # Before version 1 the receiver could not know that the memory is read-only: it got a copy.
    knows_versions = "max_version" in (torch.Tensor.__dlpack__.__kwdefaults__ or {})
    assert (back.data_ptr() == address(np.asarray(y))) == knows_versions
    assert tn.asarray(torch.tensor([1, 2], dtype=torch.bfloat16)).dtype == tn.bfloat16
    assert tn.asarray(t.T).tolist() == t.T.tolist()


def test_an_array_on_a_gpu_is_copied_to_host_memory_by_its_library():
    for make in (tn.asarray, tn.array, tn.from_dlpack, lambda x: tn.ones(3) * x):
        x = OnCuda([1.0, 2.0, 3.0])
        assert make(x).tolist() == [1.0, 2.0, 3.0]
        assert x.asked == [(None, (1, 1), (CPU, 0), True)]


def test_an_array_on_a_gpu_that_cannot_be_copied_is_refused_with_what_to_do():
    for x, why in ((OlderOnCuda([1.0]), "before DLPack 1.0"), (OnCuda([1.0], is_willing=False), "no copies today")):
        for make in (tn.asarray, tn.from_dlpack):
            with pytest.raises(BufferError, match=f"(?s)CUDA device 1.*{why}") as caught:
                make(x)
            assert isinstance(caught.value, tn.Error) and "x.cpu()" in caught.value.hint
    with pytest.raises(BufferError, match="comes by a copy"):
        tn.from_dlpack(OnCuda([1.0]), copy=False)
    with pytest.raises(ValueError, match="comes by a copy"):
        tn.asarray(OnCuda([1.0]), copy=False)


def test_an_import_without_a_copy_is_refused_where_one_is_needed():
    a = np.arange(6.0).reshape(2, 3)
    for one in (a.T, a > 2):
        with pytest.raises(BufferError, match="without a copy"):
            tn.from_dlpack(one, copy=False)
        assert tn.from_dlpack(one).tolist() == one.tolist()
    own = tn.from_dlpack(a, copy=True)
    a[0, 0] = 7
    assert own.tolist()[0][0] == 0.0


def test_an_export_has_the_version_and_the_copy_that_were_asked_for():
    x = tn.array([1.0, 2.0])
    place = address(np.asarray(x))
    shared = x.__dlpack__(max_version=(1, 0))
    assert (look(shared).version.major, look(shared).flags, look(shared).tensor.data) == (1, READ_ONLY, place)
    assert look(x.__dlpack__(max_version=(2, 3))).version.major == 1
    own = x.__dlpack__(max_version=(1, 0), copy=True)
    assert look(own).flags == IS_COPIED and look(own).tensor.data != place
    assert look(x.__dlpack__(max_version=(1, 0), copy=False)).tensor.data == place
    for older in (x.__dlpack__(), x.__dlpack__(max_version=(0, 8))):
        assert look(older, b"dltensor", Tensor).data != place  # writable, so it is a copy
    with pytest.raises(BufferError, match="read-only"):
        x.__dlpack__(copy=False)


def test_an_export_goes_to_host_memory_and_nowhere_else(card):
    x = tn.array([1.0, 2.0])
    assert x.__dlpack_device__() == (CPU, 0)
    assert look(x.__dlpack__(max_version=(1, 0), dl_device=(CPU, 0), stream=-1)).tensor.device_type == CPU
    for device in ((CUDA, 0), (CPU, 1), (12, 0)):
        with pytest.raises(BufferError, match="cannot be exported"):
            x.__dlpack__(dl_device=device)
    for stream in (0, 1, 7):
        with pytest.raises(ValueError, match="host memory, which has none"):
            x.__dlpack__(stream=stream)
    there = (x + 1).on(card).eval()
    assert there.device == card and np.from_dlpack(there).tolist() == [2.0, 3.0]
    with pytest.raises(BufferError, match="by a copy"):
        there.__dlpack__(max_version=(1, 0), copy=False)
