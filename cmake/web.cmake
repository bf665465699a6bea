# The page: web/ built with npm and Vite, and compiled into the server (src/server/http/web_files.h).
#
# Adds the generated source to tenon_server. Without Node.js and npm, or with TENON_WEB off, the table of files is empty and the
# server says that it has no page. TENON_WEB_BUILT tells whether there is one.
option(TENON_WEB "Build the page into the server (needs Node.js 18 and npm)" ON)

find_program(NODE_PROGRAM NAMES node nodejs)
find_program(NPM_PROGRAM NAMES npm)
find_program(FLOCK_PROGRAM NAMES flock)
set(TENON_WEB_BUILT OFF)
set(web_missing "")
if(NOT TENON_WEB)
  set(web_missing "TENON_WEB is off")
elseif(NOT NODE_PROGRAM OR NOT NPM_PROGRAM OR NOT FLOCK_PROGRAM)
  set(web_missing "Node.js, npm or flock is not installed (Debian: nodejs npm util-linux)")
else()
  execute_process(COMMAND ${NODE_PROGRAM} --version OUTPUT_VARIABLE node_version OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "v" "" node_version "${node_version}")
  if(node_version VERSION_LESS 18)
    set(web_missing "Node.js 18 or newer is needed, this is ${node_version}")
  else()
    set(TENON_WEB_BUILT ON)
  endif()
endif()

set(TENON_WEB_DIR ${CMAKE_BINARY_DIR}/web)
set(web_source ${TENON_WEB_DIR}/web_files.cpp)
if(TENON_WEB_BUILT)
  file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  add_custom_command(OUTPUT ${web_source}
    COMMAND ${CMAKE_SOURCE_DIR}/web/build ${TENON_WEB_DIR}
    DEPENDS ${web_sources} ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/package-lock.json
      ${CMAKE_SOURCE_DIR}/web/vite.config.mjs ${CMAKE_SOURCE_DIR}/web/tsconfig.json ${CMAKE_SOURCE_DIR}/web/embed.mjs ${CMAKE_SOURCE_DIR}/web/build
    COMMENT "Building the page" VERBATIM)
else()
  message(STATUS "The server is built without its page: ${web_missing}")
  file(CONFIGURE OUTPUT ${web_source} CONTENT [[
#include "server/http/web_files.h"

namespace tenon::server {
std::span<const WebFile> web_files() noexcept { return {}; }
}  // namespace tenon::server
]])
endif()
add_custom_target(tenon_web DEPENDS ${web_source})
target_sources(tenon_server PRIVATE ${web_source})
add_dependencies(tenon_server tenon_web)
