# Outside headers that most files of a target include, compiled once for the target: nearly half of the time from
# nothing. Of no use to ccache, so where that is, it is used instead. They hide a forgotten #include; clang-tidy, which
# `make check` runs without them, finds it.
if(CCACHE)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(SPARK_PCH "precompile the large outside headers" ${precompile})

# spark_precompile(NAME LIBRARIES …): the large headers of what the target is linked with.
function(spark_precompile name)
  get_target_property(sources ${name} SOURCES)
  list(LENGTH sources count)
  if(NOT SPARK_PCH OR count LESS 4)
    return()
  endif()
  set(headers <boost/json.hpp> <tl/expected.hpp> <chrono> <filesystem> <functional> <memory> <string> <vector>)
  if(spark_asio IN_LIST ARGN)
    list(APPEND headers <boost/asio.hpp>)
  endif()
  if(CLI11::CLI11 IN_LIST ARGN)
    list(APPEND headers <CLI/CLI.hpp>)
  endif()
  if(GTest::gmock IN_LIST ARGN)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()
