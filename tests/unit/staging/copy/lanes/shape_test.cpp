#include "staging/copy/lanes/shape.hpp"

#include <gtest/gtest.h>

namespace spark::staging {
namespace {

TEST(Shape, IsWhatTheOptionsAskFor) {
  CopyOptions options;
  options.threads = 1;
  EXPECT_EQ(shape_of(options), (Shape{1, 1, 4 * kMiB}));
  options.threads = 2;
  options.depth = 32;
  options.chunk = 100'000;
  EXPECT_EQ(shape_of(options), (Shape{2, 16, 128 * kKiB}));
}

}  // namespace
}  // namespace spark::staging
