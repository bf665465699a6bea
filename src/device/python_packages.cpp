#include "device/python_packages.h"

#include <algorithm>
#include <sstream>

namespace tenon {
namespace {

void add(std::vector<std::string>& folders, const std::string& folder) {
  if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
}

// <prefix>/lib/python3*/{site,dist}-packages
void add_prefix(const SystemRoot& machine, const std::string& prefix, std::vector<std::string>& folders) {
  for (const char* library : {"/lib", "/lib64"}) {
    // Environments make lib64 a link to lib.
    if (machine.link(prefix + library)) continue;
    for (const std::string& name : machine.list(prefix + library))
      if (name.starts_with("python3"))
        for (const char* packages : {"/site-packages", "/dist-packages"})
          if (const std::string folder = prefix + library + "/" + name + packages; machine.is_folder(folder))
            add(folders, folder);
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ':');)
    if (part.starts_with('/')) parts.push_back(part);
  return parts;
}

}  // namespace

std::vector<std::string> python_package_folders(const SystemRoot& machine) {
  std::vector<std::string> folders;
  for (const std::string& folder : split(machine.environment("PYTHONPATH"))) add(folders, folder);
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = machine.environment(variable); prefix.starts_with('/')) add_prefix(machine, prefix, folders);
  for (const std::string& folder : split(machine.environment("PATH"))) {
    if (!machine.exists(folder + "/python3")) continue;
    add_prefix(machine, folder.substr(0, folder.find_last_of('/')), folders);
    break;
  }
  if (const std::string home = machine.environment("HOME"); home.starts_with('/')) add_prefix(machine, home + "/.local", folders);
  add_prefix(machine, "/usr/local", folders);
  add_prefix(machine, "/usr", folders);
  return folders;
}

std::vector<PythonPackage> installed_packages(const SystemRoot& machine, const std::vector<std::string>& names) {
  std::vector<PythonPackage> found;
  for (const std::string& folder : python_package_folders(machine))
    for (const std::string& entry : machine.list(folder)) {
      // "torch-2.11.0.dist-info"
      const std::size_t dash = entry.find('-'), end = entry.find(".dist-info");
      if (dash == std::string::npos || end == std::string::npos || dash > end) continue;
      const std::string name = entry.substr(0, dash);
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      if (std::any_of(found.begin(), found.end(), [&](const PythonPackage& package) { return package.name == name; })) continue;
      found.push_back({name, entry.substr(dash + 1, end - dash - 1), folder});
    }
  return found;
}

}  // namespace tenon
