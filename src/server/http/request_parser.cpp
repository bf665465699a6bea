#include "server/http/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include "server/http/problem.h"

namespace tenon::server {
namespace {

namespace http = boost::beast::http;

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return Method::get;
    case http::verb::head: return Method::head;
    case http::verb::post: return Method::post;
    case http::verb::put: return Method::put;
    case http::verb::patch: return Method::patch;
    case http::verb::delete_: return Method::delete_;
    case http::verb::options: return Method::options;
    default: return Method::other;
  }
}

[[noreturn]] void refuse(const boost::beast::error_code& error) {
  if (error == http::error::header_limit) throw Problem(431, "too_large", "the header has too many fields");
  if (error == http::error::body_limit) throw Problem(413, "too_large", "the body is larger than the limit");
  if (error == http::error::bad_version) throw Problem(505, "invalid_argument", "the protocol is not HTTP/1.0 or HTTP/1.1");
  throw Problem(400, "invalid_argument", "not an HTTP request: " + error.message());
}

}  // namespace

std::size_t find_header_end(std::string_view bytes, std::size_t& scanned) {
  for (std::size_t at = bytes.find('\n', scanned); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') throw Problem(400, "invalid_argument", "not an HTTP request: a line ends without CR");
    if (at >= 3 && bytes[at - 2] == '\n') return at + 1;
  }
  scanned = bytes.size();
  return 0;
}

RequestParser::RequestParser(Request& request, std::string_view header) : request_(request), header_(header) {
  request_.fields.clear();
  request_.body = nullptr;
  header_limit(static_cast<std::uint32_t>(header.size() + 1));
  body_limit(boost::none);
  error_code error;
  put(boost::asio::const_buffer(header.data(), header.size()), error);
  if (error == http::error::need_more || (!error && !is_header_done()))
    throw Problem(400, "invalid_argument", "not an HTTP request: the header does not end");
  if (error) refuse(error);
}

std::size_t RequestParser::put_chunks(std::string_view bytes, std::size_t max_body_bytes) {
  eager(true);
  error_code error;
  // Growing by doubling would copy megabytes in the thread of all connections; pages that are not written cost nothing.
  constexpr std::size_t kCopiedAtMost = 1 << 20;
  if (request_.body)
    if (std::string& text = request_.body->text; text.size() >= kCopiedAtMost && text.capacity() - text.size() < bytes.size())
      text.reserve(max_body_bytes + bytes.size());
  const std::size_t used = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (error && error != http::error::need_more) refuse(error);
  if (request_.body && request_.body->text.size() > max_body_bytes) refuse(http::make_error_code(http::error::body_limit));
  return used;
}

// A folded line would be put together elsewhere. RFC 9112 lets a server refuse them, and nobody sends them.
std::string_view RequestParser::inside(view text, error_code& error) const {
  if (text.empty()) return {};
  if (text.data() < header_.data() || text.data() + text.size() > header_.data() + header_.size()) error = http::error::bad_value;
  return {text.data(), text.size()};
}

void RequestParser::on_request_impl(http::verb verb, view method, view target, int version, error_code& error) {
  request_.method = method_of(verb);
  request_.method_text = inside(method, error);
  request_.version = version;
  request_.target = inside(target, error);
  if (error) return;
  std::string_view rest = request_.target;
  // A client that takes us for a proxy names the whole address; the host is in the Host field as well.
  if (rest.starts_with("http://") || rest.starts_with("https://")) {
    const std::size_t slash = rest.find('/', rest.find("//") + 2);
    rest = slash == std::string_view::npos ? std::string_view("/") : rest.substr(slash);
  }
  if (const std::size_t fragment = rest.find('#'); fragment != std::string_view::npos) rest = rest.substr(0, fragment);
  const std::size_t mark = rest.find('?');
  request_.path = rest.substr(0, mark);
  request_.query = mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1);
}

void RequestParser::on_field_impl(http::field, view name, view value, error_code& error) {
  if (is_header_done()) return;  // a trailer: nothing here needs one
  if (request_.fields.size() >= kMaxFields) {
    error = http::error::header_limit;
    return;
  }
  request_.fields.push_back({inside(name, error), inside(value, error)});
}

std::size_t RequestParser::on_body_impl(view body, error_code&) {
  if (!request_.body) request_.body = std::make_shared<Body>();
  request_.body->text.append(body.data(), body.size());
  return body.size();
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, view body, error_code& error) { return on_body_impl(body, error); }

}  // namespace tenon::server
