#include "ops/parameter_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ops/names.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using Integers = std::vector<std::int64_t>;

std::string text_of(const ParameterValue& value) {
  struct Printer {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return fmt::format("'{}'", v); }
    std::string operator()(const Integers& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
  };
  return std::visit(Printer{}, value);
}

class Check {
 public:
  Check(const OpInfo& op, const Parameter& parameter, const ParameterValue& value)
      : op_(op),
        parameter_(parameter),
        value_(value) {}

  ParameterValue run() const {
    if (std::holds_alternative<std::monostate>(value_)) {
      const bool none_is_a_value = !parameter_.required && std::holds_alternative<std::monostate>(parameter_.fallback);
      if (!none_is_a_value) wrong("needs a value");
      return value_;
    }
    switch (parameter_.type) {
      case ParameterType::number: return number();
      case ParameterType::integer: return integer(value_);
      case ParameterType::boolean: return boolean();
      case ParameterType::integers: return integers();
      case ParameterType::dtype: return dtype();
      case ParameterType::text: return text();
    }
    return value_;
  }

 private:
  [[noreturn]] void wrong(const std::string& what, const std::string& hint = {}) const {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: parameter '{}' {}, got {}", op_.name, parameter_.name, what, text_of(value_)), hint);
  }

  // NaN is out of any bounds.
  void check_bounds(double v) const {
    const bool low = parameter_.min && !(v >= *parameter_.min);
    const bool high = parameter_.max && !(v <= *parameter_.max);
    if (!low && !high) return;
    if (parameter_.min && parameter_.max) wrong(fmt::format("must be between {} and {}", *parameter_.min, *parameter_.max));
    if (low) wrong(fmt::format("must be at least {}", *parameter_.min));
    wrong(fmt::format("must be at most {}", *parameter_.max));
  }

  // An integer stays one: beyond 2^53 a double would be another number.
  ParameterValue number() const {
    if (const auto* real = std::get_if<double>(&value_))
      check_bounds(*real);
    else if (const auto* whole = std::get_if<std::int64_t>(&value_))
      check_bounds(static_cast<double>(*whole));
    else
      wrong("must be a number");
    return value_;
  }

  std::int64_t integer(const ParameterValue& value) const {
    std::int64_t v = 0;
    const auto* real = std::get_if<double>(&value);
    if (const auto* whole = std::get_if<std::int64_t>(&value))
      v = *whole;
    else if (real && *real == std::floor(*real) && std::fabs(*real) < 0x1p62)
      v = static_cast<std::int64_t>(*real);
    else
      wrong("must be an integer");
    check_bounds(static_cast<double>(v));
    return v;
  }

  bool boolean() const {
    if (const auto* truth = std::get_if<bool>(&value_)) return *truth;
    if (const auto* whole = std::get_if<std::int64_t>(&value_); whole && (*whole == 0 || *whole == 1)) return *whole == 1;
    wrong("must be true or false");
  }

  Integers integers() const {
    if (const auto* list = std::get_if<Integers>(&value_)) {
      for (std::int64_t v : *list) check_bounds(static_cast<double>(v));
      return *list;
    }
    if (std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<double>(value_)) return {integer(value_)};
    wrong("must be a list of integers");
  }

  std::string dtype() const {
    const auto* text = std::get_if<std::string>(&value_);
    if (!text) wrong("must be a dtype");
    if (parse_dtype(*text)) return *text;
    std::vector<std::string_view> names;
    for (DType d : all_dtypes()) names.push_back(name(d));
    const std::string suggestion = nearest(*text, std::span<const std::string_view>(names));
    wrong("must be a dtype",
          suggestion.empty() ? fmt::format("dtypes: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", suggestion));
  }

  std::string text() const {
    const auto* text = std::get_if<std::string>(&value_);
    if (!text) wrong("must be text");
    const auto& choices = parameter_.choices;
    if (choices.empty() || std::find(choices.begin(), choices.end(), *text) != choices.end()) return *text;
    const std::string suggestion = nearest(*text, std::span<const std::string>(choices));
    wrong(fmt::format("must be one of {}", fmt::join(choices, ", ")),
          suggestion.empty() ? "" : fmt::format("did you mean '{}'?", suggestion));
  }

  const OpInfo& op_;
  const Parameter& parameter_;
  const ParameterValue& value_;
};

}  // namespace

ParameterValue checked_parameter(const OpInfo& op, const Parameter& parameter, const ParameterValue& value) {
  return Check(op, parameter, value).run();
}

}  // namespace tenon
