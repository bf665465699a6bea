// What each vendor's cards need on this machine, what was looked for, and what to install if it is missing.
//
// Reads files only; opens no device. The texts name packages and commands, never a path of one machine.
//
//   for (const SearchResult& vendor : search_accelerators(SystemRoot())) print(vendor.text, vendor.remedy);
//   for (const CardStep& step : steps_of(SystemRoot(), device)) print(step.name, step.text);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"

namespace tenon {

// What to install so that a backend can drive |device|, whose driver works; for a vendor that is not known, what else can be
// done.
std::string runtime_remedy(const DeviceInfo& device);

// What was looked for to find a device of |kind|, as the end of a sentence: "no card of NVIDIA, AMD or Intel is on the PCI bus".
std::string searched_for(DeviceKind kind);

struct SearchResult {
  std::string id;      // "nvidia", "amd", "intel", "tpu", "tenstorrent"
  std::string vendor;  // "NVIDIA"
  bool is_found = false;
  std::string text;    // what is there and what is not, in the order in which it is needed
  std::string remedy;  // what to do on a machine that has such a card; "" if one was found
};
std::vector<SearchResult> search_accelerators(const SystemRoot& machine);

// One requirement of a card, in the order in which they are needed: card, driver, node, permission, runtime. Ends after the first
// that is not met.
struct CardStep {
  std::string name;
  bool is_met = true;
  std::string text;
  std::string remedy = {};
};
std::vector<CardStep> steps_of(const SystemRoot& machine, const DeviceInfo& device);

}  // namespace tenon
