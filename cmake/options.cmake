# What can be chosen at configure time, and the flags that every target of ours gets.
option(SPARK_TESTS "build the unit tests" ON)
option(SPARK_FUZZ "build the fuzzers (clang only)" OFF)
option(SPARK_HARDEN "for programs that others get: checks of the compiler and the linker, no paths of this machine" OFF)
set(SPARK_SLURM AUTO CACHE STRING "build Slurm's plugin: ON, OFF, or AUTO where Slurm's headers are")
set(SPARK_SLURM_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/slurm-wlm CACHE STRING "where Slurm looks for plugins (PluginDir)")
set(SPARK_CSI AUTO CACHE STRING "build the Kubernetes driver: ON, OFF, or AUTO where gRPC is")
set(SPARK_SANITIZE "" CACHE STRING "sanitizers for -fsanitize=, for example address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(spark_flags INTERFACE)
target_compile_options(spark_flags INTERFACE -Wall -Wextra -Wpedantic -Werror)
# g++ 12 and 14 find overflows and overlaps in `text + std::string` that are none (GCC bugs 105329 and 105651).
target_compile_options(
  spark_flags INTERFACE "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>")
target_compile_definitions(spark_flags INTERFACE _FILE_OFFSET_BITS=64)
# What Debian's own packages are built with.
if(SPARK_HARDEN)
  target_compile_definitions(spark_flags INTERFACE _FORTIFY_SOURCE=2)
  target_compile_options(spark_flags INTERFACE -fstack-protector-strong -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  target_link_options(spark_flags INTERFACE LINKER:-z,relro,-z,now)
endif()
if(SPARK_SANITIZE)
  # Of the folder, so that they stand before what a library takes out again (dependencies.cmake).
  add_compile_options(-fsanitize=${SPARK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(spark_flags INTERFACE -fsanitize=${SPARK_SANITIZE})
  # For tests, and for code that waits in coroutines, which is mostly Asio's own, in headers: checks of each pointer, which
  # AddressSanitizer makes nearly as well, are two fifths of the build there. What reads untrusted bytes keeps them.
  if(SPARK_SANITIZE MATCHES "undefined")
    set(SPARK_FEWER_CHECKS -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 can't do both in a coroutine: "Cannot represent a difference across sections" (llvm/llvm-project#49689).
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=function>)
    # g++ defines it.
    if(SPARK_SANITIZE MATCHES "address")
      add_compile_definitions(__SANITIZE_ADDRESS__=1)
    endif()
  endif()
  # g++'s sanitizer instrumentation makes the optimiser report impossible paths in the standard library.
  target_compile_options(spark_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>)
endif()
if(SPARK_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "SPARK_FUZZ needs clang (libFuzzer): use cmake --preset fuzz")
endif()
