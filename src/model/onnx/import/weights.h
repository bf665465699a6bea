// ModelFile and Weights: the bytes of a model, and its tensors as arrays that every program of the model shares.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "model/onnx/proto/model_proto.h"
#include "model/onnx/tensor_data.h"

namespace tenon::onnx {

// The bytes of a file in memory of their own. The pages of tensors that have been copied out are given back, so a model is not
// in memory twice.
class ModelFile {
 public:
  explicit ModelFile(const std::filesystem::path& file);
  explicit ModelFile(Bytes bytes);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  Bytes bytes() const noexcept { return {data_, size_}; }
  // |part| of bytes() is not read any more; its contents are undefined from now on.
  void release(Bytes part) noexcept;

 private:
  void reserve(std::size_t size);
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Tensors of up to this many elements are constants of a program; larger ones are inputs that stay on the device.
inline constexpr std::int64_t kLargestConstant = 64;

// Thread safety: all calls may run concurrently.
class Weights {
 public:
  Weights(ModelFile& file, ExternalData external) : file_(file), external_(std::move(external)) {}

  // The array of |tensor|, read on first use.
  HostArray array(const TensorProto& tensor);
  // Its place; the same for the same tensor.
  int place(const TensorProto& tensor);
  const HostArray& at(int place) const;
  // The place of the array at |place| in another type, converted on first use.
  int converted(int place, DType to);
  // The place of the array that |make| makes from |sources|, which are parts of the model's file; made on first use.
  int made(const std::vector<const void*>& sources, int part, const std::function<HostArray()>& make);
  std::size_t bytes() const;
  std::size_t count() const;

 private:
  int find(const TensorProto& tensor);  // with the mutex held

  ModelFile& file_;
  const ExternalData external_;
  mutable std::mutex mutex_;
  std::map<const TensorProto*, int> places_;
  std::map<std::pair<int, DType>, int> converted_;
  std::map<std::pair<std::vector<const void*>, int>, int> made_;
  std::vector<std::unique_ptr<HostArray>> arrays_;
};

}  // namespace tenon::onnx
