#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

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

// The packages of the environment to which an interpreter belongs: <prefix>/bin/python3 to <prefix>/lib/python3.*/site-packages.
std::vector<std::string> packages_of(const SystemRoot& machine, const std::string& python) {
  std::vector<std::string> folders;
  const std::string prefix = folder_of(folder_of(python));
  for (const std::string& name : machine.list(prefix + "/lib"))
    if (name.starts_with("python3"))
      for (const char* packages : {"/site-packages", "/dist-packages"})
        if (std::string folder = fmt::format("{}/lib/{}{}", prefix, name, packages); machine.exists(folder))
          folders.push_back(folder);
  return folders;
}

// "0.77.0" from the folder ttnn-0.77.0.dist-info; "" if the package was not installed by pip.
std::string ttnn_version(const SystemRoot& machine, const std::string& packages) {
  constexpr std::string_view before = "ttnn-", after = ".dist-info";
  for (const std::string& name : machine.list(packages))
    if (name.starts_with(before) && name.ends_with(after))
      return name.substr(before.size(), name.size() - before.size() - after.size());
  return "";
}

bool is_older(const std::string& version, std::array<int, 2> least) {
  int major = 0, minor = 0;
  return std::sscanf(version.c_str(), "%d.%d", &major, &minor) == 2 && std::array{major, minor} < least;
}

// Of the package that dpkg installed.
std::string installed_version(const SystemRoot& machine, const std::string& package) {
  std::istringstream status(machine.read("/var/lib/dpkg/status").value_or(""));
  bool is_it = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Package: ")) is_it = line == "Package: " + package;
    if (is_it && line.starts_with("Version: ")) return line.substr(9);
  }
  return "";
}

void check_packages(const SystemRoot& machine, const std::string& folder, std::vector<std::string>& notes) {
  const std::string package = folder + "/ttnn";
  if (const std::string version = ttnn_version(machine, folder); is_older(version, {0, 75}))
    notes.push_back(
        fmt::format("TTNN in {} is {}; Tenon was tested with 0.77, and older ones than 0.75 lack functions that it calls: "
                    "pip install --upgrade ttnn",
                    folder, version));
  const std::string about = machine.read(package + "/tt_metal/sfpi-version").value_or(""), key = "sfpi_version='";
  const std::size_t begin = about.find(key), end = begin == std::string::npos ? begin : about.find('\'', begin + key.size());
  if (end == std::string::npos) return;
  const std::string version = about.substr(begin + key.size(), end - begin - key.size());
  const std::string own = package + "/runtime/sfpi", common = "/opt/tenstorrent/sfpi";
  if (machine.exists(own + "/compiler")) return;
  if (!machine.exists(common + "/compiler")) {
    notes.push_back(
        fmt::format("TTNN in {} compiles kernels with sfpi {}, which is neither in {} nor in {}: install the package of "
                    "that version from Tenstorrent's releases",
                    folder, version, own, common));
  } else if (const std::string there = installed_version(machine, "sfpi"); !there.empty() && !there.starts_with(version)) {
    notes.push_back(fmt::format(
        "TTNN in {} compiles kernels with sfpi {}, but {} has {}: with another version many functions do not compile; "
        "install the package of that version from Tenstorrent's releases",
        folder, version, common, there));
  }
}

void check_cards(const SystemRoot& machine, std::vector<std::string>& notes) {
  // Cards without an IOMMU transfer through huge pages of 1 GiB.
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
  if (machine.list("/sys/class/iommu").empty() && machine.number(pages).value_or(0) == 0)
    notes.push_back(
        "no huge page of 1 GiB is reserved, which TTNN needs for each card where there is no IOMMU: install Tenstorrent's "
        "package tenstorrent-tools, which reserves them at start, or boot with default_hugepagesz=1G hugepages=1 per card");
  bool has_tool = false;
  std::istringstream path(machine.environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) has_tool = has_tool || machine.exists(folder + "/tt-smi");
  if (!has_tool)
    notes.push_back(
        "tt-smi is not in PATH: without it a card that hangs is not reset until the machine restarts: pip install tt-smi");
  for (const std::string& card : machine.list("/sys/class/tenstorrent")) {
    const std::string firmware = machine.line("/sys/class/tenstorrent/" + card + "/tt_fw_bundle_ver").value_or("");
    // Bundles were counted 80.x before 18.0.
    if (is_older(firmware, {18, 0}) || firmware.starts_with("80."))
      notes.push_back(
          fmt::format("the firmware of card {} is of bundle {}, which TTNN no longer supports: update it with tt-flash",
                      card.substr(card.find('!') + 1), firmware));
  }
}

// What TTNN needs besides itself, as sentences, if it is not there.
std::vector<std::string> missing_parts(const SystemRoot& machine, const std::string& python, bool has_card) {
  std::vector<std::string> notes;
  const std::string named = machine.environment("TENON_TTNN_PYTHON");
  const std::vector<std::string> folders = named.empty() ? python_package_folders(machine) : packages_of(machine, python);
  bool has_ttnn = false;
  for (const std::string& folder : folders) {
    if (!machine.exists(folder + "/ttnn/__init__.py")) continue;
    has_ttnn = true;
    check_packages(machine, folder, notes);
    break;
  }
  // A Python of the system finds packages in more places than its prefix has.
  if (!has_ttnn && !named.empty() && !folders.empty()) {
    const std::string version = folder_of(folders[0]);
    notes.push_back(fmt::format("TENON_TTNN_PYTHON is '{}', whose packages in {} have no ttnn{}: pip install ttnn in it", named,
                                folders[0],
                                version.ends_with("/python3.10") || version.ends_with("/python3.12")
                                    ? ""
                                    : ", and for whose version of Python there is none (it needs CPython 3.10 or 3.12)"));
  }
  if (has_card) check_cards(machine, notes);
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
      for (std::string& note : missing_parts(machine, found.runtimes[0].library, has_card))
        found.notes.push_back(std::move(note));
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
