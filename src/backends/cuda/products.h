// Products: matrix products by cuBLASLt.
//
// f32 products use full f32 without TF32. 16-bit operands are accumulated in f32. The library is loaded, and its handle and
// workspace are created, with the first product; the algorithm is selected once for each kind of product.
// Thread safety: find() may run concurrently; enqueue() is called with the context's queue held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/api.h"
#include "backends/cuda/memory/memory_pool.h"
#include "hal/kernel_plan.h"
#include "tenon/backend/memory_budget.h"

namespace tenon::cuda {

class Context;

// The locations of the operands of one run.
struct ProductPointers {
  DevicePointer a = 0, b = 0, result = 0, bias = 0;
};

class Product {
 public:
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

 private:
  friend class Products;
  Product(const BlasLibrary& library, const MatMulStep& step);

  const BlasLibrary& library_;
  RawMatmul matmul_ = nullptr;
  RawLayout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  MatmulAlgorithm algorithm_{};
  std::size_t workspace_bytes_ = 0;
  bool is_double_ = false, has_bias_ = false;
};

class Products {
 public:
  static constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{32} << 20;

  explicit Products(Context& context) : context_(context) {}

  // Null if the library is not installed or does not support the product.
  std::shared_ptr<Product> find(const MatMulStep& step);
  void enqueue(Product& product, const ProductPointers& where, RawStream stream);
  void close(bool is_lost) noexcept;

 private:
  bool prepare();
  bool choose(Product& product, const MatMulStep& step);

  Context& context_;
  std::mutex mutex_;
  const BlasLibrary* library_ = nullptr;
  bool is_prepared_ = false;
  RawBlas handle_ = nullptr;
  MemoryPool::Block workspace_;
  MemoryBudget::Share workspace_share_;
  std::map<std::string, std::weak_ptr<Product>> known_;
};

}  // namespace tenon::cuda
