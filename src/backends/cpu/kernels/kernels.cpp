#include "backends/cpu/kernels/kernels.h"

#include <cstdlib>
#include <string_view>

#include "backends/cpu/kernels/level.h"

namespace tenon::cpu {
namespace {

// Kernels of per_level/f64.cpp replace those of per_level/scalar.cpp.
#ifdef TENON_HAS_VECTOR_FUNCTIONS
#define TENON_ADD_F64(level) level::add_f64_kernels(result)
#else
#define TENON_ADD_F64(level)
#endif

static_assert(sizeof(ElementwiseRow) == sizeof(Kernels::elementwise[0]));

#define TENON_BUILD(level, isa_name)                 \
  const Kernels& table() {                           \
    static const Kernels kernels = [] {              \
      Kernels result{};                              \
      result.isa = isa_name;                         \
      level::add_scalar_kernels(result.elementwise); \
      TENON_ADD_F64(level);                          \
      level::add_f32_kernels(result);                \
      level::add_bf16_kernels(result);               \
      level::add_convert_kernels(result);            \
      level::add_reduce_kernels(result);             \
      level::add_memory_kernels(result);             \
      level::add_transpose_kernels(result);          \
      return result;                                 \
    }();                                             \
    return kernels;                                  \
  }
#ifdef __x86_64__
namespace v2_table {
TENON_BUILD(v2, "x86-64-v2")
}
namespace v3_table {
TENON_BUILD(v3, "x86-64-v3")
}
namespace v4_table {
TENON_BUILD(v4, "x86-64-v4")
}
#else
namespace generic_table {
TENON_BUILD(generic, "generic")
}
#endif
#undef TENON_BUILD
#undef TENON_ADD_F64

int highest_level_allowed() {
  const char* text = std::getenv("TENON_ISA");
  const std::string_view limit = text ? text : "";
  if (limit == "v2") return 2;
  if (limit == "v3") return 3;
  return 4;
}

const Kernels& choose() {
#ifdef __x86_64__
  for (int level = highest_level_allowed(); level > 2; --level)
    if (const Kernels* found = kernels_for_level(level)) return *found;
  return v2_table::table();
#else
  return generic_table::table();
#endif
}

}  // namespace

const Kernels* kernels_for_level([[maybe_unused]] int level) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (level == 2 && __builtin_cpu_supports("x86-64-v2")) return &v2_table::table();
  if (level == 3 && __builtin_cpu_supports("x86-64-v3")) return &v3_table::table();
  if (level == 4 && __builtin_cpu_supports("x86-64-v4")) return &v4_table::table();
#else
  if (level == 0) return &generic_table::table();
#endif
  return nullptr;
}

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace tenon::cpu
