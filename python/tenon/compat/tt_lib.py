"""Tenstorrent's device library: `from tenon.compat import tt_lib`.

A Device is a handle: losing it, in any order with tensors, closes nothing and is safe. Tensors on a device that closes move to
host memory. A simulated card (tenon.simulate("grayskull")) is used where the slot has no real one.
"""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any, Optional

from .. import _core
from .._core import Array


class Arch(enum.Enum):
    GRAYSKULL = "grayskull"
    WORMHOLE = "wormhole"
    WORMHOLE_B0 = "wormhole"
    BLACKHOLE = "blackhole"


class Host:
    """The memory of the machine that runs Python, as a destination: tensor.to(GetHost())."""

    def __str__(self) -> str:
        return "host"


class Device:
    """A card in a slot. It can be a destination of tensors while it is initialised."""

    def __init__(self, handle: Any):
        self._handle = handle

    def __str__(self) -> str:
        return str(self._handle.request)

    def id(self) -> str:
        return str(self._handle.id)

    def arch(self) -> Arch:
        return Arch(self._handle.arch)

    def slot(self) -> int:
        return int(self._handle.slot)

    @property
    def is_initialized(self) -> bool:
        return bool(self._handle.is_initialized)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id() == self.id()

    def __hash__(self) -> int:
        return hash(self.id())

    def __repr__(self) -> str:
        return f"<Device {self.id()}, {'initialised' if self.is_initialized else 'not initialised'}>"


def CreateDevice(arch: Arch, pcie_slot: int = 0) -> Device:
    """The card in a slot; opens nothing."""
    return Device(_core._create_device(arch.value, pcie_slot))


def InitializeDevice(device: Device) -> bool:
    """Waits for the card and opens it, so that errors appear now."""
    _core._initialize_device(device._handle)
    return True


def CloseDevice(device: Device) -> bool:
    """Closes it when no program runs on it; its tensors move to host memory."""
    _core._close_device(device._handle)
    return True


def SetDefaultDevice(device: Device) -> None:
    """Tensors without a request of their own are computed there."""
    _core._set_library_default(device._handle)


def GetDefaultDevice() -> Optional[Device]:
    handle = _core._get_library_default()
    return None if handle is None else Device(handle)


def GetHost() -> Host:
    return Host()


class _Tensors:
    """tt_lib.tensor: every op of the catalogue, and Tensor(data, shape, dtype)."""

    @staticmethod
    def Tensor(data: Any, shape: Any = None, dtype: Any = None, *_: Any) -> Array:
        array = _core._asarray(data, dtype, True)
        return array if shape is None else _core.ops["reshape"](array, shape)

    def __getattr__(self, name: str) -> Any:
        try:
            return _core.ops[name]
        except KeyError:
            raise AttributeError(f"tt_lib.tensor has no op '{name}'") from None


device = SimpleNamespace(
    Arch=Arch,
    Host=Host,
    Device=Device,
    CreateDevice=CreateDevice,
    InitializeDevice=InitializeDevice,
    CloseDevice=CloseDevice,
    SetDefaultDevice=SetDefaultDevice,
    GetDefaultDevice=GetDefaultDevice,
    GetHost=GetHost,
)
tensor = _Tensors()
