// Problem: what goes wrong with a request, as the client reads it (RFC 9457).
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/message.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::server {

// Where an error happened decides what a reached limit means: a program that is too large stays so (413), a device or a server
// that is full may have room later (503).
enum class Stage { preparing, running };

class Problem : public std::runtime_error {
 public:
  Problem(int status, std::string code, const std::string& detail, std::string hint = {})
      : std::runtime_error(detail),
        status_(status),
        code_(std::move(code)),
        hint_(std::move(hint)) {}

  static Problem of(const std::exception& error, Stage stage);

  Problem&& with_retry(int seconds) && {
    retry_seconds_ = seconds;
    return std::move(*this);
  }
  Problem&& with_field(std::string name, std::string value) && {
    fields_.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
  }
  // A further member; |json| is its value as JSON text.
  Problem&& with(std::string name, std::string json) && {
    members_.emplace_back(std::move(name), std::move(json));
    return std::move(*this);
  }

  int status() const noexcept { return status_; }
  const std::string& code() const noexcept { return code_; }
  const std::string& hint() const noexcept { return hint_; }

  // The members of the document, as JSON text.
  std::string document(std::string_view path, std::string_view request_id) const;
  Response response(std::string_view path, std::string_view request_id) const;

 private:
  int status_;
  std::string code_, hint_;
  int retry_seconds_ = 0;
  std::vector<std::pair<std::string, std::string>> fields_, members_;
};

std::string_view reason_phrase(int status) noexcept;

}  // namespace tenon::server
