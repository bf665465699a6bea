#include <algorithm>
#include <array>
#include <sstream>

#include "device/detectors.h"

namespace tenon {
namespace {

struct Platform {
  std::string_view part;  // of the library's name
  std::string_view vendor;
};
constexpr std::array<Platform, 8> kPlatforms{{{"pocl", ""},
                                              {"nvidia", "NVIDIA"},
                                              {"amdocl", "AMD"},
                                              {"MesaOpenCL", "AMD"},
                                              {"RusticlOpenCL", "AMD"},
                                              {"igdrcl", "Intel"},
                                              {"intelocl", ""},
                                              {"oneapi", ""}}};

// The libraries that the OpenCL loader would load: those named in the vendors' files and in its environment variables.
class Libraries {
 public:
  explicit Libraries(const SystemRoot& machine) : machine_(machine) {
    const std::string vendors = machine.environment("OCL_ICD_VENDORS"), folder = vendors_folder();
    if (vendors.empty() || machine.is_folder(vendors))
      add_folder(vendors.empty() ? folder : vendors);
    else if (!vendors.ends_with(".icd"))
      add(vendors);
    else if (!add_file(folder + "/" + vendors))
      add_file(vendors);
    std::istringstream more(machine.environment("OCL_ICD_FILENAMES"));
    for (std::string library; std::getline(more, library, ':');) add(library);
  }

  const std::vector<std::string>& names() const noexcept { return names_; }

 private:
  std::string vendors_folder() const {
    const std::string given = machine_.environment("OPENCL_VENDOR_PATH");
    return given.empty() ? "/etc/OpenCL/vendors" : given;
  }
  void add_folder(const std::string& folder) {
    for (const std::string& file : machine_.list(folder))
      if (file.ends_with(".icd")) add_file(folder + "/" + file);
  }
  bool add_file(const std::string& file) {
    const std::optional<std::string> library = machine_.line(file);
    if (library) add(*library);
    return library.has_value();
  }
  void add(const std::string& library) {
    if (!library.empty() && std::find(names_.begin(), names_.end(), library) == names_.end()) names_.push_back(library);
  }

  const SystemRoot& machine_;
  std::vector<std::string> names_;
};

// The names of the libraries identify the platforms; querying a platform for its devices would open them.
class OpenClDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "opencl"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    const Libraries libraries(machine);
    for (const std::string& library : libraries.names())
      for (const Platform& platform : kPlatforms) {
        if (library.find(platform.part) == std::string::npos) continue;
        found.runtimes.push_back({"opencl", library, std::string(platform.vendor)});
        break;
      }
    return found;
  }
};

}  // namespace

std::unique_ptr<Detector> make_opencl_detector() { return std::make_unique<OpenClDetector>(); }

}  // namespace tenon
