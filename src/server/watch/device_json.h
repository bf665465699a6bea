// Devices as JSON.
#pragma once

#include "server/http/json_writer.h"
#include "tenon/device.h"
#include "tenon/manager.h"

namespace tenon::server {

// What one must know of a device that computed something.
void write_device_brief(JsonWriter& json, const DeviceInfo& device);
// Everything; |status| may be nullptr: no backend drives it.
void write_device(JsonWriter& json, const DeviceInfo& device, const DeviceStatus* status);
void write_users(JsonWriter& json, const DeviceStatus& status);
void write_event(JsonWriter& json, const DeviceEvent& event, std::uint64_t id);
// "2026-01-31T12:00:00.000Z"
std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace tenon::server
