// A Tenstorrent device whose TTNN is the stand-in of the tests (stand_in/): what runs on it has not run on a chip.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "backends/ttnn/backend.h"
#include "temporary_folder.h"
#include "tenon/backend.h"

namespace tenon::ttnn {

inline std::string numpy_folder() { return std::string(TENON_SOURCE_DIR) + "/build/plugins/python"; }

#define TENON_NEEDS_NUMPY()                                                                                              \
  if (!std::filesystem::exists(TENON_TEST_PYTHON) || !std::filesystem::exists(::tenon::ttnn::numpy_folder() + "/numpy")) \
  GTEST_SKIP() << "the stand-in for TTNN needs Python with NumPy, which tools/plugins could not fetch"

// Sets a variable for the time of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const now = std::getenv(name)) before_ = now;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class StandIn {
 public:
  explicit StandIn(const std::string& math = "exact") : math_("TENON_TENSTORRENT_MATH", math) {}

  static DeviceInfo device() {
    DeviceInfo info;
    info.id = "tenstorrent:0";
    info.kind = DeviceKind::tenstorrent;
    info.vendor = "Tenstorrent";
    info.backends = {"ttnn"};
    info.runtimes = {{"ttnn", TENON_TEST_PYTHON, "Tenstorrent"}};
    return info;
  }
  std::unique_ptr<OpenDevice> open() { return backend_->open(device()); }
  Backend& backend() { return *backend_; }

 private:
  // Compiled kernels stay with the build.
  const Variable path_{"PYTHONPATH", std::string(TENON_SOURCE_DIR) + "/tests/backends/ttnn/stand_in:" + numpy_folder()};
  const Variable cache_{"TT_METAL_CACHE", std::string(TENON_SOURCE_DIR) + "/build/ttnn_stand_in"};
  const Variable bytecode_{"PYTHONDONTWRITEBYTECODE", "1"};
  const Variable math_;
  std::unique_ptr<Backend> backend_ = make_backend();
};

inline std::vector<HostArray> run(OpenDevice& device, const Graph& graph, const std::vector<HostArray>& inputs) {
  const auto program = device.compile(graph);
  std::vector<std::unique_ptr<Buffer>> in, out;
  std::vector<const Buffer*> given;
  std::vector<Buffer*> made;
  for (const HostArray& input : inputs) given.push_back(in.emplace_back(device.upload(input)).get());
  for (const TensorType& type : program->output_types()) made.push_back(out.emplace_back(device.allocate(type)).get());
  program->run(given, made);
  std::vector<HostArray> results;
  for (const Buffer* buffer : made) results.push_back(device.download(*buffer));
  return results;
}

}  // namespace tenon::ttnn
