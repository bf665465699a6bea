// What NVIDIA's own management software says of its cards: the library NVML, or the program nvidia-smi.
//
// Asking creates no CUDA context and wakes no card that sleeps; the library itself talks to the driver through the driver's
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
  std::vector<DeviceInfo> cards;  // with PCI address and UUID, in the maker's order
  std::string problem;            // why there is no answer
  std::string remedy;
};

// Loads the library. Blocks for the few milliseconds it takes to talk to the driver.
NvidiaAnswer ask_nvml();
// The same of the first of |names| that loads.
NvidiaAnswer ask_nvml(std::span<const std::string> names);
// Runs the program.
NvidiaAnswer ask_nvidia_smi();

// The arguments the program is asked with, and the cards in its answer; lines that make no sense are left out.
extern const char* const kNvidiaSmiQuery;
std::vector<DeviceInfo> parse_nvidia_smi(std::string_view text);

// One list of cards of what was |read| from files and what the software |answered|: its order and its word count more. Cards it
// does not know come last.
std::vector<DeviceInfo> combine_nvidia(std::vector<DeviceInfo> read, std::vector<DeviceInfo> answered);

// "Hopper" for "9.0"; "" when unknown.
std::string_view nvidia_architecture(std::string_view compute_capability);

}  // namespace tenon
