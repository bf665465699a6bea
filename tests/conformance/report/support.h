// Column: the outcome of every op and dtype on one device, as stored in tests/conformance/results; and the page docs/support.md,
// which is generated from those files.
//
// A file is text: lines "# name: value" that describe the run, then one line per op with its name and a mark for each dtype in
// the order of all_dtypes(): "." passes, "-" refused, "F" fails, "?" device unavailable, "_" not accepted by the op, "x" not run.
// Files of parts of the catalogue can be concatenated.
//
//   Column column = read_column("tests/conformance/results/cpu.txt");
//   column.merge(column_of(results, about));
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace tenon::conformance {

struct Column {
  std::map<std::string, std::string> about;  // device, date, command, extent
  std::vector<std::string> refused;          // reasons, none twice
  std::map<std::string, std::string> marks;  // by op

  // Results of |newer| replace the existing ones.
  void merge(const Column& newer);
};

// Pairs without a case are "x".
Column column_of(const Results& results, std::map<std::string, std::string> about);

// Throws not_found, or data_loss for an invalid file.
Column read_column(const std::string& path);
std::string column_text(const Column& column);

// One line for each pair that |now| ran with a result other than in |saved|; "" if they agree.
std::string differences(const Column& now, const Column& saved);

// docs/support.md from the files in |folder|. Columns without a file are shown as not run.
std::string support_text(const std::string& folder);

}  // namespace tenon::conformance
