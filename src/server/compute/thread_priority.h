// Priorities of the server's threads: those that answer come before those that compute, for the operating system too.
#pragma once

namespace tenon::server {

constexpr int kConnectionsNice = -10;  // the thread of all connections, whose work is short and which everybody needs
constexpr int kAttendantsNice = -5;    // logins, metrics, status
constexpr int kComputingNice = 5;      // where those that answer cannot be preferred

int own_nice() noexcept;
// Whether set_own_nice() can set one below zero.
bool may_prefer_threads() noexcept;
// Sets the nice value of the calling thread. One below zero needs root, CAP_SYS_NICE or LimitNICE= and is otherwise left as it
// is; threads and processes that the caller starts do not inherit it.
void set_own_nice(int nice) noexcept;

}  // namespace tenon::server
