#include "server/http/body/content_encoding.h"

#ifdef TENON_HAS_ZLIB
#include <zlib.h>
#endif

namespace tenon::server {

bool accepts_encoding(const Request& request, std::string_view coding) {
  std::string_view list = request.field("Accept-Encoding");
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    const std::string_view named = item.substr(0, item.find_first_of("; "));
    if ((named == coding || named == "*") && item.find("q=0") == std::string_view::npos) return true;
    // "q=0.5" is no refusal.
    if (named == coding && item.find("q=0.") != std::string_view::npos && item.find("q=0.0") == std::string_view::npos)
      return true;
  }
  return false;
}

std::string gzipped([[maybe_unused]] std::string_view text) {
  std::string out;
#ifdef TENON_HAS_ZLIB
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return out;
  out.resize(deflateBound(&stream, static_cast<uLong>(text.size())));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(is_done ? stream.total_out : 0);
  deflateEnd(&stream);
#endif
  return out;
}

}  // namespace tenon::server
