# `cpack -G DEB` (tools/package) makes a Debian package of everything that is installed, with the service unit and its account.
#
# The unit is no part of `cmake --install`: it starts /usr/bin/tenon, where only a package puts the program.
install(FILES ${CMAKE_SOURCE_DIR}/packaging/tenon.service DESTINATION lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/tenon.sysusers DESTINATION lib/sysusers.d RENAME tenon.conf COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/tenon.tmpfiles DESTINATION lib/tmpfiles.d RENAME tenon.conf COMPONENT service EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/debian/copyright DESTINATION share/doc/tenon COMPONENT service EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_CONTACT "Tenon contributors <contributors@tenon.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Tensors on any device")
set(CPACK_PACKAGE_DESCRIPTION "Finds every accelerator of a machine, leases one for exactly as long as there is work, shares it
 fairly between threads and processes, and runs the same tensor program on any of them. With the
 command, the server and its page, and the C++ library with its headers.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};tenon;ALL;/;${CMAKE_BINARY_DIR};tenon;service;/")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "systemd, ocl-icd-libopencl1, pkg-config, g++")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packaging/debian/postinst ${CMAKE_SOURCE_DIR}/packaging/debian/prerm
  ${CMAKE_SOURCE_DIR}/packaging/debian/postrm ${CMAKE_SOURCE_DIR}/packaging/debian/triggers)
include(CPack)
