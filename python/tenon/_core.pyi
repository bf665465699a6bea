# Made by tools/python_types from the catalogue; not to be edited.
import builtins
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal, Optional, Union, final

ArrayLike = Any
DTypeLike = Any
Axis = Union[int, Sequence[int], None]
DeviceLike = Any

@final
class DType:
    """An element type. There is one object for each: tenon.float32."""

    @property
    def name(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def kind(self) -> Literal["bool", "int", "uint", "float"]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Array:
    """A lazy array: operations are recorded, and computed together when a value is needed."""

    __array_priority__: int
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def T(self) -> Array: ...
    @property
    def mT(self) -> Array: ...
    @property
    def is_evaluated(self) -> bool: ...
    @property
    def device(self) -> str: ...
    def on(self, device: str) -> Array: ...
    def to(self, device: DeviceLike, /, *, stream: object = None) -> Array: ...
    def to_device(self, device: DeviceLike, /, *, stream: object = None) -> Array: ...
    def _to_device(self, device: str) -> Array: ...
    def item(self, *index: int) -> Any: ...
    def tolist(self) -> Any: ...
    def tobytes(self) -> bytes: ...
    def copy(self) -> Array: ...
    def eval(self, **options: Any) -> Array: ...
    def explain(self, device: DeviceLike = "auto") -> Any: ...
    def astype(self, dtype: DTypeLike, /, *, copy: bool = True) -> Array: ...
    def reshape(self, *shape: Any) -> Array: ...
    def transpose(self, *axes: Any) -> Array: ...
    def _same(self) -> Array: ...
    def _rebind(self, other: Array) -> None: ...
    def _repr_html_(self) -> str: ...
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any: ...
    def __array_namespace__(self, /, *, api_version: Optional[str] = None) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int) -> memoryview: ...
    def __await__(self) -> Generator[Any, None, Array]: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __contains__(self, value: Any) -> bool: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any) -> Array: ...
    def __setitem__(self, key: Any, value: ArrayLike) -> None: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __add__(self, other: ArrayLike) -> Array: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __pow__(self, other: ArrayLike) -> Array: ...
    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __or__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __gt__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __eq__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
    def all(self, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
        """Whether all elements over axes are not 0."""
    def any(self, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
        """Whether an element over axes is not 0."""
    def argsort(self, axis: int = -1, *, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
        """The indices that sort an axis; equal elements keep their order."""
    def clip(self, min: ArrayLike = None, max: ArrayLike = None) -> Array:
        """Elements below min become min, those above max become max; both broadcast with x."""
    def conj(self) -> Array:
        """The complex conjugate: the array itself, as there are no complex dtypes."""
    def cumulative_prod(self, *, axis: Optional[int] = None, dtype: Any = None, include_initial: builtins.bool = False) -> Array:
        """The running product along an axis, from 1 on if include_initial."""
    def cumulative_sum(self, *, axis: Optional[int] = None, dtype: Any = None, include_initial: builtins.bool = False) -> Array:
        """The running sum along an axis, from 0 on if include_initial."""
    def diff(self, *, axis: int = -1, n: int = 1, prepend: Optional[Array] = None, append: Optional[Array] = None) -> Array:
        """Differences of neighbours along an axis, n times."""
    def empty_like(self, *, dtype: Any = None, device: DeviceLike = None) -> Array:
        """An array of the shape and dtype of x whose elements have no particular value."""
    def expand_dims(self, axis: Any = 0) -> Array:
        """Adds axes of extent 1."""
    def from_dlpack(self, *, device: DeviceLike = None, copy: Optional[builtins.bool] = None) -> Array:
        """The array of another library, without a copy if its layout allows."""
    def full_like(self, fill_value: ArrayLike, *, dtype: Any = None, device: DeviceLike = None) -> Array:
        """fill_value in the shape and dtype of x."""
    def imag(self) -> Array:
        """The imaginary part: zeros."""
    def matrix_transpose(self) -> Array:
        """The last two axes swapped."""
    def max(self, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
        """The largest element over axes; NaN if there is one."""
    def mean(self, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
        """The mean over axes."""
    def min(self, axis: Axis = None, keepdims: builtins.bool = False) -> Array:
        """The smallest element over axes; NaN if there is one."""
    def moveaxis(self, source: Any, destination: Any) -> Array:
        """Moves axes to other places; the others keep their order."""
    def nonzero(self) -> tuple[Array, ...]:
        """The indices of the elements that are not 0, one array for each axis. Evaluates x."""
    def ones_like(self, *, dtype: Any = None, device: DeviceLike = None) -> Array:
        """Ones of the shape and dtype of x."""
    def permute_dims(self, axes: Sequence[int]) -> Array:
        """The axes in another order."""
    def prod(self, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
        """The product over axes; integers are multiplied in 64 bits."""
    def real(self) -> Array:
        """The real part: the array itself."""
    def repeat(self, repeats: Any, axis: Optional[int] = None) -> Array:
        """Every element several times; with an array of counts, which is evaluated, each as often as it says."""
    def roll(self, shift: Any, axis: Axis = None) -> Array:
        """Elements shifted along axes; what leaves at one end comes back at the other."""
    def sort(self, axis: int = -1, *, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
        """The elements of an axis in order; NaN comes last."""
    def squeeze(self, axis: Axis = None) -> Array:
        """Removes axes of extent 1."""
    def std(self, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
        """The standard deviation over axes; the square root of var()."""
    def sum(self, axis: Axis = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
        """The sum over axes; integers are added in 64 bits."""
    def take(self, indices: ArrayLike, axis: Optional[int] = None) -> Array:
        """Elements of x along an axis, by their indices."""
    def tril(self, k: int = 0) -> Array:
        """The lower triangle of the last two axes; other elements are 0."""
    def triu(self, k: int = 0) -> Array:
        """The upper triangle of the last two axes; other elements are 0."""
    def unique_all(self) -> Any:
        """The distinct elements in order, where each is first, which one each element is, and how often each occurs. Evaluates x."""
    def unique_counts(self) -> Any:
        """The distinct elements in order, and how often each occurs. Evaluates x."""
    def unique_inverse(self) -> Any:
        """The distinct elements in order, and which one each element of x is. Evaluates x."""
    def unique_values(self) -> Array:
        """The distinct elements in order. Evaluates x."""
    def unstack(self, *, axis: int = 0) -> tuple[Array, ...]:
        """The slices of an axis, which they lose."""
    def var(self, axis: Axis = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
        """The variance over axes; divides by the number of elements less the correction."""
    def zeros_like(self, *, dtype: Any = None, device: DeviceLike = None) -> Array:
        """Zeros of the shape and dtype of x."""
    def abs(self) -> Array:
        """Absolute value. The smallest integer of a signed type stays unchanged."""
    def absolute(self) -> Array:
        """Absolute value. The smallest integer of a signed type stays unchanged."""
    def acos(self) -> Array:
        """Inverse of cosine; NaN outside [-1, 1]."""
    def arccos(self) -> Array:
        """Inverse of cosine; NaN outside [-1, 1]."""
    def acosh(self) -> Array:
        """Inverse of cosh; NaN below 1."""
    def arccosh(self) -> Array:
        """Inverse of cosh; NaN below 1."""
    def adaptive_avg_pool1d(self, output_size: int | Sequence[int]) -> Array:
        """Mean of each window over 1 spatial axis, with the windows chosen to give the requested output size."""
    def adaptive_avg_pool2d(self, output_size: int | Sequence[int]) -> Array:
        """Mean of each window over 2 spatial axes, with the windows chosen to give the requested output size."""
    def adaptive_avg_pool3d(self, output_size: int | Sequence[int]) -> Array:
        """Mean of each window over 3 spatial axes, with the windows chosen to give the requested output size."""
    def adaptive_max_pool1d(self, output_size: int | Sequence[int]) -> Array:
        """Maximum of each window over 1 spatial axis, with the windows chosen to give the requested output size."""
    def adaptive_max_pool2d(self, output_size: int | Sequence[int]) -> Array:
        """Maximum of each window over 2 spatial axes, with the windows chosen to give the requested output size."""
    def adaptive_max_pool3d(self, output_size: int | Sequence[int]) -> Array:
        """Maximum of each window over 3 spatial axes, with the windows chosen to give the requested output size."""
    def add(self, y: ArrayLike) -> Array:
        """Sum. Integers wrap around."""
    def addalpha(self, y: ArrayLike, alpha: float = 1.0) -> Array:
        """Sum with the second operand scaled."""
    def addcdiv(self, y: ArrayLike, z: ArrayLike, value: float = 1.0) -> Array:
        """Adds a scaled quotient; integers are computed as float32."""
    def addcmul(self, y: ArrayLike, z: ArrayLike, value: float = 1.0) -> Array:
        """Adds a scaled product."""
    def addmm(self, a: ArrayLike, b: ArrayLike, beta: float = 1.0, alpha: float = 1.0) -> Array:
        """Adds a matrix product to a tensor."""
    def argmax(self, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
        """Index of the first largest element; NaN counts as largest."""
    def argmin(self, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
        """Index of the first smallest element; NaN counts as smallest."""
    def asin(self) -> Array:
        """Inverse of sine; NaN outside [-1, 1]."""
    def arcsin(self) -> Array:
        """Inverse of sine; NaN outside [-1, 1]."""
    def asinh(self) -> Array:
        """Inverse of sinh."""
    def arcsinh(self) -> Array:
        """Inverse of sinh."""
    def atan(self) -> Array:
        """Inverse of tangent."""
    def arctan(self) -> Array:
        """Inverse of tangent."""
    def atan2(self, x: ArrayLike) -> Array:
        """Angle of the point (x, y) in (-π, π]; y comes first."""
    def arctan2(self, x: ArrayLike) -> Array:
        """Angle of the point (x, y) in (-π, π]; y comes first."""
    def atanh(self) -> Array:
        """Inverse of tanh; NaN outside [-1, 1]."""
    def arctanh(self) -> Array:
        """Inverse of tanh; NaN outside [-1, 1]."""
    def avg_pool1d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
        """Mean of each window over 1 spatial axis."""
    def avg_pool2d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
        """Mean of each window over 2 spatial axes."""
    def avg_pool3d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, count_include_pad: builtins.bool = True) -> Array:
        """Mean of each window over 3 spatial axes."""
    def batch_norm(self, mean: ArrayLike, var: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int = 1, eps: float = 1e-05) -> Array:
        """Batch normalization for inference, with a given mean and variance per channel."""
    def binary_cross_entropy(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Cross entropy of probabilities with targets from 0 to 1."""
    def binary_cross_entropy_with_logits(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Cross entropy of sigmoid(x) with targets from 0 to 1, without overflow."""
    def bitwise_and(self, y: ArrayLike) -> Array:
        """Bits set in both."""
    def bitwise_not(self) -> Array:
        """Inverts every bit; for a bool, the negation."""
    def invert(self) -> Array:
        """Inverts every bit; for a bool, the negation."""
    def bitwise_invert(self) -> Array:
        """Inverts every bit; for a bool, the negation."""
    def bitwise_or(self, y: ArrayLike) -> Array:
        """Bits set in either."""
    def bitwise_xor(self, y: ArrayLike) -> Array:
        """Bits set in exactly one."""
    def bmm(self, b: ArrayLike) -> Array:
        """Matrix products of two stacks of matrices."""
    def cast(self, dtype: DTypeLike) -> Array:
        """Converts to another element type. Floats round to nearest even; to integers they truncate and saturate."""
    def typecast(self, dtype: DTypeLike) -> Array:
        """Converts to another element type. Floats round to nearest even; to integers they truncate and saturate."""
    def cbrt(self) -> Array:
        """Cube root; negative numbers are allowed."""
    def cdist(self, b: ArrayLike, p: float = 2.0) -> Array:
        """Distances from every row of a to every row of b."""
    def ceil(self) -> Array:
        """Rounds up; integers are unchanged."""
    def celu(self, alpha: float = 1.0) -> Array:
        """Exponential linear unit whose slope is continuous for every alpha."""
    def chunk(self, chunks: int, axis: int = 0) -> list[Array]:
        """Splits a tensor into parts of equal extent, the last of which may be smaller; one result per part."""
    def clamp(self, min: float | None = None, max: float | None = None) -> Array:
        """Clamps values to a range; NaN stays NaN. If min exceeds max, every result is max."""
    def clamp_max(self, max: float = 0.0) -> Array:
        """Clamps values from above."""
    def clamp_min(self, min: float = 0.0) -> Array:
        """Clamps values from below."""
    def clone(self) -> Array:
        """A copy."""
    def conv1d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
        """Convolution over 1 spatial axis: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
    def conv2d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
        """Convolution over 2 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
    def conv3d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Array:
        """Convolution over 3 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out]."""
    def conv_transpose1d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
        """Transposed convolution over 1 spatial axis: weight [c, out / groups, ...]."""
    def conv_transpose2d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
        """Transposed convolution over 2 spatial axes: weight [c, out / groups, ...]."""
    def conv_transpose3d(self, weight: ArrayLike, bias: ArrayLike | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, dilation: int | Sequence[int] = 1) -> Array:
        """Transposed convolution over 3 spatial axes: weight [c, out / groups, ...]."""
    def copysign(self, y: ArrayLike) -> Array:
        """The magnitude of x with the sign bit of y."""
    def cos(self) -> Array:
        """Cosine of an angle in radians."""
    def cosh(self) -> Array:
        """Hyperbolic cosine."""
    def cosine_similarity(self, b: ArrayLike, axis: int = -1, eps: float = 1e-08) -> Array:
        """Cosine of the angle between vectors."""
    def count_nonzero(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
        """Number of elements that are not 0."""
    def cross(self, b: ArrayLike, axis: int = -1) -> Array:
        """Vector product in three dimensions."""
    def cross_entropy(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Cross entropy of scores x [n, classes, ...]; target has class indices."""
    def cumprod(self, axis: int = -1) -> Array:
        """Running product along an axis; bool and integers are multiplied in 64 bits."""
    def cumsum(self, axis: int = -1) -> Array:
        """Running sum along an axis; bool and integers are summed in 64 bits."""
    def deg2rad(self) -> Array:
        """Degrees to radians."""
    def radians(self) -> Array:
        """Degrees to radians."""
    def dequantize(self, scale: float, zero_point: int = 0) -> Array:
        """Converts quantized 8-bit integers back to float32."""
    def diag(self, offset: int = 0) -> Array:
        """The matrix with a vector as its diagonal, or the diagonal of a matrix."""
    def diagonal(self, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
        """The diagonals of two axes as a new last axis."""
    def digamma(self) -> Array:
        """Derivative of lgamma; NaN at the negative integers."""
    def psi(self) -> Array:
        """Derivative of lgamma; NaN at the negative integers."""
    def div(self, y: ArrayLike, rounding_mode: Literal['none', 'trunc', 'floor'] = 'none') -> Array:
        """Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs."""
    def div_no_nan(self, y: ArrayLike) -> Array:
        """Quotient that is 0 where the divisor is 0."""
    def divide_no_nan(self, y: ArrayLike) -> Array:
        """Quotient that is 0 where the divisor is 0."""
    def divide(self, y: ArrayLike, rounding_mode: Literal['none', 'trunc', 'floor'] = 'none') -> Array:
        """Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs."""
    def dot(self, b: ArrayLike) -> Array:
        """Inner product of two vectors."""
    def elu(self, alpha: float = 1.0) -> Array:
        """Exponential linear unit."""
    def embedding(self, weight: ArrayLike) -> Array:
        """Looks up rows of a table by index."""
    def entr(self) -> Array:
        """Contribution of a probability to the entropy; 0 at 0, -inf below."""
    def eq(self, y: ArrayLike) -> Array:
        """Equal; NaN equals nothing."""
    def equal(self, y: ArrayLike) -> Array:
        """Equal; NaN equals nothing."""
    def eqz(self) -> Array:
        """True where zero."""
    def erf(self) -> Array:
        """Error function."""
    def erfc(self) -> Array:
        """Complementary error function, accurate where it is tiny."""
    def erfinv(self) -> Array:
        """Inverse of erf; infinite at -1 and 1, NaN outside."""
    def exp(self) -> Array:
        """Exponential function."""
    def exp10(self) -> Array:
        """Power of ten."""
    def exp2(self) -> Array:
        """Power of two."""
    def expand(self, shape: int | Sequence[int]) -> Array:
        """Broadcasts axes with extent 1 and adds leading axes, without copying."""
    def broadcast_to(self, shape: int | Sequence[int]) -> Array:
        """Broadcasts axes with extent 1 and adds leading axes, without copying."""
    def expm1(self) -> Array:
        """Exponential minus one, accurate near 0."""
    def fake_quantize(self, scale: float, zero_point: int = 0, dtype: Literal['int8', 'uint8'] = 'int8') -> Array:
        """x after quantization to 8 bits and back."""
    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Array:
        """Merges adjacent axes into one."""
    def ravel(self, start_axis: int = 0, end_axis: int = -1) -> Array:
        """Merges adjacent axes into one."""
    def flip(self, axis: int | Sequence[int] | None = None) -> Array:
        """Reverses the order of elements along axes."""
    def float_power(self, exponent: ArrayLike) -> Array:
        """Power computed and returned in float64."""
    def floor(self) -> Array:
        """Rounds down; integers are unchanged."""
    def floor_div(self, y: ArrayLike) -> Array:
        """Quotient rounded towards minus infinity. Integers divided by 0 give 0."""
    def floor_divide(self, y: ArrayLike) -> Array:
        """Quotient rounded towards minus infinity. Integers divided by 0 give 0."""
    def fmax(self, y: ArrayLike) -> Array:
        """The larger value; if one is NaN, the other."""
    def fmin(self, y: ArrayLike) -> Array:
        """The smaller value; if one is NaN, the other."""
    def fmod(self, y: ArrayLike) -> Array:
        """Remainder with the sign of the dividend, as in C. A divisor of 0 gives 0 for integers and NaN for floats."""
    def frac(self) -> Array:
        """Fractional part, with the sign of x."""
    def gather(self, indices: ArrayLike, axis: int = 0) -> Array:
        """One element of x for each index, along an axis; negative indices count from the end."""
    def gcd(self, y: ArrayLike) -> Array:
        """Greatest common divisor of integers; gcd(0, n) is |n|."""
    def ge(self, y: ArrayLike) -> Array:
        """Greater than or equal."""
    def greater_equal(self, y: ArrayLike) -> Array:
        """Greater than or equal."""
    def geglu(self, axis: int = -1) -> Array:
        """Gated unit with gelu over the two halves of an axis."""
    def gelu(self, approximate: Literal['none', 'tanh'] = 'none') -> Array:
        """Gaussian error linear unit, exact or with the common tanh approximation."""
    def gez(self) -> Array:
        """True where zero or positive."""
    def global_avg_pool(self) -> Array:
        """Mean of each channel of [n, channels, ...]."""
    def global_max_pool(self) -> Array:
        """Largest element of each channel of [n, channels, ...]."""
    def glu(self, axis: int = -1) -> Array:
        """Gated linear unit over the two halves of an axis."""
    def group_norm(self, groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05) -> Array:
        """Normalizes each group of channels of [n, channels, ...]; weight and bias are per channel."""
    def gt(self, y: ArrayLike) -> Array:
        """Greater than."""
    def greater(self, y: ArrayLike) -> Array:
        """Greater than."""
    def gtz(self) -> Array:
        """True where positive."""
    def hardshrink(self, lambda_: float = 0.5) -> Array:
        """Sets small values to 0."""
    def hardsigmoid(self) -> Array:
        """Piecewise linear approximation of sigmoid."""
    def hardswish(self) -> Array:
        """silu with hardsigmoid instead of sigmoid."""
    def hardtanh(self, min_val: float = -1.0, max_val: float = 1.0) -> Array:
        """Clamps values to a range, by default [-1, 1]."""
    def heaviside(self, values: ArrayLike | None = None, value: float = 0.0) -> Array:
        """Unit step; its value at 0 may be a tensor that broadcasts with x."""
    def huber_loss(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean', delta: float = 1.0) -> Array:
        """Quadratic for small errors, linear for large ones."""
    def hypot(self, y: ArrayLike) -> Array:
        """Length of a vector, without intermediate overflow."""
    def i0(self) -> Array:
        """Modified Bessel function of the first kind, order 0."""
    def identity(self) -> Array:
        """The value itself, with the same dtype."""
    def index_select(self, indices: ArrayLike, axis: int = 0) -> Array:
        """Selects rows by a vector of indices."""
    def inner(self, b: ArrayLike) -> Array:
        """Products summed over the last axis of both."""
    def instance_norm(self, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05) -> Array:
        """Normalizes each channel of each sample of [n, channels, ...]."""
    def isclose(self, y: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: builtins.bool = False) -> Array:
        """Equal within a tolerance; infinities are equal only to themselves. Integers are compared as float32."""
    def isfinite(self) -> Array:
        """True where neither infinite nor NaN."""
    def isinf(self) -> Array:
        """True where infinite, of either sign."""
    def isnan(self) -> Array:
        """True where not a number."""
    def isneginf(self) -> Array:
        """True where minus infinity."""
    def isposinf(self) -> Array:
        """True where plus infinity."""
    def kl_div(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Divergence of log-probabilities x from probabilities t."""
    def kron(self, b: ArrayLike) -> Array:
        """Kronecker product."""
    def l1_loss(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Mean absolute error."""
    def layer_norm(self, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-05) -> Array:
        """Normalizes each row to mean 0 and variance 1, then applies weight and bias if given."""
    def lcm(self, y: ArrayLike) -> Array:
        """Least common multiple of integers; 0 if one of them is 0."""
    def ldexp(self, exponent: ArrayLike) -> Array:
        """Scales by a power of two without intermediate overflow."""
    def le(self, y: ArrayLike) -> Array:
        """Less than or equal."""
    def less_equal(self, y: ArrayLike) -> Array:
        """Less than or equal."""
    def leaky_relu(self, negative_slope: float = 0.01) -> Array:
        """ReLU with a small slope below 0."""
    def left_shift(self, y: ArrayLike) -> Array:
        """Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount."""
    def bitwise_left_shift(self, y: ArrayLike) -> Array:
        """Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount."""
    def lerp(self, y: ArrayLike, weight: ArrayLike) -> Array:
        """Linear interpolation, exact at both ends."""
    def lez(self) -> Array:
        """True where zero or negative."""
    def lgamma(self) -> Array:
        """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ..."""
    def gammaln(self) -> Array:
        """Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ..."""
    def linear(self, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
        """A dense layer: weight is [out, in]; bias [out] is optional."""
    def log(self) -> Array:
        """Natural logarithm; -inf at 0, NaN below."""
    def log10(self) -> Array:
        """Logarithm to base 10."""
    def log1p(self) -> Array:
        """Logarithm of 1 + x, accurate near 0."""
    def log2(self) -> Array:
        """Logarithm to base 2."""
    def log_sigmoid(self) -> Array:
        """Logarithm of sigmoid, accurate in both tails."""
    def logsigmoid(self) -> Array:
        """Logarithm of sigmoid, accurate in both tails."""
    def log_softmax(self, axis: int = -1) -> Array:
        """Logarithm of softmax, accurate where softmax underflows."""
    def logaddexp(self, y: ArrayLike) -> Array:
        """Logarithm of the sum of exponentials of two numbers, without overflow."""
    def logaddexp2(self, y: ArrayLike) -> Array:
        """Logarithm of the sum of powers of two, without overflow."""
    def logical_and(self, y: ArrayLike) -> Array:
        """Both are not zero."""
    def logical_not(self) -> Array:
        """True where zero."""
    def logical_or(self, y: ArrayLike) -> Array:
        """At least one is not zero."""
    def logical_xor(self, y: ArrayLike) -> Array:
        """Exactly one is not zero."""
    def logit(self, eps: float | None = None) -> Array:
        """Inverse of sigmoid; NaN outside [0, 1] unless eps is given."""
    def logsumexp(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
        """Logarithm of the sum of exponentials, without overflow."""
    def lt(self, y: ArrayLike) -> Array:
        """Less than."""
    def less(self, y: ArrayLike) -> Array:
        """Less than."""
    def ltz(self) -> Array:
        """True where negative."""
    def mac(self, y: ArrayLike, z: ArrayLike) -> Array:
        """Multiply-add."""
    def masked_fill(self, mask: ArrayLike, value: float = 0.0) -> Array:
        """Replaces elements under a mask by a number."""
    def matmul(self, b: ArrayLike) -> Array:
        """Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b."""
    def mm(self, b: ArrayLike) -> Array:
        """Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b."""
    def matrix_power(self, n: int) -> Array:
        """Power of a square matrix."""
    def amax(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
        """Largest element; NaN if any element is NaN."""
    def max_pool1d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
        """Largest element of each window over 1 spatial axis."""
    def max_pool2d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
        """Largest element of each window over 2 spatial axes."""
    def max_pool3d(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1) -> Array:
        """Largest element of each window over 3 spatial axes."""
    def maximum(self, y: ArrayLike) -> Array:
        """The larger value; NaN if either is NaN."""
    def median(self, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
        """Median; the mean of the two middle elements if n is even."""
    def amin(self, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
        """Smallest element; NaN if any element is NaN."""
    def minimum(self, y: ArrayLike) -> Array:
        """The smaller value; NaN if either is NaN."""
    def mish(self) -> Array:
        """A smooth activation that dips below 0."""
    def movedim(self, source: int, destination: int) -> Array:
        """Moves one axis; the others keep their order."""
    def mse_loss(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Mean squared error."""
    def mul(self, y: ArrayLike) -> Array:
        """Product. Integers wrap around."""
    def multiply(self, y: ArrayLike) -> Array:
        """Product; the same as mul."""
    def mv(self, v: ArrayLike) -> Array:
        """Matrix times vector."""
    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
        """Replaces NaN and infinities with numbers."""
    def ndtr(self) -> Array:
        """Cumulative distribution function of the standard normal distribution."""
    def ne(self, y: ArrayLike) -> Array:
        """Not equal; NaN differs from everything."""
    def not_equal(self, y: ArrayLike) -> Array:
        """Not equal; NaN differs from everything."""
    def neg(self) -> Array:
        """Negation. Integers wrap around."""
    def negative(self) -> Array:
        """Negation. Integers wrap around."""
    def nez(self) -> Array:
        """True where not zero."""
    def nll_loss(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean') -> Array:
        """Negative log-likelihood of log-probabilities x [n, classes, ...]; target has class indices."""
    def norm(self, p: float = 2.0, axis: int | Sequence[int] | None = None, keepdims: builtins.bool = False) -> Array:
        """Vector norm of order p: 2 Euclidean, 1 sum of magnitudes, inf largest magnitude, 0 count."""
    def normalize(self, axis: int | Sequence[int] = -1, p: float = 2.0, eps: float = 1e-12) -> Array:
        """Normalizes rows to length 1."""
    def l2_normalize(self, axis: int | Sequence[int] = -1, p: float = 2.0, eps: float = 1e-12) -> Array:
        """Normalizes rows to length 1."""
    def one_hot(self, classes: int, dtype: DTypeLike = 'float32') -> Array:
        """Encodes each index as a row with a single 1; an index out of range gives a row of zeros."""
    def outer(self, b: ArrayLike) -> Array:
        """Every element of a times every element of b."""
    def ger(self, b: ArrayLike) -> Array:
        """Every element of a times every element of b."""
    def pad(self, padding: int | Sequence[int], mode: Literal['constant', 'edge', 'reflect', 'wrap'] = 'constant', value: float = 0.0) -> Array:
        """Adds a border to a tensor: a constant, the edge, a reflection, or the opposite end."""
    def pairwise_distance(self, b: ArrayLike, p: float = 2.0, eps: float = 1e-06, keepdims: builtins.bool = False) -> Array:
        """Distances between corresponding rows."""
    def permute(self, axes: int | Sequence[int]) -> Array:
        """Permutes the axes into the given order."""
    def pixel_shuffle(self, factor: int) -> Array:
        """Rearranges channels into the pixels of a larger image."""
    def pixel_unshuffle(self, factor: int) -> Array:
        """Rearranges pixels into the channels of a smaller image."""
    def positive(self) -> Array:
        """The value itself."""
    def pow(self, exponent: ArrayLike) -> Array:
        """Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1."""
    def power(self, exponent: ArrayLike) -> Array:
        """Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1."""
    def prelu(self, weights: ArrayLike | None = None, weight: float = 0.25) -> Array:
        """ReLU with a learned slope below 0; the weight may be a tensor that broadcasts with x."""
    def quantile(self, q: float, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
        """Quantile q, with linear interpolation."""
    def quantize(self, scale: float, zero_point: int = 0, dtype: Literal['int8', 'uint8'] = 'int8') -> Array:
        """Quantizes floats to 8-bit integers, rounding ties to even and saturating."""
    def quick_gelu(self) -> Array:
        """GELU approximated by a sigmoid."""
    def rad2deg(self) -> Array:
        """Radians to degrees."""
    def degrees(self) -> Array:
        """Radians to degrees."""
    def reciprocal(self) -> Array:
        """Reciprocal; infinite at 0."""
    def relu(self) -> Array:
        """Rectified linear unit."""
    def relu6(self) -> Array:
        """ReLU with an upper limit of 6."""
    def relu_squared(self) -> Array:
        """Square of ReLU."""
    def remainder(self, y: ArrayLike) -> Array:
        """Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats."""
    def mod(self, y: ArrayLike) -> Array:
        """Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats."""
    def repeat_interleave(self, repeats: int, axis: int | None = None) -> Array:
        """Repeats each element."""
    def view(self, shape: int | Sequence[int]) -> Array:
        """The same elements with another shape."""
    def right_shift(self, y: ArrayLike) -> Array:
        """Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every bit."""
    def bitwise_right_shift(self, y: ArrayLike) -> Array:
        """Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every bit."""
    def rms_norm(self, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int | Sequence[int] = -1, eps: float = 1e-06) -> Array:
        """Normalizes each row to root mean square 1."""
    def rope(self, positions: ArrayLike | None = None, base: float = 10000.0, interleaved: builtins.bool = False, offset: float = 0.0) -> Array:
        """Rotary position embedding of [..., positions, width]; positions default to 0, 1, ..."""
    def rotary_embedding(self, positions: ArrayLike | None = None, base: float = 10000.0, interleaved: builtins.bool = False, offset: float = 0.0) -> Array:
        """Rotary position embedding of [..., positions, width]; positions default to 0, 1, ..."""
    def round(self, decimals: int = 0) -> Array:
        """Rounds to nearest, ties to even."""
    def rsqrt(self) -> Array:
        """Reciprocal square root; infinite at 0."""
    def rsub(self, y: ArrayLike, alpha: float = 1.0) -> Array:
        """Difference with the operands reversed and the subtrahend scaled."""
    def scaled_dot_product_attention(self, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
        """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
    def attention(self, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
        """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
    def sdpa(self, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None, causal: builtins.bool = False, scale: float | None = None) -> Array:
        """Attention over [..., rows, width]. A bool mask is true for keys to attend to; a float mask is added to the scores."""
    def scatter(self, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Array:
        """A copy of x with elements replaced. If several updates have the same index, the last one wins."""
    def scatter_add(self, indices: ArrayLike, updates: ArrayLike, axis: int = 0) -> Array:
        """A copy of x with updates added to its elements. Updates with the same index add up."""
    def select(self, axis: int = 0, index: int = 0) -> Array:
        """Selects one row and removes its axis."""
    def selu(self) -> Array:
        """Exponential linear unit with self-normalising constants."""
    def sgn(self) -> Array:
        """Sign; the same as sign for real numbers."""
    def sigmoid(self) -> Array:
        """Logistic function."""
    def expit(self) -> Array:
        """Logistic function."""
    def sigmoid_accurate(self) -> Array:
        """Logistic function; the same as sigmoid."""
    def sign(self) -> Array:
        """Sign; NaN gives NaN."""
    def signbit(self) -> Array:
        """True where the sign bit is set, including for -0.0."""
    def silu(self) -> Array:
        """Sigmoid linear unit."""
    def sin(self) -> Array:
        """Sine of an angle in radians."""
    def sinc(self) -> Array:
        """Normalised sinc: 1 at 0 and 0 at every other integer."""
    def sinh(self) -> Array:
        """Hyperbolic sine."""
    def slice(self, start: int | Sequence[int], stop: int | Sequence[int] | None = None, step: int | Sequence[int] | None = None, axis: int | Sequence[int] | None = None) -> Array:
        """Slices a tensor by Python's rules. Also x[1:3, ::2]."""
    def smooth_l1_loss(self, target: ArrayLike, reduction: Literal['mean', 'sum', 'none'] = 'mean', beta: float = 1.0) -> Array:
        """Absolute error, smoothed near 0."""
    def softmax(self, axis: int = -1) -> Array:
        """Exponentials that sum to 1 along an axis."""
    def softmin(self, axis: int = -1) -> Array:
        """Softmax of -x."""
    def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> Array:
        """Smooth ReLU; x itself where beta·x exceeds the threshold."""
    def softshrink(self, lambda_: float = 0.5) -> Array:
        """Shrinks values towards 0; small values become 0."""
    def softsign(self) -> Array:
        """Smooth function from -1 to 1 that approaches its limits slowly."""
    def split(self, sections: int | Sequence[int], axis: int = 0) -> list[Array]:
        """Splits a tensor along an axis; one result per part."""
    def sqrt(self) -> Array:
        """Square root; NaN below 0."""
    def square(self) -> Array:
        """Square. Integers wrap around."""
    def squared_difference(self, y: ArrayLike) -> Array:
        """Square of the difference."""
    def sub(self, y: ArrayLike) -> Array:
        """Difference. Integers wrap around."""
    def subalpha(self, y: ArrayLike, alpha: float = 1.0) -> Array:
        """Difference with the second operand scaled."""
    def subtract(self, y: ArrayLike) -> Array:
        """Difference; the same as sub."""
    def swapaxes(self, axis1: int = 0, axis2: int = 1) -> Array:
        """Swaps two axes."""
    def swiglu(self, axis: int = -1) -> Array:
        """Gated unit with silu over the two halves of an axis."""
    def swish(self) -> Array:
        """The same as silu."""
    def take_along_axis(self, indices: ArrayLike, axis: int = -1) -> Array:
        """Like gather, with the other axes broadcast."""
    def tan(self) -> Array:
        """Tangent of an angle in radians."""
    def tanh(self) -> Array:
        """Hyperbolic tangent."""
    def tanhshrink(self) -> Array:
        """x minus tanh x, accurate near 0."""
    def tensordot(self, b: ArrayLike, axes: int = 2) -> Array:
        """Products summed over several axes."""
    def threshold(self, threshold: float = 0.0, value: float = 0.0) -> Array:
        """Replaces values that do not exceed a threshold."""
    def tile(self, reps: int | Sequence[int]) -> Array:
        """Repeats the whole tensor along its axes."""
    def top_k(self, k: int, axis: int = -1, largest: builtins.bool = True) -> list[Array]:
        """The k largest elements in order, and their indices. Two results."""
    def topk(self, k: int, axis: int = -1, largest: builtins.bool = True) -> list[Array]:
        """The k largest elements in order, and their indices. Two results."""
    def trace(self, offset: int = 0) -> Array:
        """Sum of a diagonal of the last two axes."""
    def true_divide(self, y: ArrayLike) -> Array:
        """Quotient; a float even for integers."""
    def trunc(self) -> Array:
        """Rounds towards zero."""
    def fix(self) -> Array:
        """Rounds towards zero."""
    def trunc_div(self, y: ArrayLike) -> Array:
        """Quotient rounded towards zero. Integers divided by 0 give 0."""
    def unsqueeze(self, axis: int) -> Array:
        """Inserts an axis with extent 1."""
    def upsample_nearest(self, factor: int) -> Array:
        """Upsamples every spatial axis by repeating elements."""
    def vecdot(self, b: ArrayLike, axis: int = -1) -> Array:
        """Inner products of the vectors along an axis."""
    def where(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Selects per element; a condition that is not bool is true where it is not 0."""
    def xlog1py(self, y: ArrayLike) -> Array:
        """Product with log1p; 0 where x is 0 and y is not NaN."""
    def xlogy(self, y: ArrayLike) -> Array:
        """Product with a logarithm; 0 where x is 0 and y is not NaN."""

class _Lease:
    def __init__(self, device: str, timeout: Optional[float], priority: int, on_wait: Optional[Callable[..., object]]) -> None: ...
    def acquire(self) -> None: ...
    def release(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def held(self) -> bool: ...
    @property
    def device(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def should_yield(self) -> bool: ...

dtypes: tuple[DType, ...]
ops: dict[str, Callable[..., Array]]

def _asarray(object: Any, dtype: DTypeLike, copy: Optional[bool]) -> Array: ...
def _from_dlpack(object: Any, copy: Optional[bool]) -> Array: ...
def _from_bytes(data: bytes, dtype: DTypeLike, shape: Sequence[int]) -> Array: ...
def _to_bytes(array: Array) -> bytes: ...
def _nonzero(array: Array) -> list[Array]: ...
def _load_npy(path: str) -> Array: ...
def _find(request: str) -> str: ...
def _default_device() -> str: ...
def _config_get(name: str) -> str: ...

def dtype(like: DTypeLike) -> DType: ...
def promote(a: DTypeLike, b: DTypeLike) -> DType: ...
def free_names(source: str) -> list[str]: ...
def __getattr__(name: str) -> Any: ...
