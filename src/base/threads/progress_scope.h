// ProgressScope: lets a long call of this thread say what it is doing to whoever waits for it.
//
// Lifetime: on the stack of the thread it is for; an inner scope hides the outer one. Thread safety: none, it is the thread's
// own.
//
//   const ProgressScope scope([&](const std::string& what) { show(what); });
//   executable.run(inputs, outputs);        // may call tell_progress("compiling kernels (3 of 12)")
#pragma once

#include <functional>
#include <string>

namespace tenon {

class ProgressScope {
 public:
  using Listener = std::function<void(const std::string& what)>;
  explicit ProgressScope(Listener listener);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  friend void tell_progress(const std::string& what);
  const Listener listener_;
  const ProgressScope* const outer_;
};

// Nothing happens where nobody listens.
void tell_progress(const std::string& what);

}  // namespace tenon
