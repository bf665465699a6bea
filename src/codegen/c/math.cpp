#include "codegen/c/math.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <optional>

#include "codegen/c/math_library.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using emit::Helper;

struct IntegerType {
  std::string_view name, wide, lowest, highest, low, beyond;
  int bits;
};
constexpr IntegerType kIntegers[] = {
    {"u8", "u32", "0", "255", "0.0", "256.0", 8},
    {"u16", "u32", "0", "65535", "0.0", "65536.0", 16},
    {"u32", "u32", "0", "4294967295u", "0.0", "4294967296.0", 32},
    {"u64", "u64", "0", "18446744073709551615ul", "0.0", "18446744073709551616.0", 64},
    {"i8", "u32", "-128", "127", "-128.0", "128.0", 8},
    {"i16", "u32", "-32768", "32767", "-32768.0", "32768.0", 16},
    {"i32", "u32", "(-2147483647 - 1)", "2147483647", "-2147483648.0", "2147483648.0", 32},
    {"i64", "u64", "(-9223372036854775807l - 1)", "9223372036854775807l", "-9223372036854775808.0", "9223372036854775808.0", 64},
};

std::string instance(std::string_view text, const IntegerType& type) {
  const std::map<std::string_view, std::string> words = {
      {"T", std::string(type.name)},
      {"U", std::string(type.wide)},
      {"BITS", std::to_string(type.bits)},
      {"MASK", type.bits == 8    ? "0xffu"
               : type.bits == 16 ? "0xffffu"
               : type.bits == 32 ? "0xffffffffu"
                                 : "~(u64)0"},
      {"LOWEST", fmt::format("({}){}", type.name, type.lowest)},
      {"HIGHEST", fmt::format("({}){}", type.name, type.highest)},
      {"LOW_F", fmt::format("{}f", type.low)},
      {"BEYOND_F", fmt::format("{}f", type.beyond)},
      {"LOW_D", std::string(type.low)},
      {"BEYOND_D", std::string(type.beyond)},
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    std::string_view word = text.substr(i, end - i);
    if (const auto found = words.find(word); found != words.end()) {
      out += found->second;
    } else if (word.ends_with("_T")) {
      out += word.substr(0, word.size() - 1);
      out += type.name;
    } else {
      out += word;
    }
    i = end;
  }
  return out;
}

class Collector {
 public:
  explicit Collector(const KernelTarget& target) : target_(target) {}

  void add(std::string_view name) {
    if (!seen_.insert(std::string(name)).second) return;
    if (const std::optional<Helper> helper = find(name)) {
      for (std::string_view rest = helper->calls; !rest.empty();) {
        const std::size_t space = rest.find(' ');
        add(rest.substr(0, space));
        rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
      }
      text_ += helper->text.starts_with('\n') ? helper->text.substr(1) : helper->text;
      return;
    }
    add_integer(name);
  }
  std::string take() { return std::move(text_); }

 private:
  static std::optional<Helper> find_in(std::span<const Helper> list, std::string_view name) {
    for (const Helper& helper : list)
      if (helper.name == name) return helper;
    return std::nullopt;
  }
  std::optional<Helper> find(std::string_view name) const {
    if (target_.dialect == Dialect::cuda)
      if (const auto found = find_in(emit::cuda_helpers(), name)) return found;
    if (target_.dialect == Dialect::tensix)
      if (const auto found = find_in(emit::tensix_helpers(), name)) return found;
    for (const auto& list : {emit::common_helpers(), emit::function_helpers(), emit::f64_helpers()})
      if (const auto found = find_in(list, name)) return found;
    return std::nullopt;
  }
  void add_integer(std::string_view name) {
    for (const IntegerType& type : kIntegers) {
      if (!name.ends_with(type.name) || name.size() <= type.name.size() + 1) continue;
      const std::string_view base = name.substr(0, name.size() - type.name.size() - 1);
      if (const auto helper = find_in(emit::integer_helpers(), base)) {
        const std::string text = instance(helper->text, type);
        text_ += text.substr(1);
        return;
      }
    }
    throw Error(ErrorCode::internal, fmt::format("generated kernels have no helper function {}", name));
  }

  const KernelTarget& target_;
  std::set<std::string> seen_;
  std::string text_;
};

}  // namespace

std::string helper_text(const KernelTarget& target, const std::set<std::string>& names) {
  Collector collector(target);
  for (const std::string& name : names) collector.add(name);
  return collector.take();
}

}  // namespace tenon
