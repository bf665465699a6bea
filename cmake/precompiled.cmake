# Precompiled headers: what most files include is parsed once per build instead of once per file, which halves the time a first
# build takes. They are off where ccache is: such a header holds the absolute path of its build directory, so that trees beside
# each other could not share what they compiled, and a build without them finds a missing #include.
if(CCACHE)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(TENON_PRECOMPILE "Precompile headers (default: where ccache is not installed)" ${precompile})

# Of the standard library and fmt, and the contracts that nearly every room above array includes.
set(TENON_COMMON_HEADERS
  <algorithm> <array> <atomic> <bit> <cerrno> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstdlib> <cstring>
  <deque> <exception> <filesystem> <fstream> <functional> <iterator> <limits> <list> <map> <memory> <mutex> <numeric> <optional>
  <set> <span> <sstream> <stop_token> <string> <string_view> <thread> <type_traits> <unordered_map> <utility> <variant> <vector>
  <unistd.h> <fmt/format.h>
  <tenon/error.h> <tenon/array.h> <tenon/graph.h> <tenon/device.h> <tenon/backend.h>)

# tenon_precompiled(NAME [FOR_PROGRAMS] [LINK library...] [HEADERS header...] [OPTIONS option...])
# A set of headers, the common ones and HEADERS, that targets take with tenon_use_precompiled(TARGET NAME): libraries, or programs
# with FOR_PROGRAMS, whose code is position independent in another way. OPTIONS are those with which the targets are compiled.
function(tenon_precompiled NAME)
  if(NOT TENON_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(SET "FOR_PROGRAMS" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  add_library(tenon_precompiled_${NAME} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled.cpp)
  target_include_directories(tenon_precompiled_${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(tenon_precompiled_${NAME} PRIVATE fmt::fmt Threads::Threads ${SET_LINK})
  target_compile_options(tenon_precompiled_${NAME} PRIVATE ${SET_OPTIONS})
  if(SET_FOR_PROGRAMS)
    set_target_properties(tenon_precompiled_${NAME} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(tenon_precompiled_${NAME} PRIVATE -fPIE)
  endif()
  target_precompile_headers(tenon_precompiled_${NAME} PRIVATE ${TENON_COMMON_HEADERS} ${SET_HEADERS})
endfunction()

function(tenon_use_precompiled TARGET NAME)
  if(TENON_PRECOMPILE)
    target_precompile_headers(${TARGET} REUSE_FROM tenon_precompiled_${NAME})
  endif()
endfunction()

tenon_precompiled(common)
tenon_precompiled(small OPTIONS $<$<CONFIG:Release>:-Os>)
tenon_precompiled(json HEADERS <boost/json.hpp>)
