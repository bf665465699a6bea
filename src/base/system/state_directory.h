// The folder in which Tenon keeps data between runs: measured profiles and the ledger.
#pragma once

#include <functional>
#include <string>

namespace tenon {

// $TENON_STATE_DIR, else $XDG_STATE_HOME/tenon, else ~/.local/state/tenon; "" if none of them is known. Creates nothing. Relative
// paths are ignored, except in TENON_STATE_DIR.
std::string state_directory(const std::function<std::string(const char*)>& environment);
std::string state_directory();

// Creates |path| and its missing parents, accessible only to this user (0700). Throws permission_denied or unavailable with the
// reason, also if |path| is not a folder.
void make_private_directory(const std::string& path);

}  // namespace tenon
