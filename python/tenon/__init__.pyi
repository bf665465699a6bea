# Made by tools/python_types from the catalogue; not to be edited.
import builtins
from collections.abc import Callable, Sequence
from typing import Literal

from ._async import eval_async as eval_async, run_async as run_async, watch as watch
from ._core import Array as Array, ArrayLike, DType as DType, DTypeLike
from ._devices import (
    Decision as Decision,
    Device as Device,
    Lease as Lease,
    Place as Place,
    close as close,
    config as config,
    device as device,
    devices as devices,
    explain as explain,
    find as find,
    get_default_device as get_default_device,
    lease as lease,
    queue as queue,
    set_default_device as set_default_device,
    simulate as simulate,
    status as status,
)
from ._errors import (
    Aborted as Aborted,
    AlreadyExists as AlreadyExists,
    Cancelled as Cancelled,
    DataLoss as DataLoss,
    DeadlineExceeded as DeadlineExceeded,
    Error as Error,
    FailedPrecondition as FailedPrecondition,
    Internal as Internal,
    InvalidArgument as InvalidArgument,
    NotFound as NotFound,
    OutOfRange as OutOfRange,
    PermissionDenied as PermissionDenied,
    ResourceExhausted as ResourceExhausted,
    Unavailable as Unavailable,
    Unimplemented as Unimplemented,
    Unknown as Unknown,
)
from ._evaluation import (
    Evaluation as Evaluation,
    Progress as Progress,
    eval as eval,
    load as load,
    load_metadata as load_metadata,
    run as run,
    save as save,
)
from ._jit import Program as Program, jit as jit, load_program as load_program, spec as spec
from ._standard import __array_api_version__ as __array_api_version__
from ._standard import __array_namespace_info__ as __array_namespace_info__
from ._standard import all as all
from ._standard import any as any
from ._standard import arange as arange
from ._standard import argsort as argsort
from ._standard import array as array
from ._standard import asarray as asarray
from ._standard import astype as astype
from ._standard import broadcast_arrays as broadcast_arrays
from ._standard import broadcast_shapes as broadcast_shapes
from ._standard import can_cast as can_cast
from ._standard import clip as clip
from ._standard import concat as concat
from ._standard import conj as conj
from ._standard import cumulative_prod as cumulative_prod
from ._standard import cumulative_sum as cumulative_sum
from ._standard import diff as diff
from ._standard import e as e
from ._standard import empty as empty
from ._standard import empty_like as empty_like
from ._standard import expand_dims as expand_dims
from ._standard import eye as eye
from ._standard import finfo as finfo
from ._standard import finfo_object as finfo_object
from ._standard import from_dlpack as from_dlpack
from ._standard import full as full
from ._standard import full_like as full_like
from ._standard import iinfo as iinfo
from ._standard import iinfo_object as iinfo_object
from ._standard import imag as imag
from ._standard import inf as inf
from ._standard import isdtype as isdtype
from ._standard import isin as isin
from ._standard import linspace as linspace
from ._standard import matrix_transpose as matrix_transpose
from ._standard import max as max
from ._standard import mean as mean
from ._standard import meshgrid as meshgrid
from ._standard import min as min
from ._standard import moveaxis as moveaxis
from ._standard import nan as nan
from ._standard import nextafter as nextafter
from ._standard import nonzero as nonzero
from ._standard import ones as ones
from ._standard import ones_like as ones_like
from ._standard import permute_dims as permute_dims
from ._standard import pi as pi
from ._standard import prod as prod
from ._standard import real as real
from ._standard import repeat as repeat
from ._standard import reshape as reshape
from ._standard import result_type as result_type
from ._standard import roll as roll
from ._standard import searchsorted as searchsorted
from ._standard import sort as sort
from ._standard import squeeze as squeeze
from ._standard import std as std
from ._standard import sum as sum
from ._standard import take as take
from ._standard import tensordot as tensordot
from ._standard import tril as tril
from ._standard import triu as triu
from ._standard import unique_all as unique_all
from ._standard import unique_all_result as unique_all_result
from ._standard import unique_counts as unique_counts
from ._standard import unique_counts_result as unique_counts_result
from ._standard import unique_inverse as unique_inverse
from ._standard import unique_inverse_result as unique_inverse_result
from ._standard import unique_values as unique_values
from ._standard import unstack as unstack
from ._standard import var as var
from ._standard import vecdot as vecdot
from ._standard import zeros as zeros
from ._standard import zeros_like as zeros_like

__version__: str
newaxis: None
ops: dict[str, Callable[..., Array]]
bool: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
int8: DType
int16: DType
int32: DType
int64: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType
bfloat8_b: DType
bfloat4_b: DType
def abs(x: ArrayLike) -> Array:
    """Absolute value. The smallest integer of a signed type stays unchanged."""
def absolute(x: ArrayLike) -> Array:
    """Absolute value. The smallest integer of a signed type stays unchanged."""
def acos(x: ArrayLike) -> Array:
    """Inverse of cosine; NaN outside [-1, 1]."""
def arccos(x: ArrayLike) -> Array:
    """Inverse of cosine; NaN outside [-1, 1]."""
def acosh(x: ArrayLike) -> Array:
    """Inverse of cosh; NaN below 1."""
def arccosh(x: ArrayLike) -> Array:
    """Inverse of cosh; NaN below 1."""
def adaptive_avg_pool1d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Mean of each window over 1 spatial axis, with the windows chosen to give the requested output size."""
def adaptive_avg_pool2d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Mean of each window over 2 spatial axes, with the windows chosen to give the requested output size."""
def adaptive_avg_pool3d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Mean of each window over 3 spatial axes, with the windows chosen to give the requested output size."""
def adaptive_max_pool1d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Maximum of each window over 1 spatial axis, with the windows chosen to give the requested output size."""
def adaptive_max_pool2d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Maximum of each window over 2 spatial axes, with the windows chosen to give the requested output size."""
def adaptive_max_pool3d(x: ArrayLike, output_size: int | Sequence[int]) -> Array:
    """Maximum of each window over 3 spatial axes, with the windows chosen to give the requested output size."""
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Sum. Integers wrap around."""
def addalpha(x: ArrayLike, y: ArrayLike, alpha: float = 1.0) -> Array:
    """Sum with the second operand scaled."""
def addcdiv(x: ArrayLike, y: ArrayLike, z: ArrayLike, value: float = 1.0) -> Array:
    """Adds a scaled quotient; integers are computed as float32."""
def addcmul(x: ArrayLike, y: ArrayLike, z: ArrayLike, value: float = 1.0) -> Array:
    """Adds a scaled product."""
def addmm(c: ArrayLike, a: ArrayLike, b: ArrayLike, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """Adds a matrix product to a tensor."""
def argmax(x: ArrayLike, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Index of the first largest element; NaN counts as largest."""
def argmin(x: ArrayLike, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Index of the first smallest element; NaN counts as smallest."""
def asin(x: ArrayLike) -> Array:
    """Inverse of sine; NaN outside [-1, 1]."""
def arcsin(x: ArrayLike) -> Array:
    """Inverse of sine; NaN outside [-1, 1]."""
def asinh(x: ArrayLike) -> Array:
    """Inverse of sinh."""
def arcsinh(x: ArrayLike) -> Array:
    """Inverse of sinh."""
def atan(x: ArrayLike) -> Array:
    """Inverse of tangent."""
def arctan(x: ArrayLike) -> Array:
    """Inverse of tangent."""
def atan2(y: ArrayLike, x: ArrayLike) -> Array:
    """Angle of the point (x, y) in (-π, π]; y comes first."""
def arctan2(y: ArrayLike, x: ArrayLike) -> Array:
    """Angle of the point (x, y) in (-π, π]; y comes first."""
def atanh(x: ArrayLike) -> Array:
    """Inverse of tanh; NaN outside [-1, 1]."""
def arctanh(x: ArrayLike) -> Array:
    """Inverse of tanh; NaN outside [-1, 1]."""
def avg_pool1d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
    """Mean of each window over 1 spatial axis."""
def avg_pool2d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
    """Mean of each window over 2 spatial axes."""
def avg_pool3d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
    """Mean of each window over 3 spatial axes."""
def batch_norm(x: ArrayLike, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int = 1, eps: float = 1e-05) -> Array:
    """Batch normalization for inference, with a given mean and variance per channel."""
def bernoulli(shape: int | Sequence[int], p: float = 0.5, dtype: DTypeLike = 'bool', seed: int = 0) -> Array:
    """Random zeros and ones."""
def binary_cross_entropy(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Cross entropy of probabilities with targets from 0 to 1."""
def binary_cross_entropy_with_logits(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Cross entropy of sigmoid(x) with targets from 0 to 1, without overflow."""
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits set in both."""
def bitwise_not(x: ArrayLike) -> Array:
    """Inverts every bit; for a bool, the negation."""
def invert(x: ArrayLike) -> Array:
    """Inverts every bit; for a bool, the negation."""
def bitwise_invert(x: ArrayLike) -> Array:
    """Inverts every bit; for a bool, the negation."""
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits set in either."""
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits set in exactly one."""
def bmm(a: ArrayLike, b: ArrayLike) -> Array:
    """Matrix products of two stacks of matrices."""
def cast(x: ArrayLike, dtype: DTypeLike) -> Array:
    """Converts to another element type. Floats round to nearest even; to integers they truncate and saturate."""
def typecast(x: ArrayLike, dtype: DTypeLike) -> Array:
    """Converts to another element type. Floats round to nearest even; to integers they truncate and saturate."""
def cbrt(x: ArrayLike) -> Array:
    """Cube root; negative numbers are allowed."""
def cdist(a: ArrayLike, b: ArrayLike, p: float = 2.0) -> Array:
    """Distances from every row of a to every row of b."""
def ceil(x: ArrayLike) -> Array:
    """Rounds up; integers are unchanged."""
def celu(x: ArrayLike, alpha: float = 1.0) -> Array:
    """Exponential linear unit whose slope is continuous for every alpha."""
def chunk(x: ArrayLike, chunks: int, axis: int = 0) -> list[Array]:
    """Splits a tensor into parts of equal extent, the last of which may be smaller; one result per part."""
def clamp(x: ArrayLike, min: float | None = None, max: float | None = None) -> Array:
    """Clamps values to a range; NaN stays NaN. If min exceeds max, every result is max."""
def clamp_max(x: ArrayLike, max: float = 0.0) -> Array:
    """Clamps values from above."""
def clamp_min(x: ArrayLike, min: float = 0.0) -> Array:
    """Clamps values from below."""
def clone(x: ArrayLike) -> Array:
    """A copy."""
def cat(*tensors: ArrayLike | Sequence[ArrayLike], axis: int = 0) -> Array:
    """Concatenates tensors along an existing axis."""
def concatenate(*tensors: ArrayLike | Sequence[ArrayLike], axis: int = 0) -> Array:
    """Concatenates tensors along an existing axis."""
def conv1d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
    """Convolution over 1 spatial axis: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
def conv2d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
    """Convolution over 2 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
def conv3d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
    """Convolution over 3 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
def conv_transpose1d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
    """Transposed convolution over 1 spatial axis: weight [c, out / groups, ...]."""
def conv_transpose2d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
    """Transposed convolution over 2 spatial axes: weight [c, out / groups, ...]."""
def conv_transpose3d(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
    """Transposed convolution over 3 spatial axes: weight [c, out / groups, ...]."""
def copysign(x: ArrayLike, y: ArrayLike) -> Array:
    """The magnitude of x with the sign bit of y."""
def cos(x: ArrayLike) -> Array:
    """Cosine of an angle in radians."""
def cosh(x: ArrayLike) -> Array:
    """Hyperbolic cosine."""
def cosine_similarity(a: ArrayLike, b: ArrayLike, axis: int = -1, eps: float = 1e-08) -> Array:
    """Cosine of the angle between vectors."""
def count_nonzero(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """Number of elements that are not 0."""
def cross(a: ArrayLike, b: ArrayLike, axis: int = -1) -> Array:
    """Vector product in three dimensions."""
def cross_entropy(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Cross entropy of scores x [n, classes, ...]; target has class indices."""
def cumprod(x: ArrayLike, axis: int = -1) -> Array:
    """Running product along an axis; bool and integers are multiplied in 64 bits."""
def cumsum(x: ArrayLike, axis: int = -1) -> Array:
    """Running sum along an axis; bool and integers are summed in 64 bits."""
def deg2rad(x: ArrayLike) -> Array:
    """Degrees to radians."""
def radians(x: ArrayLike) -> Array:
    """Degrees to radians."""
def dequantize(x: ArrayLike, scale: float, zero_point: int = 0) -> Array:
    """Converts quantized 8-bit integers back to float32."""
def diag(x: ArrayLike, offset: int = 0) -> Array:
    """The matrix with a vector as its diagonal, or the diagonal of a matrix."""
def diagonal(x: ArrayLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """The diagonals of two axes as a new last axis."""
def digamma(x: ArrayLike) -> Array:
    """Derivative of lgamma; NaN at the negative integers."""
def psi(x: ArrayLike) -> Array:
    """Derivative of lgamma; NaN at the negative integers."""
def div(x: ArrayLike, y: ArrayLike, rounding_mode: Literal['none', 'trunc', 'floor'] = 'none') -> Array:
    """Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs."""
def div_no_nan(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient that is 0 where the divisor is 0."""
def divide_no_nan(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient that is 0 where the divisor is 0."""
def divide(x: ArrayLike, y: ArrayLike, rounding_mode: Literal['none', 'trunc', 'floor'] = 'none') -> Array:
    """Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs."""
def dot(a: ArrayLike, b: ArrayLike) -> Array:
    """Inner product of two vectors."""
def einsum(equation: str, *operands: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Einstein summation over any number of operands: diagonals, sums, transpositions, products."""
def elu(x: ArrayLike, alpha: float = 1.0) -> Array:
    """Exponential linear unit."""
def embedding(indices: ArrayLike, weight: ArrayLike) -> Array:
    """Looks up rows of a table by index."""
def entr(x: ArrayLike) -> Array:
    """Contribution of a probability to the entropy; 0 at 0, -inf below."""
def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Equal; NaN equals nothing."""
def equal(x: ArrayLike, y: ArrayLike) -> Array:
    """Equal; NaN equals nothing."""
def eqz(x: ArrayLike) -> Array:
    """True where zero."""
def erf(x: ArrayLike) -> Array:
    """Error function."""
def erfc(x: ArrayLike) -> Array:
    """Complementary error function, accurate where it is tiny."""
def erfinv(x: ArrayLike) -> Array:
    """Inverse of erf; infinite at -1 and 1, NaN outside."""
def exp(x: ArrayLike) -> Array:
    """Exponential function."""
def exp10(x: ArrayLike) -> Array:
    """Power of ten."""
def exp2(x: ArrayLike) -> Array:
    """Power of two."""
def expand(x: ArrayLike, shape: int | Sequence[int]) -> Array:
    """Broadcasts axes with extent 1 and adds leading axes, without copying."""
def broadcast_to(x: ArrayLike, shape: int | Sequence[int]) -> Array:
    """Broadcasts axes with extent 1 and adds leading axes, without copying."""
def expm1(x: ArrayLike) -> Array:
    """Exponential minus one, accurate near 0."""
def fake_quantize(x: ArrayLike, scale: float, zero_point: int = 0, dtype: Literal['int8', 'uint8'] = 'int8') -> Array:
    """x after quantization to 8 bits and back."""
def flatten(x: ArrayLike, start_axis: int = 0, end_axis: int = -1) -> Array:
    """Merges adjacent axes into one."""
def ravel(x: ArrayLike, start_axis: int = 0, end_axis: int = -1) -> Array:
    """Merges adjacent axes into one."""
def flip(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverses the order of elements along axes."""
def float_power(x: ArrayLike, exponent: ArrayLike) -> Array:
    """Power computed and returned in float64."""
def floor(x: ArrayLike) -> Array:
    """Rounds down; integers are unchanged."""
def floor_div(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient rounded towards minus infinity. Integers divided by 0 give 0."""
def floor_divide(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient rounded towards minus infinity. Integers divided by 0 give 0."""
def fmax(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger value; if one is NaN, the other."""
def fmin(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller value; if one is NaN, the other."""
def fmod(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder with the sign of the dividend, as in C. A divisor of 0 gives 0 for integers and NaN for floats."""
def frac(x: ArrayLike) -> Array:
    """Fractional part, with the sign of x."""
def gather(x: ArrayLike, indices: ArrayLike, axis: int = 0) -> Array:
    """One element of x for each index, along an axis; negative indices count from the end."""
def gcd(x: ArrayLike, y: ArrayLike) -> Array:
    """Greatest common divisor of integers; gcd(0, n) is |n|."""
def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Greater than or equal."""
def greater_equal(x: ArrayLike, y: ArrayLike) -> Array:
    """Greater than or equal."""
def geglu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated unit with gelu over the two halves of an axis."""
def gelu(x: ArrayLike, approximate: Literal['none', 'tanh'] = 'none') -> Array:
    """Gaussian error linear unit, exact or with the common tanh approximation."""
def gez(x: ArrayLike) -> Array:
    """True where zero or positive."""
def global_avg_pool(x: ArrayLike) -> Array:
    """Mean of each channel of [n, channels, ...]."""
def global_max_pool(x: ArrayLike) -> Array:
    """Largest element of each channel of [n, channels, ...]."""
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated linear unit over the two halves of an axis."""
def group_norm(x: ArrayLike, groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05) -> Array:
    """Normalizes each group of channels of [n, channels, ...]; weight and bias are per channel."""
def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Greater than."""
def greater(x: ArrayLike, y: ArrayLike) -> Array:
    """Greater than."""
def gtz(x: ArrayLike) -> Array:
    """True where positive."""
def hardshrink(x: ArrayLike, lambda_: float = 0.5) -> Array:
    """Sets small values to 0."""
def hardsigmoid(x: ArrayLike) -> Array:
    """Piecewise linear approximation of sigmoid."""
def hardswish(x: ArrayLike) -> Array:
    """silu with hardsigmoid instead of sigmoid."""
def hardtanh(x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Clamps values to a range, by default [-1, 1]."""
def heaviside(x: ArrayLike, values: ArrayLike | None = None, value: float = 0.0) -> Array:
    """Unit step; its value at 0 may be a tensor that broadcasts with x."""
def huber_loss(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean', delta: float = 1.0) -> Array:
    """Quadratic for small errors, linear for large ones."""
def hypot(x: ArrayLike, y: ArrayLike) -> Array:
    """Length of a vector, without intermediate overflow."""
def i0(x: ArrayLike) -> Array:
    """Modified Bessel function of the first kind, order 0."""
def identity(x: ArrayLike) -> Array:
    """The value itself, with the same dtype."""
def index_select(x: ArrayLike, indices: ArrayLike, axis: int = 0) -> Array:
    """Selects rows by a vector of indices."""
def inner(a: ArrayLike, b: ArrayLike) -> Array:
    """Products summed over the last axis of both."""
def instance_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05) -> Array:
    """Normalizes each channel of each sample of [n, channels, ...]."""
def isclose(x: ArrayLike, y: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: builtins.bool = False) -> Array:
    """Equal within a tolerance; infinities are equal only to themselves. Integers are compared as float32."""
def isfinite(x: ArrayLike) -> Array:
    """True where neither infinite nor NaN."""
def isinf(x: ArrayLike) -> Array:
    """True where infinite, of either sign."""
def isnan(x: ArrayLike) -> Array:
    """True where not a number."""
def isneginf(x: ArrayLike) -> Array:
    """True where minus infinity."""
def isposinf(x: ArrayLike) -> Array:
    """True where plus infinity."""
def kl_div(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Divergence of log-probabilities x from probabilities t."""
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Kronecker product."""
def l1_loss(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Mean absolute error."""
def layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-05) -> Array:
    """Normalizes each row to mean 0 and variance 1, then applies weight and bias if given."""
def lcm(x: ArrayLike, y: ArrayLike) -> Array:
    """Least common multiple of integers; 0 if one of them is 0."""
def ldexp(x: ArrayLike, exponent: ArrayLike) -> Array:
    """Scales by a power of two without intermediate overflow."""
def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Less than or equal."""
def less_equal(x: ArrayLike, y: ArrayLike) -> Array:
    """Less than or equal."""
def leaky_relu(x: ArrayLike, negative_slope: float = 0.01) -> Array:
    """ReLU with a small slope below 0."""
def left_shift(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount."""
def bitwise_left_shift(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount."""
def lerp(x: ArrayLike, y: ArrayLike, weight: ArrayLike) -> Array:
    """Linear interpolation, exact at both ends."""
def lez(x: ArrayLike) -> Array:
    """True where zero or negative."""
def lgamma(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ..."""
def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ..."""
def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """A dense layer: weight is [out, in]; bias [out] is optional."""
def log(x: ArrayLike) -> Array:
    """Natural logarithm; -inf at 0, NaN below."""
def log10(x: ArrayLike) -> Array:
    """Logarithm to base 10."""
def log1p(x: ArrayLike) -> Array:
    """Logarithm of 1 + x, accurate near 0."""
def log2(x: ArrayLike) -> Array:
    """Logarithm to base 2."""
def log_sigmoid(x: ArrayLike) -> Array:
    """Logarithm of sigmoid, accurate in both tails."""
def logsigmoid(x: ArrayLike) -> Array:
    """Logarithm of sigmoid, accurate in both tails."""
def log_softmax(x: ArrayLike, axis: int = -1) -> Array:
    """Logarithm of softmax, accurate where softmax underflows."""
def logaddexp(x: ArrayLike, y: ArrayLike) -> Array:
    """Logarithm of the sum of exponentials of two numbers, without overflow."""
def logaddexp2(x: ArrayLike, y: ArrayLike) -> Array:
    """Logarithm of the sum of powers of two, without overflow."""
def logical_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Both are not zero."""
def logical_not(x: ArrayLike) -> Array:
    """True where zero."""
def logical_or(x: ArrayLike, y: ArrayLike) -> Array:
    """At least one is not zero."""
def logical_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Exactly one is not zero."""
def logit(x: ArrayLike, eps: float | None = None) -> Array:
    """Inverse of sigmoid; NaN outside [0, 1] unless eps is given."""
def logspace(start: float, stop: float, num: int = 50, base: float = 10.0, dtype: DTypeLike = 'float32') -> Array:
    """Numbers spaced evenly on a logarithmic scale."""
def logsumexp(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """Logarithm of the sum of exponentials, without overflow."""
def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Less than."""
def less(x: ArrayLike, y: ArrayLike) -> Array:
    """Less than."""
def ltz(x: ArrayLike) -> Array:
    """True where negative."""
def mac(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Multiply-add."""
def masked_fill(x: ArrayLike, mask: ArrayLike, value: float = 0.0) -> Array:
    """Replaces elements under a mask by a number."""
def matmul(a: ArrayLike, b: ArrayLike) -> Array:
    """Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b."""
def mm(a: ArrayLike, b: ArrayLike) -> Array:
    """Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b."""
def matrix_power(x: ArrayLike, n: int) -> Array:
    """Power of a square matrix."""
def amax(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """Largest element; NaN if any element is NaN."""
def max_pool1d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
    """Largest element of each window over 1 spatial axis."""
def max_pool2d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
    """Largest element of each window over 2 spatial axes."""
def max_pool3d(x: ArrayLike, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
    """Largest element of each window over 3 spatial axes."""
def maximum(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger value; NaN if either is NaN."""
def median(x: ArrayLike, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Median; the mean of the two middle elements if n is even."""
def amin(x: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """Smallest element; NaN if any element is NaN."""
def minimum(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller value; NaN if either is NaN."""
def mish(x: ArrayLike) -> Array:
    """A smooth activation that dips below 0."""
def movedim(x: ArrayLike, source: int, destination: int) -> Array:
    """Moves one axis; the others keep their order."""
def mse_loss(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Mean squared error."""
def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """Product. Integers wrap around."""
def multiply(x: ArrayLike, y: ArrayLike) -> Array:
    """Product; the same as mul."""
def mv(a: ArrayLike, v: ArrayLike) -> Array:
    """Matrix times vector."""
def nan_to_num(x: ArrayLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replaces NaN and infinities with numbers."""
def ndtr(x: ArrayLike) -> Array:
    """Cumulative distribution function of the standard normal distribution."""
def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Not equal; NaN differs from everything."""
def not_equal(x: ArrayLike, y: ArrayLike) -> Array:
    """Not equal; NaN differs from everything."""
def neg(x: ArrayLike) -> Array:
    """Negation. Integers wrap around."""
def negative(x: ArrayLike) -> Array:
    """Negation. Integers wrap around."""
def nez(x: ArrayLike) -> Array:
    """True where not zero."""
def nll_loss(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
    """Negative log-likelihood of log-probabilities x [n, classes, ...]; target has class indices."""
def norm(x: ArrayLike, p: float = 2.0, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
    """Vector norm of order p: 2 Euclidean, 1 sum of magnitudes, inf largest magnitude, 0 count."""
def normalize(x: ArrayLike, axis: int | Sequence[int] = -1, p: float = 2.0, eps: float = 1e-12) -> Array:
    """Normalizes rows to length 1."""
def l2_normalize(x: ArrayLike, axis: int | Sequence[int] = -1, p: float = 2.0, eps: float = 1e-12) -> Array:
    """Normalizes rows to length 1."""
def one_hot(x: ArrayLike, classes: int, dtype: DTypeLike = 'float32') -> Array:
    """Encodes each index as a row with a single 1; an index out of range gives a row of zeros."""
def outer(a: ArrayLike, b: ArrayLike) -> Array:
    """Every element of a times every element of b."""
def ger(a: ArrayLike, b: ArrayLike) -> Array:
    """Every element of a times every element of b."""
def pad(x: ArrayLike, padding: int | Sequence[int], mode: Literal['constant', 'edge', 'reflect', 'wrap'] = 'constant', value: float = 0.0) -> Array:
    """Adds a border to a tensor: a constant, the edge, a reflection, or the opposite end."""
def pairwise_distance(a: ArrayLike, b: ArrayLike, p: float = 2.0, eps: float = 1e-06, keepdims: builtins.bool = False) -> Array:
    """Distances between corresponding rows."""
def permute(x: ArrayLike, axes: int | Sequence[int]) -> Array:
    """Permutes the axes into the given order."""
def pixel_shuffle(x: ArrayLike, factor: int) -> Array:
    """Rearranges channels into the pixels of a larger image."""
def pixel_unshuffle(x: ArrayLike, factor: int) -> Array:
    """Rearranges pixels into the channels of a smaller image."""
def positive(x: ArrayLike) -> Array:
    """The value itself."""
def pow(x: ArrayLike, exponent: ArrayLike) -> Array:
    """Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1."""
def power(x: ArrayLike, exponent: ArrayLike) -> Array:
    """Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1."""
def prelu(x: ArrayLike, weights: ArrayLike | None = None, weight: float = 0.25) -> Array:
    """ReLU with a learned slope below 0; the weight may be a tensor that broadcasts with x."""
def quantile(x: ArrayLike, q: float, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """Quantile q, with linear interpolation."""
def quantize(x: ArrayLike, scale: float, zero_point: int = 0, dtype: Literal['int8', 'uint8'] = 'int8') -> Array:
    """Quantizes floats to 8-bit integers, rounding ties to even and saturating."""
def quick_gelu(x: ArrayLike) -> Array:
    """GELU approximated by a sigmoid."""
def rad2deg(x: ArrayLike) -> Array:
    """Radians to degrees."""
def degrees(x: ArrayLike) -> Array:
    """Radians to degrees."""
def rand(shape: int | Sequence[int], dtype: DTypeLike = 'float32', seed: int = 0) -> Array:
    """Uniform random numbers in [0, 1)."""
def randint(shape: int | Sequence[int], low: int, high: int, dtype: DTypeLike = 'int64', seed: int = 0) -> Array:
    """Random integers in [low, high)."""
def randn(shape: int | Sequence[int], dtype: DTypeLike = 'float32', seed: int = 0) -> Array:
    """Normal random numbers with mean 0 and variance 1."""
def randperm(n: int, dtype: DTypeLike = 'int64', seed: int = 0) -> Array:
    """The numbers 0 to n - 1 in random order."""
def reciprocal(x: ArrayLike) -> Array:
    """Reciprocal; infinite at 0."""
def relu(x: ArrayLike) -> Array:
    """Rectified linear unit."""
def relu6(x: ArrayLike) -> Array:
    """ReLU with an upper limit of 6."""
def relu_squared(x: ArrayLike) -> Array:
    """Square of ReLU."""
def remainder(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats."""
def mod(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats."""
def repeat_interleave(x: ArrayLike, repeats: int, axis: int | None = None) -> Array:
    """Repeats each element."""
def view(x: ArrayLike, shape: int | Sequence[int]) -> Array:
    """The same elements with another shape."""
def right_shift(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every bit."""
def bitwise_right_shift(x: ArrayLike, y: ArrayLike) -> Array:
    """Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every bit."""
def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-06) -> Array:
    """Normalizes each row to root mean square 1."""
def rope(x: ArrayLike, positions: ArrayLike | None = None, base: float = 10000.0, interleaved: builtins.bool = False, offset: float = 0.0) -> Array:
    """Rotary position embedding of [..., positions, width]; positions default to 0, 1, ..."""
def rotary_embedding(x: ArrayLike, positions: ArrayLike | None = None, base: float = 10000.0, interleaved: builtins.bool = False, offset: float = 0.0) -> Array:
    """Rotary position embedding of [..., positions, width]; positions default to 0, 1, ..."""
def round(x: ArrayLike, decimals: int = 0) -> Array:
    """Rounds to nearest, ties to even."""
def rsqrt(x: ArrayLike) -> Array:
    """Reciprocal square root; infinite at 0."""
def rsub(x: ArrayLike, y: ArrayLike, alpha: float = 1.0) -> Array:
    """Difference with the operands reversed and the subtrahend scaled."""
def scaled_dot_product_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
    """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
def attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
    """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
def sdpa(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
    """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
def scatter(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Array:
    """A copy of x with elements replaced. If several updates have the same index, the last one wins."""
def scatter_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Array:
    """A copy of x with updates added to its elements. Updates with the same index add up."""
def select(x: ArrayLike, axis: int = 0, index: int = 0) -> Array:
    """Selects one row and removes its axis."""
def selu(x: ArrayLike) -> Array:
    """Exponential linear unit with self-normalising constants."""
def sgn(x: ArrayLike) -> Array:
    """Sign; the same as sign for real numbers."""
def sigmoid(x: ArrayLike) -> Array:
    """Logistic function."""
def expit(x: ArrayLike) -> Array:
    """Logistic function."""
def sigmoid_accurate(x: ArrayLike) -> Array:
    """Logistic function; the same as sigmoid."""
def sign(x: ArrayLike) -> Array:
    """Sign; NaN gives NaN."""
def signbit(x: ArrayLike) -> Array:
    """True where the sign bit is set, including for -0.0."""
def silu(x: ArrayLike) -> Array:
    """Sigmoid linear unit."""
def sin(x: ArrayLike) -> Array:
    """Sine of an angle in radians."""
def sinc(x: ArrayLike) -> Array:
    """Normalised sinc: 1 at 0 and 0 at every other integer."""
def sinh(x: ArrayLike) -> Array:
    """Hyperbolic sine."""
def slice(x: ArrayLike, start: int | Sequence[int], stop: int | Sequence[int] | None = None, step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Array:
    """Slices a tensor by Python's rules. Also x[1:3, ::2]."""
def smooth_l1_loss(x: ArrayLike, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean', beta: float = 1.0) -> Array:
    """Absolute error, smoothed near 0."""
def softmax(x: ArrayLike, axis: int = -1) -> Array:
    """Exponentials that sum to 1 along an axis."""
def softmin(x: ArrayLike, axis: int = -1) -> Array:
    """Softmax of -x."""
def softplus(x: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Smooth ReLU; x itself where beta·x exceeds the threshold."""
def softshrink(x: ArrayLike, lambda_: float = 0.5) -> Array:
    """Shrinks values towards 0; small values become 0."""
def softsign(x: ArrayLike) -> Array:
    """Smooth function from -1 to 1 that approaches its limits slowly."""
def split(x: ArrayLike, sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits a tensor along an axis; one result per part."""
def sqrt(x: ArrayLike) -> Array:
    """Square root; NaN below 0."""
def square(x: ArrayLike) -> Array:
    """Square. Integers wrap around."""
def squared_difference(x: ArrayLike, y: ArrayLike) -> Array:
    """Square of the difference."""
def stack(*tensors: ArrayLike | Sequence[ArrayLike], axis: int = 0) -> Array:
    """Joins tensors of the same shape along a new axis."""
def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Difference. Integers wrap around."""
def subalpha(x: ArrayLike, y: ArrayLike, alpha: float = 1.0) -> Array:
    """Difference with the second operand scaled."""
def subtract(x: ArrayLike, y: ArrayLike) -> Array:
    """Difference; the same as sub."""
def swapaxes(x: ArrayLike, axis1: int = 0, axis2: int = 1) -> Array:
    """Swaps two axes."""
def swiglu(x: ArrayLike, axis: int = -1) -> Array:
    """Gated unit with silu over the two halves of an axis."""
def swish(x: ArrayLike) -> Array:
    """The same as silu."""
def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int = -1) -> Array:
    """Like gather, with the other axes broadcast."""
def tan(x: ArrayLike) -> Array:
    """Tangent of an angle in radians."""
def tanh(x: ArrayLike) -> Array:
    """Hyperbolic tangent."""
def tanhshrink(x: ArrayLike) -> Array:
    """x minus tanh x, accurate near 0."""
def threshold(x: ArrayLike, threshold: float = 0.0, value: float = 0.0) -> Array:
    """Replaces values that do not exceed a threshold."""
def tile(x: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeats the whole tensor along its axes."""
def top_k(x: ArrayLike, k: int, axis: int = -1, largest: builtins.bool = True) -> list[Array]:
    """The k largest elements in order, and their indices. Two results."""
def topk(x: ArrayLike, k: int, axis: int = -1, largest: builtins.bool = True) -> list[Array]:
    """The k largest elements in order, and their indices. Two results."""
def trace(x: ArrayLike, offset: int = 0) -> Array:
    """Sum of a diagonal of the last two axes."""
def transpose(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Permutes the axes; by default reverses them."""
def true_divide(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient; a float even for integers."""
def trunc(x: ArrayLike) -> Array:
    """Rounds towards zero."""
def fix(x: ArrayLike) -> Array:
    """Rounds towards zero."""
def trunc_div(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient rounded towards zero. Integers divided by 0 give 0."""
def uniform(shape: int | Sequence[int], low: float = 0.0, high: float = 1.0, dtype: DTypeLike = 'float32', seed: int = 0) -> Array:
    """Uniform random numbers in [low, high)."""
def unsqueeze(x: ArrayLike, axis: int) -> Array:
    """Inserts an axis with extent 1."""
def upsample_nearest(x: ArrayLike, factor: int) -> Array:
    """Upsamples every spatial axis by repeating elements."""
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """Selects per element; a condition that is not bool is true where it is not 0."""
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Product with log1p; 0 where x is 0 and y is not NaN."""
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Product with a logarithm; 0 where x is 0 and y is not NaN."""
