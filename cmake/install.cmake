# One library for those who build on Tenon: every room in libtenon.so, with the public headers, a CMake package
# (find_package(tenon), target tenon::tenon) and a pkg-config file (tenon).
include(CMakePackageConfigHelpers)

set(TENON_ROOMS base array math graph ops expression reference codegen device hal lease backends manager tensor mesh model present diagnose)

# All objects of all rooms: a user of the library may need any of them, whatever the others refer to. The rooms are linked as
# well for what they in turn link; their archives then have nothing left to add.
add_library(tenon_library SHARED)
foreach(room ${TENON_ROOMS})
  target_sources(tenon_library PRIVATE $<TARGET_OBJECTS:tenon_${room}>)
  target_link_libraries(tenon_library PRIVATE tenon_${room})
endforeach()
set_target_properties(tenon_library PROPERTIES
  OUTPUT_NAME tenon EXPORT_NAME tenon LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 0
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_options(tenon_library PRIVATE -Wl,--version-script,${CMAKE_SOURCE_DIR}/cmake/exported.map -Wl,-Bsymbolic-functions -Wl,-O1)
set_target_properties(tenon_library PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/exported.map)
# Its own copy, seen by nobody else, of a function that older systems lack: with it the library loads where glibc is 2.34 or later.
add_library(tenon_older_libstdcxx STATIC ${CMAKE_SOURCE_DIR}/cmake/older_libstdcxx.cpp)
target_link_libraries(tenon_library PRIVATE tenon_older_libstdcxx)
target_compile_features(tenon_library PUBLIC cxx_std_20)
target_include_directories(tenon_library PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS tenon_library EXPORT tenon LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tenon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Shell completion, as the program itself prints it.
set(bash_completion ${CMAKE_INSTALL_DATADIR}/bash-completion/completions tenon)
set(zsh_completion ${CMAKE_INSTALL_DATADIR}/zsh/site-functions _tenon)
set(fish_completion ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d tenon.fish)
foreach(shell bash zsh fish)
  list(GET ${shell}_completion 0 directory)
  list(GET ${shell}_completion 1 file)
  set(script ${CMAKE_BINARY_DIR}/completion/${shell})
  add_custom_command(OUTPUT ${script} COMMAND tenon completion ${shell} > ${script} DEPENDS tenon VERBATIM)
  list(APPEND completion_scripts ${script})
  install(FILES ${script} DESTINATION ${directory} RENAME ${file})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completion)
add_custom_target(tenon_completion ALL DEPENDS ${completion_scripts})

# The manual page likewise.
set(manual_page ${CMAKE_BINARY_DIR}/tenon.1)
add_custom_command(OUTPUT ${manual_page} COMMAND tenon man > ${manual_page} DEPENDS tenon VERBATIM)
add_custom_target(tenon_manual ALL DEPENDS ${manual_page})
install(FILES ${manual_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/packaging/haproxy DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/packaging/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon USE_SOURCE_PERMISSIONS)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
install(EXPORT tenon NAMESPACE tenon:: FILE tenonTargets.cmake DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/tenonConfig.cmake.in ${CMAKE_BINARY_DIR}/tenonConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tenonConfig.cmake ${CMAKE_BINARY_DIR}/tenonConfigVersion.cmake DESTINATION ${package_dir})

# Relative, so that an installed tree can be moved.
file(RELATIVE_PATH TENON_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/tenon.pc.in ${CMAKE_BINARY_DIR}/tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
