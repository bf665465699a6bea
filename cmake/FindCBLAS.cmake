# Finds a CBLAS: BLIS where there is one (the faster of the two at small and middle sizes), else OpenBLAS.
#   CBLAS::CBLAS   the library and its header, <cblas.h>
#   CBLAS_VENDOR   BLIS or OpenBLAS
# CBLAS_LIBRARY and CBLAS_INCLUDE_DIR, when set, choose another.
find_library(CBLAS_LIBRARY NAMES blis PATH_SUFFIXES blis-openmp blis-serial)
find_library(CBLAS_LIBRARY NAMES openblas PATH_SUFFIXES openblas-pthread openblas-serial)

# Both headers declare the same functions; either serves either library.
find_path(CBLAS_INCLUDE_DIR NAMES cblas.h PATH_SUFFIXES openblas blis openblas-pthread blis-openmp)

if(CBLAS_LIBRARY MATCHES "blis")
  set(CBLAS_VENDOR BLIS)
else()
  set(CBLAS_VENDOR OpenBLAS)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBLAS REQUIRED_VARS CBLAS_LIBRARY CBLAS_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libblis-dev or libopenblas-dev")
mark_as_advanced(CBLAS_LIBRARY CBLAS_INCLUDE_DIR)

if(CBLAS_FOUND AND NOT TARGET CBLAS::CBLAS)
  add_library(CBLAS::CBLAS UNKNOWN IMPORTED)
  set_target_properties(CBLAS::CBLAS PROPERTIES
    IMPORTED_LOCATION "${CBLAS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CBLAS_INCLUDE_DIR}")
endif()
