#include <array>

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

// Reading the vendors' files says which platforms there are; asking a platform for its devices would open them.
class OpenClDetector final : public Detector {
 public:
  std::string_view name() const noexcept override { return "opencl"; }

  Detection detect(const SystemRoot& machine) const override {
    Detection found;
    std::string folder = machine.environment("OCL_ICD_VENDORS");
    if (!machine.is_folder(folder)) folder = "/etc/OpenCL/vendors";
    for (const std::string& file : machine.list(folder)) {
      if (!file.ends_with(".icd")) continue;
      const std::optional<std::string> library = machine.line(folder + "/" + file);
      if (!library) continue;
      for (const Platform& platform : kPlatforms) {
        if (library->find(platform.part) == std::string::npos && file.find(platform.part) == std::string::npos) continue;
        found.runtimes.push_back({"opencl", *library, std::string(platform.vendor)});
        break;
      }
    }
    return found;
  }
};

}  // namespace

std::unique_ptr<Detector> make_opencl_detector() { return std::make_unique<OpenClDetector>(); }

}  // namespace tenon
