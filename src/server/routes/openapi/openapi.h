// /openapi.json: the route table as an OpenAPI 3.1 document.
#pragma once

#include <string>

#include "server/routes/routes.h"

namespace tenon::server {

std::string openapi_document(const RouteTable& routes, bool has_login);

}  // namespace tenon::server
