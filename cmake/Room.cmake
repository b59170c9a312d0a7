# One library and one test program a room of src/ (docs/ARCHITECTURE.md).
#
#   wring_room(NAME SOURCES a.cc ... [TESTS a_test.cc ...] [DEPS lower rooms and libraries] [ONE_BY_ONE])
#
# The library is wring_NAME; the tests link it and are found by ctest one by one. Target unit_tests builds all tests and
# no program. With ONE_BY_ONE its sources and tests are neither compiled together nor with precompiled headers.
add_custom_target(unit_tests)

# Large library headers cost more than our code. Either the sources of a target are compiled together, a few files at a
# time (CMAKE_UNITY_BUILD: presets release, asan and tsan), or the headers are compiled once for the target (preset dev,
# which shows that each source includes what it uses).
function(wring_share_headers target)
  if(CMAKE_UNITY_BUILD)
    # A type of an unnamed namespace as a member: a fault in a header, but here the header's place is taken by a source.
    # And Clang takes a local constant for shadowing one of another source.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

function(wring_room name)
  cmake_parse_arguments(ARG "ONE_BY_ONE" "" "SOURCES;TESTS;DEPS" ${ARGN})
  if(ARG_ONE_BY_ONE)
    set(CMAKE_UNITY_BUILD OFF)
  endif()
  set(headers <fmt/format.h>)
  if("nlohmann_json::nlohmann_json" IN_LIST ARG_DEPS)
    list(APPEND headers <nlohmann/json.hpp>)
  endif()
  add_library(wring_${name} STATIC ${ARG_SOURCES})
  target_include_directories(wring_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(wring_${name} PUBLIC ${ARG_DEPS})
  if(NOT ARG_ONE_BY_ONE)
    wring_share_headers(wring_${name} ${headers})
  endif()
  if(ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    add_dependencies(unit_tests ${name}_test)
    target_link_libraries(${name}_test PRIVATE wring_${name} GTest::gmock GTest::gtest_main)
    if(NOT ARG_ONE_BY_ONE)
      wring_share_headers(${name}_test ${headers} <gmock/gmock.h> <gtest/gtest.h>)
      # Most tests run once a build: optimising their matchers takes longer than running them.
      target_compile_options(${name}_test PRIVATE -O0)
    endif()
    target_compile_definitions(${name}_test PRIVATE WRING_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
