"""A CPU, GPU and TPU abstraction: `from tenon.compat.daena import get_device_manager`.

The settings are compute_prefer, compute_allow_tpu and compute_tpu_batch_factor, or COMPUTE_PREFER, COMPUTE_ALLOW_TPU and
COMPUTE_TPU_BATCH_FACTOR in the environment. The report: python -m tenon.compat.daena [--json] [--verbose].
"""

from __future__ import annotations

import enum
import json
import sys
from dataclasses import dataclass
from typing import Any, Optional

from .. import _core
from .._core import Array
from .._devices import config as _config, devices as all_devices, find


class DeviceType(enum.Enum):
    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"
    TENSTORRENT = "tenstorrent"
    OTHER = "other"


@dataclass(frozen=True)
class DeviceInfo:
    device_id: str
    device_type: DeviceType
    name: str
    memory_gb: Optional[float]
    cost_per_hour: Optional[float]


@dataclass(frozen=True)
class BatchConfig:
    batch_size: int
    max_batch_size: int
    min_batch_size: int
    prefetch_factor: int


class Settings:
    """The settings of this process under their names in a settings file; values given here, or assigned, are set."""

    def __init__(
        self,
        compute_prefer: Optional[str] = None,
        compute_allow_tpu: Optional[bool] = None,
        compute_tpu_batch_factor: Optional[int] = None,
    ):
        DeviceManager(compute_prefer, compute_allow_tpu, compute_tpu_batch_factor)

    @property
    def compute_prefer(self) -> str:
        """auto, cpu, gpu or tpu."""
        return _config.prefer

    @compute_prefer.setter
    def compute_prefer(self, value: str) -> None:
        _config.set(prefer=value)

    @property
    def compute_allow_tpu(self) -> bool:
        return _config.allow_tpu == "true"

    @compute_allow_tpu.setter
    def compute_allow_tpu(self, value: bool) -> None:
        _config.set(allow_tpu=value)

    @property
    def compute_tpu_batch_factor(self) -> int:
        return int(_config.tpu_batch_factor)

    @compute_tpu_batch_factor.setter
    def compute_tpu_batch_factor(self, value: int) -> None:
        _config.set(tpu_batch_factor=value)

    def __repr__(self) -> str:
        names = ("compute_prefer", "compute_allow_tpu", "compute_tpu_batch_factor")
        return f"Settings({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _info(device: Any) -> DeviceInfo:
    memory = device.memory_total_bytes
    return DeviceInfo(
        device.id,
        DeviceType(device.kind),
        device.name,
        None if memory is None else memory / 2**30,
        0.0 if device.kind == "cpu" else device.facts.get("cost_per_hour"),
    )


class DeviceManager:
    """Chooses a device by preference, with a fall back to the CPU, and the batch sizes that suit it."""

    def __init__(self, prefer: Optional[str] = None, allow_tpu: Optional[bool] = None, tpu_batch_factor: Optional[int] = None):
        values = {"prefer": prefer, "allow_tpu": allow_tpu, "tpu_batch_factor": tpu_batch_factor}
        given = {name: value for name, value in values.items() if value is not None}
        if given:
            _config.set(**given)

    def get_device(self) -> DeviceInfo:
        """The device on which the next program would run."""
        return _info(find("auto"))

    def list_devices(self) -> list[DeviceInfo]:
        return [_info(device) for device in all_devices() if device.available]

    def get_batch_config(self, base_batch_size: int = 1) -> BatchConfig:
        """4 times the base on a GPU, a power of two near the factor (128) times the base on a TPU."""
        return BatchConfig(*_core._batch_config(self.get_device().device_type.value, base_batch_size))

    def create_tensor(self, data: Any, dtype: Any = None) -> Array:
        """A tensor on the current device."""
        return _core._asarray(data, dtype, True).to_device(self.get_device().device_id)

    def move_to_device(self, tensor: Array, device_id: str) -> Array:
        return tensor.to_device(device_id)

    def get_report(self) -> dict[str, Any]:
        """What the report tool prints."""
        device = self.get_device()
        return {
            "current_device": _fields(device),
            "available_devices": [_fields(one) for one in self.list_devices()],
            "unavailable_devices": [
                {"device_id": one.id, "reason": one.reason, "remedy": one.remedy} for one in all_devices() if not one.available
            ],
            "routing_mode": "auto" if _config.prefer == "auto" else "manual",
            "compute_prefer": _config.prefer,
            "compute_allow_tpu": _config.allow_tpu,
            "compute_tpu_batch_factor": _config.tpu_batch_factor,
            "batch": vars(self.get_batch_config()),
            "frameworks": {name: _is_installed(name) for name in ("torch", "tensorflow", "jax")},
            "recommendations": _recommendations(device),
        }


def _fields(device: DeviceInfo) -> dict[str, Any]:
    return {**vars(device), "device_type": device.device_type.value}


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _recommendations(device: DeviceInfo) -> list[str]:
    if device.device_type is DeviceType.CPU:
        missing = [one for one in all_devices() if not one.available and one.remedy]
        return [f"{one.id}: {one.remedy}" for one in missing] or ["no accelerator was found: small workloads run well on the CPU"]
    if device.device_type is DeviceType.TPU:
        return ["use large batches: a TPU is for batch inference"]
    return ["good for interactive work; use several requests in one batch for throughput"]


settings = Settings()


def get_device_manager(
    prefer: Optional[str] = None, allow_tpu: Optional[bool] = None, tpu_batch_factor: Optional[int] = None
) -> DeviceManager:
    return DeviceManager(prefer, allow_tpu, tpu_batch_factor)


def main(arguments: list[str]) -> int:
    report = get_device_manager().get_report()
    if "--json" in arguments:
        print(json.dumps(report, indent=2))
        return 0
    device = report["current_device"]
    print(f"Current device: {device['device_id']} ({device['device_type']}): {device['name']}")
    for one in report["available_devices"]:
        memory = "" if one["memory_gb"] is None else f", {one['memory_gb']:.1f} GiB"
        cost = "" if one["cost_per_hour"] is None else f", {one['cost_per_hour']:.2f} $/h"
        print(f"  {one['device_id']} ({one['device_type']}): {one['name']}{memory}{cost}")
    for one in report["unavailable_devices"]:
        print(f"  {one['device_id']}: not available: {one['reason']}")
    print(f"Routing: {report['routing_mode']}, prefer {report['compute_prefer']}, TPU allowed: {report['compute_allow_tpu']}")
    if "--verbose" in arguments:
        print(f"Batches: {report['batch']}")
        print(f"Frameworks: {report['frameworks']}")
    for line in report["recommendations"]:
        print(f"Recommendation: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
