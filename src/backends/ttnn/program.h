// Programs for the worker (tenon-ttnn-worker): a graph, planned in parts of two tiers, as the text of its steps.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/ttnn/mixed.h"
#include "hal/worker/worker.h"

namespace tenon::ttnn {

// The setting tenstorrent_math.
enum class Math : std::uint8_t {
  exact,      // kernels of our own on the chip's cores: Tenon's results to the bit
  fast,       // TTNN's functions wherever they exist and the chip has their types
  by_limits,  // "auto": TTNN's functions where they keep Tenon's limits
};
std::optional<Math> parse_math(std::string_view text) noexcept;
// $TENON_TENSTORRENT_MATH; by_limits if it is unset. Throws invalid_argument.
Math configured_math();

// JSON (see Program in the worker); appends the bytes of constants.
std::string program_text(const MixedPlan& plan, std::vector<std::byte>& constants);

// |device| as it was opened. A program with fast parts has an exact one behind it, for the case that TTNN refuses it.
TranslatedProgram translate(const Graph& graph, const DeviceInfo& device, Math math);
// What TTNN may be used for on |device|.
FastRules rules_for(const DeviceInfo& device, Math math);

}  // namespace tenon::ttnn
