// A bundle: one .tar.gz with what somebody needs to understand a problem on this machine, without its secrets.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/diagnose/redact.h"

namespace tenon::cli {

struct BundleFile {
  std::string name;  // "report.json"
  std::string text;
};

// A tar archive of |files| in one folder, compressed with gzip. Names are at most 80 bytes long.
std::string make_tar_gz(const std::string& folder, const std::vector<BundleFile>& files, std::int64_t unix_seconds);

// Of all variables of a process, those that have to do with devices, sorted, a line each; what is secret is redacted.
std::string relevant_environment(const std::vector<std::pair<std::string, std::string>>& variables, const Redactor& redactor);

// Version, compiler, C library, kernel and the distribution's os-release.
std::vector<BundleFile> system_files();

// Redacts every text and writes the archive for this user alone, replacing |path|. Returns its size. Throws permission_denied,
// unavailable.
std::uint64_t write_bundle(const std::string& path, std::vector<BundleFile> files, const Redactor& redactor);

}  // namespace tenon::cli
