# One library and one test program a room of src/ (docs/ARCHITECTURE.md).
#
#   wring_room(NAME SOURCES a.cc ... [TESTS a_test.cc ...] [DEPS lower rooms and libraries] [NO_PCH])
#
# The library is wring_NAME; the tests link it and are found by ctest one by one. Target unit_tests builds all tests and
# no program.
add_custom_target(unit_tests)

function(wring_room name)
  cmake_parse_arguments(ARG "NO_PCH" "" "SOURCES;TESTS;DEPS" ${ARGN})
  add_library(wring_${name} STATIC ${ARG_SOURCES})
  target_include_directories(wring_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(wring_${name} PUBLIC ${ARG_DEPS})
  # Large library headers cost more than our code: they are compiled once a room. Sources include what they use all the same.
  set(headers <fmt/format.h>)
  if("nlohmann_json::nlohmann_json" IN_LIST ARG_DEPS)
    list(APPEND headers <nlohmann/json.hpp>)
  endif()
  if(NOT ARG_NO_PCH)
    target_precompile_headers(wring_${name} PRIVATE ${headers})
  endif()
  if(ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    add_dependencies(unit_tests ${name}_test)
    target_link_libraries(${name}_test PRIVATE wring_${name} GTest::gmock GTest::gtest_main)
    if(NOT ARG_NO_PCH)
      target_precompile_headers(${name}_test PRIVATE ${headers} <gmock/gmock.h> <gtest/gtest.h>)
    endif()
    target_compile_definitions(${name}_test PRIVATE WRING_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
