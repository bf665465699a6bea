#include "conformance/report/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view kShortNames[] = {"bool", "u8",  "u16",  "u32", "u64", "i8",  "i16", "i32",
                                            "i64",  "f16", "bf16", "f32", "f64", "bf8", "bf4"};
static_assert(std::size(kShortNames) == kDTypeCount);

struct Source {
  const char* file;
  const char* title;
};
constexpr Source kSources[] = {
    {"cpu.txt", "cpu"},
    {"opencl-pocl.txt", "opencl, PoCL"},
    {"pjrt-xla-cpu.txt", "pjrt, XLA CPU"},
    {"cuda.txt", "cuda"},
    {"opencl-nvidia.txt", "opencl, NVIDIA"},
    {"pjrt-xla-cuda.txt", "pjrt, XLA CUDA"},
    {"tensix-host.txt", "ttnn, exact tier on a CPU"},
};

char mark_of(const Verdict& verdict) {
  switch (verdict.status) {
    case Status::pass: return verdict.cases > 0 ? '.' : 'x';
    case Status::fail: return 'F';
    case Status::unsupported: return '-';
    case Status::unavailable: return '?';
  }
  return 'x';
}

using Types = std::vector<std::size_t>;  // indices of dtypes

std::string listed(const Types& types) {
  std::string text;
  for (const std::size_t i : types) text += fmt::format("{}{}", text.empty() ? "" : " ", kShortNames[i]);
  return text;
}

Types with_mark(const std::string& marks, std::string_view wanted) {
  Types types;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (wanted.find(marks[i]) != std::string_view::npos) types.push_back(i);
  return types;
}

// "all", or what does not run and why.
std::string cell(const std::string& marks) {
  const Types runs = with_mark(marks, "."), refused = with_mark(marks, "-"), failed = with_mark(marks, "F"),
              unknown = with_mark(marks, "x?");
  if (runs.empty() && refused.empty() && failed.empty()) return "not run";
  if (runs.empty() && failed.empty() && unknown.empty()) return "refused";
  std::string text = runs.empty() ? "none" : "all";
  if (!refused.empty()) text += fmt::format(", refused: {}", listed(refused));
  if (!failed.empty()) text += fmt::format(", **fails**: {}", listed(failed));
  if (!unknown.empty()) text += fmt::format(", not run: {}", listed(unknown));
  return text;
}

// The types an op takes: the shorter of two ways to say it.
std::string accepted(const OpInfo& op) {
  Types in, out;
  for (const DType dtype : all_dtypes())
    (std::ranges::find(op.dtypes, dtype) != op.dtypes.end() ? in : out).push_back(static_cast<std::size_t>(dtype));
  if (out.empty()) return "all";
  return in.size() <= out.size() ? listed(in) : "all but " + listed(out);
}

std::string counts(const Column& column) {
  std::size_t runs = 0, refused = 0, failed = 0, other = 0;
  for (const auto& [op, marks] : column.marks) {
    runs += with_mark(marks, ".").size();
    refused += with_mark(marks, "-").size();
    failed += with_mark(marks, "F").size();
    other += with_mark(marks, "x?").size();
  }
  return fmt::format("{} | {} | {} | {}", runs, refused, failed, other);
}

std::string known(const Column& column, const char* name) {
  const auto found = column.about.find(name);
  return found == column.about.end() ? std::string() : found->second;
}

}  // namespace

void Column::merge(const Column& newer) {
  for (const auto& [name, value] : newer.about) about[name] = value;
  for (const std::string& reason : newer.refused)
    if (std::ranges::find(refused, reason) == refused.end()) refused.push_back(reason);
  for (const auto& [op, now] : newer.marks) {
    std::string& all = marks.try_emplace(op, now).first->second;
    for (std::size_t i = 0; i < now.size(); ++i)
      if (now[i] != 'x') all[i] = now[i];
  }
}

Column column_of(const Results& results, std::map<std::string, std::string> about) {
  Column column;
  column.about = std::move(about);
  for (const auto& [key, verdict] : results) {
    const auto [entry, is_new] = column.marks.try_emplace(key.first, std::string(kDTypeCount, '_'));
    if (is_new)
      for (const DType dtype : find_op(key.first).dtypes) entry->second[static_cast<std::size_t>(dtype)] = 'x';
    entry->second[static_cast<std::size_t>(key.second)] = mark_of(verdict);
    if (verdict.status == Status::unsupported && std::ranges::find(column.refused, verdict.reason) == column.refused.end())
      column.refused.push_back(verdict.reason);
  }
  return column;
}

Column read_column(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::not_found, fmt::format("{} cannot be read", path));
  Column column;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const std::size_t split = line.find(line[0] == '#' ? ": " : " ");
    if (split == std::string::npos)
      throw Error(ErrorCode::data_loss, fmt::format("{} has a line that says nothing: {}", path, line));
    Column part;
    if (line.starts_with("# refused: "))
      part.refused.push_back(line.substr(split + 2));
    else if (line[0] == '#')
      part.about[line.substr(2, split - 2)] = line.substr(split + 2);
    else if (line.size() - split - 1 == kDTypeCount)
      part.marks[line.substr(0, split)] = line.substr(split + 1);
    else
      throw Error(ErrorCode::data_loss, fmt::format("{} has a line without a mark for every dtype: {}", path, line));
    column.merge(part);
  }
  return column;
}

std::string column_text(const Column& column) {
  std::string text;
  for (const auto& [name, value] : column.about) text += fmt::format("# {}: {}\n", name, value);
  for (const std::string& reason : column.refused) text += fmt::format("# refused: {}\n", reason);
  for (const auto& [op, marks] : column.marks) text += fmt::format("{} {}\n", op, marks);
  return text;
}

std::string differences(const Column& now, const Column& saved) {
  std::string text;
  for (const auto& [op, marks] : now.marks) {
    const auto before = saved.marks.find(op);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      const char old = before == saved.marks.end() ? 'x' : before->second[i];
      if (marks[i] != 'x' && marks[i] != old) text += fmt::format("{} {}: '{}', was '{}'\n", op, kShortNames[i], marks[i], old);
    }
  }
  return text;
}

std::string support_text(const std::string& folder) {
  std::vector<std::pair<std::string, std::optional<Column>>> columns;
  for (const Source& source : kSources) {
    const std::string path = (std::filesystem::path(folder) / source.file).string();
    columns.emplace_back(source.title, std::filesystem::exists(path) ? std::optional(read_column(path)) : std::nullopt);
  }
  std::string text =
      "# Support matrix\n\n"
      "This page shows, for every op of the catalogue and every element type it accepts, whether it runs on each backend, as "
      "found "
      "by the conformance\nsuite ([conformance.md](conformance.md)). It is generated from `tests/conformance/results` by\n\n"
      "    build/release/tenon_conformance --support tests/conformance/results > docs/support.md\n\n"
      "\"all\": every type the op accepts runs on the device and passes. A program that a device does not support is refused as "
      "a "
      "whole, with the reason,\nbefore the device is opened; `auto` skips such a device. No device below refuses anything. Not "
      "tested, because no such device was available:\nOpenCL devices without `cl_khr_fp64` refuse float64; TPUs and Tenstorrent "
      "cards (pjrt) refuse float64.\n\n"
      "| column | device | run | cases | pass | refused | fail | not run |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [title, column] : columns)
    text += column ? fmt::format("| {} | {} | {}: `{}` | {} | {} |\n", title, known(*column, "device"), known(*column, "date"),
                                 known(*column, "command"), known(*column, "extent"), counts(*column))
                   : fmt::format("| {} | | not run | | | | | |\n", title);
  for (const auto& [title, column] : columns) {
    if (!column || column->refused.empty()) continue;
    text += fmt::format("\n{} refuses:\n\n", title);
    for (const std::string& reason : column->refused) text += fmt::format("- {}\n", reason);
  }
  text += "\n| op | takes |";
  for (const auto& [title, column] : columns) text += fmt::format(" {} |", title);
  text += "\n| --- | --- |";
  for (std::size_t i = 0; i < columns.size(); ++i) text += " --- |";
  text += "\n";
  for (const OpInfo& op : all_ops()) {
    text += fmt::format("| {} | {} |", op.name, accepted(op));
    for (const auto& [title, column] : columns) {
      const bool is_known = column && column->marks.contains(op.name);
      text += fmt::format(" {} |", is_known ? cell(column->marks.at(op.name)) : "not run");
    }
    text += "\n";
  }
  return text;
}

}  // namespace tenon::conformance
