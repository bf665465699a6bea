// Column: what one device said to every op and dtype, as kept in tests/conformance/results; and the page docs/support.md, which
// is made from those files.
//
// A file is text: lines "# name: value" that say where it comes from, then one line an op: its name and a mark for each dtype in
// the order of all_dtypes(): "." passes, "-" refused, "F" fails, "?" the device was not there, "_" the op does not take the type,
// "x" not run. Files of parts of the catalogue can be put one behind the other.
//
//   Column column = read_column("tests/conformance/results/cpu.txt");
//   column.merge(column_of(results, about));
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/report.h"

namespace tenon::conformance {

struct Column {
  std::map<std::string, std::string> about;  // device, date, command, extent
  std::vector<std::string> refused;          // reasons, none twice
  std::map<std::string, std::string> marks;  // by op

  // What |newer| ran takes the place of what was known.
  void merge(const Column& newer);
};

// Pairs without a case are "x".
Column column_of(const Results& results, std::map<std::string, std::string> about);

// Throws not_found, or data_loss for a file that is none.
Column read_column(const std::string& path);
std::string column_text(const Column& column);

// One line for each pair that |now| ran and |saved| knows otherwise; "" when they agree.
std::string differences(const Column& now, const Column& saved);

// docs/support.md from the files in |folder|. Columns whose file is not there are named as not run.
std::string support_text(const std::string& folder);

}  // namespace tenon::conformance
