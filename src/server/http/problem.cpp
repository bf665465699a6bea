#include "server/http/problem.h"

#include <fmt/format.h>

#include <new>

#include "base/text/json_writer.h"

namespace tenon::server {
namespace {

std::string place_json(const ExpressionError::Place& place) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("line", place.line);
  json.member("column", place.column);
  json.member("length", place.length);
  json.member("source_line", place.source_line.substr(0, 1000));
  json.end_object();
  return text;
}

}  // namespace

std::string_view reason_phrase(int status) noexcept {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

Problem Problem::of(const std::exception& error, Stage stage) {
  if (const auto* problem = dynamic_cast<const Problem*>(&error)) return *problem;
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    int status = http_status(known->code());
    std::string code(to_string(known->code()));
    int retry = 0;
    if (known->code() == ErrorCode::resource_exhausted) {
      status = stage == Stage::preparing ? 413 : 503;
      if (stage == Stage::preparing) code = "too_large";
      if (stage == Stage::running) retry = 1;
    }
    if (known->code() == ErrorCode::unavailable) retry = 2;
    Problem problem = Problem(status, code, known->what(), known->hint()).with_retry(retry);
    if (const auto* place = dynamic_cast<const ExpressionError*>(known))
      problem.members_.emplace_back("place", place_json(place->place()));
    return problem;
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return Problem(503, "overloaded", "the server is out of memory").with_retry(5);
  return Problem(500, "internal", "internal server error", "the server's log has the reason under this request id");
}

std::string Problem::document(std::string_view path, std::string_view request_id) const {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("type", "/problems/" + code_);
  json.member("title", reason_phrase(status_));
  json.member("status", status_);
  json.member("detail", std::string_view(what()));
  json.member("instance", fmt::format("{}#{}", path, request_id));
  json.member("code", code_);
  json.member("hint", hint_);
  json.member("request_id", request_id);
  json.member("success", false);
  if (path.starts_with("/v1/")) {
    // As OpenAI's clients read it; they show the message alone.
    json.key("error").begin_object();
    json.member("message", hint_.empty() ? std::string(what()) : fmt::format("{} ({})", what(), hint_));
    json.member("type", status_ < 500 ? "invalid_request_error" : "server_error");
    json.key("param").null();
    json.member("code", code_);
    json.end_object();
  } else {
    json.member("error", std::string_view(what()));
  }
  if (retry_seconds_ > 0) json.member("retry_after_seconds", retry_seconds_);
  for (const auto& [name, value] : members_) json.key(name).raw(value);
  json.end_object();
  return text;
}

Response Problem::response(std::string_view path, std::string_view request_id) const {
  Response response;
  response.status = status_;
  response.content_type = "application/problem+json";
  response.fields = fields_;
  if (retry_seconds_ > 0) response.fields.emplace_back("Retry-After", std::to_string(retry_seconds_));
  response.body = document(path, request_id);
  return response;
}

}  // namespace tenon::server
