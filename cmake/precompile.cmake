# Faster builds from nothing: most of the time goes into templates that every file makes anew.
option(SPARK_WHOLE "for builds that are made once: a folder's files are compiled 24 at a time" OFF)
set(CMAKE_UNITY_BUILD ${SPARK_WHOLE})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
if(SPARK_WHOLE)
  # In one translation unit the coroutines of a "header" hold types of an unnamed namespace: that is meant here.
  target_compile_options(spark_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

# Outside headers that most files include, compiled once for each of three kinds of target: more than half of the time
# from nothing. Of no use to ccache, so where that is, it is used instead. They hide a forgotten #include; clang-tidy,
# which runs without them, finds it.
if(CCACHE AND NOT SPARK_WHOLE)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(SPARK_PCH "precompile the large outside headers" ${precompile})

# spark_precompiled(NAME HEADERS … LIBRARIES …): a target that holds nothing but its precompiled headers.
function(spark_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;LIBRARIES" ${ARGN})
  set(empty ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE spark_flags Boost::json tl::expected ${arg_LIBRARIES})
  target_precompile_headers(${name} PRIVATE
    <boost/json.hpp> <tl/expected.hpp> <chrono> <filesystem> <functional> <memory> <string> <vector> ${arg_HEADERS})
endfunction()
if(SPARK_PCH)
  spark_precompiled(spark_pch)
  spark_precompiled(spark_pch_asio HEADERS <boost/asio.hpp> LIBRARIES spark_asio)
  if(SPARK_TESTS)
    spark_precompiled(spark_pch_test HEADERS <gmock/gmock.h> <gtest/gtest.h> LIBRARIES GTest::gmock)
  endif()
endif()

# spark_precompile(NAME LIBRARIES …): those that fit what the target is linked with.
function(spark_precompile name)
  set(pch spark_pch)
  if(spark_asio IN_LIST ARGN)
    set(pch spark_pch_asio)
  elseif(GTest::gmock IN_LIST ARGN)
    set(pch spark_pch_test)
  endif()
  if(SPARK_PCH)
    target_precompile_headers(${name} REUSE_FROM ${pch})
  endif()
endfunction()
