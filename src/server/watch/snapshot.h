// The dashboard's picture: every device with its state, and how busy the server is.
#pragma once

#include <string>
#include <vector>

#include "base/text/json_writer.h"
#include "tenon/manager.h"

namespace tenon::server {

struct Services;

// {"devices": [...], "server": {...}}. Reads the machine: for a worker.
std::string snapshot_json(Services& services);

// Devices of the machine with their state where a backend drives them.
struct DeviceTable {
  Detection found;
  std::vector<DeviceStatus> status;

  static DeviceTable read(const DeviceManager& manager);
  // Removes devices that are the CPU through another driver, unless this server has used them.
  void leave_out_unused_ways();
  const DeviceStatus* status_of(const std::string& id) const;
  void write(JsonWriter& json) const;  // a list
};

}  // namespace tenon::server
