// Python's installed packages, found by their files: nothing is imported or run.
#pragma once

#include <string>
#include <vector>

#include "tenon/system_root.h"

namespace tenon {

// The folders packages are installed in, in the order Python would look: PYTHONPATH, the active environment, the one whose
// python3 is first in PATH, the user's, the system's.
std::vector<std::string> python_package_folders(const SystemRoot& machine);

struct PythonPackage {
  std::string name;  // as its metadata says: "torch"
  std::string version;
  std::string folder;
};
// Those of |names| that are installed, each as found first.
std::vector<PythonPackage> installed_packages(const SystemRoot& machine, const std::vector<std::string>& names);

}  // namespace tenon
