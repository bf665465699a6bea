#include "backends/all.h"

#include "backends/cpu/backend.h"

namespace tenon {

void register_all_backends(BackendRegistry& registry) { registry.add(cpu::make_backend()); }

}  // namespace tenon
