#include "backends/cuda/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cuda/context.h"
#include "backends/cuda/libraries.h"
#include "base/log.h"

namespace tenon::cuda {
namespace {

std::optional<DataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return kR32F;
    case DType::f64: return kR64F;
    case DType::f16: return kR16F;
    case DType::bf16: return kR16BF;
    default: return std::nullopt;
  }
}

bool is_possible(const MatMulStep& step) {
  if (step.m < 1 || step.n < 1 || step.k < 1 || step.batches < 1) return false;
  if (step.batches > std::numeric_limits<std::int32_t>::max()) return false;
  if (step.a.stored != step.b.stored) return false;
  if (step.has_bias && step.bias.stored != step.result.stored && step.bias.stored != step.a.stored) return false;
  if (step.compute == DType::f64)
    return step.a.stored == DType::f64 && step.result.stored == DType::f64 && !step.has_bias &&
           step.activation == MatMulStep::Activation::none;
  if (step.compute != DType::f32) return false;
  if (step.a.stored == DType::f32) return step.result.stored == DType::f32;
  if (step.a.stored != DType::f16 && step.a.stored != DType::bf16) return false;
  return step.result.stored == DType::f32 || step.result.stored == step.a.stored;
}

// A row-major matrix read in the library's column-major order is its own transpose.
bool is_transposed(const MatrixOperand& operand) { return operand.column_stride != 1; }
std::int64_t leading(const MatrixOperand& operand) { return is_transposed(operand) ? operand.column_stride : operand.row_stride; }

// The alignment of an operand; blocks start at multiples of 256.
std::uint32_t alignment(const MatrixOperand& operand) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(operand.offset) * element_bytes(operand.stored);
  std::uint32_t multiple = 256;
  while (bytes % multiple != 0) multiple /= 2;
  return multiple;
}

std::string key_of(const MatMulStep& step) {
  const auto text = [](const MatrixOperand& o) {
    return fmt::format("{}/{}/{}/{}/{}", static_cast<int>(o.stored), alignment(o), o.batch_stride, o.row_stride, o.column_stride);
  };
  return fmt::format("{}x{}x{}x{} {} {} {} {} {} {}", step.batches, step.m, step.n, step.k, static_cast<int>(step.compute),
                     text(step.a), text(step.b), text(step.result), step.has_bias ? text(step.bias) : "",
                     static_cast<int>(step.activation));
}

std::uint32_t epilogue(const MatMulStep& step) {
  std::uint32_t bits = 0;
  if (step.has_bias) bits |= kEpilogueBias;
  if (step.activation == MatMulStep::Activation::relu) bits |= kEpilogueRelu;
  return bits == 0 ? static_cast<std::uint32_t>(kEpilogueNone) : bits;
}

}  // namespace

// result^T = b^T a^T: in columns the result's rows are what the library calls columns, and its bias runs along them.
Product::Product(const BlasLibrary& library, const MatMulStep& step)
    : library_(library),
      is_double_(step.compute == DType::f64),
      has_bias_(step.has_bias) {
  const auto must = [](int status) {
    if (status != 0) throw Error(ErrorCode::internal, fmt::format("cuBLASLt refused to describe a product (status {})", status));
  };
  must(library_.matmul_create(&matmul_, is_double_ ? kCompute64F : kCompute32F, is_double_ ? kR64F : kR32F));
  const std::int32_t flip_first = is_transposed(step.b), flip_second = is_transposed(step.a);
  must(library_.matmul_set(matmul_, kTransposeA, &flip_first, sizeof(flip_first)));
  must(library_.matmul_set(matmul_, kTransposeB, &flip_second, sizeof(flip_second)));
  const std::uint32_t ending = epilogue(step);
  must(library_.matmul_set(matmul_, kEpilogue, &ending, sizeof(ending)));
  if (has_bias_) {
    const std::int32_t type = *data_type(step.bias.stored);
    must(library_.matmul_set(matmul_, kBiasDataType, &type, sizeof(type)));
  }
  const auto layout = [&](RawLayout& into, const MatrixOperand& operand, std::int64_t rows, std::int64_t columns) {
    if (is_transposed(operand)) std::swap(rows, columns);
    must(library_.layout_create(&into, *data_type(operand.stored), static_cast<std::uint64_t>(rows),
                                static_cast<std::uint64_t>(columns), std::max(leading(operand), rows)));
    if (step.batches == 1) return;
    const auto count = static_cast<std::int32_t>(step.batches);
    must(library_.layout_set(into, kBatchCount, &count, sizeof(count)));
    must(library_.layout_set(into, kBatchStride, &operand.batch_stride, sizeof(operand.batch_stride)));
  };
  layout(first_, step.b, step.n, step.k);
  layout(second_, step.a, step.k, step.m);
  layout(result_, step.result, step.n, step.m);
}

Product::~Product() {
  for (const RawLayout layout : {first_, second_, result_})
    if (layout) library_.layout_destroy(layout);
  if (matmul_) library_.matmul_destroy(matmul_);
}

bool Products::prepare() {
  if (is_prepared_) return handle_ != nullptr;
  is_prepared_ = true;
  library_ = blas_library();
  if (!library_) return false;
  if (const int status = library_->create(&handle_); status != 0) {
    logging::warn("{}: cuBLASLt does not start (status {}); products are generated kernels", context_.card().id, status);
    handle_ = nullptr;
    return false;
  }
  Context::Memory memory = context_.allocate(kWorkspaceBytes);
  workspace_ = memory.block;
  workspace_share_ = std::move(memory.share);
  return true;
}

std::shared_ptr<Product> Products::find(const MatMulStep& step) {
  if (!is_possible(step)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!prepare()) return nullptr;
  std::weak_ptr<Product>& known = known_[key_of(step)];
  if (std::shared_ptr<Product> product = known.lock()) return product;
  std::shared_ptr<Product> product(new Product(*library_, step));
  if (!choose(*product, step)) return nullptr;
  known = product;
  return product;
}

bool Products::choose(Product& product, const MatMulStep& step) {
  RawPreference preference = nullptr;
  if (library_->preference_create(&preference) != 0) return false;
  const auto set = [&](PreferenceAttribute attribute, const auto& value) {
    library_->preference_set(preference, attribute, &value, sizeof(value));
  };
  set(kMaxWorkspaceBytes, kWorkspaceBytes);
  set(kAlignmentA, alignment(step.b));
  set(kAlignmentB, alignment(step.a));
  set(kAlignmentC, alignment(step.result));
  set(kAlignmentD, alignment(step.result));
  if (product.has_bias_) {
    // The address itself is set at each run; only its alignment matters here.
    const void* const somewhere = reinterpret_cast<const void*>(std::uintptr_t{alignment(step.bias)});
    library_->matmul_set(product.matmul_, kBiasPointer, &somewhere, sizeof(somewhere));
  }
  MatmulHeuristic best{};
  int found = 0;
  const int status = library_->heuristic(handle_, product.matmul_, product.first_, product.second_, product.result_,
                                         product.result_, preference, 1, &best, &found);
  library_->preference_destroy(preference);
  if (status != 0 || found < 1 || best.state != 0 || best.workspace_bytes > kWorkspaceBytes) return false;
  product.algorithm_ = best.algorithm;
  product.workspace_bytes_ = best.workspace_bytes;
  return true;
}

void Products::enqueue(Product& product, const ProductPointers& where, RawStream stream) {
  const auto pointer = [](DevicePointer address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); };
  if (product.has_bias_) {
    const void* const bias = pointer(where.bias);
    library_->matmul_set(product.matmul_, kBiasPointer, &bias, sizeof(bias));
  }
  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const void* const alpha = product.is_double_ ? static_cast<const void*>(&one) : &one_f32;
  const void* const beta = product.is_double_ ? static_cast<const void*>(&zero) : &zero_f32;
  const int status =
      library_->matmul(handle_, product.matmul_, alpha, pointer(where.b), product.first_, pointer(where.a), product.second_, beta,
                       pointer(where.result), product.result_, pointer(where.result), product.result_, &product.algorithm_,
                       pointer(workspace_.address), product.workspace_bytes_, stream);
  if (status == 0) return;
  // The library hides the driver's error; the stream reports it.
  context_.wait();
  throw Error(ErrorCode::internal, fmt::format("{}: cuBLASLt failed with status {}", context_.card().id, status));
}

void Products::close(bool is_lost) noexcept {
  const std::lock_guard lock(mutex_);
  if (handle_ && !is_lost) library_->destroy(handle_);
  handle_ = nullptr;
  workspace_share_ = {};
}

}  // namespace tenon::cuda
