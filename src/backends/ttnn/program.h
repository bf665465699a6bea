// Programs for the worker (tenon-ttnn-worker): a graph, planned in one of the two tiers, as the text of its steps.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/ttnn/exact.h"
#include "backends/ttnn/fast.h"
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

// JSON (see Program in the worker).
std::string program_text(const ExactPlan& plan);
std::string program_text(const FastPlan& plan, std::vector<std::byte>& constants);

// |device| as it was opened. A program in the fast tier has the exact one behind it, for the case that TTNN refuses it.
TranslatedProgram translate(const Graph& graph, const DeviceInfo& device, Math math);

}  // namespace tenon::ttnn
