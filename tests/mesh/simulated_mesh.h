// A manager with as many simulated devices as a mesh needs.
#pragma once

#include <string>

#include "tenon/manager.h"
#include "tenon/mesh.h"

namespace tenon {

struct SimulatedMesh {
  // |properties| are those of the second device: "script=lost_mid_run:run".
  explicit SimulatedMesh(const std::string& axes, const std::string& properties = "")
      : manager(config_for(axes, properties)),
        mesh(Mesh::parse(axes, simulated_of(manager))) {}

  static Config config_for(const std::string& axes, const std::string& properties) {
    Config config;
    config.ledger = false;
    config.keep_open = KeepOpenPolicy::always;
    for (int i = 0; i < places(axes); ++i)
      config.simulated.push_back(
          parse_simulated("gpu,virtual,exclusive,memory=1GiB" + (i == 1 && !properties.empty() ? "," + properties : "")));
    return config;
  }
  static int places(const std::string& axes) {
    int product = 1;
    for (std::size_t at = 0; (at = axes.find('=', at)) != std::string::npos; ++at) product *= std::stoi(axes.substr(at + 1));
    return product;
  }
  static std::vector<DeviceInfo> simulated_of(const DeviceManager& manager) {
    std::vector<DeviceInfo> result;
    for (DeviceInfo& device : manager.devices())
      if (device.id.starts_with("sim:")) result.push_back(device);
    return result;
  }

  DeviceManager manager;
  Mesh mesh;
};

}  // namespace tenon
