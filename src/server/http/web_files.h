// The page's files, built into the program.
//
// web/ generates one source file that defines web_files() when the page has been built; without it the server says so in a short
// page. Paths begin with a slash ("/index.html", "/assets/app-3f2a.js"). A file below /assets/ never changes under its name and
// is cached for ever; the others are checked by their etag.
#pragma once

#include <span>
#include <string_view>

namespace tenon::server {

enum class WebEncoding : unsigned char { identity, gzip, brotli };

struct WebFile {
  std::string_view path;
  std::string_view content_type;                 // "text/javascript; charset=utf-8"
  std::string_view etag;                         // with its quotes: "\"3f2a...\""
  WebEncoding encoding = WebEncoding::identity;  // of |bytes|
  std::span<const unsigned char> bytes;
  // The bytes without an encoding, for clients that accept none; may be empty when |encoding| is identity.
  std::span<const unsigned char> plain;
};

// Sorted by path and encoding; a path may be there in several encodings. Empty when the page was not built.
std::span<const WebFile> web_files() noexcept;

}  // namespace tenon::server
