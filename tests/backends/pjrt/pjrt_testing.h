// The plugin used by the tests: XLA for CPUs, which tools/plugins fetches.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tenon/device.h"

namespace tenon::pjrt {

inline std::string test_plugin() {
  if (const char* named = std::getenv("TENON_TEST_PJRT_PLUGIN")) return named;
  return std::string(TENON_SOURCE_DIR) + "/build/plugins/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";
}

#define TENON_NEEDS_PLUGIN()                                \
  if (!std::filesystem::exists(tenon::pjrt::test_plugin())) \
  GTEST_SKIP() << "there is no PJRT plugin here: tools/plugins could not fetch xla-cpu-pjrt"

inline DeviceInfo plugin_device() {
  DeviceInfo info;
  info.id = "pjrt:0";
  info.kind = DeviceKind::cpu;
  info.backends = {"pjrt"};
  info.details["plugin"] = test_plugin();
  return info;
}

}  // namespace tenon::pjrt
