#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "device/detectors.h"
#include "device/python_packages.h"

namespace tenon {
namespace {

struct Plugin {
  std::string_view part;  // of the file's path
  std::string_view vendor;
};
constexpr std::array<Plugin, 7> kPlugins{{{"libtpu", "Google"},
                                          {"pjrt_plugin_tt", "Tenstorrent"},
                                          {"cuda", "NVIDIA"},
                                          {"rocm", "AMD"},
                                          {"xpu", "Intel"},
                                          {"oneapi", "Intel"},
                                          {"cpu", ""}}};

class Search {
 public:
  explicit Search(const SystemRoot& machine) : machine_(machine) {}

  void add(const std::string& library) {
    for (const Plugin& plugin : kPlugins) {
      if (library.find(plugin.part) == std::string::npos) continue;
      add(library, std::string(plugin.vendor));
      return;
    }
  }
  // Found, not named by the user: loaded only if nobody else could have put it there.
  void add_found(const std::string& library) {
    if (is_trusted(library)) add(library);
  }
  void add(const std::string& library, const std::string& vendor) {
    if (!machine_.exists(library)) return;
    const RuntimeInfo runtime{"pjrt", library, vendor};
    if (std::find(found_.begin(), found_.end(), runtime) == found_.end()) found_.push_back(runtime);
  }
  std::vector<RuntimeInfo> take() { return std::move(found_); }

 private:
  // sudo keeps HOME, PYTHONPATH and VIRTUAL_ENV of the user: root must not load what that user can write.
  bool is_trusted(const std::string& library) const {
    struct stat file{};
    if (!machine_.is_this_machine()) return true;
    if (stat(library.c_str(), &file) != 0) return false;
    return (file.st_uid == 0 || file.st_uid == geteuid()) && (file.st_mode & S_IWOTH) == 0;
  }

  const SystemRoot& machine_;
  std::vector<RuntimeInfo> found_;
};

// A relative path is relative to the current directory; "" stays "" and names nothing.
std::string in_working_folder(const SystemRoot& machine, const std::string& library) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(library, failed);
  return machine.is_this_machine() && !failed ? path.string() : library;
}

class PjrtDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "pjrt"; }

  Detection detect(const SystemRoot& machine) const override {
    Search search(machine);
    // name:path,name:path
    std::istringstream named(machine.environment("PJRT_NAMES_AND_LIBRARY_PATHS"));
    for (std::string pair; std::getline(named, pair, ',');)
      if (const std::size_t colon = pair.find(':'); colon != std::string::npos)
        search.add(in_working_folder(machine, pair.substr(colon + 1)));
    search.add(machine.environment("TPU_LIBRARY_PATH"), "Google");
    for (const std::string& folder : python_package_folders(machine)) {
      search.add_found(folder + "/libtpu/libtpu.so");
      search.add_found(folder + "/pjrt_plugin_tt/pjrt_plugin_tt.so");
      for (const std::string& plugins : {folder + "/jax_plugins", folder + "/xla_plugins"})
        for (const std::string& package : machine.list(plugins))
          for (const std::string& file : machine.list(plugins + "/" + package))
            if (file.ends_with(".so")) search.add_found(plugins + "/" + package + "/" + file);
    }
    for (const char* library : {"/usr/lib/libtpu.so", "/lib/libtpu.so", "/usr/local/lib/libtpu.so"}) search.add(library);
    return {.runtimes = search.take()};
  }
};

}  // namespace

std::unique_ptr<Detector> make_pjrt_detector() { return std::make_unique<PjrtDetector>(); }

}  // namespace tenon
