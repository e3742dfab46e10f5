// Tests of a real kernel that not every computer can run.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace spark::test {

// As in `make check`, where nobody reads the reasons of tests that were skipped. Root can run all of them.
inline bool must_run() {
  return std::getenv("SPARK_MUST_RUN") != nullptr && ::geteuid() == 0;
}

}  // namespace spark::test

// Skips the test, with the reason. With SPARK_MUST_RUN it fails instead.
#define SPARK_SKIP(why)                             \
  do {                                              \
    if (::spark::test::must_run()) FAIL() << (why); \
    GTEST_SKIP() << (why);                          \
  } while (false)
