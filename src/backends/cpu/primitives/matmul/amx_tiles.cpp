#include "backends/cpu/primitives/matmul/amx_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {

TileConfiguration TileConfiguration::square() {
  TileConfiguration configuration;
  for (int tile = 0; tile < 8; ++tile) configuration.set(tile, 16, 64);
  return configuration;
}

#if defined(__x86_64__) && defined(__linux__)
namespace {

bool gets_permission() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

TileUnits find_units() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  if (!(d & kTile) || !gets_permission()) return {};
  return {.bf16 = (d & kBf16) != 0, .int8 = (d & kInt8) != 0};
}

}  // namespace

const TileUnits& tile_units() {
  static const TileUnits units = find_units();
  return units;
}

// g++ ignores the attribute on constructors and destructors.
[[gnu::target("amx-tile")]] static void configure_tiles(const TileConfiguration& to) { _tile_loadconfig(&to); }
[[gnu::target("amx-tile")]] static void release_tiles() { _tile_release(); }

TileUse::TileUse(const TileConfiguration& configuration) { configure_tiles(configuration); }
TileUse::~TileUse() { release_tiles(); }

#else

const TileUnits& tile_units() {
  static const TileUnits none;
  return none;
}
TileUse::TileUse(const TileConfiguration&) {}
TileUse::~TileUse() = default;

#endif

}  // namespace tenon::cpu
