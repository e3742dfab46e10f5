# Every outside library, found once. One adapter file or folder uses each (docs/architecture.md).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS json)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(libmount REQUIRED IMPORTED_TARGET mount)
pkg_check_modules(libblkid REQUIRED IMPORTED_TARGET blkid)
pkg_check_modules(libext2fs REQUIRED IMPORTED_TARGET ext2fs com_err)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(liburing REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(libxxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(libcrypto REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(libssl REQUIRED IMPORTED_TARGET libssl)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
# By pkg-config: its CMake file also asks for the libraries of its own web server and client, which are not used.
pkg_check_modules(prometheus REQUIRED IMPORTED_TARGET prometheus-cpp-core)

# Debian's libnvme.pc asks for private -dev packages that libnvme-dev does not pull in: found without it.
find_path(LIBNVME_INCLUDE libnvme.h REQUIRED)
find_library(LIBNVME_LIBRARY nvme REQUIRED)
add_library(spark_libnvme INTERFACE)
target_include_directories(spark_libnvme SYSTEM INTERFACE ${LIBNVME_INCLUDE})
target_link_libraries(spark_libnvme INTERFACE ${LIBNVME_LIBRARY})

if(SPARK_TESTS)
  find_package(GTest REQUIRED)
endif()

# Newer yaml-cpp (Debian 13) names its target yaml-cpp::yaml-cpp.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# Debian installs Boost.Asio and Beast as headers only.
add_library(spark_asio INTERFACE)
target_link_libraries(spark_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(spark_asio INTERFACE BOOST_ASIO_NO_DEPRECATED)
target_compile_options(spark_asio INTERFACE ${SPARK_FEWER_CHECKS})
# A false alarm of g++ 12's optimiser about the frames that Asio allocates for coroutines.
target_compile_options(spark_asio INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)

# Slurm's plugin alone needs these. Fuzzing uses clang, whose flags the C compiler does not know.
if(SPARK_FUZZ)
  set(SPARK_SLURM OFF)
endif()
if(NOT SPARK_SLURM STREQUAL "OFF")
  find_path(SLURM_INCLUDE slurm/spank.h)
  pkg_check_modules(jsonc IMPORTED_TARGET json-c)
endif()
set(SPARK_WITH_SLURM OFF)
if(NOT SPARK_SLURM STREQUAL "OFF" AND SLURM_INCLUDE AND jsonc_FOUND)
  set(SPARK_WITH_SLURM ON)
elseif(SPARK_SLURM STREQUAL "ON")
  message(FATAL_ERROR "SPARK_SLURM needs slurm/spank.h and json-c: install libslurm-dev and libjson-c-dev")
elseif(SPARK_SLURM STREQUAL "AUTO")
  message(STATUS "Slurm's plugin is not built: libslurm-dev or libjson-c-dev is missing")
endif()
