"""Opening and closing a card around a computation, as with ttnn: `from tenon.compat import ttnn`.

Not needed with Tenon, which opens a device for exactly the time it computes; here for programs that do it themselves.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Optional

from .. import _core
from .._devices import close, devices

_opened: deque[float] = deque(maxlen=10_000)  # when
_timers: dict[Any, threading.Timer] = {}


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


def open_device_for_computation(device_id: int = 0) -> str:
    """open_device(), counted in requests_in_last_minute. A close that was scheduled for later is called off."""
    for timer in list(_timers.values()):
        timer.cancel()
    _timers.clear()
    _opened.append(time.monotonic())
    return open_device(device_id)


def close_device_after_computation(device: Optional[str] = None) -> None:
    """Closes the device; without an argument all of them."""
    close(device)


def schedule_after(seconds: float, function: Callable[..., object], *arguments: Any) -> None:
    """Calls a function after so many seconds without another open_device_for_computation() or schedule_after() of it.

    With Tenon's settings the same is keep_open = linger, linger_seconds = 5, for all programs.
    """
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    earlier = _timers.get(function)
    if earlier is not None:
        earlier.cancel()
    _timers[function] = timer
    timer.start()


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
    if name == "requests_in_last_minute":
        return sum(when > time.monotonic() - 60 for when in _opened)
    if name not in _core.ops:
        raise AttributeError(f"ttnn has no op '{name}'")

    def op(*args: Any, **kwargs: Any) -> Any:
        # Here a device is open only between open_device and close_device, so that results are computed at once.
        result = _core.ops[name](*args, **kwargs)
        _core._eval(result if isinstance(result, list) else [result], None, None, 0, None)
        return result

    return op
