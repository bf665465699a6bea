// RequestParser: the bytes of one HTTP/1 request -> Request. Beast's parser, without copies.
//
// The whole header is given in one piece; the Request's views point into it, so it must stay where it is. Content-Length bodies
// are not read here. A chunked body is: put() on until is_done(), it collects in Request::body.
#pragma once

#include <boost/beast/http/basic_parser.hpp>
#include <cstddef>
#include <string_view>

#include "server/http/message.h"

namespace tenon::server {

// The bytes of the header that |bytes| begin with, up to and with its empty line; 0 when more are needed. |scanned| bytes of it
// were looked at before. Throws Problem 400 for a line that ends without CR.
std::size_t find_header_end(std::string_view bytes, std::size_t& scanned);

class RequestParser final : public boost::beast::http::basic_parser<true> {
 public:
  static constexpr std::size_t kMaxFields = 100;

  // |header| ends with its empty line. Throws Problem for what is no request: 400, 431, 505.
  RequestParser(Request& request, std::string_view header);

  // The next piece of a chunked body; returns the bytes used, 0 when more are needed. Throws Problem 400 and 413.
  std::size_t put_chunks(std::string_view bytes, std::size_t max_body_bytes);

 private:
  using error_code = boost::beast::error_code;
  using view = boost::beast::string_view;
  std::string_view inside(view text, error_code& error) const;

  void on_request_impl(boost::beast::http::verb verb, view method, view target, int version, error_code& error) override;
  void on_response_impl(int, view, int, error_code&) override {}
  void on_field_impl(boost::beast::http::field, view name, view value, error_code& error) override;
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(view body, error_code&) override;
  void on_chunk_header_impl(std::uint64_t, view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, view body, error_code&) override;
  void on_finish_impl(error_code&) override {}

  Request& request_;
  std::string_view header_;
};

}  // namespace tenon::server
