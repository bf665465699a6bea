// The schemas that routes name (JSON Schema 2020-12, as text).
#pragma once

#include <span>
#include <string_view>

namespace tenon::server {

struct NamedSchema {
  std::string_view name, json;
};
std::span<const NamedSchema> openapi_schemas() noexcept;

}  // namespace tenon::server
