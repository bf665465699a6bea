// Error: the one exception Tenon throws.
//
// It carries a code (what kind of failure, stable, mapped to HTTP status, exit code and Python exception by one
// table), a message (what happened, to what) and a hint (what to do about it; may be empty).
//
//   try { manager.run(graph, inputs); }
//   catch (const tenon::Error& e) { log(e.what()); if (e.code() == tenon::ErrorCode::unavailable) retry(); }
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

// "Never supported here" is unimplemented; "not available now" is unavailable. They are never mixed.
enum class ErrorCode {
  ok,
  cancelled,            // the caller asked for it
  unknown,              // a runtime failed without saying why
  invalid_argument,     // wrong whatever the state of the world: bad shape, bad dtype, bad expression
  deadline_exceeded,    // the time limit given by the caller ran out
  not_found,            // no such op, device, file
  already_exists,       // a second registration under one name
  permission_denied,    // the system refused
  resource_exhausted,   // memory budget, queue or size limit reached
  failed_precondition,  // right call, wrong state
  aborted,              // lost a race; try again
  out_of_range,         // an index past the end
  unimplemented,        // never supported by this backend
  internal,             // a broken invariant: a bug in Tenon
  unavailable,          // not now: busy, being reset, driver missing
  data_loss,            // bytes are gone or corrupt
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
  // What to do about it, one sentence; empty when there is nothing useful to say.
  const std::string& hint() const noexcept { return hint_; }

 private:
  ErrorCode code_;
  std::string hint_;
};

}  // namespace tenon
