#include "codegen/c/loops/geometry.h"

#include <fmt/format.h>

#include <cstdlib>

namespace tenon::emit {

std::int64_t Axes::elements() const {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

void Axes::drop_last() {
  extents.pop_back();
  for (auto& s : strides) s.pop_back();
}

Axes joined(std::vector<std::int64_t> extents, std::vector<std::vector<std::int64_t>> strides) {
  Axes axes;
  axes.strides.resize(strides.size());
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    bool joins = !axes.extents.empty();
    for (std::size_t k = 0; k < strides.size() && joins; ++k) joins = axes.strides[k].back() == strides[k][d] * extents[d];
    if (joins) {
      axes.extents.back() *= extents[d];
      for (std::size_t k = 0; k < strides.size(); ++k) axes.strides[k].back() = strides[k][d];
    } else {
      axes.extents.push_back(extents[d]);
      for (std::size_t k = 0; k < strides.size(); ++k) axes.strides[k].push_back(strides[k][d]);
    }
  }
  return axes;
}

bool fits_i32(const Axes& axes, const std::vector<std::int64_t>& offsets) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (std::int64_t{1} << 24);
  if (axes.elements() >= kLimit) return false;
  for (std::size_t k = 0; k < axes.strides.size(); ++k) {
    std::int64_t reach = std::abs(offsets[k]);
    for (std::size_t d = 0; d < axes.extents.size(); ++d) reach += std::abs(axes.strides[k][d]) * axes.extents[d];
    if (reach >= kLimit) return false;
  }
  return true;
}

std::string offset_text(Parameters& parameters, const Axes& axes, const std::vector<std::int64_t>& offsets,
                        const std::string& row) {
  const std::string& ix = parameters.index_type();
  const char* const as = ix == "i32" ? "(u32)" : "";  // which divides in fewer instructions
  std::string text;
  std::vector<std::string> index(axes.extents.size());
  if (axes.extents.size() == 1) index[0] = row;
  if (axes.extents.size() > 1) {
    std::string rest = row;
    for (std::size_t d = axes.extents.size() - 1; d > 0; --d) {
      const std::string extent = parameters.index(axes.extents[d]);
      index[d] = fmt::format("i{}", d);
      text += fmt::format("{} i{} = {}{} % {}{}, r{} = {}{} / {}{};\n", ix, d, as, rest, as, extent, d, as, rest, as, extent);
      rest = fmt::format("r{}", d);
    }
    index[0] = rest;
  }
  for (std::size_t k = 0; k < axes.strides.size(); ++k) {
    std::string sum;
    if (offsets[k] != 0) sum = parameters.index(offsets[k]);
    for (std::size_t d = 0; d < axes.extents.size(); ++d) {
      const std::int64_t stride = axes.strides[k][d];
      if (stride == 0) continue;
      const std::string term = stride == 1 ? index[d] : fmt::format("{} * {}", index[d], parameters.index(stride));
      sum += (sum.empty() ? "" : " + ") + term;
    }
    text += fmt::format("{} o{} = {};\n", ix, k, sum.empty() ? "0" : sum);
  }
  return text;
}

std::string place_text(Parameters& parameters, const std::string& offset, const std::string& i, std::int64_t stride) {
  if (stride == 0) return offset;
  if (stride == 1) return fmt::format("{} + {}", offset, i);
  return fmt::format("{} + {} * {}", offset, i, parameters.index(stride));
}

}  // namespace tenon::emit
