# One function declares a module (a folder of src/), one a test program.
include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
find_package(Threads REQUIRED)

add_library(pallas_options INTERFACE)
target_compile_options(pallas_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror)
# GCC 12 reports overlaps inside std::string that cannot happen (GCC bug 105651).
target_compile_options(pallas_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
target_include_directories(pallas_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_definitions(pallas_options INTERFACE PALLAS_VERSION="${PROJECT_VERSION}")

if(PALLAS_SANITIZE)
  # -fno-sanitize=function: clang 14 cannot compile coroutines under it.
  set(flags -fsanitize=${PALLAS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  if(PALLAS_SANITIZE MATCHES "undefined")
    list(APPEND flags -fno-sanitize=function,vptr)
  endif()
  if(PALLAS_FUZZ)
    list(APPEND flags -fsanitize=fuzzer-no-link)
  endif()
  add_compile_options(${flags})
  add_link_options(${flags})
endif()

if(PALLAS_TIDY)
  find_program(PALLAS_CLANG_TIDY NAMES clang-tidy-14 REQUIRED)
endif()

# What the sanitizer, fuzz and tidy stages build, beside everything: all modules without the tests, the
# tests that have threads, the fuzz targets.
add_custom_target(pallas_modules)
add_custom_target(pallas_threads_tests)
add_custom_target(pallas_fuzzers)

# Compiles TARGET quickly: tests, command lines and the UE spend their time elsewhere, and their build is most
# of what a fresh clone waits for.
function(pallas_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 inlines less at -O1 and then sees writes past the end inside std::string that are none.
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Wno-array-bounds -Wno-stringop-overflow>)
  endif()
endfunction()

# pallas_module(NAME SOURCES a.cpp ... DEPS base kv ... LIBS fmt::fmt ...)
# DEPS are other modules of src/, LIBS third-party targets. Modules are static libraries pallas_NAME.
function(pallas_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM arg_DEPS PREPEND pallas_)
  if(arg_SOURCES)
    add_library(pallas_${name} STATIC ${arg_SOURCES})
    add_dependencies(pallas_modules pallas_${name})
    target_link_libraries(pallas_${name} PUBLIC pallas_options ${arg_DEPS} ${arg_LIBS})
    if(PALLAS_TIDY)
      set_target_properties(pallas_${name} PROPERTIES CXX_CLANG_TIDY "${PALLAS_CLANG_TIDY}")
    endif()
  else()
    add_library(pallas_${name} INTERFACE)
    target_link_libraries(pallas_${name} INTERFACE pallas_options ${arg_DEPS} ${arg_LIBS})
  endif()
endfunction()

# pallas_test(NAME SOURCES a_test.cpp ... DEPS module ... [LIBS ...] [LABELS ...] [TIMEOUT s])
# One GoogleTest program NAME; each of its tests becomes a ctest test. LABELS (default: unit) are unit,
# scenario, contract, integration (needs ports or a model, runs alone) and threads (also runs under TSan).
function(pallas_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  list(TRANSFORM arg_DEPS PREPEND pallas_)
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}/tests/support")
  target_link_libraries(${name} PRIVATE pallas_options ${arg_DEPS} ${arg_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  pallas_compile_quickly(${name})
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess)  # else ccache passes on every test source
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  set(alone FALSE)
  if("integration" IN_LIST arg_LABELS)
    set(alone TRUE)
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(pallas_threads_tests ${name})
  endif()
  # One label "unit,threads": gtest_discover_tests loses a list, and ctest -L takes a pattern anyway.
  list(JOIN arg_LABELS "," label)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${label}" RUN_SERIAL ${alone})
endfunction()

# pallas_fuzz(NAME DEPS module ... [SOURCES more.cpp] [INCLUDES folder] [LIBS target])
# What NAME_fuzz.cpp does with one input, as part of the library pallas_fuzz_inputs under the name
# pallas_fuzz_NAME, which the test that runs the corpus calls; with PALLAS_FUZZ also as a libFuzzer program
# bin/fuzz_NAME. The inputs that are always run lie in tests/fuzz/corpus/NAME.
function(pallas_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;INCLUDES;LIBS" ${ARGN})
  list(TRANSFORM arg_DEPS PREPEND pallas_)
  add_library(pallas_fuzz_${name} OBJECT ${name}_fuzz.cpp ${arg_SOURCES})
  target_include_directories(pallas_fuzz_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" ${arg_INCLUDES})
  target_link_libraries(pallas_fuzz_${name} PRIVATE pallas_options ${arg_DEPS} ${arg_LIBS})
  pallas_compile_quickly(pallas_fuzz_${name})
  if(PALLAS_FUZZ)
    add_executable(fuzz_${name} $<TARGET_OBJECTS:pallas_fuzz_${name}>)
    target_link_libraries(fuzz_${name} PRIVATE ${arg_DEPS} ${arg_LIBS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(pallas_fuzzers fuzz_${name})
  else()
    target_compile_definitions(pallas_fuzz_${name} PRIVATE LLVMFuzzerTestOneInput=pallas_fuzz_${name})
    target_sources(fuzz_test PRIVATE $<TARGET_OBJECTS:pallas_fuzz_${name}>)
    target_link_libraries(fuzz_test PRIVATE ${arg_DEPS} ${arg_LIBS})
    set_property(GLOBAL APPEND PROPERTY PALLAS_FUZZ_NAMES ${name})
  endif()
endfunction()
