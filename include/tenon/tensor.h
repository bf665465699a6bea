// Tensor: a lazy array that is computed when its value is needed, on any device.
//
// Applying an op computes nothing: a Tensor is an expression until eval(), to_host(), item() or printing needs its value. The
// whole expression then becomes one program and runs in one lease. Shapes and dtypes are known at once: an error is thrown at the
// line that causes it, naming the op and the shapes.
//
//   Tensor a = rand({32, 32}), b = rand({32, 32});
//   Tensor y = gelu(matmul(a, b) + 0.5f);                // touches no device
//   std::cout << y[{0, Slice(0, 5)}] << '\n';            // evaluates that expression
//   eval(y, sum(y));                                     // several results, one program
//   Tensor z = (y * y).on("gpu");                        // a device request: z is evaluated on a GPU
//
// A number combined with a tensor takes its dtype: x * 0.5 has x's dtype, whatever the C++ type of the number. On its own it is
// int64 or float32. Every op of the catalogue is a function in functions.h.
//
// Lifetime: a value. Copies share the expression and its result. A tensor may be destroyed at any time, from any thread, after
// its device and its manager, and at exit. Results move to host memory before their device closes; only a result on a device
// that is lost is gone (reading it is data_loss).
// Thread safety: different Tensors, including copies of each other, may be used concurrently; a tensor that two threads evaluate
// is computed once. One Tensor object must not be modified by several threads at once.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/array.h"
#include "tenon/array/dlpack.h"
#include "tenon/manager.h"

namespace tenon {

class Index;
struct TensorNode;  // src/tensor/

template <class T>
concept Number = std::is_arithmetic_v<T>;

class Tensor {
 public:
  Tensor() = default;  // none: an omitted optional input

  // A number that takes the dtype of the other operand (except bool, which has its own).
  template <Number N>
  Tensor(N value);
  Tensor(HostArray array);
  // Copies |values|; a vector becomes a tensor of one axis.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    return HostArray::from<T>(shape, values);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return from(std::span<const T>(values), Shape{static_cast<std::int64_t>(values.size())});
  }
  // Takes ownership of |tensor|, without a copy if its layout allows (dlpack.h). A tensor on a CUDA device is used there in
  // place, after all work submitted to the default stream so far; the device is opened for it. Throws unimplemented if the device
  // is not one of this process (the setting isolate), or if the tensor is not row-major, not aligned to 256 bytes, or of bool.
  static Tensor from_dlpack(dlpack::ManagedTensor* tensor);
  static Tensor from_dlpack(dlpack::ManagedTensorVersioned* tensor);
  // Whether tensors at |place|, which is not the CPU, can be used in place, unless their layout prevents it. Opens nothing.
  static bool can_use_in_place(const dlpack::Device& place);

  bool is_none() const noexcept { return node_ == nullptr; }
  // These and all functions below throw failed_precondition for none.
  const Shape& shape() const;
  DType dtype() const;
  int rank() const { return shape().rank(); }
  std::int64_t elements() const { return shape().elements(); }

  // --- The value. Evaluates the tensor if necessary and blocks until it is done; throws the errors of the device ---
  const Tensor& eval(const RunOptions& options = {}) const;
  bool is_evaluated() const;
  HostArray to_host() const;
  // The only element, converted like HostArray::cast. Throws invalid_argument unless there is exactly one.
  template <Number T>
  T item() const;
  // All elements in row-major order, converted.
  template <class T>
  std::vector<T> to_vector() const;
  dlpack::ManagedTensor* to_dlpack() const;
  dlpack::ManagedTensorVersioned* to_dlpack_versioned() const;
  // Where other libraries of this process can use the value in place: a CUDA device that this process has open, else the CPU.
  dlpack::Device dlpack_device() const;
  // In place on dlpack_device(), if that is not the CPU; else null. Work submitted to |stream| (1: the default stream, -1: none,
  // others: handles) comes after what produced the value. The receiver must not write, and may keep the tensor after the device
  // has closed.
  dlpack::ManagedTensor* lend_dlpack(std::int64_t stream) const;
  dlpack::ManagedTensorVersioned* lend_dlpack_versioned(std::int64_t stream) const;

  // --- Where ---
  // The same tensor with a device request: it is evaluated on |device| ("gpu", "cuda:0"), and so are tensors computed from it
  // that have no request of their own. Touches no device.
  Tensor on(std::string_view device) const;
  // Moves the value to |device| now and requests that device; "host" moves it to host memory without a request.
  Tensor to(std::string_view device) const;
  // The id of a device that has the value; "" if the value is only in host memory or not evaluated.
  std::string device() const;

  // --- Indexing: x[0], x[{0, Slice(1, 5), ellipsis, new_axis}], x[indices] ---
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;

  Tensor reshape(const Shape& shape) const;
  Tensor cast(DType dtype) const;
  Tensor T() const;  // axes in reverse order

  // --- Operators: elementwise, with broadcasting ---
  friend Tensor operator+(const Tensor& a, const Tensor& b);
  friend Tensor operator-(const Tensor& a, const Tensor& b);
  friend Tensor operator*(const Tensor& a, const Tensor& b);
  friend Tensor operator/(const Tensor& a, const Tensor& b);  // a float for integers, as in Python
  friend Tensor operator%(const Tensor& a, const Tensor& b);  // the sign of b, as in Python
  friend Tensor operator&(const Tensor& a, const Tensor& b);
  friend Tensor operator|(const Tensor& a, const Tensor& b);
  friend Tensor operator^(const Tensor& a, const Tensor& b);
  friend Tensor operator<<(const Tensor& a, const Tensor& b);
  friend Tensor operator>>(const Tensor& a, const Tensor& b);
  friend Tensor operator==(const Tensor& a, const Tensor& b);  // a tensor of bools
  friend Tensor operator!=(const Tensor& a, const Tensor& b);
  friend Tensor operator<(const Tensor& a, const Tensor& b);
  friend Tensor operator<=(const Tensor& a, const Tensor& b);
  friend Tensor operator>(const Tensor& a, const Tensor& b);
  friend Tensor operator>=(const Tensor& a, const Tensor& b);
  friend Tensor operator-(const Tensor& a);
  friend Tensor operator~(const Tensor& a);
  friend Tensor operator!(const Tensor& a);
  Tensor& operator+=(const Tensor& b) { return *this = *this + b; }
  Tensor& operator-=(const Tensor& b) { return *this = *this - b; }
  Tensor& operator*=(const Tensor& b) { return *this = *this * b; }
  Tensor& operator/=(const Tensor& b) { return *this = *this / b; }

  // Prints like NumPy: rows in brackets, large arrays abbreviated.
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

 private:
  friend struct TensorAccess;  // src/tensor/
  explicit Tensor(std::shared_ptr<TensorNode> node) noexcept : node_(std::move(node)) {}
  static Tensor literal(std::int64_t value);
  static Tensor literal(double value);
  HostArray one_element(DType as) const;

  std::shared_ptr<TensorNode> node_;
};

// A range of an axis by Python's rules: negative indices count from the end, out-of-range indices are clipped.
struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;

  Slice() = default;  // the whole axis
  Slice(std::optional<std::int64_t> first, std::optional<std::int64_t> end, std::int64_t by = 1)
      : start(first),
        stop(end),
        step(by) {}
  static Slice from(std::int64_t start) { return {start, std::nullopt}; }
  static Slice until(std::int64_t stop) { return {std::nullopt, stop}; }
  static Slice every(std::int64_t step) { return {std::nullopt, std::nullopt, step}; }
};
struct Ellipsis {};
struct NewAxis {};
inline constexpr Ellipsis ellipsis;  // all axes that are not indexed otherwise
inline constexpr NewAxis new_axis;   // inserts an axis of extent 1

// One index in x[...]: a number, a Slice, ellipsis, new_axis, or a tensor of integers, which selects along its axis.
class Index {
 public:
  Index(std::integral auto place) : value_(static_cast<std::int64_t>(place)) {}
  Index(Slice slice) : value_(slice) {}
  Index(Ellipsis dots) : value_(dots) {}
  Index(NewAxis axis) : value_(axis) {}
  Index(Tensor indices) : value_(std::move(indices)) {}

  using Value = std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Tensor>;
  const Value& value() const noexcept { return value_; }

 private:
  Value value_;
};

// Nested numbers in braces, the argument of tensor().
class NestedNumbers {
 public:
  NestedNumbers(bool value) : value_(value) {}
  NestedNumbers(std::integral auto value) : value_(static_cast<std::int64_t>(value)) {}
  NestedNumbers(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  NestedNumbers(std::initializer_list<NestedNumbers> items) : value_(std::vector<NestedNumbers>(items)) {}

  using Value = std::variant<bool, std::int64_t, double, std::vector<NestedNumbers>>;
  const Value& value() const noexcept { return value_; }

 private:
  Value value_;
};

// tensor({{1, 2}, {3, 4}}): int64 if all values are integers, bool if all are bools, else float32; or |dtype|. Throws
// invalid_argument if rows differ in length.
Tensor tensor(const NestedNumbers& values, std::optional<DType> dtype = std::nullopt);

// The report of an evaluation.
struct Evaluation {
  DeviceInfo device;  // of the last program; empty if there was nothing to do
  Timeline timeline;
  int programs = 0;
};

// Evaluates all of |tensors| together as one program; shared subexpressions are computed once. There are several programs only if
// the tensors request different devices or are too large for one. |options|.device other than "auto" overrides every request.
Evaluation eval(std::span<const Tensor> tensors, const RunOptions& options = {});
template <std::same_as<Tensor>... Tensors>
Evaluation eval(const Tensors&... tensors) {
  const Tensor all[] = {tensors...};
  return eval(std::span<const Tensor>(all));
}

// Within its scope, this thread's tensors are evaluated by |manager| instead of process_manager(). Scopes can be nested.
class UseManager {
 public:
  explicit UseManager(DeviceManager& manager) noexcept;
  ~UseManager();
  UseManager(const UseManager&) = delete;
  UseManager& operator=(const UseManager&) = delete;

 private:
  DeviceManager* before_;
};

// Not T: g++ 12 takes that for the member function of this name.
template <Number N>
Tensor::Tensor(N value)
    : Tensor([value] {
        if constexpr (std::same_as<N, bool>)
          return Tensor(HostArray::full(DType::boolean, {}, value ? 1 : 0));
        else if constexpr (std::floating_point<N>)
          return literal(static_cast<double>(value));
        else if constexpr (std::unsigned_integral<N> && sizeof(N) == 8)
          return std::in_range<std::int64_t>(value)
                     ? literal(static_cast<std::int64_t>(value))
                     : Tensor(HostArray::from<std::uint64_t>({}, {static_cast<std::uint64_t>(value)}));
        else
          return literal(static_cast<std::int64_t>(value));
      }()) {}

template <Number T>
T Tensor::item() const {
  if constexpr (std::same_as<T, bool>)
    return one_element(DType::boolean).view<std::uint8_t>()[0] != 0;
  else if constexpr (std::floating_point<T>)
    return static_cast<T>(one_element(DType::f64).view<double>()[0]);
  else if constexpr (std::unsigned_integral<T>)
    return static_cast<T>(
        std::min<std::uint64_t>(one_element(DType::u64).view<std::uint64_t>()[0], std::numeric_limits<T>::max()));
  else
    return static_cast<T>(std::clamp<std::int64_t>(one_element(DType::i64).view<std::int64_t>()[0], std::numeric_limits<T>::min(),
                                                   std::numeric_limits<T>::max()));
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const HostArray array = to_host().cast(dtype_of<T>);
  const std::span<const T> values = array.view<T>();
  return {values.begin(), values.end()};
}

}  // namespace tenon
