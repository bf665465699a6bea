"""A stand-in for Tenstorrent's package ttnn, for tests of Tenon's worker where there is no chip.

It computes in NumPy, with TTNN's names, element types, layouts and errors, and says what it is (TENON_STAND_IN). What was measured to
be different on simulated chips is different here: TF32 in the matrix unit, NaN and zeros in some functions. Nothing that runs
here has run on a chip. generic_op compiles a kernel's text with the system's C++ compiler (TENON_HOST) and runs it in this process.
"""

import builtins
import ctypes
import hashlib
import math
import os
import pickle
import subprocess
import tempfile
import time

import numpy as np

TENON_STAND_IN = "NumPy stand-in for TTNN (no chip)"

LINE_BYTES = 1024
DRAM_MEMORY_CONFIG = "dram"
ROW_MAJOR_LAYOUT, TILE_LAYOUT = "row_major", "tile"


class DataType(str):
    pass


float32, bfloat16, int32, uint32 = (DataType(name) for name in ("float32", "bfloat16", "int32", "uint32"))
uint16, uint8, bfloat8_b, bfloat4_b = (DataType(name) for name in ("uint16", "uint8", "bfloat8_b", "bfloat4_b"))
NUMPY = {float32: np.float32, bfloat16: np.float32, int32: np.int32, uint32: np.uint32, uint16: np.uint16, uint8: np.uint8,
         bfloat8_b: np.float32, bfloat4_b: np.float32}


def rounded(values, dtype):
    """bfloat16 is kept as float32 with fewer digits, and so are block formats."""
    if dtype in (bfloat8_b, bfloat4_b):
        return blocked(values, 7 if dtype == bfloat8_b else 3)
    if dtype != bfloat16:
        return values
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    kept = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), values, kept.view(np.float32)).astype(np.float32)


def blocked(values, bits):
    """Sixteen neighbours of the last axis share an exponent."""
    if not np.isfinite(values).all():
        raise RuntimeError("the stand-in has no infinities in block formats")
    flat = values.reshape(-1, values.shape[-1])
    columns = flat.shape[1]
    whole = np.pad(flat, ((0, 0), (0, -columns % 16))).reshape(flat.shape[0], -1, 16)
    largest = np.abs(whole).max(-1, keepdims=True)
    step = np.exp2(np.floor(np.log2(np.where(largest == 0, 1, largest))) - (bits - 1))
    return np.ascontiguousarray((np.rint(whole / step) * step).reshape(flat.shape[0], -1)[:, :columns].reshape(values.shape), np.float32)


def tf32(values):
    """What the matrix unit sees of float32."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


class Arch:
    def __str__(self):
        return "Arch." + os.environ.get("TENON_STAND_IN_ARCH", "BLACKHOLE")


class Size:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Device:
    memory = []  # of every tensor, by its address
    free = []

    def __init__(self):
        self.is_open = True

    def arch(self):
        return Arch()

    def compute_with_storage_grid_size(self):
        return Size(3, 2)


def open_device(*, device_id, l1_small_size=0):
    was_reset = os.path.exists(os.environ.get("TENON_STAND_IN_RESET", ""))
    if os.environ.get("TENON_STAND_IN_FAILS") == "open" and not was_reset:
        raise RuntimeError("TT_FATAL @ device.cpp:1: the chip does not answer")
    return Device()


def close_device(device):
    device.is_open = False


def synchronize_device(device):
    pass


class Shape(list):
    pass


class Tensor:
    def __init__(self, values, dtype, device=None, layout=ROW_MAJOR_LAYOUT, mem_config=None):
        values = np.asarray(values)
        if layout == TILE_LAYOUT and values.ndim == 0:
            raise RuntimeError("TT_FATAL: a tensor in tile layout has at least one axis")
        self.dtype, self.layout, self.on = dtype, layout, device
        self.values = rounded(np.ascontiguousarray(values, NUMPY[dtype]), dtype)
        self.shape = Shape(self.values.shape)
        if device is not None:
            self.address = Device.free.pop() if Device.free else len(Device.memory)
            Device.memory[self.address:self.address + 1] = [self.values]

    def __del__(self):
        if getattr(self, "on", None) is not None:
            Device.memory[self.address] = None
            Device.free.append(self.address)

    def buffer_address(self):
        if self.on is None:
            raise RuntimeError("TT_FATAL: the tensor is not on a device")
        return self.address

    def cpu(self):
        if os.environ.get("TENON_STAND_IN_FAILS") == "downloads":
            raise RuntimeError("TT_FATAL: a tensor left the chip")
        return Tensor(self.values.copy(), self.dtype, None, self.layout)

    def to_numpy(self):
        if self.on is not None:
            raise RuntimeError("TT_FATAL: the tensor is on a device")
        if self.dtype == bfloat16:
            raise RuntimeError("NumPy has no bfloat16")
        return self.values


def allocate_tensor_on_device(shape, dtype, layout, device, memory_config=None):
    return Tensor(np.full(shape, 0xA5A5A5A5, np.uint32).astype(NUMPY[dtype]), dtype, device, layout)


def to_dtype(tensor, dtype):
    return Tensor(tensor.values, dtype)


# --- Kernels ---
class CoreCoord:
    def __init__(self, x, y):
        self.x, self.y = x, y


class CoreRange:
    def __init__(self, start, end):
        self.start, self.end = start, end


class CoreRangeSet:
    def __init__(self, ranges):
        self.ranges = ranges

    def cores(self):
        return [(x, y) for r in self.ranges for y in range(r.start.y, r.end.y + 1) for x in range(r.start.x, r.end.x + 1)]


class RuntimeArgs(dict):
    def __missing__(self, key):
        self[key] = {}
        return self[key]


class DataMovementProcessor:
    RISCV_0, RISCV_1 = "RISCV_0", "RISCV_1"


class NOC:
    RISCV_0_default, RISCV_1_default = "NOC_0", "NOC_1"


class DataMovementConfigDescriptor:
    def __init__(self, *, processor, noc):
        self.processor, self.noc = processor, noc


class KernelDescriptor:
    class SourceType:
        SOURCE_CODE = "code"

    def __init__(self, *, kernel_source, source_type, core_ranges, runtime_args, common_runtime_args, config):
        self.source, self.cores, self.own, self.common, self.config = (kernel_source, core_ranges, runtime_args,
                                                                        common_runtime_args, config)


class CBFormatDescriptor:
    def __init__(self, *, buffer_index, data_format, page_size):
        self.index, self.page_size = buffer_index, page_size


class CBDescriptor:
    def __init__(self, *, total_size, core_ranges, format_descriptors):
        self.size, self.cores, self.formats = total_size, core_ranges, format_descriptors


class ProgramDescriptor:
    def __init__(self, *, kernels, semaphores, cbs):
        self.kernels, self.cbs = kernels, cbs


compiled = {}


def library_of(source):
    """The kernel as a function of this process; compiled once, also for later processes."""
    if source in compiled:
        return compiled[source]
    folder = os.environ.get("TT_METAL_CACHE") or tempfile.gettempdir()
    os.makedirs(folder, exist_ok=True)
    base = os.path.join(folder, "tenon-stand-in-" + hashlib.sha256(source.encode()).hexdigest()[:24])
    if not os.path.exists(base + ".so"):
        own = f"{base}.{os.getpid()}"
        with open(own + ".cpp", "w") as file:
            file.write("#define TENON_HOST\n" + source)
        made = subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-shared", "-fPIC",
                               own + ".cpp", "-o", own + ".so", "-lm"], stderr=subprocess.PIPE, text=True)
        os.unlink(own + ".cpp")
        if made.returncode != 0:
            raise RuntimeError("TT_THROW: the kernel does not compile: " + made.stderr[:2000])
        os.rename(own + ".so", base + ".so")
    library = ctypes.CDLL(base + ".so")
    entry = source[source.rindex("TENON_ENTRY(") + len("TENON_ENTRY("):].split(")")[0]
    compiled[source] = library, getattr(library, "run_" + entry)
    return compiled[source]


# A chip that needs no time, and computes nothing: what remains is the time of the worker and its protocol.
IS_INSTANT = os.environ.get("TENON_STAND_IN_INSTANT") == "1"


def generic_op(tensors, program):
    if IS_INSTANT:
        return tensors[-1]
    if os.environ.get("TENON_STAND_IN_FAILS") == "kernels":
        raise RuntimeError("TT_THROW @ build.cpp:7: brisc build failed\ninfo:\nundefined reference\nbacktrace:\n --- 0x1")
    if len(tensors) < 2:
        raise RuntimeError("TT_FATAL: io_tensors must contain at least one input tensor and one output tensor")
    before = {t.address: t.values.tobytes() for t in tensors} if "TENON_STAND_IN_RECORD" in os.environ else None
    count = len(Device.memory)
    pointers = (ctypes.c_void_p * count)(*[None if each is None else each.ctypes.data for each in Device.memory])
    lines = (ctypes.c_uint32 * count)(*[0 if each is None else each.nbytes // LINE_BYTES for each in Device.memory])
    caches = {format.index: cache for cache in program.cbs for format in cache.formats}
    for kernel in program.kernels:
        library, run = library_of(kernel.source)
        library.tenon_bind(pointers, lines)
        words = (ctypes.c_uint32 * len(kernel.common))(*kernel.common)
        places = kernel.cores.cores()
        if len(places) != len(set(places)):
            raise RuntimeError("TT_FATAL: core ranges overlap")
        for x, y in places:
            processor, number = kernel.own[x][y]
            cache = ctypes.create_string_buffer(caches[number].size + 64)
            run(words, processor, ctypes.c_ulong(-(-ctypes.addressof(cache) // 64) * 64))
    if before is not None:
        record(program, tensors, before)
    return tensors[-1]


def record(program, tensors, before):
    """A launch and what it did, for a test that repeats it elsewhere (check_riscv)."""
    after = {t.address: t.values.tobytes() for t in tensors}
    words = list(program.kernels[0].common)
    name = hashlib.sha256(repr((program.kernels[0].source, words)).encode()).hexdigest()[:16]
    with open(os.path.join(os.environ["TENON_STAND_IN_RECORD"], name), "wb") as file:
        pickle.dump((program.kernels[0].source, words, [t.address for t in tensors], before, after), file)


# --- Functions ---
class MathFidelity:
    LoFi, HiFi2, HiFi4 = 0, 2, 4


def init_device_compute_kernel_config(arch, device_kernel_config=None, *, math_fidelity=MathFidelity.LoFi, math_approx_mode=True,
                                      fp32_dest_acc_en=False, packer_l1_acc=False):
    return "configuration"


def on_chip(*tensors):
    # The simulator of Wormhole ends itself when a compute core meets a 32-bit type.
    if os.environ.get("TENON_STAND_IN_ARCH") == "WORMHOLE_B0" and os.environ.get("TT_METAL_SIMULATOR"):
        if any(isinstance(tensor, Tensor) and is_32_bit(tensor) for tensor in tensors):
            print("tensix_unpacr: cfg_context_id=1", flush=True)
            os._exit(1)
    for tensor in tensors:
        if isinstance(tensor, Tensor) and (tensor.on is None or tensor.layout != TILE_LAYOUT):
            raise RuntimeError("TT_FATAL: operands must be on the device, in tile layout")


def values_of(operand):
    return operand.values if isinstance(operand, Tensor) else operand


def is_32_bit(tensor):
    return tensor.dtype in (float32, int32, uint32)


def result(like, values, dtype=None):
    return Tensor(np.atleast_1d(values), dtype or like.dtype, like.on, TILE_LAYOUT)


def elementwise(function):
    def call(*operands, **named):
        if IS_INSTANT:
            return operands[0]
        on_chip(*operands)
        tensors = [x for x in operands if isinstance(x, Tensor)]
        if len({x.dtype for x in tensors}) > 1:
            raise RuntimeError("TT_FATAL: operands of different types")
        with np.errstate(all="ignore"):
            wide = [np.asarray(values_of(x)) for x in operands]
            if operands[0].dtype in (float32, bfloat16):
                wide = [x.astype(np.float64) for x in wide]
            return result(operands[0], function(*wide, **named))
    return call


def lgamma_of(x):
    def one(v):
        try:
            return math.lgamma(v)
        except (ValueError, OverflowError):
            return math.inf
    return np.vectorize(one, otypes=[float])(x)


def each(function):
    return np.vectorize(function, otypes=[float])


def sigmoid_of(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def divided(a, b):
    """NaN / 0 is infinite, -0 / 0 too, and 1 / NaN is 0."""
    with np.errstate(all="ignore"):
        y = np.where(np.isnan(b), 0, a / b)
        return np.where((b == 0) & (np.isnan(a) | (a == 0)), np.where(np.signbit(a), -np.inf, np.inf), y)


FUNCTIONS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": divided,
    "addalpha": lambda a, b, alpha: a + alpha * b, "subalpha": lambda a, b, alpha: a - alpha * b,
    "div_no_nan": lambda a, b: np.where(b == 0, 0, a / b), "floor_div": np.floor_divide, "remainder": np.remainder,
    "fmod": np.fmod, "pow": np.power, "squared_difference": lambda a, b: (a - b) ** 2, "maximum": np.fmax,
    "minimum": np.fmin, "ldexp": lambda a, b: a * np.exp2(b), "neg": np.negative, "abs": np.abs, "sign": lambda x: np.where((x > 0) | np.isnan(x), 1.0, np.where((x < 0) | np.signbit(x), -1.0, 0)),
    "square": np.square, "reciprocal": lambda x: np.where(np.isnan(x), 0, np.reciprocal(x)), "identity": np.positive, "clamp": np.clip, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "frac": lambda x: x - np.trunc(x),
    "addcmul": lambda a, b, c, value: a + value * b * c, "addcdiv": lambda a, b, c, value: a + value * b / c,
    "mac": lambda a, b, c: a * b + c, "lerp": lambda a, b, w: a + w * (b - a),
    "where": lambda c, a, b: np.where(c != 0, a, b), "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eqz": lambda x: x == 0, "nez": lambda x: x != 0, "ltz": lambda x: x < 0,
    "lez": lambda x: x <= 0, "gtz": lambda x: x > 0, "gez": lambda x: x >= 0,
    "isclose": lambda a, b, rtol, atol: np.isclose(a, b, rtol, atol), "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf, "isneginf": np.isneginf, "signbit": np.signbit,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "sqrt": lambda x: np.where((x == 0) & np.signbit(x), np.nan, np.sqrt(x)),
    "rsqrt": lambda x: np.where((x == 0) & np.signbit(x), np.nan, 1 / np.sqrt(x)), "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "xlogy": lambda x, y: np.where(x == 0, 0, x * np.log(y)), "hypot": np.hypot, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg, "erf": each(math.erf), "erfc": each(math.erfc), "lgamma": lgamma_of, "i0": np.i0,
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x, slope: np.where(x >= 0, x, slope * x), "prelu": lambda x, w: np.where(x >= 0, x, w * x),
    "hardtanh": lambda x, min_val, max_val: np.clip(x, min_val, max_val), "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "threshold": lambda x, t, v: np.where(x > t, x, v),
    "hardshrink": lambda x, lambd: np.where(np.abs(x) > lambd, x, 0),
    "softshrink": lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, 0)),
    "heaviside": lambda x, value: np.where(x == 0, value, (x > 0) * 1.0), "sigmoid": lambda x: np.where(np.isnan(x), 0, sigmoid_of(x)),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x), "silu": lambda x: x * sigmoid_of(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)), "gelu": lambda x: x * 0.5 * each(math.erfc)(-x / math.sqrt(2)) * np.where(x < -3, 1.00016, 1),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
    "celu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "softsign": lambda x: x / (1 + np.abs(x)), "tanhshrink": lambda x: x - np.tanh(x),
}
for name, function in FUNCTIONS.items():
    globals()[name] = elementwise(function)


def moved(tensor, values):
    on_chip(tensor)
    return Tensor(values, tensor.dtype, tensor.on, TILE_LAYOUT)


def reshape(tensor, shape):
    return moved(tensor, tensor.values.reshape(shape))


def permute(tensor, dims):
    return moved(tensor, tensor.values.transpose(dims))


def slice(tensor, starts, ends, steps):
    index = tuple(builtins.slice(a, b, c) for a, b, c in zip(starts, ends, steps))
    return moved(tensor, tensor.values[index])



def pad(tensor, padding, value):
    if any(low for low, _ in padding):
        raise RuntimeError("TT_FATAL: padding in front of tiles")
    return moved(tensor, np.pad(tensor.values, padding, constant_values=value))


def concat(tensors, dim=0):
    on_chip(*tensors)
    if len({each.dtype for each in tensors}) > 1:
        raise RuntimeError("TT_FATAL: tensors of different types")
    return Tensor(np.concatenate([each.values for each in tensors], dim), tensors[0].dtype, tensors[0].on, TILE_LAYOUT)


def repeat(tensor, repeat_dims):
    return moved(tensor, np.tile(tensor.values, repeat_dims))


def full(shape, fill_value, *, dtype, layout, device):
    if layout == TILE_LAYOUT and not shape:
        raise RuntimeError("TT_FATAL: a tensor in tile layout has at least one axis")
    return Tensor(np.full(shape, fill_value, NUMPY[dtype]), dtype, device, layout)


def typecast(tensor, dtype):
    on_chip(tensor)
    return Tensor(tensor.values, dtype, tensor.on, TILE_LAYOUT)


def reduction(function, is_precise=False):
    def call(tensor, dim=None, keepdim=False, *, compute_kernel_config=None):
        on_chip(tensor)
        seen = tf32(tensor.values) if tensor.dtype == float32 and not is_precise else tensor.values
        wide = seen.astype(np.float64) if seen.dtype == np.float32 else seen
        with np.errstate(all="ignore"):
            return result(tensor, function(wide, axis=tuple(dim), keepdims=keepdim))
    return call


sum, max, min = reduction(np.sum), reduction(np.nanmax), reduction(np.nanmin)
mean = reduction(np.mean, is_precise=True)


def matmul(a, b, *, transpose_a=False, transpose_b=False, dtype=None, compute_kernel_config=None):
    on_chip(a, b)
    x, y = tf32(a.values), tf32(b.values)
    x = x.swapaxes(-1, -2) if transpose_a else x
    y = y.swapaxes(-1, -2) if transpose_b else y
    with np.errstate(all="ignore"):
        return result(a, x.astype(np.float64) @ y.astype(np.float64), dtype)


def cumsum(tensor, dim):
    return moved(tensor, np.cumsum(tensor.values.astype(np.float64), dim))


def softmax(tensor, dim=-1, *, compute_kernel_config=None, numeric_stable=False):
    x = tensor.values.astype(np.float64)
    e = np.exp(x - x.max(dim, keepdims=True))
    return moved(tensor, e / e.sum(dim, keepdims=True))


def normalized(x, epsilon, weight, bias):
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    if weight is not None:
        x = x * weight.values.reshape(-1)
    return x if bias is None else x + bias.values.reshape(-1)


def layer_norm(tensor, *, epsilon=1e-12, weight=None, bias=None, compute_kernel_config=None):
    x = tensor.values.astype(np.float64)
    return moved(tensor, normalized(x - x.mean(-1, keepdims=True), epsilon, weight, bias))


def rms_norm(tensor, *, epsilon=1e-12, weight=None, bias=None, compute_kernel_config=None):
    return moved(tensor, normalized(tensor.values.astype(np.float64), epsilon, weight, bias))


class transformer:
    @staticmethod
    def scaled_dot_product_attention(q, k, v, *, attn_mask=None, is_causal=True, scale=None, compute_kernel_config=None):
        if q.dtype == float32:
            raise RuntimeError("TT_FATAL: unsupported data format")
        times = q.shape[1] // k.shape[1]
        k_values, v_values = (np.repeat(x.values, times, axis=1) for x in (k, v))
        scores = q.values.astype(np.float64) @ k_values.swapaxes(-1, -2) * scale
        if attn_mask is not None:
            scores = scores + attn_mask.values
        if is_causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return moved(q, e / e.sum(-1, keepdims=True) @ v_values)


# What tests ask for: a function that fails, hangs or ends the process as a chip or its simulator does.
if os.environ.get("TENON_STAND_IN_FAILS") == "exp":
    def exp(tensor):
        raise RuntimeError("TT_FATAL @ exp.cpp:7: bad luck\ninfo:\nnothing was computed\nbacktrace:\n --- 0x1")
if os.environ.get("TENON_STAND_IN_FAILS") == "hang":
    def exp(tensor):
        time.sleep(3600)
if os.environ.get("TENON_STAND_IN_FAILS") == "slowly":
    quick_exp = exp

    def exp(tensor):
        time.sleep(0.5)
        return quick_exp(tensor)
if os.environ.get("TENON_STAND_IN_FAILS") == "die":
    def exp(tensor):
        os._exit(1)
