#include "base/threads/turn.h"

namespace tenon {
namespace {

constinit thread_local Turn* current_turn = nullptr;

}  // namespace

Turn* Turn::current() noexcept { return current_turn; }
void Turn::set_current(Turn* turn) noexcept { current_turn = turn; }

}  // namespace tenon
