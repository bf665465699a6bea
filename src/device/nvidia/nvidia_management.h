// Queries NVIDIA's management software about its cards: the library NVML, or the program nvidia-smi.
//
// A query creates no CUDA context and does not wake sleeping cards; the library itself talks to the driver through the driver's
// nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon {

struct NvidiaAnswer {
  std::vector<DeviceInfo> cards;  // with PCI address and UUID, in NVIDIA's order
  std::string problem;            // why the query failed
  std::string remedy;
};

// Loads the library. Blocks for the few milliseconds of the driver calls.
NvidiaAnswer ask_nvml();
// The same with the first of |names| that can be loaded.
NvidiaAnswer ask_nvml(std::span<const std::string> names);
// Runs the program.
NvidiaAnswer ask_nvidia_smi();

// The arguments of the program, and the cards in its output; invalid lines are skipped.
extern const char* const kNvidiaSmiQuery;
std::vector<DeviceInfo> parse_nvidia_smi(std::string_view text);

// Merges the cards |read| from files with those the software |answered|; its order and values take precedence. Cards that only
// the files have come last.
std::vector<DeviceInfo> combine_nvidia(std::vector<DeviceInfo> read, std::vector<DeviceInfo> answered);

// "Hopper" for "9.0"; "" if unknown.
std::string_view nvidia_architecture(std::string_view compute_capability);

}  // namespace tenon
