#include "expression/value.h"

#include <fmt/format.h>

#include <cmath>

namespace tenon::expression {
namespace {

bool is_whole(const Value& value) { return std::holds_alternative<bool>(value) || std::holds_alternative<std::int64_t>(value); }

std::int64_t as_integer(const Value& whole) {
  if (const bool* b = std::get_if<bool>(&whole)) return *b ? 1 : 0;
  return std::get<std::int64_t>(whole);
}

Value power(std::int64_t base, std::int64_t exponent) {
  const double inexact = std::pow(static_cast<double>(base), static_cast<double>(exponent));
  if (exponent < 0) return inexact;
  std::int64_t result = 1, factor = base;
  for (bool factor_fits = true; exponent > 0; exponent >>= 1) {
    if (exponent & 1)
      if (!factor_fits || __builtin_mul_overflow(result, factor, &result)) return inexact;
    if (exponent > 1) factor_fits = factor_fits && !__builtin_mul_overflow(factor, factor, &factor);
  }
  return result;
}

std::optional<Value> fold_integers(std::string_view op, std::int64_t x, std::int64_t y) {
  std::int64_t result = 0;
  const double dx = static_cast<double>(x), dy = static_cast<double>(y);
  if (op == "+") return __builtin_add_overflow(x, y, &result) ? Value(dx + dy) : Value(result);
  if (op == "-") return __builtin_sub_overflow(x, y, &result) ? Value(dx - dy) : Value(result);
  if (op == "*") return __builtin_mul_overflow(x, y, &result) ? Value(dx * dy) : Value(result);
  if (op == "/") return Value(dx / dy);
  if (op == "**") return power(x, y);
  if (op == "&") return Value(x & y);
  if (op == "|") return Value(x | y);
  if (op == "^") return Value(x ^ y);
  if (op == "<<" && y >= 0 && y < 63)
    return __builtin_mul_overflow(x, std::int64_t{1} << y, &result) ? Value(dx * std::exp2(dy)) : Value(result);
  if (op == ">>" && y >= 0 && y < 64) return Value(x >> y);
  if (y == 0) return std::nullopt;
  if (op == "//") {
    if (y == -1) return fold_integers("-", 0, x);
    return Value(x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0));
  }
  if (op == "%") {
    if (y == -1) return Value(std::int64_t{0});
    const std::int64_t r = x % y;
    return Value(r != 0 && (r < 0) != (y < 0) ? r + y : r);
  }
  return std::nullopt;
}

std::optional<Value> fold_doubles(std::string_view op, double x, double y) {
  if (op == "+") return Value(x + y);
  if (op == "-") return Value(x - y);
  if (op == "*") return Value(x * y);
  if (op == "/") return Value(x / y);
  if (op == "**") return Value(std::pow(x, y));
  if (op == "//") return Value(std::floor(x / y));
  if (op == "%") {
    const double r = std::fmod(x, y);
    return Value(r != 0 && (r < 0) != (y < 0) ? r + y : r);
  }
  return std::nullopt;
}

template <class T>
std::optional<Value> fold_comparison(std::string_view op, T x, T y) {
  if (op == "==") return Value(x == y);
  if (op == "!=") return Value(x != y);
  if (op == "<") return Value(x < y);
  if (op == "<=") return Value(x <= y);
  if (op == ">") return Value(x > y);
  if (op == ">=") return Value(x >= y);
  return std::nullopt;
}

template <class Visit>
void each_number(const Value& value, const Visit& visit) {
  if (const List* list = as_list(value)) {
    for (const Value& item : list->items) each_number(item, visit);
  } else {
    visit(value);
  }
}

}  // namespace

bool is_number(const Value& value) { return is_whole(value) || std::holds_alternative<double>(value); }

double as_double(const Value& number) {
  if (const double* d = std::get_if<double>(&number)) return *d;
  return static_cast<double>(as_integer(number));
}

const List* as_list(const Value& value) {
  const auto* list = std::get_if<std::shared_ptr<List>>(&value);
  return list != nullptr ? list->get() : nullptr;
}

std::string describe(const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return "None";
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (is_whole(value)) return fmt::format("{}", as_integer(value));
  if (const double* d = std::get_if<double>(&value)) return fmt::format("{}", *d);
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("the string \"{}\"", *text);
  if (const DType* dtype = std::get_if<DType>(&value)) return fmt::format("the dtype {}", name(*dtype));
  if (const List* list = as_list(value)) return list->is_tuple ? "a tuple" : "a list";
  const std::size_t results = std::get<Tensors>(value).ids.size();
  return results == 1 ? "a tensor" : fmt::format("{} tensors", results);
}

std::optional<Value> fold(std::string_view op, const Value& x) {
  if (!is_number(x)) return std::nullopt;
  if (op == "not") return Value(as_double(x) == 0);
  if (op == "-") return is_whole(x) ? fold_integers("-", 0, as_integer(x)) : Value(-std::get<double>(x));
  if (op == "+") return std::holds_alternative<bool>(x) ? Value(as_integer(x)) : x;
  if (op != "~" || !is_whole(x)) return std::nullopt;
  if (const bool* b = std::get_if<bool>(&x)) return Value(!*b);
  return Value(~as_integer(x));
}

std::optional<Value> fold(std::string_view op, const Value& x, const Value& y) {
  if (!is_number(x) || !is_number(y)) return std::nullopt;
  if (op == "and") return Value(as_double(x) != 0 && as_double(y) != 0);
  if (op == "or") return Value(as_double(x) != 0 || as_double(y) != 0);
  if (std::holds_alternative<bool>(x) && std::holds_alternative<bool>(y)) {
    const bool a = std::get<bool>(x), b = std::get<bool>(y);
    if (op == "&") return Value(a && b);
    if (op == "|") return Value(a || b);
    if (op == "^") return Value(a != b);
  }
  if (is_whole(x) && is_whole(y)) {
    if (auto result = fold_comparison(op, as_integer(x), as_integer(y))) return result;
    return fold_integers(op, as_integer(x), as_integer(y));
  }
  if (auto result = fold_comparison(op, as_double(x), as_double(y))) return result;
  return fold_doubles(op, as_double(x), as_double(y));
}

std::optional<std::vector<std::int64_t>> as_integers(const Value& value) {
  const List* list = as_list(value);
  if (list == nullptr) {
    if (!std::holds_alternative<std::int64_t>(value)) return std::nullopt;
    return std::vector{std::get<std::int64_t>(value)};
  }
  if (list->has_tensor || (list->kind != DType::i64 && list->elements > 0)) return std::nullopt;
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(list->elements));
  each_number(value, [&](const Value& v) { result.push_back(as_integer(v)); });
  return result;
}

HostArray to_array(const List& list, DType default_float) {
  const Shape shape(list.dims);
  const auto collect = [&]<class T>(T zero, auto convert) {
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(list.elements));
    for (const Value& item : list.items) each_number(item, [&](const Value& v) { values.push_back(convert(v)); });
    (void)zero;
    return HostArray::from<T>(shape, std::span<const T>(values));
  };
  if (list.elements == 0) return HostArray::zeros(default_float, shape);
  if (list.kind == DType::f64) return collect(double{}, as_double).cast(default_float);
  HostArray integers = collect(std::int64_t{}, as_integer);
  return list.kind == DType::boolean ? integers.cast(DType::boolean) : integers;
}

}  // namespace tenon::expression
