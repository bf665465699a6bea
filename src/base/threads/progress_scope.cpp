#include "base/threads/progress_scope.h"

namespace tenon {
namespace {

constinit thread_local const ProgressScope* innermost = nullptr;

}  // namespace

ProgressScope::ProgressScope(Listener listener) : listener_(std::move(listener)), outer_(innermost) { innermost = this; }

ProgressScope::~ProgressScope() { innermost = outer_; }

void tell_progress(const std::string& what) {
  if (innermost && innermost->listener_) innermost->listener_(what);
}

}  // namespace tenon
