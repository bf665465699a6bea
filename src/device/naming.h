// The forms in which people name a device: "cuda:0", "gpu:0", 1, a uuid, "0000:1b:00.0", "/dev/tenstorrent/0".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tenon/device.h"

namespace tenon {

// Whether |text| names |device|: its id, an alias, the first part of an id that ends in :0 ("opencl"), its uuid (or at least
// eight of its first characters), its PCI address (with or without the domain) or its node in /dev. Upper and lower case are
// equal.
bool is_named(const DeviceInfo& device, std::string_view text);

// The number in |text| if it is one: the place of a device in the list of all.
std::optional<std::size_t> device_number(std::string_view text);

// The number by which a vendor's tools and runtime know a device: that of its file in /dev, else that of its id. With several
// cards it need not be the place in the list.
std::string device_file_number(const DeviceInfo& device);

// The device at that place for a number, else |text| as it is.
std::string_view id_of_number(std::span<const DeviceInfo> devices, std::string_view text);

}  // namespace tenon
