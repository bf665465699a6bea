# The files of per_level/ are compiled once per instruction set; the rest of the room only once, for the baseline.
set(cpu_kernel_sources f32.cpp bf16.cpp scalar.cpp convert.cpp reduce.cpp memory.cpp transpose.cpp)
if(TARGET tenon_vector_functions)
  list(APPEND cpu_kernel_sources f64.cpp)
endif()
list(TRANSFORM cpu_kernel_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/per_level/)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(cpu_levels 2 3 4)
else()
  set(cpu_levels 0)
endif()

set(cpu_kernel_objects)
foreach(level ${cpu_levels})
  set(target tenon_cpu_kernels_v${level})
  add_library(${target} OBJECT ${cpu_kernel_sources})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
  # Optimised in every build type: a std:: function that is not inlined would be emitted as a weak symbol, and the linker may
  # keep the AVX-512 copy for everyone. No contraction: the code says where it wants a fused multiply-add. Signed zeros and
  # NaNs count, but nobody reads errno or traps: the compiler may use vector instructions where a trap flag would differ.
  target_compile_definitions(${target} PRIVATE TENON_CPU_LEVEL=${level})
  if(TARGET tenon_vector_functions)
    target_compile_definitions(${target} PRIVATE TENON_HAS_VECTOR_FUNCTIONS)
  endif()
  target_compile_options(${target} PRIVATE -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(level GREATER 0)
    target_compile_options(${target} PRIVATE -march=x86-64-v${level} -mtune=generic)
  endif()
  # CPUs without AVX2 are few: what serves only them is kept small.
  if(level EQUAL 2)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wno-pass-failed)
  else()
    # g++ 12 takes its own AVX-512 header for uninitialised.
    target_compile_options(${target} PRIVATE -Wno-psabi -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  list(APPEND cpu_kernel_objects $<TARGET_OBJECTS:${target}>)
endforeach()
target_sources(tenon_backends PRIVATE ${cpu_kernel_objects})

# The test that looks for weak symbols reads the list of objects from here.
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/cpu_kernel_objects.txt CONTENT "$<JOIN:${cpu_kernel_objects},\n>\n")
