// Where Tenon keeps what it has learnt between runs: measured profiles, the ledger.
#pragma once

#include <functional>
#include <string>

namespace tenon {

// $TENON_STATE_DIR, else $XDG_STATE_HOME/tenon, else ~/.local/state/tenon; "" where none of them is known. Makes nothing. Paths
// that are not absolute do not count, except in TENON_STATE_DIR.
std::string state_directory(const std::function<std::string(const char*)>& environment);
std::string state_directory();

// Makes |path| and what is missing above it, for this user only (0700). Throws permission_denied or unavailable with the reason;
// also when |path| is something else than a folder.
void make_private_directory(const std::string& path);

}  // namespace tenon
