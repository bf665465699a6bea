"""Opening and closing a card around a computation, as with ttnn: `from tenon.compat import ttnn`.

Not needed with Tenon, which opens a device for exactly the time it computes; here for programs that do it themselves.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from .._devices import close, devices


def open_device(device_id: int = 0) -> str:
    """The card with this number, real ones first; its id. Opened now, so that errors appear now."""
    cards = [device for device in devices() if device.kind == "tenstorrent"]
    if device_id >= len(cards):
        raise RuntimeError(f"there is no card {device_id}; {len(cards)} Tenstorrent devices were found")
    lease = _core._Lease(cards[device_id].id, None, 0, None)
    lease.acquire()
    lease.release()
    return cards[device_id].id


def close_device(device: str) -> None:
    close(device)


def from_list(values: Any, device: Any = None) -> Any:
    array = _core._asarray(values, None, True)
    return array if device is None else array.to_device(device)


def from_torch(tensor: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """A copy of a tensor of PyTorch, or of anything with DLPack or a buffer, on the device if one is given."""
    array = _core._asarray(tensor, dtype, True)
    return array if device is None else array.to_device(device)


def to_torch(tensor: Any) -> Any:
    """A tensor of PyTorch that shares the array's memory; it must not be written to."""
    try:
        from torch import from_dlpack  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise ImportError("ttnn.to_torch needs PyTorch; numpy.asarray(x) and x.tolist() work without it") from None
    return from_dlpack(tensor.to_device("host"))


def __getattr__(name: str) -> Any:
    if name not in _core.ops:
        raise AttributeError(f"ttnn has no op '{name}'")

    def op(*args: Any, **kwargs: Any) -> Any:
        # Here a device is open only between open_device and close_device, so that results are computed at once.
        result = _core.ops[name](*args, **kwargs)
        _core._eval(result if isinstance(result, list) else [result], None, None, 0, None)
        return result

    return op
