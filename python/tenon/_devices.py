"""Devices, leases and the configuration. Nothing here decides anything: the library does."""

from __future__ import annotations

import contextvars

from . import _core
from ._core import Array
from ._record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Optional, Union

    DeviceLike = Union[str, "Device", None]
    Routing = Literal["prefer", "fastest", "cheapest", "pinned"]
    ListOfFacts = list[dict[str, Any]]
    Facts = dict[str, Any]
else:
    ListOfFacts, Facts = list, dict


class Device:
    """A device as it is known without opening it."""

    id: str
    kind: str
    name: str
    available: bool
    reason: str = ""
    remedy: str = ""
    memory_total_bytes: Optional[int] = None
    memory_free_bytes: Optional[int] = None
    exclusive: bool = False
    status: Optional[dict[str, Any]] = None

    def __init__(self, facts: dict[str, Any]):
        self.facts = facts
        for name in Device.__annotations__:
            if facts.get(name) is not None:
                setattr(self, name, facts[name])

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        state = "available" if self.available else f"not available: {self.reason}"
        return f"<Device {self.id}: {self.kind}, {self.name}, {state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class Devices(list[Device]):
    """A list of devices that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from ._notebook import devices_html

        return devices_html(self)


class Queue(ListOfFacts):
    """Who holds each device and who waits, as a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from ._notebook import queue_html

        return queue_html(self)


class Place(NamedTuple):
    """A place in a device's queue."""

    ahead_here: int
    ahead_elsewhere: int
    holder: str

    @property
    def ahead(self) -> int:
        return self.ahead_here + self.ahead_elsewhere

    def __str__(self) -> str:
        holder = f", held by {self.holder}" if self.holder else ""
        return f"{self.ahead} before you{holder}"


def devices() -> Devices:
    """Every device of the machine, usable or not, with the reason if it is not. Opens nothing."""
    import json

    return Devices(Device(facts) for facts in json.loads(_core._devices()))


def status() -> dict[str, dict[str, Any]]:
    """The state, users, memory and counters of every device that has a driver here, by id. Touches no hardware."""
    return {device.id: device.status for device in devices() if device.status is not None}


def queue() -> Queue:
    """The holders and waiters of every device, of all processes."""
    import json

    return Queue(json.loads(_core._queue()))


def find(request: DeviceLike = "auto") -> Device:
    """The device for a request: "auto", a kind, an id or an alias."""
    found = _core._find(_text(request) or "auto")
    return next(device for device in devices() if device.id == found)


def close(device: DeviceLike = None) -> None:
    """Closes a device (all without an argument) as soon as nothing runs on it; its arrays move to host memory."""
    _core._close(_text(device))


def set_default_device(device: DeviceLike) -> None:
    """The device that "auto" stands for in this process; "auto" restores the configured choice."""
    _core._set_default_device(_text(device) or "auto")


def get_default_device() -> str:
    return _core._default_device()


_requested: contextvars.ContextVar[Optional[str]] = contextvars.ContextVar("tenon device", default=None)
_core._set_device_variable(_requested)


class device:
    """with tenon.device("cpu"): arrays without a request of their own are evaluated there, in this thread or task."""

    def __init__(self, request: DeviceLike):
        self._request = _text(request)
        self._tokens: list[contextvars.Token[Optional[str]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_requested.set(self._request))
        _core._enter_device(1)

    def __exit__(self, *_: object) -> None:
        _core._enter_device(-1)
        _requested.reset(self._tokens.pop())


def _text(request: DeviceLike) -> Optional[str]:
    return None if request is None else str(request)


def _waiting_line() -> Any:
    """What shows the place in the queue in a notebook; None elsewhere."""
    import sys

    if "IPython" not in sys.modules:
        return None
    from ._notebook import WaitingLine, is_notebook

    return WaitingLine() if is_notebook() else None


class Lease:
    """The right to use a device for a while: `with tenon.lease("gpu") as lease:`, or `async with`."""

    def __init__(self, device: DeviceLike, timeout: Optional[float], priority: int, on_wait: Optional[Callable[[Place], object]]):
        request = _text(device) or "auto"
        self._line = _waiting_line() if on_wait is None else None

        def tell(*place: Any) -> None:
            if on_wait is not None:
                on_wait(Place(*place))
            elif self._line is not None:
                self._line.waiting(request, place[0] + place[1], place[2])

        self._lease = _core._Lease(request, timeout, priority, tell if on_wait or self._line else None)
        self._thread: Any = None

    def __enter__(self) -> Lease:
        try:
            self._lease.acquire()
        finally:
            if self._line is not None:
                self._line.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._lease.release()

    async def __aenter__(self) -> Lease:
        from ._async import enter_lease

        await enter_lease(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        from ._async import exit_lease

        await exit_lease(self)

    @property
    def device(self) -> str:
        """The id of the leased device; the request before the lease is granted."""
        return self._lease.device

    @property
    def is_held(self) -> bool:
        return self._lease.held

    @property
    def should_yield(self) -> bool:
        """Another process waits and the quantum has expired: the device is yielded at the end of this operation."""
        return self._lease.should_yield

    @property
    def epoch(self) -> int:
        return self._lease.epoch

    def __repr__(self) -> str:
        return f"<tenon.Lease of {self.device}, {'held' if self.is_held else 'not held'}>"


def lease(
    device: DeviceLike = "auto",
    *,
    timeout: Optional[float] = None,
    priority: int = 0,
    on_wait: Optional[Callable[[Place], object]] = None,
) -> Lease:
    """A lease to be used with `with`: many programs, one lease. `on_wait` is called with the place in the queue."""
    return Lease(device, timeout, priority, on_wait)


class Config:
    """The settings of this process: tenon.config.prefer, tenon.config.set(prefer="gpu"), dict(tenon.config)."""

    def set(self, **values: object) -> None:
        """Changes settings; devices are opened again under the new ones. Names and values are those of docs/configuration.md."""
        _core._config_set({name: _setting_text(value) for name, value in values.items()})

    def get(self, name: str) -> str:
        return _core._config_get(name)

    def keys(self) -> list[str]:
        return [name for name, *_ in _core._settings()]

    def __getitem__(self, name: str) -> str:
        return _core._config_get(name)

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _core._config_get(name)
        except LookupError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.keys()]

    def __repr__(self) -> str:
        lines = [f"{name} = {self.get(name)}" for name in self.keys()]
        return "\n".join(lines)


config = Config()


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def simulate(architecture: str = "wormhole", **properties: object) -> str:
    """Adds a simulated device to this process and returns its id: simulate("wormhole", open="50ms", memory="2GiB")."""
    text = ",".join([architecture, *(f"{name}={_setting_text(value)}" for name, value in properties.items())])
    return str(_core._simulate(text)[-1])


class Decision(Facts):
    """Which device a program would run on, why, and the predicted time on each."""

    def __repr__(self) -> str:
        lines = [f"{self['device']}: {self['reason']}" if isinstance(self.get("device"), str) else str(self.get("reason"))]
        for one in self.get("considered", []):
            seconds = one.get("predicted_seconds")
            time = "" if seconds is None else f"{seconds * 1e6:.1f} us"
            device = one["device"]["id"] if isinstance(one["device"], dict) else one["device"]
            lines.append(f"  {device}: {time} {one.get('remark', '')}".rstrip())
        return "\n".join(lines)


def explain(
    array: Array, device: DeviceLike = "auto", *, routing: Optional[Routing] = None, prefer: DeviceLike = None
) -> Decision:
    """The device on which the array would be evaluated now, the reason, and the predicted time on each. Opens nothing."""
    import json

    return Decision(json.loads(_core._explain(array, _text(device) or "auto", routing, _text(prefer))))
