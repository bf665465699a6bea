// WireReader: the fields of one message in the wire format of protocol buffers, read in place.
//
// Every length is checked against the message before it is used, so a reader never looks past its bytes. Nothing is copied.
//
//   WireReader reader(bytes, "model");
//   while (reader.next())
//     switch (reader.field()) { case 1: version = reader.integer(); break; default: break; }   // others are skipped
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx {

using Bytes = std::span<const std::byte>;

class WireReader {
 public:
  // |what| names the message in errors and must outlive the reader.
  WireReader(Bytes bytes, std::string_view what) : rest_(bytes), what_(what) {}

  // Advances to the next field; false at the end of the message. Throws invalid_argument for bytes that are not a field.
  bool next();
  int field() const noexcept { return field_; }

  // The value of the present field. Each throws invalid_argument if the field has another wire type.
  std::int64_t integer() const;
  float real() const;
  Bytes bytes() const;
  std::string_view text() const;
  // Of the field's contents, without copying; 1 for a number.
  std::size_t size() const noexcept { return wire_ == Wire::bytes ? payload_.size() : 1; }
  // Repeated numbers, packed or not: appends this field's to |out|.
  void append(std::vector<std::int64_t>& out) const;
  void append(std::vector<float>& out) const;
  void append(std::vector<double>& out) const;

 private:
  enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  [[noreturn]] void fail(std::string_view problem) const;
  void expect(Wire wire) const;
  std::uint64_t varint(Bytes& from) const;

  Bytes rest_;
  std::string_view what_;
  int field_ = 0;
  Wire wire_ = Wire::varint;
  std::uint64_t number_ = 0;  // of varint, fixed64 and fixed32
  Bytes payload_;             // of bytes
};

}  // namespace tenon::onnx
