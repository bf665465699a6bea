# The HTTP server: Boost's Asio, Beast and JSON are headers; libsodium checks passwords where it is there.
tenon_room(server ROOMS diagnose PRECOMPILED json)
target_compile_definitions(tenon_server PRIVATE TENON_VERSION="${PROJECT_VERSION}")
find_path(SODIUM_INCLUDE_DIR sodium.h)
find_library(SODIUM_LIBRARY sodium)
if(SODIUM_INCLUDE_DIR AND SODIUM_LIBRARY)
  target_include_directories(tenon_server SYSTEM PRIVATE ${SODIUM_INCLUDE_DIR})
  target_link_libraries(tenon_server PRIVATE ${SODIUM_LIBRARY})
  target_compile_definitions(tenon_server PRIVATE TENON_HAS_SODIUM)
else()
  message(STATUS "libsodium was not found: the server knows bearer tokens, but no passwords")
endif()

if(ZLIB_FOUND)
  target_link_libraries(tenon_server PRIVATE ZLIB::ZLIB)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/server/http/body/content_encoding.cpp PROPERTIES COMPILE_DEFINITIONS TENON_HAS_ZLIB)
endif()

set(server_build ${CMAKE_BINARY_DIR}/server_build/server_build.h)
add_custom_target(tenon_server_build
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${server_build} -P ${CMAKE_SOURCE_DIR}/cmake/build_info.cmake
  BYPRODUCTS ${server_build})
add_dependencies(tenon_server tenon_server_build)
target_include_directories(tenon_server PRIVATE ${CMAKE_BINARY_DIR}/server_build)

include(web)
