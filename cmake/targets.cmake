# spark_library(NAME SOURCES a.cpp … [PUBLIC lib …] [PRIVATE lib …])
# One library a folder. PUBLIC: what its headers show; PRIVATE: what only its .cpp files see.
function(spark_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE spark_flags ${arg_PRIVATE})
  spark_precompile(${name} ${arg_PUBLIC} ${arg_PRIVATE})
endfunction()

# spark_program(NAME SOURCES main.cpp … LIBRARIES lib …): an installed executable.
function(spark_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;DESTINATION" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(${name} PRIVATE spark_flags ${arg_LIBRARIES})
  spark_precompile(${name} ${arg_LIBRARIES})
  install(TARGETS ${name} DESTINATION ${arg_DESTINATION})
endfunction()

# spark_test(NAME SOURCES x_test.cpp … LIBRARIES lib …): one GoogleTest program a folder, its cases seen by ctest; in a
# build that is made once all of them are one test, since starting a program takes longer than most cases.
include(GoogleTest)
function(spark_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE spark_flags ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  spark_precompile(${name} ${arg_LIBRARIES} GTest::gmock)
  # g++ 14 has false alarms too, as g++ 12 (options.cmake): of tests, and on arm64.
  target_compile_options(${name} PRIVATE ${SPARK_FEWER_CHECKS}
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>")
  if(SPARK_WHOLE)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT 900)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
  endif()
endfunction()
