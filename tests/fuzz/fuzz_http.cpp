// The bytes a client sends, as Connection reads them: the header in pieces, its fields, a chunked body in pieces.
//
// The first byte of a case says where the pieces end.
#include <boost/json.hpp>

#include "fuzz/fuzzer.h"
#include "server/http/problem.h"
#include "server/http/request_parser.h"

namespace tenon {
namespace {

using server::Problem;
using server::Request;
using server::RequestParser;

constexpr std::size_t kMaxBody = 4096;

bool is_inside(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_request(const Request& request, std::string_view header) {
  for (const std::string_view part : {request.method_text, request.target, request.query})
    fuzz::require(is_inside(part, header), "a part of the request line lies outside of the header");
  fuzz::require(is_inside(request.path, header) || request.path == "/", "the path lies outside of the header");
  fuzz::require(request.fields.size() <= RequestParser::kMaxFields, "too many fields");
  for (const auto& field : request.fields) {
    fuzz::require(is_inside(field.name, header) && is_inside(field.value, header), "a field lies outside of the header");
    fuzz::require(!field.name.empty(), "a field without a name");
    fuzz::require(request.count(field.name) > 0, "a field that is not found by its name");
    fuzz::require(field.value.find_first_of("\r\n") == std::string_view::npos, "a field of several lines");
  }
  (void)request.parameter("device");
  (void)server::percent_decode(request.path, false);
}

// As Connection reads: a piece more at a time until the header has ended.
std::size_t header_length(std::string_view bytes, std::size_t step) {
  std::size_t scanned = 0;
  for (std::size_t have = step; have < bytes.size(); have += step)
    if (const std::size_t length = server::find_header_end(bytes.substr(0, have), scanned); length > 0) return length;
  return server::find_header_end(bytes, scanned);
}

void parse_request(std::string_view bytes, std::size_t step) {
  const std::size_t length = header_length(bytes, step);
  std::size_t scanned = 0;
  fuzz::require(length == server::find_header_end(bytes, scanned), "where the header ends depends on how it arrives");
  if (length == 0) throw Problem(400, "invalid_argument", "the header does not end");
  Request request;
  const std::string_view header = bytes.substr(0, length);
  RequestParser parser(request, header);
  check_request(request, header);
  if (!parser.chunked()) return;
  std::string_view rest = bytes.substr(length);
  // A piece that is used in part only comes again with what follows it.
  for (std::size_t have = std::min(step, rest.size()); !parser.is_done();) {
    const std::size_t used = parser.put_chunks(rest.substr(0, have), kMaxBody);
    fuzz::require(used <= have, "more bytes were used than given");
    rest.remove_prefix(used);
    if (used == 0 && have == rest.size()) break;
    have = std::min(used == 0 ? have + step : step, rest.size());
    if (have == 0) break;
  }
  if (!parser.is_done()) throw Problem(400, "invalid_argument", "the body does not end");
}

void parse(fuzz::Bytes bytes) {
  if (bytes.empty()) throw Error(ErrorCode::invalid_argument, "there is no request");
  const std::size_t step = 1 + static_cast<std::size_t>(bytes[0]);
  try {
    parse_request(fuzz::text_of(bytes.subspan(1)), step);
  } catch (const Problem& problem) {
    boost::json::error_code error;
    (void)boost::json::parse(problem.document("/", "1"), error);
    fuzz::require(!error, "the refusal is not JSON");
    throw Error(ErrorCode::invalid_argument, problem.what());
  }
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "http"};
  for (const std::string request : {
           "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "GET /api/device/status?device=sim%3A0&x=a+b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
           "POST /api/execute HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
           "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;a=b\r\nyou\r\n0\r\nT: 1\r\n\r\n",
           "OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
           "DELETE http://host:80/api/jobs/1#top HTTP/1.1\r\nHost: host\r\nExpect: 100-continue\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n",
       })
    for (const char step : {'\0', '\6', '\xff'}) target.seeds.push_back(step + request);
  target.words = {"\r\n",
                  "\r\n\r\n",
                  "\n",
                  ": ",
                  "GET ",
                  "POST ",
                  " HTTP/1.1\r\n",
                  "HTTP/2.0",
                  "Host: a",
                  "Content-Length: ",
                  "Transfer-Encoding: chunked\r\n",
                  "0\r\n\r\n",
                  "ffffffffffffffff\r\n",
                  "%00",
                  "%zz",
                  "?",
                  "&",
                  "#",
                  "http://",
                  "\t",
                  "18446744073709551616",
                  "Connection: ",
                  "Expect: 100-continue\r\n"};
  target.dense = {"\xffGET / HTTP/1.1\r\n" + [] {
    std::string fields;
    for (int i = 0; i < 99; ++i) fields += "a:" + std::string(600, 'b') + "\r\n";
    return fields;
  }() + "\r\n"};
  target.parse = parse;
  target.bound = [](std::size_t bytes) { return 64 * bytes + (1 << 17); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
