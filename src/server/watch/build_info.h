// What this program was built from, as far as the build knew.
#pragma once

#include <ctime>
#include <string>

namespace tenon::server {

struct BuildInfo {
  std::string commit;   // "" outside a repository
  std::string subject;  // of the commit
  std::time_t commit_time = 0;
  std::string compiler;
};
const BuildInfo& build_info();

}  // namespace tenon::server
