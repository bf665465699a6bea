#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tenon::python {
namespace {

std::atomic<bool> is_ending{false};
std::atomic<int> entering{0};  // threads that have looked at is_ending and have not got the GIL yet
thread_local bool ends_interpreter = false;

// True if the thread may take the GIL; it then calls has_entered() when it has it. The hook sets the mark first and then waits
// for those who came before, so that nobody takes the GIL later.
bool may_enter() noexcept {
  entering.fetch_add(1);
  if (!is_ending.load() || ends_interpreter) return true;
  entering.fetch_sub(1);
  return false;
}
void has_entered() noexcept { entering.fetch_sub(1); }

void end() {
  ends_interpreter = true;
  is_ending = true;
  constexpr auto kLongest = std::chrono::seconds(5);  // a thread with the GIL may hang elsewhere
  const auto until = std::chrono::steady_clock::now() + kLongest;
  PyThreadState* const state = PyEval_SaveThread();
  while (entering.load() > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

}  // namespace

WithoutGil::~WithoutGil() {
  if (!may_enter())
    for (;;) pause();
  PyEval_RestoreThread(state_);
  has_entered();
}

WithGil::WithGil() : is_held_(Py_IsInitialized() && may_enter()) {
  if (!is_held_) return;
  state_ = PyGILState_Ensure();
  has_entered();
}

WithGil::~WithGil() {
  if (is_held_) PyGILState_Release(state_);
}

void bind_gil(nb::module_& module) {
  module.def("_end", &end);
  nb::module_::import_("atexit").attr("register")(module.attr("_end"));
}

}  // namespace tenon::python
