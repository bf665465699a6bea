#include "array/format_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace tenon {
namespace {

// Which positions of an axis are shown; -1 stands for "...".
std::vector<std::int64_t> shown(std::int64_t extent, bool abbreviate, const ArrayStyle& style) {
  std::vector<std::int64_t> positions;
  const bool cut = abbreviate && extent > 2 * style.edge_items;
  const std::int64_t head = cut ? style.edge_items : extent;
  for (std::int64_t i = 0; i < head; ++i) positions.push_back(i);
  if (cut) positions.push_back(-1);
  for (std::int64_t i = extent - style.edge_items; cut && i < extent; ++i) positions.push_back(i);
  return positions;
}

std::string trim_zeros(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits += '0';
  return digits;
}

int decimals_of(const std::string& digits) {
  const std::size_t point = digits.find('.');
  return point == std::string::npos ? 0 : static_cast<int>(digits.size() - point - 1);
}

std::string special(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

std::vector<std::string> format_floats(const std::vector<double>& values, DType dtype) {
  const int significant = dtype == DType::f32 || dtype == DType::f64 ? 6 : 5;
  double largest = 0, smallest = HUGE_VAL;
  for (const double value : values) {
    if (!std::isfinite(value) || value == 0) continue;
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
  const bool exponent = largest >= 1e8 || (largest > 0 && smallest < 1e-4);
  const int order = largest > 0 ? static_cast<int>(std::floor(std::log10(largest))) : 0;
  const int limit = exponent ? significant - 1 : std::clamp(significant - 1 - order, 4, 8);

  const auto split = [](const std::string& text) { return std::min(text.find('e'), text.size()); };
  const auto digits = [&](double value) {
    return exponent ? fmt::format("{:.{}e}", value, limit) : fmt::format("{:.{}f}", value, limit);
  };
  int decimals = 1;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const std::string text = digits(value);
    decimals = std::max(decimals, decimals_of(trim_zeros(text.substr(0, split(text)))));
  }
  std::vector<std::string> result;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      result.push_back(special(value));
    } else {
      result.push_back(exponent ? fmt::format("{:.{}e}", value, decimals) : fmt::format("{:.{}f}", value, decimals));
    }
  }
  return result;
}

class Formatter {
 public:
  Formatter(const HostArray& array, const ArrayStyle& style)
      : array_(array),
        style_(style),
        abbreviate_(array.elements() > style.threshold) {}

  std::string run() {
    const int rank = array_.shape().rank();
    if (array_.elements() == 0) return "[]";
    collect(0, 0);
    format_values();
    if (rank == 0) return texts_[0];
    layout(0);
    return std::move(out_);
  }

 private:
  void collect(int axis, std::int64_t offset) {
    const Shape& shape = array_.shape();
    if (axis == shape.rank()) {
      indices_.push_back(offset);
      return;
    }
    for (const std::int64_t i : shown(shape[axis], abbreviate_, style_))
      if (i >= 0) collect(axis + 1, offset * shape[axis] + i);
  }

  void format_values() {
    const DType dtype = array_.dtype();
    if (is_float(dtype)) {
      // Block formats decode a whole row of tiles per value: convert once instead.
      const HostArray plain = is_block(dtype) ? array_.cast(DType::f32) : array_;
      std::vector<double> values;
      for (const std::int64_t i : indices_) values.push_back(plain.value(i));
      texts_ = format_floats(values, dtype);
    } else {
      for (const std::int64_t i : indices_) texts_.push_back(whole(i));
    }
    for (const std::string& text : texts_) cell_ = std::max(cell_, text.size());
  }

  std::string whole(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    if (array_.dtype() == DType::boolean) return array_.value(index) != 0 ? "true" : "false";
    if (array_.dtype() == DType::i64) return fmt::format("{}", array_.view<std::int64_t>()[i]);
    if (array_.dtype() == DType::u64) return fmt::format("{}", array_.view<std::uint64_t>()[i]);
    return fmt::format("{:.0f}", array_.value(index));
  }

  void layout(int axis) {
    const int rank = array_.shape().rank();
    const std::vector<std::int64_t> positions = shown(array_.shape()[axis], abbreviate_, style_);
    const std::string indent(static_cast<std::size_t>(axis) + 1, ' ');
    out_ += '[';
    if (axis + 1 == rank) {
      row(positions, indent);
    } else {
      for (std::size_t i = 0; i < positions.size(); ++i) {
        // One more empty line for each outer axis, as in NumPy.
        if (i > 0) out_ += std::string(static_cast<std::size_t>(rank - axis - 1), '\n') + indent;
        if (positions[i] < 0) {
          out_ += "...";
        } else {
          layout(axis + 1);
        }
      }
    }
    out_ += ']';
  }

  void row(const std::vector<std::int64_t>& positions, const std::string& indent) {
    const std::size_t width = static_cast<std::size_t>(std::max(style_.width, 20));
    const std::size_t closing = static_cast<std::size_t>(array_.shape().rank());
    std::size_t column = indent.size();
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const bool dots = positions[i] < 0;
      const std::size_t size = dots ? 3 : cell_;
      if (i > 0 && column + 1 + size + closing > width) {
        out_ += '\n' + indent;
        column = indent.size();
      } else if (i > 0) {
        out_ += ' ';
        ++column;
      }
      out_ += dots ? std::string("...") : fmt::format("{:>{}}", texts_[next_++], cell_);
      column += size;
    }
  }

  const HostArray& array_;
  const ArrayStyle& style_;
  bool abbreviate_;
  std::vector<std::int64_t> indices_;
  std::vector<std::string> texts_;
  std::size_t cell_ = 0, next_ = 0;
  std::string out_;
};

}  // namespace

std::string format_array(const HostArray& array, const ArrayStyle& style) { return Formatter(array, style).run(); }

}  // namespace tenon
