#include "server/watch/snapshot.h"

#include <algorithm>

#include "base/text/json_writer.h"
#include "present/device/device_status.h"
#include "server/services.h"

namespace tenon::server {

DeviceTable DeviceTable::read(const DeviceManager& manager) {
  DeviceTable table{manager.detect(), manager.status()};
  // What a backend offers and no detector knows, a simulated device say, is there all the same.
  for (const DeviceStatus& used : table.status) {
    auto& devices = table.found.devices;
    const auto same = [&](const DeviceInfo& device) { return device.id == used.device.id; };
    if (std::none_of(devices.begin(), devices.end(), same)) devices.push_back(used.device);
  }
  return table;
}

void DeviceTable::leave_out_unused_ways() {
  std::erase_if(found.devices, [&](const DeviceInfo& device) {
    const DeviceStatus* used = status_of(device.id);
    return !device.same_as.empty() && (used == nullptr || used->counters.leases == 0);
  });
}

const DeviceStatus* DeviceTable::status_of(const std::string& id) const {
  const auto place = std::find_if(status.begin(), status.end(), [&](const DeviceStatus& s) { return s.device.id == id; });
  return place == status.end() ? nullptr : &*place;
}

void DeviceTable::write(JsonWriter& json) const {
  json.begin_array();
  for (const DeviceInfo& device : found.devices) present::write_device(json, device, status_of(device.id));
  json.end_array();
}

std::string snapshot_json(Services& services) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("devices");
  DeviceTable table = DeviceTable::read(services.manager);
  services.holds.observe(table.status, std::chrono::system_clock::now());
  table.leave_out_unused_ways();
  table.write(json);
  json.key("server").begin_object();
  json.member("connections", services.traffic.connections.load());
  json.member("requests_running", services.workers.running());
  json.member("requests_waiting", services.workers.waiting());
  json.member("jobs", services.jobs.unfinished());
  json.member("draining", services.is_draining.load());
  json.end_object();
  json.end_object();
  return text;
}

}  // namespace tenon::server
