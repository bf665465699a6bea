#include "server/watch/build_info.h"

#include "server_build.h"  // written by CMake: TENON_COMMIT, TENON_COMMIT_TIME, TENON_COMMIT_SUBJECT

namespace tenon::server {

const BuildInfo& build_info() {
  static const BuildInfo info{TENON_COMMIT, TENON_COMMIT_SUBJECT, TENON_COMMIT_TIME,
#ifdef __clang__
                              "clang " __clang_version__
#else
                              "gcc " __VERSION__
#endif
  };
  return info;
}

}  // namespace tenon::server
