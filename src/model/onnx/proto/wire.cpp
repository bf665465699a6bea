#include "model/onnx/proto/wire.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "tenon/error.h"

namespace tenon::onnx {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

void WireReader::fail(std::string_view problem) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("ONNX {}: {}", what_, problem), "the file is damaged or not an ONNX file");
}

std::uint64_t WireReader::varint(Bytes& from) const {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    if (i >= from.size()) fail("a number is cut off");
    const auto byte = static_cast<std::uint64_t>(from[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      from = from.subspan(i + 1);
      return value;
    }
  }
  fail("a number has more than 64 bits");
}

bool WireReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint(rest_);
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) fail("a field number is out of range");
  field_ = static_cast<int>(key >> 3);
  switch (key & 7) {
    case 0:
      wire_ = Wire::varint;
      number_ = varint(rest_);
      return true;
    case 1:
      wire_ = Wire::fixed64;
      if (rest_.size() < 8) fail("a number is cut off");
      number_ = load<std::uint64_t>(rest_.data());
      rest_ = rest_.subspan(8);
      return true;
    case 2: {
      wire_ = Wire::bytes;
      const std::uint64_t size = varint(rest_);
      if (size > rest_.size()) fail(fmt::format("field {} has {} bytes, but only {} are left", field_, size, rest_.size()));
      payload_ = rest_.first(size);
      rest_ = rest_.subspan(size);
      return true;
    }
    case 5:
      wire_ = Wire::fixed32;
      if (rest_.size() < 4) fail("a number is cut off");
      number_ = load<std::uint32_t>(rest_.data());
      rest_ = rest_.subspan(4);
      return true;
    default: fail(fmt::format("field {} has the unknown wire type {}", field_, key & 7));
  }
}

void WireReader::expect(Wire wire) const {
  if (wire_ != wire) fail(fmt::format("field {} has the wrong wire type", field_));
}

std::int64_t WireReader::integer() const {
  expect(Wire::varint);
  return static_cast<std::int64_t>(number_);
}

float WireReader::real() const {
  expect(Wire::fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(number_));
}

Bytes WireReader::bytes() const {
  expect(Wire::bytes);
  return payload_;
}

std::string_view WireReader::text() const {
  const Bytes all = bytes();
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

void WireReader::append(std::vector<std::int64_t>& out) const {
  if (wire_ == Wire::varint) {
    out.push_back(static_cast<std::int64_t>(number_));
    return;
  }
  Bytes packed = bytes();
  while (!packed.empty()) out.push_back(static_cast<std::int64_t>(varint(packed)));
}

void WireReader::append(std::vector<float>& out) const {
  if (wire_ == Wire::fixed32) {
    out.push_back(real());
    return;
  }
  const Bytes packed = bytes();
  if (packed.size() % 4 != 0) fail("packed floats are cut off");
  const std::size_t before = out.size();
  out.resize(before + packed.size() / 4);
  if (!packed.empty()) std::memcpy(out.data() + before, packed.data(), packed.size());
}

void WireReader::append(std::vector<double>& out) const {
  if (wire_ == Wire::fixed64) {
    out.push_back(std::bit_cast<double>(number_));
    return;
  }
  const Bytes packed = bytes();
  if (packed.size() % 8 != 0) fail("packed doubles are cut off");
  const std::size_t before = out.size();
  out.resize(before + packed.size() / 8);
  if (!packed.empty()) std::memcpy(out.data() + before, packed.data(), packed.size());
}

}  // namespace tenon::onnx
