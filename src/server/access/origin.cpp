#include "server/access/origin.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "server/http/problem.h"

namespace tenon::server {
namespace {

bool is_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_api(const Request& request) {
  return request.path.starts_with("/api/") || request.path.starts_with("/v1/") || request.path.starts_with("/v2");
}

std::string_view last_field(const Request& request, std::string_view name) {
  const auto found = std::find_if(request.fields.rbegin(), request.fields.rend(),
                                  [&](const Field& field) { return equal_ignoring_case(field.name, name); });
  return found == request.fields.rend() ? std::string_view() : found->value;
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  if (equal_ignoring_case(host, "localhost")) return true;
  const std::string text(host);
  in_addr four;
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six;
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

std::string_view host_name(std::string_view field) {
  const bool is_bracketed = field.starts_with('[');
  const std::size_t end = is_bracketed ? field.find(']') : field.find(':');
  if (is_bracketed && end == std::string_view::npos) return {};
  const std::string_view name = is_bracketed ? field.substr(1, end - 1) : field.substr(0, end);
  std::string_view rest = end == std::string_view::npos ? std::string_view() : field.substr(is_bracketed ? end + 1 : end);
  if (rest.empty()) return name;
  if (!rest.starts_with(':')) return {};
  rest.remove_prefix(1);
  const bool is_port = rest.size() <= 5 && std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_port ? name : std::string_view();
}

void check_host(const Request& request, std::span<const std::string> allowed) {
  const std::string_view field = request.field("Host");
  if (request.version < 11 && field.empty()) return;
  const std::string_view name = host_name(field);
  if (is_loopback_host(name)) return;
  const auto is_same = [&](const std::string& host) { return equal_ignoring_case(host, name); };
  if (!name.empty() && std::any_of(allowed.begin(), allowed.end(), is_same)) return;
  throw Problem(403, "permission_denied", fmt::format("this server does not accept the host name '{}'", field.substr(0, 100)),
                "use localhost, or start the server with --allow-host");
}

void check_origin(const Request& request, bool has_login) {
  const bool only_reads = request.method == Method::get || request.method == Method::head || request.method == Method::options;
  if (only_reads && (has_login || !is_api(request))) return;
  const auto refuse = [] {
    throw Problem(403, "permission_denied", "another site's page made this request",
                  "use the server's own page or a client that is not a browser");
  };
  const std::string_view site = request.field("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") refuse();
  const std::string_view origin = request.field("Origin");
  if (origin.empty()) return;
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || !equal_ignoring_case(origin.substr(scheme + 3), request.field("Host"))) refuse();
}

std::string client_address(const Request& request, const std::string& peer, const std::string& trusted_proxy) {
  if (trusted_proxy.empty() || peer != trusted_proxy) return peer;
  std::string_view forwarded = last_field(request, "X-Forwarded-For");
  if (const std::size_t comma = forwarded.rfind(','); comma != std::string_view::npos) forwarded.remove_prefix(comma + 1);
  std::string address(without_spaces(forwarded));
  return is_address(address) ? address : peer;
}

}  // namespace tenon::server
