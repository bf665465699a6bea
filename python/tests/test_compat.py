"""Every example of the documents that Tenon grew from runs with nothing but its imports changed."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading

import pytest

import tenon as tn
from tenon.compat import artifex, daena, tt_lib, ttnn


@pytest.fixture(autouse=True)
def settings_are_restored():
    before = {
        name: tn.config.get(name)
        for name in (
            "prefer",
            "allow_tpu",
            "tpu_batch_factor",
            "enable_x64",
            "enable_jit",
            "platform_priority",
            "allow_simulated",
        )
    }
    yield
    tn.config.set(memory_strategy="balanced", **before)
    tn.close()
    tn._core._simulate_nothing()


# --- The device library ---


@pytest.fixture
def grayskull():
    return tn.simulate("grayskull", open="1ms", close="1ms")


def test_create_initialize_and_close_a_device(grayskull):
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 0)
    tt_lib.device.InitializeDevice(device)
    out = tt_lib.tensor.gelu(tt_lib.tensor.Tensor([1.0, 2.0]).to(device))
    assert out.shape == (2,) and out.to(tt_lib.device.GetHost()).tolist() == out.tolist()
    tt_lib.device.CloseDevice(device)
    assert not device.is_initialized
    with pytest.raises(RuntimeError, match="not initialised"):
        tt_lib.tensor.Tensor([1.0]).to(device)


def test_a_device_in_an_outer_scope(grayskull):
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 0)

    def compute(device):
        tt_lib.device.InitializeDevice(device)
        result = tt_lib.tensor.add(tt_lib.tensor.Tensor([1.0]).to(device), 1)
        tt_lib.device.CloseDevice(device)
        return result

    assert compute(device).tolist() == [2.0]


def test_the_known_crash_does_not_happen(grayskull):
    host = tt_lib.device.GetHost()
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 0)
    tt_lib.device.InitializeDevice(device)
    out = tt_lib.tensor.relu(tt_lib.tensor.Tensor([-1.0, 1.0]).to(device))
    out_host = out.to(host)
    del out
    second = tt_lib.tensor.exp(tt_lib.tensor.Tensor([0.0]).to(device))
    second.eval()
    del device  # before its tensors, and without closing it
    gc.collect()
    assert out_host.tolist() == [0.0, 1.0] and second.tolist() == [1.0]


def test_the_default_device(grayskull):
    device = tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 0)
    tt_lib.device.SetDefaultDevice(device)
    assert tt_lib.device.GetDefaultDevice() == device
    assert tn.eval(tn.array([1.0]) + 1).device == grayskull
    tn.set_default_device("auto")
    assert tt_lib.device.GetDefaultDevice() is None


def test_a_slot_without_a_card_is_named():
    with pytest.raises(LookupError, match="no grayskull card in slot 3"):
        tt_lib.device.CreateDevice(tt_lib.device.Arch.GRAYSKULL, 3)


# --- On-demand devices of a web calculator ---


def test_open_compute_close(grayskull):
    def execute_operation():
        device = None
        try:
            device = ttnn.open_device(device_id=0)
            return ttnn.add(ttnn.from_list([1.0], device), ttnn.from_list([2.0], device))
        finally:
            if device is not None:
                ttnn.close_device(device)

    assert execute_operation().tolist() == [3.0]
    assert tn.status()[grayskull]["state"] == "closed"
    with pytest.raises(RuntimeError, match="no card 7"):
        ttnn.open_device(7)


def test_a_device_is_closed_whatever_fails(grayskull):
    log = []

    def open_device_for_computation():
        device = ttnn.open_device(device_id=0)
        log.append("opened")
        return device

    def close_device_after_computation(device):
        if device is not None:
            ttnn.close_device(device)
            log.append("closed")

    def execute_operation(second):
        device = None
        try:
            device = open_device_for_computation()
            tensor = ttnn.from_torch(tn.array([[1.0, 2.0]]), device=device)
            result = ttnn.add(tensor, ttnn.from_torch(second, device=device))
            return {"result": result.tolist()}
        except Exception as error:
            return {"error": str(error)}
        finally:
            close_device_after_computation(device)

    assert execute_operation(tn.array([[1.0, 1.0]])) == {"result": [[2.0, 3.0]]}
    assert "float32 [1, 2]" in execute_operation(tn.zeros((3, 5)))["error"]
    assert log == ["opened", "closed"] * 2 and tn.status()[grayskull]["state"] == "closed"


def test_the_status_opens_and_closes(grayskull):
    def device_status():
        try:
            test_device = ttnn.open_device(device_id=0)
            ttnn.close_device(test_device)
            return {"available": True, "mode": "on-demand"}
        except Exception as error:
            return {"available": False, "error": str(error)}

    assert device_status() == {"available": True, "mode": "on-demand"}
    tn._core._simulate_nothing()
    assert "no card 0" in device_status()["error"]


def test_a_pool_of_devices():
    for i in range(4):
        tn.simulate("wormhole", open="1ms", close="1ms", id=f"sim:pool{i}")
    device_pool = [ttnn.open_device(i) for i in range(4)]
    results = [ttnn.add(ttnn.from_list([1.0], device_pool[i % len(device_pool)]), i) for i in range(8)]
    assert [result.tolist() for result in results] == [[i + 1.0] for i in range(8)] and len(
        {result.device for result in results}
    ) == 4
    for device in device_pool:
        ttnn.close_device(device)


def test_a_device_closes_after_a_time_without_requests(grayskull):
    closed = threading.Event()

    def close_device_after_computation():
        ttnn.close_device_after_computation()
        closed.set()

    def execute_operation():
        device = ttnn.open_device_for_computation()
        return ttnn.add(ttnn.from_list([1.0], device), 1).tolist()

    def schedule_device_close(response):
        ttnn.schedule_after(0.2, close_device_after_computation)
        return response

    assert schedule_device_close(execute_operation()) == [2.0]
    assert closed.wait(60) and tn.status()[grayskull]["state"] == "closed"
    closed.clear()
    ttnn.schedule_after(3600, close_device_after_computation)
    execute_operation()  # calls it off
    assert ttnn._timers == {} and not closed.is_set()
    with tn.lease(grayskull):
        assert tn.status()[grayskull]["state"] != "closed"


def test_a_device_stays_open_while_requests_are_frequent(grayskull):
    ttnn._opened.clear()
    epochs = []
    for _ in range(13):
        keep_device_open = False
        device = ttnn.open_device_for_computation()
        ttnn.add(ttnn.from_list([1.0], device), 1)
        with tn.lease(device) as lease:
            epochs.append(lease.epoch)
        if ttnn.requests_in_last_minute > 10:
            keep_device_open = True
        if not keep_device_open:
            ttnn.close_device_after_computation(device)
    assert len(set(epochs[:11])) == 11  # closed and opened again each time
    assert len(set(epochs[10:])) == 1 and ttnn.requests_in_last_minute == 13


def test_torch_goes_in_and_out(grayskull):
    torch = pytest.importorskip("torch")
    device = ttnn.open_device(device_id=0)
    result = ttnn.to_torch(ttnn.relu(ttnn.from_torch(torch.tensor([-1.0, 2.0]), device=device)))
    ttnn.close_device(device)
    assert result.tolist() == [0.0, 2.0]


# --- The configurable device manager ---

DeviceManager, DeviceConfiguration, MemoryStrategy = artifex.DeviceManager, artifex.DeviceConfiguration, artifex.MemoryStrategy
jax, jnp = artifex.jax, artifex.jnp


def test_quick_start(capsys):
    device_manager = DeviceManager()
    print(f"Has GPU: {device_manager.has_gpu}")
    print(f"GPU count: {device_manager.gpu_count}")
    info = device_manager.get_device_info()
    assert device_manager.device_count >= 1 and info["backend"] and info["default_device"] == "cpu:0"
    assert "Has GPU: False" in capsys.readouterr().out


def test_data_is_placed_on_the_default_device():
    device = artifex.get_default_device()
    x = jax.device_put(jnp.ones((100, 100)), device)
    assert x.shape == (100, 100) and x.sum().item() == 10000


def test_configurations():
    manager = DeviceManager(DeviceConfiguration(memory_strategy=MemoryStrategy.CONSERVATIVE, enable_x64=False, enable_jit=True))
    assert tn.config.memory_strategy == "conservative" and tn.config.enable_x64 == "false"
    assert manager.get_device_info()["memory_fraction"] == 0.6
    DeviceManager(DeviceConfiguration(memory_strategy=MemoryStrategy.CUSTOM, memory_fraction=0.8))
    assert tn.config.memory_fraction == "0.8" and tn.config.memory_strategy == "custom"
    DeviceManager(DeviceConfiguration(platform_priority=["cuda", "cpu"], memory_strategy=MemoryStrategy.BALANCED))
    assert tn.config.platform_priority == "gpu,cpu"
    DeviceManager(DeviceConfiguration(environment_variables={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}))
    config = DeviceConfiguration(memory_strategy=MemoryStrategy.CONSERVATIVE)
    DeviceManager(config)
    config.memory_strategy = MemoryStrategy.BALANCED
    config.enable_jit = False
    DeviceManager(config)
    assert tn.config.memory_strategy == "balanced" and tn.config.enable_jit == "false"


def test_capabilities():
    capabilities = DeviceManager().capabilities
    assert capabilities.device_type == artifex.DeviceType.CPU and capabilities.device_count >= 1
    assert capabilities.cuda_version is None and isinstance(capabilities.supports_mixed_precision, bool)


def test_distribution():
    jax_manager = DeviceManager().jax_manager
    assert (
        jax_manager.gpu_devices == []
        and jax_manager.cpu_devices[0].id == "cpu:0"
        and jax_manager.get_default_device().id == "cpu:0"
    )
    data = jnp.ones((128, 8, 8, 3))
    distributed = jax_manager.distribute_data(data)
    assert sum(shard.shape[0] for shard in distributed) == 128 and distributed[0].device() == "cpu:0"
    two = [tn.simulate("gpu", open="1ms", id=f"sim:gpu{i}") for i in range(2)]
    shards = jax_manager.distribute_data(data, target_devices=two)
    assert [(shard.shape[0], shard.device()) for shard in shards] == [(64, two[0]), (64, two[1])]
    assert [shard.sum().item() for shard in shards] == [64 * 192.0] * 2


def test_convenience_functions(capsys):
    assert artifex.get_device_manager() is artifex.get_device_manager()
    manager = artifex.get_device_manager(DeviceConfiguration(memory_strategy=MemoryStrategy.AGGRESSIVE), force_reinit=True)
    assert manager.config.memory_strategy == MemoryStrategy.AGGRESSIVE and not artifex.has_gpu()
    artifex.print_device_info()
    assert "Memory strategy: aggressive" in capsys.readouterr().out
    manager = artifex.configure_for_generative_models(memory_strategy=MemoryStrategy.BALANCED, enable_mixed_precision=True)
    assert tn.config.enable_x64 == "false"
    sizes = {100_000: "conservative", 50_000_000: "balanced", 150_000_000: "aggressive"}
    assert {n: manager.optimize_for_model_size(n).memory_strategy.value for n in sizes} == sizes


def test_patterns():
    config = DeviceConfiguration(memory_strategy=MemoryStrategy.BALANCED, enable_jit=True, platform_priority=["cuda", "cpu"])
    dm = DeviceManager(DeviceManager(config).optimize_for_model_size(50_000_000))
    assert dm.jax_manager.get_default_device().id == "cpu:0" and dm.config.memory_strategy.value == "balanced"

    def setup_data_parallel(model, batch_size):
        dm = DeviceManager()
        if dm.gpu_count > 1:
            return [jax.device_put(model, device) for device in dm.jax_manager.gpu_devices], batch_size // dm.gpu_count
        return [model], batch_size

    model = artifex.MLP(hidden_dims=[8] * 3, in_features=4, use_gradient_checkpointing=True, rngs=0)
    assert setup_data_parallel(model, 32) == ([model], 32)
    device = dm.jax_manager.gpu_devices[0] if dm.has_gpu else dm.jax_manager.cpu_devices[0]
    with jax.default_device(device):
        result = model(jnp.ones((1, 4)))
    assert result.shape == (1, 8)

    @artifex.nnx.jit
    def warmup(x):
        return model(x)

    assert warmup(jnp.ones((1, 4))).tolist() == result.tolist()


def test_data_parallel_on_several_gpus():
    gpus = [tn.simulate("gpu", open="1ms", id=f"sim:gpu{i}") for i in range(2)]
    model = artifex.MLP(hidden_dims=[8, 2], in_features=4)
    dm = DeviceManager()
    assert dm.gpu_count == 2 and dm.has_gpu
    per_device_batch_size = 32 // dm.gpu_count
    replicated = [jax.device_put(model, device) for device in dm.jax_manager.gpu_devices]
    for device, copy in zip(dm.jax_manager.gpu_devices, replicated):
        with jax.default_device(device):
            assert copy(jnp.ones((per_device_batch_size, 4))).eval().device == device.id
    distributed = dm.jax_manager.distribute_data(jnp.ones((128, 2)), target_devices=dm.jax_manager.gpu_devices[:2])
    assert [shard.device() for shard in distributed] == gpus


def test_mixed_precision():
    dm = DeviceManager()
    if dm.capabilities.supports_mixed_precision:
        dm = DeviceManager(DeviceConfiguration(memory_strategy=MemoryStrategy.AGGRESSIVE, enable_x64=False))
    custom = DeviceManager(DeviceConfiguration(memory_strategy=MemoryStrategy.CONSERVATIVE, memory_fraction=0.5))
    assert custom.get_device_info()["memory_fraction"] == 0.5
    flags = " ".join(["--xla_gpu_enable_fast_min_max=true", "--xla_gpu_triton_gemm_any=True"])
    config = DeviceConfiguration(environment_variables={"XLA_FLAGS": flags})
    assert DeviceManager(config).config.environment_variables["XLA_FLAGS"] == flags


def test_falling_back_to_the_cpu():
    def create_model_with_fallback(model_cls, *args, **kwargs):
        dm = DeviceManager()
        device = dm.jax_manager.gpu_devices[0] if dm.has_gpu else dm.jax_manager.cpu_devices[0]
        with jax.default_device(device):
            model = model_cls(*args, **kwargs)
        return model, device

    model, device = create_model_with_fallback(
        artifex.MLP, hidden_dims=[512] * 20, in_features=64, use_gradient_checkpointing=True, rngs=1
    )
    assert device.kind == "cpu" and len(model.weights) == 20


def test_a_warm_up_with_the_model_as_an_argument():
    model = artifex.MLP(hidden_dims=[3], in_features=2)

    @artifex.nnx.jit
    def warmup(model, x):
        return model(x)

    dummy_input = jnp.ones((1, 2))
    _ = warmup(model, dummy_input)
    assert warmup(model, dummy_input).tolist() == model(dummy_input).tolist() and warmup.programs == 1


def test_a_custom_detector():
    class CustomDetector:
        def detect_capabilities(self):
            return artifex.DeviceCapabilities(
                device_type=artifex.DeviceType.GPU, device_count=4, total_memory_mb=80000, compute_capability="8.0",
                supports_mixed_precision=True, supports_distributed=True,
            )  # fmt: skip

    manager = DeviceManager(detector=CustomDetector())
    assert manager.capabilities.device_count == 4 and manager.capabilities.compute_capability == "8.0"


# --- The CPU, GPU and TPU abstraction ---


def test_automatic_selection():
    device = daena.get_device_manager().get_device()
    assert f"Using device: {device.name} ({device.device_type.value})".endswith("(cpu)")
    assert daena.get_device_manager(prefer="gpu").get_device().device_type == daena.DeviceType.CPU


def test_settings_have_the_names_of_a_settings_file():
    assert (daena.settings.compute_prefer, daena.settings.compute_allow_tpu, daena.settings.compute_tpu_batch_factor) == ("auto", True, 128)
    mine = daena.Settings(compute_prefer="cpu", compute_tpu_batch_factor=64)
    assert tn.config.prefer == "cpu" and daena.settings.compute_tpu_batch_factor == 64
    mine.compute_allow_tpu = False
    mine.compute_prefer = "auto"
    mine.compute_tpu_batch_factor = 128
    assert tn.config.allow_tpu == "false"
    assert repr(mine) == "Settings(compute_prefer='auto', compute_allow_tpu=False, compute_tpu_batch_factor=128)"
    with pytest.raises(ValueError):
        mine.compute_tpu_batch_factor = -1


def test_a_tpu_and_its_batches():
    tn.simulate("tpu", open="1ms", id="tpu:0")
    tn.config.set(allow_simulated=True)
    manager = daena.get_device_manager(prefer="tpu", allow_tpu=True)
    assert manager.get_device().device_type == daena.DeviceType.TPU
    assert manager.get_batch_config(base_batch_size=1).batch_size == 128
    assert manager.get_batch_config(base_batch_size=2).batch_size == 256
    tensor = manager.create_tensor([1, 2, 3, 4])
    assert tensor.device == "tpu:0"
    assert manager.move_to_device(tensor, device_id="cpu:0").tolist() == [1, 2, 3, 4]


def test_the_manual_and_automatic_choice_print_a_device(monkeypatch):
    for prefer in ("auto", "gpu"):
        assert "cpu:0" in str(daena.get_device_manager(prefer=prefer).get_device())
    program = "from tenon.compat.daena import get_device_manager; print(get_device_manager().get_report()['compute_prefer'])"
    environment = {**os.environ, "COMPUTE_PREFER": "tpu", "COMPUTE_ALLOW_TPU": "true", "COMPUTE_TPU_BATCH_FACTOR": "64"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tpu"


def test_a_tensor_moves_to_a_tpu():
    tn.simulate("tpu", open="1ms", id="tpu:0")
    tn.config.set(allow_simulated=True)
    manager = daena.get_device_manager()
    tensor = manager.move_to_device(manager.create_tensor([1, 2, 3, 4]), device_id="tpu:0")
    assert tensor.device == "tpu:0" and tensor.tolist() == [1, 2, 3, 4]


def test_the_report():
    report = daena.get_device_manager().get_report()
    assert report["current_device"]["device_id"] == "cpu:0" and report["batch"]["batch_size"] == 1
    run = [sys.executable, "-m", "tenon.compat.daena"]
    assert (
        json.loads(subprocess.run([*run, "--json"], capture_output=True, text=True, check=True).stdout)["routing_mode"] == "auto"
    )
    assert "Current device: cpu:0" in subprocess.run([*run, "--verbose"], capture_output=True, text=True, check=True).stdout
