// Who a request comes from and whom it is addressed to, checked before anything else of it is read.
//
// A browser runs other sites' pages beside ours. Two things keep those away from a server without login: the server answers only
// to names that cannot be anybody else's (a name of the attacker's may resolve to 127.0.0.1), and it believes the browser when
// that says that another site's page made the request.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace tenon::server {

// "localhost", or an address in 127.0.0.0/8, or ::1. A name that merely begins like an address is not one.
bool is_loopback_host(std::string_view host);

// The host of a Host field without its port: "localhost:8080" -> "localhost", "[::1]:8080" -> "::1". "" if malformed.
std::string_view host_name(std::string_view field);

// Without login: throws Problem 403 unless the Host field names loopback or one of |allowed|.
void check_host(const Request& request, std::span<const std::string> allowed);

// Throws Problem 403 for a request that another site's page makes. Reading (GET, HEAD) is allowed to other sites only where a
// login protects it, and everywhere outside /api, /v1 and /v2.
void check_origin(const Request& request, bool has_login);

// The client's address: |peer|, or what the trusted proxy |peer| appended to X-Forwarded-For. Only the last element of the last
// field counts; everything before it is the client's own claim. Anything but an address is ignored.
std::string client_address(const Request& request, const std::string& peer, const std::string& trusted_proxy);

}  // namespace tenon::server
