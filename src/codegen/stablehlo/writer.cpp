#include "codegen/stablehlo/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tenon/error.h"

namespace tenon::stablehlo {
namespace {

std::string_view element_text(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "i1";
    case DType::u8: return "ui8";
    case DType::u16: return "ui16";
    case DType::u32: return "ui32";
    case DType::u64: return "ui64";
    case DType::i8: return "i8";
    case DType::i16: return "i16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    default: break;
  }
  throw Error(ErrorCode::internal, fmt::format("StableHLO does not support {}", tenon::name(dtype)));
}

// One element; floats are written as bits, so that nothing is rounded and NaN can be expressed.
std::string number_text(DType dtype, std::uint64_t bits) {
  switch (dtype) {
    case DType::boolean: return bits != 0 ? "true" : "false";
    case DType::i8: return fmt::format("{}", static_cast<std::int8_t>(bits));
    case DType::i16: return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::i32: return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::i64: return fmt::format("{}", static_cast<std::int64_t>(bits));
    case DType::f16:
    case DType::bf16: return fmt::format("0x{:04X}", bits);
    case DType::f32: return fmt::format("0x{:08X}", bits);
    case DType::f64: return fmt::format("0x{:016X}", bits);
    default: return fmt::format("{}", bits);
  }
}

std::uint64_t bits_of(const HostArray& array, std::int64_t index) {
  std::uint64_t bits = 0;
  const std::size_t size = element_bytes(array.dtype());
  std::memcpy(&bits, array.data() + static_cast<std::size_t>(index) * size, size);
  return bits;
}

std::string compare_type(DType dtype) {
  if (is_float(dtype)) return "FLOAT";
  return is_signed_integer(dtype) ? "SIGNED" : "UNSIGNED";
}

}  // namespace

std::string list_text(std::span<const std::int64_t> numbers) {
  return fmt::format("{}", fmt::join(numbers.begin(), numbers.end(), ", "));
}

std::string type_text(DType dtype, const Shape& shape) {
  std::string text = "tensor<";
  for (const std::int64_t extent : shape) text += fmt::format("{}x", extent);
  text += element_text(dtype);
  return text + ">";
}
std::string type_text(const Term& x) { return type_text(x.dtype(), x.shape()); }

DType Term::dtype() const { return writer_->results_[static_cast<std::size_t>(id_)].dtype; }
const Shape& Term::shape() const { return writer_->results_[static_cast<std::size_t>(id_)].shape; }
Term Term::like(double value) const {
  const Shape to = shape();  // the writer's list of results may move
  return writer_->splat(value, dtype(), to);
}

Term Writer::place(std::string name, DType dtype, const Shape& shape) {
  const Shape copy = shape;
  results_.push_back({std::move(name), dtype, copy});
  return Term(this, static_cast<int>(results_.size()) - 1);
}

std::string Writer::name(const Term& x) const { return results_[static_cast<std::size_t>(x.id())].name; }

Term Writer::argument(DType dtype, const Shape& shape) {
  const std::string name = fmt::format("%arg{}", argument_count_++);
  arguments_ += fmt::format("{}{}: {}", arguments_.empty() ? "" : ", ", name, type_text(dtype, shape));
  return place(name, dtype, shape);
}

Term Writer::add(const std::string& text, DType dtype, const Shape& shape) {
  if (const auto same = known_.find(text); same != known_.end()) return Term(this, same->second);
  const Term result = place(fmt::format("%{}", results_.size()), dtype, shape);
  lines_ += fmt::format("    {} = {}\n", name(result), text);
  known_.emplace(text, result.id());
  return result;
}

std::vector<Term> Writer::add(const std::string& text, std::span<const std::pair<DType, Shape>> results) {
  const std::string base = fmt::format("%{}", results_.size());
  std::vector<Term> terms;
  for (std::size_t i = 0; i < results.size(); ++i)
    terms.push_back(place(fmt::format("{}#{}", base, i), results[i].first, results[i].second));
  lines_ += fmt::format("    {}:{} = {}\n", base, results.size(), text);
  return terms;
}

Term Writer::splat(double value, DType dtype, const Shape& shape) {
  return splat_bits(bits_of(HostArray::full(dtype, {}, value), 0), dtype, shape);
}

Term Writer::splat_bits(std::uint64_t bits, DType dtype, const Shape& shape) {
  const std::string element = shape.elements() == 0 ? "" : number_text(dtype, bits);
  return add(fmt::format("stablehlo.constant dense<{}> : {}", element, type_text(dtype, shape)), dtype, shape);
}

Term Writer::constant(const HostArray& value) {
  const DType dtype = value.dtype();
  if (value.elements() == 0) return splat(0, dtype, value.shape());
  bool equal = true;
  const std::size_t size = element_bytes(dtype);
  for (std::int64_t i = 1; i < value.elements() && equal; ++i)
    equal = std::memcmp(value.data(), value.data() + static_cast<std::size_t>(i) * size, size) == 0;
  if (equal) return splat_bits(bits_of(value, 0), dtype, value.shape());
  // Bits of bool are packed in this form of literal; bytes are not.
  if (dtype == DType::boolean) {
    const HostArray bytes = HostArray::from_bytes(DType::u8, value.shape(), {value.data(), value.bytes()});
    const Term stored = constant(bytes);
    return compare("NE", stored, stored.like(0));
  }
  std::string text = "stablehlo.constant dense<\"0x";
  text.reserve(2 * value.bytes() + 64);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (std::size_t i = 0; i < value.bytes(); ++i) {
    const auto byte = static_cast<unsigned>(value.data()[i]);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  text += fmt::format("\"> : {}", type_text(dtype, value.shape()));
  return add(text, dtype, value.shape());
}

Term unary(std::string_view op, const Term& x) {
  return x.writer().add(fmt::format("stablehlo.{} {} : {}", op, x.writer().name(x), type_text(x)), x.dtype(), x.shape());
}
Term binary(std::string_view op, const Term& x, const Term& y) {
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.{} {}, {} : {}", op, w.name(x), w.name(y), type_text(x)), x.dtype(), x.shape());
}
Term compare(std::string_view direction, const Term& x, const Term& y) {
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.compare {}, {}, {}, {} : ({}, {}) -> {}", direction, w.name(x), w.name(y),
                           compare_type(x.dtype()), type_text(x), type_text(y), type_text(DType::boolean, x.shape())),
               DType::boolean, x.shape());
}
Term select(const Term& condition, const Term& x, const Term& y) {
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.select {}, {}, {} : {}, {}", w.name(condition), w.name(x), w.name(y), type_text(condition),
                           type_text(x)),
               x.dtype(), x.shape());
}

namespace {
Term changed(std::string_view op, const Term& x, std::string_view attributes, DType dtype, const Shape& shape) {
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.{} {}{} : ({}) -> {}", op, w.name(x), attributes, type_text(x), type_text(dtype, shape)),
               dtype, shape);
}
}  // namespace

Term convert(const Term& x, DType to) { return x.dtype() == to ? x : changed("convert", x, "", to, x.shape()); }
Term bitcast(const Term& x, DType to) { return x.dtype() == to ? x : changed("bitcast_convert", x, "", to, x.shape()); }
Term reshape(const Term& x, const Shape& to) { return x.shape() == to ? x : changed("reshape", x, "", x.dtype(), to); }
Term broadcast(const Term& x, const Shape& to, std::span<const std::int64_t> axes) {
  return changed("broadcast_in_dim", x, fmt::format(", dims = [{}]", list_text(axes)), x.dtype(), to);
}
Term broadcast_scalar(const Term& x, const Shape& to) { return x.shape() == to ? x : broadcast(x, to, {}); }

Term slice(const Term& x, std::span<const std::int64_t> start, std::span<const std::int64_t> step, const Shape& to) {
  std::string ranges;
  for (int i = 0; i < to.rank(); ++i) {
    const std::size_t a = static_cast<std::size_t>(i);
    const std::int64_t end = to[i] == 0 ? start[a] : start[a] + (to[i] - 1) * step[a] + 1;
    ranges += fmt::format("{}{}:{}:{}", i == 0 ? "" : ", ", start[a], end, step[a]);
  }
  return changed("slice", x, fmt::format(" [{}]", ranges), x.dtype(), to);
}

Term pad(const Term& x, const Term& value, std::span<const std::int64_t> low, const Shape& to) {
  Writer& w = x.writer();
  std::vector<std::int64_t> high, interior(low.size(), 0);
  for (int i = 0; i < to.rank(); ++i) high.push_back(to[i] - x.shape()[i] - low[static_cast<std::size_t>(i)]);
  return w.add(
      fmt::format("stablehlo.pad {}, {}, low = [{}], high = [{}], interior = [{}] : ({}, {}) -> {}", w.name(x), w.name(value),
                  list_text(low), list_text(high), list_text(interior), type_text(x), type_text(value), type_text(x.dtype(), to)),
      x.dtype(), to);
}

Term iota(Writer& writer, DType dtype, const Shape& shape, int axis) {
  return writer.add(fmt::format("stablehlo.iota dim = {} : {}", axis, type_text(dtype, shape)), dtype, shape);
}

Term reduce(std::string_view op, const Term& x, double start, std::span<const std::int64_t> axes) {
  Writer& w = x.writer();
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(x.shape()[i]);
  const Shape to{std::span<const std::int64_t>(dims)};
  const Term first = w.splat(start, x.dtype(), {});
  const std::string scalar = type_text(x.dtype(), {});
  const std::string input = type_text(x), output = type_text(x.dtype(), to);
  return w.add(fmt::format("\"stablehlo.reduce\"({0}, {1}) ({{\n"
                           "    ^bb0(%a: {2}, %b: {2}):\n"
                           "      %c = stablehlo.{3} %a, %b : {2}\n"
                           "      \"stablehlo.return\"(%c) : ({2}) -> ()\n"
                           "    }}) {{dimensions = array<i64{4}>}} : ({5}, {2}) -> {6}",
                           w.name(x), w.name(first), scalar, op, axes.empty() ? "" : ": " + list_text(axes), input, output),
               x.dtype(), to);
}

Term barrier(const Term& x) { return unary("optimization_barrier", x); }

Term operator+(const Term& x, const Term& y) { return binary("add", x, y); }
Term operator-(const Term& x, const Term& y) { return binary("subtract", x, y); }
Term operator*(const Term& x, const Term& y) { return binary("multiply", x, y); }
Term operator/(const Term& x, const Term& y) { return binary("divide", x, y); }
Term operator-(const Term& x) { return unary("negate", x); }
Term operator&(const Term& x, const Term& y) { return binary("and", x, y); }
Term operator|(const Term& x, const Term& y) { return binary("or", x, y); }
Term operator^(const Term& x, const Term& y) { return binary("xor", x, y); }
Term operator!(const Term& x) { return unary("not", x); }
Term operator<<(const Term& x, int amount) { return binary("shift_left", x, x.like(amount)); }
Term operator>>(const Term& x, int amount) {
  return binary(is_signed_integer(x.dtype()) ? "shift_right_arithmetic" : "shift_right_logical", x, x.like(amount));
}
Term operator<(const Term& x, const Term& y) { return compare("LT", x, y); }
Term operator<=(const Term& x, const Term& y) { return compare("LE", x, y); }
Term operator>(const Term& x, const Term& y) { return compare("GT", x, y); }
Term operator>=(const Term& x, const Term& y) { return compare("GE", x, y); }
Term operator==(const Term& x, const Term& y) { return compare("EQ", x, y); }
Term operator!=(const Term& x, const Term& y) { return compare("NE", x, y); }

}  // namespace tenon::stablehlo
