// The use of a device as JSON: its state, who holds it and who waits, what happened to it.
#pragma once

#include <cstdint>
#include <string>

#include "base/text/json_writer.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/lease/device_status.h"

namespace tenon::present {

// What write_device() of device.h writes, and "status": null where no backend drives the device.
void write_device(JsonWriter& json, const DeviceInfo& device, const DeviceStatus* status);
void write_status(JsonWriter& json, const DeviceStatus& status);
// [{"who", "holding", "here", "seconds"}]: holders first, then those who wait, in order.
void write_users(JsonWriter& json, const DeviceStatus& status);
// The first process other than this one that holds the device; null if none does.
const DeviceUser* holder_elsewhere(const DeviceStatus& status);
// "sim:0 is held by pid 4242 (user ada): train.py for 3.1 s; 1 waits for it": for a device with such a holder.
std::string held_text(const DeviceStatus& status);
// The queue between processes: {"device", "dirty", "holders": [...], "waiters": [...]}, each with "who", "ticket", "mode" and,
// where it is known, its process and "seconds".
void write_queue(JsonWriter& json, const Turnstile::Queue& queue);
// |id| is its number in the list of events.
void write_event(JsonWriter& json, const DeviceEvent& event, std::uint64_t id);

}  // namespace tenon::present
