// The page and its files, from the table built into the program.
#include <algorithm>

#include "server/http/body/content_encoding.h"
#include "server/http/web_files.h"
#include "server/services.h"

namespace tenon::server {
namespace {

constexpr std::string_view kNoPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Tenon</title><h1>Tenon</h1>"
    "<p>This server was built without its page (Node.js was missing). The API is here: "
    "<a href=\"/openapi.json\">openapi.json</a>, <a href=\"/api/devices\">devices</a>, "
    "<a href=\"/api/catalogue\">catalogue</a>.</p></html>";

bool accepts(const Request& request, WebEncoding encoding) {
  return encoding == WebEncoding::identity || accepts_encoding(request, encoding == WebEncoding::gzip ? "gzip" : "br");
}

Response no_page() {
  Response response;
  response.content_type = "text/html; charset=utf-8";
  response.body = kNoPage;
  return response;
}

// The smallest form the client accepts.
std::optional<Response> file_response(const Request& request, std::string_view path) {
  const WebFile* best = nullptr;
  const WebFile* any = nullptr;
  for (const WebFile& file : web_files()) {
    if (file.path != path) continue;
    any = &file;
    if (accepts(request, file.encoding) && (best == nullptr || file.bytes.size() < best->bytes.size())) best = &file;
  }
  if (any == nullptr) return std::nullopt;
  Response response;
  const bool is_plain = best == nullptr && !any->plain.empty();
  const WebFile& file = best != nullptr ? *best : *any;
  response.content_type = file.content_type;
  response.fields.emplace_back("ETag", file.etag);
  response.fields.emplace_back("Vary", "Accept-Encoding");
  response.fields.emplace_back("Cache-Control",
                               path.starts_with("/assets/") ? "public, max-age=31536000, immutable" : "no-cache");
  if (!is_plain && file.encoding != WebEncoding::identity)
    response.fields.emplace_back("Content-Encoding", file.encoding == WebEncoding::gzip ? "gzip" : "br");
  if (request.field("If-None-Match") == file.etag)
    response.status = 304;
  else
    response.fixed = is_plain ? file.plain : file.bytes;
  return response;
}

}  // namespace

std::optional<Response> page_response(const Request& request) {
  const std::optional<std::string> path = percent_decode(request.path, false);
  if (!path || path->starts_with("/api/") || path->starts_with("/v1/") || path->starts_with("/v2")) return std::nullopt;
  if (std::optional<Response> file = file_response(request, *path)) return file;
  // The page's own addresses can be reloaded; what looks like a file must be one.
  if (path->find('.') != std::string::npos || path->find("//") != std::string::npos) return std::nullopt;
  if (web_files().empty()) return *path == "/" || *path == "/login" ? std::optional(no_page()) : std::nullopt;
  return file_response(request, "/index.html");
}

}  // namespace tenon::server
