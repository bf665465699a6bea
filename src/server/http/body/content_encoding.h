// Content-Encoding: whether a client takes compressed answers, and making one.
#pragma once

#include <string>
#include <string_view>

#include "server/http/message.h"

namespace tenon::server {

// Whether the request's Accept-Encoding allows |coding| ("gzip", "br").
bool accepts_encoding(const Request& request, std::string_view coding);

// |text| as gzip; "" in a build without zlib.
std::string gzipped(std::string_view text);

}  // namespace tenon::server
