"""A configurable device manager: `from tenon.compat.artifex import DeviceManager, DeviceConfiguration ...`.

Also `jax`, `jnp` and `nnx` with the few calls that programs around it use. The configuration is that of the process: the last
DeviceManager made with one sets it.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Optional, Protocol

import tenon

from .. import _core
from .._core import Array
from .._devices import Device, config as settings, device as device_context, devices as all_devices


class DeviceType(enum.Enum):
    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"
    TENSTORRENT = "tenstorrent"


class MemoryStrategy(enum.Enum):
    CONSERVATIVE = "conservative"
    BALANCED = "balanced"
    AGGRESSIVE = "aggressive"
    CUSTOM = "custom"


_FRACTIONS = {MemoryStrategy.CONSERVATIVE: 0.6, MemoryStrategy.BALANCED: 0.75, MemoryStrategy.AGGRESSIVE: 0.9}
_KINDS = {"cuda": "gpu", "rocm": "gpu"}


@dataclass
class DeviceConfiguration:
    """Memory, precision and preference of devices."""

    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED
    memory_fraction: Optional[float] = None
    enable_x64: bool = True
    enable_jit: bool = True
    platform_priority: list[str] = field(default_factory=list)
    environment_variables: dict[str, str] = field(default_factory=dict)

    @property
    def fraction(self) -> float:
        return self.memory_fraction if self.memory_fraction is not None else _FRACTIONS.get(self.memory_strategy, 0.75)

    def apply(self) -> None:
        """Makes it the configuration of this process."""
        os.environ.update(self.environment_variables)
        values: dict[str, Any] = {"enable_x64": self.enable_x64, "enable_jit": self.enable_jit}
        if self.memory_fraction is not None:
            values["memory_fraction"] = self.memory_fraction
        else:
            values["memory_strategy"] = self.memory_strategy.value
        if self.platform_priority:
            kinds = [_KINDS.get(platform, platform) for platform in self.platform_priority]
            values["platform_priority"] = list(dict.fromkeys(kinds))
        settings.set(**values)


@dataclass(frozen=True)
class DeviceCapabilities:
    device_type: DeviceType
    device_count: int
    total_memory_mb: Optional[int] = None
    compute_capability: Optional[str] = None
    cuda_version: Optional[str] = None
    driver_version: Optional[str] = None
    supports_mixed_precision: bool = False
    supports_distributed: bool = False


class DeviceDetector(Protocol):
    def detect_capabilities(self) -> DeviceCapabilities: ...


class SystemDetector:
    """Tenon's detectors, which open nothing."""

    def detect_capabilities(self) -> DeviceCapabilities:
        known = _core._capabilities()
        known.pop("backend")
        return DeviceCapabilities(device_type=DeviceType(known.pop("device_type")), **known)


class Shard:
    """A part of a batch and its device; it is the array in everything else."""

    def __init__(self, array: Array, device: str):
        self.array = array
        self._device = device

    def device(self) -> str:
        return self._device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __repr__(self) -> str:
        return f"<Shard {self.array.shape} on {self._device}>"


class JAXDeviceManager:
    """The devices by kind, and the distribution of data over them."""

    @property
    def devices(self) -> list[Device]:
        return [device for device in all_devices() if device.available]

    def _of_kind(self, kind: str) -> list[Device]:
        return [device for device in self.devices if device.kind == kind]

    @property
    def gpu_devices(self) -> list[Device]:
        return self._of_kind("gpu")

    @property
    def cpu_devices(self) -> list[Device]:
        return self._of_kind("cpu")

    @property
    def tpu_devices(self) -> list[Device]:
        return self._of_kind("tpu")

    def get_default_device(self) -> Device:
        return tenon.find("auto")

    def distribute_data(self, data: Any, target_devices: Optional[list[Any]] = None) -> list[Shard]:
        """The rows of data over the devices, all GPUs by default or all devices if there are none."""
        array = tenon.asarray(data)
        targets = [str(device) for device in target_devices] if target_devices else _core._targets()
        shards = _core._shards(array.shape[0], targets)
        return [Shard(array[begin:end].on(device), device) for device, begin, end in shards]


class DeviceManager:
    """Detected hardware and the configuration of this process."""

    def __init__(self, config: Optional[DeviceConfiguration] = None, detector: Optional[DeviceDetector] = None):
        self.config = config if config is not None else DeviceConfiguration()
        if config is not None:
            config.apply()
        self.detector: DeviceDetector = detector or SystemDetector()
        self.capabilities = self.detector.detect_capabilities()
        self.jax_manager = JAXDeviceManager()

    @property
    def has_gpu(self) -> bool:
        return self.gpu_count > 0

    @property
    def device_count(self) -> int:
        return len(self.jax_manager.devices)

    @property
    def gpu_count(self) -> int:
        return len(self.jax_manager.gpu_devices)

    def get_device_info(self) -> dict[str, Any]:
        return {
            "backend": _core._capabilities()["backend"],
            "device_type": self.capabilities.device_type.value,
            "device_count": self.device_count,
            "gpu_count": self.gpu_count,
            "memory_strategy": self.config.memory_strategy.value,
            "memory_fraction": self.config.fraction,
            "default_device": self.jax_manager.get_default_device().id,
            "cuda_version": self.capabilities.cuda_version,
            "compute_capability": self.capabilities.compute_capability,
        }

    def optimize_for_model_size(self, parameters: float) -> DeviceConfiguration:
        """The configuration with the memory strategy for a model of this many parameters."""
        strategy = MemoryStrategy(_core._strategy_for_model(float(parameters)))
        return replace(self.config, memory_strategy=strategy, memory_fraction=None)


_manager: Optional[DeviceManager] = None


def get_device_manager(config: Optional[DeviceConfiguration] = None, force_reinit: bool = False) -> DeviceManager:
    """The manager of this process, made at the first call or with force_reinit."""
    global _manager
    if _manager is None or force_reinit:
        _manager = DeviceManager(config)
    return _manager


def has_gpu() -> bool:
    return get_device_manager().has_gpu


def get_default_device() -> Device:
    return get_device_manager().jax_manager.get_default_device()


def configure_for_generative_models(
    memory_strategy: MemoryStrategy = MemoryStrategy.BALANCED, enable_mixed_precision: bool = True
) -> DeviceManager:
    """The given memory strategy, fused programs, no 64-bit results with mixed precision, no preallocation."""
    config = DeviceConfiguration(
        memory_strategy=memory_strategy,
        enable_x64=not enable_mixed_precision,
        environment_variables={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
    )
    return get_device_manager(config, force_reinit=True)


def print_device_info() -> None:
    print("Device manager\n" + "=" * 40)
    for name, value in get_device_manager().get_device_info().items():
        if value is not None:
            print(f"{name.replace('_', ' ').capitalize()}: {value}")


class MLP:
    """Dense layers with a ReLU between them. Intermediate results are never kept, so checkpointing changes nothing."""

    def __init__(self, hidden_dims: list[int], in_features: int, use_gradient_checkpointing: bool = False, rngs: int = 0):
        sizes = [in_features, *hidden_dims]
        self.weights = [
            _core.ops["randn"]((rows, columns), "float32", rngs + i) / rows**0.5
            for i, (rows, columns) in enumerate(zip(sizes, sizes[1:]))
        ]

    def __call__(self, x: Any) -> Array:
        y: Array = tenon.asarray(x)
        for weight in self.weights[:-1]:
            y = _core.ops["relu"](y @ weight)
        result: Array = y @ self.weights[-1]
        return result


@contextmanager
def _default_device(device: Any) -> Iterator[None]:
    with device_context(str(device)):
        yield


def _device_put(tree: Any, device: Any = None) -> Any:
    """Arrays on a device; what is no array is returned as it is, as its arrays are placed when they are computed."""
    try:
        array = tenon.asarray(tree)
    except TypeError:
        return tree
    return array if device is None else array.to_device(str(device))


jax = SimpleNamespace(
    device_put=_device_put,
    default_device=_default_device,
    devices=lambda kind=None: [d for d in all_devices() if d.available and kind in (None, d.kind)],
    jit=lambda function: tenon.jit(function),
    numpy=tenon,
)
jnp = tenon
nnx = SimpleNamespace(jit=lambda function: tenon.jit(function))
