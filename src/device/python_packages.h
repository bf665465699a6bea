// Finds installed Python packages by their files; imports and runs nothing.
#pragma once

#include <string>
#include <vector>

#include "tenon/system_root.h"

namespace tenon {

// The folders of installed packages in Python's search order: PYTHONPATH, the active environment, the environment whose python3
// is first in PATH, the user's, the system's.
std::vector<std::string> python_package_folders(const SystemRoot& machine);

struct PythonPackage {
  std::string name;  // from its metadata: "torch"
  std::string version;
  std::string folder;
};
// The installed ones of |names|; for each, the first one found.
std::vector<PythonPackage> installed_packages(const SystemRoot& machine, const std::vector<std::string>& names);

}  // namespace tenon
