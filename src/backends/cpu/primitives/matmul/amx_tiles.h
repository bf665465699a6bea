// AMX tiles: whether this process may use the CPU's matrix registers, and their configuration.
//
//   if (may_use_tiles()) {
//     const TileUse use(TileConfiguration::square());
//     ...  // _tile_loadd, _tile_dpbf16ps ...
//   }
//
// Thread safety: a configuration is the calling thread's.
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Which products of tiles there are.
struct TileUnits {
  bool bf16 = false, int8 = false;
};
// None where the CPU has no tiles or the kernel refuses them: it saves these large registers only for processes that have asked.
const TileUnits& tile_units();

// The layout that LDTILECFG reads (Intel's manual, volume 1, 18.3).
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, int wanted_rows, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(wanted_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
  // All eight tiles with 16 rows of 64 bytes.
  static TileConfiguration square();
};
static_assert(sizeof(TileConfiguration) == 64);

// Tiles in use by this thread. Released at once: a thread with tiles in use costs 8 KiB at every switch.
class TileUse {
 public:
  explicit TileUse(const TileConfiguration& configuration);
  ~TileUse();
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;
};

}  // namespace tenon::cpu
