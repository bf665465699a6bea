#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "device/detectors.h"
#include "device/python_packages.h"

namespace tenon {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

// sudo keeps HOME and VIRTUAL_ENV of the user: root must not run what that user can write.
bool is_trusted(const SystemRoot& machine, const std::string& file) {
  struct stat about{};
  if (!machine.is_this_machine()) return true;
  if (stat(file.c_str(), &about) != 0) return false;
  return (about.st_uid == 0 || about.st_uid == geteuid()) && (about.st_mode & S_IWOTH) == 0;
}

// The interpreter whose packages are in |packages|: <prefix>/lib/python3.12/site-packages belongs to <prefix>/bin/python3.12.
std::string interpreter_of(const SystemRoot& machine, const std::string& packages) {
  const std::string version = folder_of(packages), prefix = folder_of(folder_of(version));
  const std::string name = version.substr(version.find_last_of('/') + 1);
  for (const std::string& file : {prefix + "/bin/" + name, prefix + "/bin/python3"})
    if (name.starts_with("python3") && machine.exists(file)) return file;
  // A folder of PYTHONPATH belongs to whatever Python is called.
  for (std::string path = machine.environment("PATH"); !path.empty();) {
    const std::size_t colon = path.find(':');
    const std::string file = path.substr(0, colon) + "/python3";
    if (file.starts_with('/') && machine.exists(file)) return file;
    path = colon == std::string::npos ? "" : path.substr(colon + 1);
  }
  return "";
}

// What TTNN needs besides itself, as sentences, if it is not there.
std::vector<std::string> missing_parts(const SystemRoot& machine, bool has_card) {
  std::vector<std::string> notes;
  for (const std::string& folder : python_package_folders(machine)) {
    const std::string package = folder + "/ttnn", about = machine.read(package + "/tt_metal/sfpi-version").value_or("");
    if (about.empty()) continue;
    const std::string key = "sfpi_version='";
    const std::size_t begin = about.find(key), end = begin == std::string::npos ? begin : about.find('\'', begin + key.size());
    const std::string version = end == std::string::npos ? "" : about.substr(begin + key.size(), end - begin - key.size());
    const std::string own = package + "/runtime/sfpi", common = "/opt/tenstorrent/sfpi";
    if (!machine.exists(own + "/compiler") && !machine.exists(common + "/compiler"))
      notes.push_back(
          fmt::format("TTNN in {} compiles kernels with sfpi {}, which is neither in {} nor in {}: install the package of "
                      "that version from Tenstorrent's releases",
                      folder, version, own, common));
    break;
  }
  // Cards without an IOMMU transfer through huge pages of 1 GiB.
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
  if (has_card && machine.list("/sys/class/iommu").empty() && machine.number(pages).value_or(0) == 0)
    notes.push_back(
        "no huge page of 1 GiB is reserved, which TTNN needs for each card where there is no IOMMU: install Tenstorrent's "
        "package tenstorrent-tools, which reserves them at start, or boot with default_hugepagesz=1G hugepages=1 per card");
  return notes;
}

std::vector<std::string> pythons(const SystemRoot& machine) {
  // Named by the user: no other is looked for.
  if (const std::string named = machine.environment("TENON_TTNN_PYTHON"); !named.empty())
    return machine.exists(named) ? std::vector{named} : std::vector<std::string>();
  std::vector<std::string> found;
  const auto add = [&](const std::string& file) {
    if (!file.empty() && machine.exists(file) && is_trusted(machine, file) && std::ranges::find(found, file) == found.end())
      found.push_back(file);
  };
  for (const std::string& folder : python_package_folders(machine))
    if (const std::string module = folder + "/ttnn/__init__.py"; machine.exists(module) && is_trusted(machine, module))
      add(interpreter_of(machine, folder));
  // As its own script creates it, for those who build it themselves.
  if (const std::string home = machine.environment("TT_METAL_HOME"); home.starts_with('/')) add(home + "/python_env/bin/python3");
  return found;
}

// From the description that lies beside the simulator's library, "arch_name: BLACKHOLE".
std::string simulated_architecture(const SystemRoot& machine, const std::string& library) {
  const std::string text = machine.read(folder_of(library) + "/soc_descriptor.yaml").value_or("");
  for (const auto& [word, name] : {std::pair("BLACKHOLE", "blackhole"), {"WORMHOLE", "wormhole"}}) {
    const std::size_t key = text.find("arch_name:");
    if (key != std::string::npos && text.substr(key, 64).find(word) != std::string::npos) return name;
  }
  return "";
}

class TtnnDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "ttnn"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    for (const std::string& python : pythons(machine)) found.runtimes.push_back({"ttnn", python, "Tenstorrent"});
    if (const std::string named = machine.environment("TENON_TTNN_PYTHON"); !named.empty() && found.runtimes.empty())
      found.notes.push_back("TENON_TTNN_PYTHON is '" + named + "', which does not exist");
    const std::string simulator = machine.environment("TT_METAL_SIMULATOR");
    const bool has_card = machine.exists("/sys/class/tenstorrent");
    if (!found.runtimes.empty() && (has_card || !simulator.empty()))
      for (std::string& note : missing_parts(machine, has_card)) found.notes.push_back(std::move(note));
    if (simulator.empty()) return found;
    if (!machine.exists(simulator)) {
      found.notes.push_back("TT_METAL_SIMULATOR is '" + simulator + "', which does not exist");
      return found;
    }
    DeviceInfo chip;
    chip.id = "ttsim:0";
    chip.kind = DeviceKind::tenstorrent;
    chip.vendor = "Tenstorrent";
    chip.architecture = simulated_architecture(machine, simulator);
    chip.name = "Tenstorrent " + (chip.architecture.empty() ? "chip" : chip.architecture) + " (simulated by ttsim)";
    chip.uuid = "ttsim:" + simulator;
    chip.supports_mixed_precision = true;
    chip.exclusive = true;
    chip.details["simulated"] = "true";
    chip.details["simulator"] = simulator;
    if (found.runtimes.empty()) {
      chip.available = false;
      chip.reason = "no Python with TTNN was found";
      chip.remedy = "pip install ttnn (CPython 3.10 or 3.12), or name the Python that has it in TENON_TTNN_PYTHON";
    }
    found.devices.push_back(std::move(chip));
    return found;
  }
};

}  // namespace

std::unique_ptr<Detector> make_ttnn_detector() { return std::make_unique<TtnnDetector>(); }

}  // namespace tenon
