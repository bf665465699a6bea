// Every backend of this build. The one place that names them.
#pragma once

#include "backend/registry.h"

namespace tenon {

void register_all_backends(BackendRegistry& registry);

}  // namespace tenon
