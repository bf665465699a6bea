#include "model/onnx/import/weights.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "array/io/byte_source.h"
#include "model/onnx/model_watch.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

std::uint64_t stored_size(const TensorProto& tensor) { return storage_bytes(held_as(tensor.type), shape_of(tensor)); }

}  // namespace

void ModelFile::reserve(std::size_t size) {
  ModelWatch::tell_keeps(size);
  size_ = size;
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::resource_exhausted, fmt::format("no memory for a model of {} bytes", size));
  data_ = static_cast<std::byte*>(memory);
}

ModelFile::ModelFile(const std::filesystem::path& file) {
  const std::unique_ptr<ByteSource> source = open_source(file);
  reserve(source->size());
  try {
    source->read(0, {data_, size_});
  } catch (...) {
    if (data_) ::munmap(data_, size_);
    throw;
  }
}

ModelFile::ModelFile(Bytes bytes) {
  reserve(bytes.size());
  if (size_ > 0) std::memcpy(data_, bytes.data(), size_);
}

ModelFile::~ModelFile() {
  if (data_) ::munmap(data_, size_);
}

void ModelFile::release(Bytes part) noexcept {
  if (part.empty() || part.data() < data_ || part.data() + part.size() > data_ + size_) return;
  // Whole pages only: their edges hold other fields.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (static_cast<std::size_t>(part.data() - data_) + page - 1) / page * page;
  const std::size_t end = static_cast<std::size_t>(part.data() + part.size() - data_) / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

int Weights::find(const TensorProto& tensor) {
  const auto [found, is_new] = places_.try_emplace(&tensor, static_cast<int>(arrays_.size()));
  if (is_new) {
    try {
      ModelWatch::tell_keeps(stored_size(tensor));
      arrays_.push_back(std::make_unique<HostArray>(array_of(tensor, external_)));
    } catch (...) {
      places_.erase(found);
      throw;
    }
    file_.release(tensor.raw);
  }
  return found->second;
}

HostArray Weights::array(const TensorProto& tensor) {
  const std::lock_guard lock(mutex_);
  return *arrays_[static_cast<std::size_t>(find(tensor))];
}

int Weights::place(const TensorProto& tensor) {
  const std::lock_guard lock(mutex_);
  return find(tensor);
}

const HostArray& Weights::at(int place) const {
  const std::lock_guard lock(mutex_);
  return *arrays_[static_cast<std::size_t>(place)];
}

int Weights::converted(int place, DType to) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = converted_.try_emplace({place, to}, static_cast<int>(arrays_.size()));
  if (is_new) {
    try {
      const HostArray& from = *arrays_[static_cast<std::size_t>(place)];
      ModelWatch::tell_keeps(storage_bytes(to, from.shape()));
      arrays_.push_back(std::make_unique<HostArray>(from.cast(to)));
    } catch (...) {
      converted_.erase(found);
      throw;
    }
  }
  return found->second;
}

int Weights::made(const std::vector<const void*>& sources, int part, const std::function<HostArray()>& make) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = made_.find({sources, part}); found != made_.end()) return found->second;
  }
  auto array = std::make_unique<HostArray>(make());  // reads other weights, so without the mutex
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = made_.try_emplace({sources, part}, static_cast<int>(arrays_.size()));
  if (is_new) {
    ModelWatch::tell_keeps(array->bytes());
    arrays_.push_back(std::move(array));
  }
  return found->second;
}

std::size_t Weights::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& array : arrays_) sum += array->bytes();
  return sum;
}

std::size_t Weights::count() const {
  const std::lock_guard lock(mutex_);
  return arrays_.size();
}

}  // namespace tenon::onnx
