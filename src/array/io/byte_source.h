// ByteSource: bytes of known size that are read in pieces; and atomic writing of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace tenon {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const noexcept = 0;
  // Fills |out| from |offset|; the caller ensures offset + out.size() <= size(). Throws data_loss if the source has
  // become shorter.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // Its name in messages: a file name, or "npy data".
  virtual const std::string& label() const noexcept = 0;
};

// Bytes in memory, which must outlive the source.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::span<const std::byte> bytes, std::string label) : bytes_(bytes), label_(std::move(label)) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  const std::string& label() const noexcept override { return label_; }

 private:
  std::span<const std::byte> bytes_;
  std::string label_;
};

// A regular file is read in pieces; anything else (a pipe) is first read to its end, up to a quarter of memory. Throws
// not_found, permission_denied, and invalid_argument for a directory.
std::unique_ptr<ByteSource> open_source(const std::filesystem::path& file);

// Writes |parts| one after the other. A regular or new file appears complete or not at all; a device or pipe is written
// to directly.
void write_file(const std::filesystem::path& file, std::span<const std::span<const std::byte>> parts);

}  // namespace tenon
