// Error: the only exception type that Tenon throws.
//
// It carries a stable code (the kind of failure, which one table maps to exit statuses and HTTP statuses), a message (what failed
// and on what) and a hint (what to do about it; may be empty).
//
//   try { manager.run(graph, inputs); }
//   catch (const tenon::Error& e) { log(e.what()); if (e.code() == tenon::ErrorCode::unavailable) retry(); }
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

// unimplemented means never supported; unavailable means not available now. Tenon keeps the two apart.
enum class ErrorCode {
  ok,
  cancelled,            // cancelled by the caller
  unknown,              // a runtime failed without a reason
  invalid_argument,     // wrong in every state: bad shape, bad dtype, bad expression
  deadline_exceeded,    // the caller's time limit expired
  not_found,            // no such op, device, file
  already_exists,       // the name is already registered
  permission_denied,    // refused by the operating system
  resource_exhausted,   // a memory budget, queue or size limit is reached
  failed_precondition,  // a valid call in the wrong state
  aborted,              // lost a race; retry
  out_of_range,         // an index past the end
  unimplemented,        // never supported by this backend
  internal,             // a broken invariant: a bug in Tenon
  unavailable,          // not available now: busy, being reset, driver missing
  data_loss,            // data is lost or corrupt
};

std::string_view to_string(ErrorCode code) noexcept;

// The process exit status of a command that failed with |code|: 1 failure, 2 usage, 3 not found, 4 busy or unavailable.
int exit_status(ErrorCode code) noexcept;
// The HTTP status of a request that failed with |code|.
int http_status(ErrorCode code) noexcept;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string hint = {});

  ErrorCode code() const noexcept { return code_; }
  // One sentence on what to do about the error; empty if there is no useful advice.
  const std::string& hint() const noexcept { return hint_; }

 private:
  ErrorCode code_;
  std::string hint_;
};

}  // namespace tenon
