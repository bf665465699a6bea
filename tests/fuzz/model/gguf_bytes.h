// GgufBytes: a GGUF file written field by field, for fuzzers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::fuzz {

class GgufBytes {
 public:
  GgufBytes& integer(std::string_view key, std::uint32_t value) { return begin(key, 4).put(fields_, value); }
  GgufBytes& real(std::string_view key, float value) { return begin(key, 6).put(fields_, value); }
  GgufBytes& text(std::string_view key, std::string_view value) { return begin(key, 8).put_text(fields_, value); }
  GgufBytes& texts(std::string_view key, std::initializer_list<std::string_view> values) {
    begin(key, 9).put<std::uint32_t>(fields_, 8).put<std::uint64_t>(fields_, values.size());
    for (const std::string_view value : values) put_text(fields_, value);
    return *this;
  }
  GgufBytes& reals(std::string_view key, std::initializer_list<float> values) {
    begin(key, 9).put<std::uint32_t>(fields_, 6).put<std::uint64_t>(fields_, values.size());
    for (const float value : values) put(fields_, value);
    return *this;
  }
  // |type| as the format numbers them (0: F32, 1: F16, 2: Q4_0, 8: Q8_0), |bytes| of data.
  GgufBytes& tensor(std::string_view name, std::initializer_list<std::uint64_t> dims, std::uint32_t type, std::size_t bytes) {
    ++tensors_;
    put_text(infos_, name).put<std::uint32_t>(infos_, static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) put(infos_, dim);
    put(infos_, type).put<std::uint64_t>(infos_, data_);
    data_ += (bytes + 31) / 32 * 32;
    return *this;
  }

  std::string file(std::uint32_t version = 3) const {
    std::string out = "GGUF";
    const auto add = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
    add(version);
    add(tensors_);
    add(count_);
    out += fields_ + infos_;
    out.resize((out.size() + 31) / 32 * 32);
    out.resize(out.size() + data_, '\x11');
    return out;
  }

 private:
  template <class T>
  GgufBytes& put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& put_text(std::string& out, std::string_view text) {
    put(out, static_cast<std::uint64_t>(text.size()));
    out += text;
    return *this;
  }
  GgufBytes& begin(std::string_view key, std::uint32_t type) {
    ++count_;
    return put_text(fields_, key).put(fields_, type);
  }

  std::string fields_, infos_;
  std::uint64_t count_ = 0, tensors_ = 0, data_ = 0;
};

}  // namespace tenon::fuzz
